package stack

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

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
	if inMemory && hasMemory() {
		data = memoryOf(l.state)
		testenv.Do(l, os.Mkdir(data, 0o711))
		temporary := makeDirectory(l, 0o700, data, "tmp")
		testenv.Do(l, os.Chmod(temporary, 0o777|os.ModeSticky)) // as /tmp
		// The programs that go test builds stay on disk.
		environ = append(environ, "GOTMPDIR="+cmp.Or(os.Getenv("GOTMPDIR"), os.TempDir()), "TMPDIR="+temporary)
	}
	// The data are removed, so nothing needs to be synced to disk. Tests make many connections, so
	// their passwords are checked without the 4,096 rounds of SCRAM. Benchmarks read a query of core
	// from pg_stat_activity, which by default has 1 KiB of it.
	l.startPostgres(filepath.Join(data, "postgres"), "md5",
		append([]string{"fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=300", "track_activity_query_size=8kB"}, settings...)...)
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
	for _, path := range []string{memoryOf(state), filepath.Join(state, "postgres"), filepath.Join(state, "minio")} {
		_ = os.RemoveAll(path)
	}
}

const sharedMemory = "/dev/shm"

// memoryOf returns the directory in memory for the data of a process: tests make some thousand
// databases and directories of textures, each file of these is synced, and a disk may stop for
// seconds to write what compilers have made.
func memoryOf(state string) string {
	return filepath.Join(sharedMemory, "veneer-test."+filepath.Base(state))
}

// hasMemory reports whether there is a tmpfs with 4 GiB to spare.
func hasMemory() bool {
	const tmpfs, spare = 0x01021994, 4 << 30
	var about syscall.Statfs_t
	err := syscall.Statfs(sharedMemory, &about)
	return err == nil && about.Type == tmpfs && about.Bavail*uint64(about.Bsize) >= spare
}

// afterKill ends a command and removes directories if this process is killed: then its standard input
// ends without a line.
const afterKill = `read -r _ && exit
kill -TERM "-$0"
flock "$1/lock" rm -rf -- "$@"`

// runCommand runs a command to its end and returns its exit status. It is stopped, with its children,
// when the test's context ends.
func (l *Local) runCommand(environ, arguments []string) (status int) {
	command := l.command(arguments[0], arguments[1:]...)
	command.Env, command.WaitDelay = environ, stopTimeout
	testenv.Do(l, command.Start())
	pid := command.Process.Pid
	cleaner := startCleaner(l, afterKill, strconv.Itoa(pid), l.state, memoryOf(l.state))
	err := command.Wait()
	_ = syscall.Kill(-pid, syscall.SIGKILL) // what it has left
	_, _ = cleaner.Write([]byte("\n"))
	if err != nil {
		return max(1, command.ProcessState.ExitCode()) // -1 after a signal
	}
	return 0
}

// command returns a command in a session of its own, which is stopped with its children when the test's
// context ends.
func (l *Local) command(path string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(l.Context(), path, arguments...)
	command.Stdout, command.Stderr = l.out, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	return command
}
