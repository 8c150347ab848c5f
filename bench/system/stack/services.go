package stack

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// RunWithServices runs a command with a PostgreSQL with some settings and a MinIO, whose addresses
// are in its environment, and returns its exit status. Several processes may do so at once. The data
// are removed afterwards, and the logs if the command succeeded; what killed ones have left is removed
// first.
func (l *Local) RunWithServices(inMemory bool, settings, command []string) int {
	stages := makeDirectory(l, 0o755, l.dev, "test")
	starting := openLock(l, filepath.Join(l.dev, "test.lock"))
	await(l, "other tests have started", func() bool { return tryLock(starting) })
	removeStages(l, stages)
	l.state = testenv.Must(os.MkdirTemp(stages, ""))(l) // its logs may outlive it
	testenv.Do(l, os.Chmod(l.state, 0o755))             // the user postgres enters it
	status := 1
	l.Cleanup(func() {
		removeData(l.state)
		if status == 0 {
			_ = os.RemoveAll(l.state)
		}
	})
	l.lock = openLock(l, filepath.Join(l.state, "lock"))
	if !tryLock(l.lock) {
		l.Fatalf("%s is locked", l.lock.Name())
	}
	_, _ = fmt.Fprint(l.lock, os.Getpid())

	// Secrets and, if possible, ports are the same for every run: go test's cache of results depends
	// on the environment variables that a test reads.
	l.keys = secrets(makeDirectory(l, 0o700, l.dev, "test-secrets"))
	l.address.postgres, l.address.minio = l.stablePort("postgres"), l.stablePort("minio")
	environ, data := os.Environ(), l.state
	if inMemory {
		if memory := makeInMemory(l, l.state); memory != "" {
			data = memory
			temporary := makeDirectory(l, 0o700, memory, "tmp")
			testenv.Do(l, os.Chmod(temporary, 0o777|os.ModeSticky)) // as /tmp
			// The programs that go test builds stay on disk.
			environ = append(environ, "GOTMPDIR="+cmp.Or(os.Getenv("GOTMPDIR"), os.TempDir()), "TMPDIR="+temporary)
		}
	}
	// The data are removed, so nothing needs to be synced to disk. Tests make many connections, so
	// their passwords are checked without the 4,096 rounds of SCRAM.
	l.startPostgres(filepath.Join(data, "postgres"), "md5",
		append([]string{"fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=300"}, settings...)...)
	l.startMinIO(filepath.Join(l.state, "minio"))
	_ = starting.Close() // the ports are in use now, so the next process will choose others

	status = l.runCommand(append(environ,
		"STACK_STATE="+l.state,
		"TEST_DATABASE_URL="+l.databaseURL("veneer_minio")+"&connect_timeout=60", // other tests may keep it busy
		"TEST_MINIO_BIN="+l.minio,
		"TEST_S3_ENDPOINT="+l.address.minio,
		"TEST_S3_ACCESS_KEY="+l.keys.hex(l, "s3_access_key", 10),
		"TEST_S3_SECRET_KEY="+l.keys.hex(l, "s3_secret_key", 20),
	), command)
	return status
}

// removeStages removes the directories of processes that were killed, once their programs have
// ended.
func removeStages(tb testing.TB, stages string) {
	tb.Helper()
	paths, _ := filepath.Glob(filepath.Join(stages, "*"))
	for _, path := range paths {
		if tryLock(openLock(tb, filepath.Join(path, "lock"))) {
			removeData(path)
			_ = os.RemoveAll(path)
		}
	}
}

func removeData(state string) {
	if memory, err := os.Readlink(filepath.Join(state, "memory")); err == nil {
		_ = os.RemoveAll(memory)
	}
	for _, name := range []string{"memory", "postgres", "minio"} {
		_ = os.RemoveAll(filepath.Join(state, name))
	}
}

// makeInMemory returns a directory in a tmpfs with 4 GiB to spare, empty if there is none: tests make
// some thousand databases and directories of textures, each file of these is synced, and a disk may stop for seconds to
// write what compilers have made. A link in the state finds it again.
func makeInMemory(tb testing.TB, state string) string {
	tb.Helper()
	const parent, tmpfs, spare = "/dev/shm", 0x01021994, 4 << 30
	var about syscall.Statfs_t
	if err := syscall.Statfs(parent, &about); err != nil || about.Type != tmpfs || about.Bavail*uint64(about.Bsize) < spare {
		return ""
	}
	memory, err := os.MkdirTemp(parent, "veneer-test.") //nolint:usetesting // in memory
	if err != nil {
		return ""
	}
	testenv.Do(tb, os.Symlink(memory, filepath.Join(state, "memory")))
	testenv.Do(tb, os.Chmod(memory, 0o711))
	return memory
}

// afterKill ends a command and removes directories if this process is killed: then its standard input
// ends without a line.
const afterKill = `read -r _ && exit
kill -TERM "-$0"
flock "$1/lock" rm -rf -- "$@"`

// runCommand runs a command to its end and returns its exit status. It is stopped, with its children,
// when the test's context ends.
func (l *Local) runCommand(environ, arguments []string) (status int) {
	command := exec.Command(arguments[0], arguments[1:]...) //nolint:noctx // it is stopped by its process group
	command.Env, command.Stdout, command.Stderr = environ, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	testenv.Do(l, command.Start())
	group := -command.Process.Pid
	directories := []string{strconv.Itoa(-group), l.state}
	if memory, err := os.Readlink(filepath.Join(l.state, "memory")); err == nil {
		directories = append(directories, memory)
	}
	cleaner := startCleaner(l, afterKill, directories...)
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	var err error
	select {
	case err = <-ended:
	case <-l.Context().Done():
		_ = syscall.Kill(group, syscall.SIGTERM)
		select {
		case err = <-ended:
		case <-time.After(stopTimeout):
			_ = syscall.Kill(group, syscall.SIGKILL)
			err = <-ended
		}
	}
	_ = syscall.Kill(group, syscall.SIGKILL) // what it has left
	_, _ = cleaner.Write([]byte("\n"))
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && failed.ExitCode() > 0 {
		return failed.ExitCode()
	}
	if err != nil {
		return 1
	}
	return 0
}
