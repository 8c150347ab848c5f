package stack

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// Local is what the scripts of deploy/dev start on a developer's machine, with their files in .dev.
type Local struct {
	testing.TB // of RunWithTB

	root    string    // of the repository
	out     io.Writer // for steps
	dev     string    // the directory .dev
	state   string    // directory of the data and logs
	keys    secrets
	lock    *os.File // held by this process, and by its programs
	started []*Program
	minio   string // path of MinIO
	address struct{ postgres, minio string }
}

// NewLocal returns the programs of the repository with a root, which prints steps.
func NewLocal(tb testing.TB, root string, out io.Writer) *Local {
	tb.Helper()
	return &Local{TB: tb, root: root, out: out, dev: filepath.Join(root, ".dev")}
}

// secrets is a directory with a file for each secret.
type secrets string

// make returns a secret, which it generates the first time.
func (s secrets) make(tb testing.TB, name string, generate func() string) string {
	tb.Helper()
	path := filepath.Join(string(s), name)
	if content, err := os.ReadFile(path); err == nil && len(content) > 0 {
		return strings.TrimSuffix(string(content), "\n")
	}
	makeDirectory(tb, 0o700, string(s))
	secret := generate()
	testenv.Do(tb, os.WriteFile(path+".new", []byte(secret), 0o600))
	testenv.Do(tb, os.Rename(path+".new", path))
	return secret
}

// hex returns a secret of random bytes.
func (s secrets) hex(tb testing.TB, name string, bytes int) string {
	tb.Helper()
	return s.make(tb, name, func() string { return hex.EncodeToString(random(bytes)) })
}

func (s secrets) path(name string) string { return filepath.Join(string(s), name) }

func random(n int) []byte {
	bytes := make([]byte, n)
	_, _ = rand.Read(bytes) // never fails
	return bytes
}

// step announces work, and prints how long it took.
func (l *Local) step(name string, work func()) {
	_, _ = fmt.Fprintf(l.out, "==> %s … ", name)
	began, result := time.Now(), "failed"
	defer func() {
		if l.Context().Err() != nil {
			result = "stopped"
		}
		_, _ = fmt.Fprintln(l.out, result)
	}()
	work()
	result = fmt.Sprintf("%.1f s", time.Since(began).Seconds())
}

// script runs a script of deploy/dev, which prints its own steps.
func (l *Local) script(name string, arguments ...string) {
	command := l.command(filepath.Join(l.root, "deploy/dev", name), arguments...)
	command.Dir = l.root
	if err := command.Run(); err != nil {
		l.Fatalf("deploy/dev/%s: %v", name, err)
	}
}

// openLock returns the file of a lock, which its programs inherit: it stays locked until they, too, have
// ended.
func openLock(tb testing.TB, path string) *os.File {
	tb.Helper()
	file := testenv.Must(os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644))(tb)
	tb.Cleanup(func() { _ = file.Close() })
	return file
}

// tryLock takes a lock and reports whether it was free.
func tryLock(file *os.File) bool {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// holder returns the process that has written its ID into the file of a lock, 0 if it has ended.
func holder(tb testing.TB, file *os.File) (pid int) {
	tb.Helper()
	if _, err := fmt.Sscan(read(tb, file.Name()), &pid); err != nil || syscall.Kill(pid, 0) != nil {
		return 0
	}
	return pid
}

// lockRun takes the lock of make run. Programs of one that was killed end by themselves, which it
// waits for.
func (l *Local) lockRun() {
	l.lock = openLock(l, filepath.Join(l.dev, "run.lock"))
	if !tryLock(l.lock) {
		if pid := holder(l, l.lock); pid != 0 {
			l.Fatalf("it is already running here, as process %d", pid)
		}
		await(l, "the programs of an earlier run end", func() bool { return tryLock(l.lock) })
	}
	testenv.Do(l, l.lock.Truncate(0))
	testenv.Must(fmt.Fprintln(l.lock, os.Getpid()))(l)
}

// Stop stops make run, and waits for programs of runs that were killed. It fails while tests run.
func (l *Local) Stop() {
	stages, _ := filepath.Glob(filepath.Join(l.dev, "test/*/lock"))
	for _, stage := range stages {
		if lock := openLock(l, stage); !tryLock(lock) && holder(l, lock) != 0 {
			l.Fatal("tests are running")
		}
	}
	lock := openLock(l, filepath.Join(l.dev, "run.lock"))
	if tryLock(lock) {
		return
	}
	l.step("stopping make run", func() {
		if pid := holder(l, lock); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
		await(l, "make run ends", func() bool { return tryLock(lock) })
	})
}

func listens(port int) bool {
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)) //nolint:noctx // on loopback it is answered at once
	return err == nil && conn.Close() == nil
}

// listener says which program listens at a port, if ss exists and has the permission.
func listener(tb testing.TB, port int) string {
	tb.Helper()
	found, _ := exec.CommandContext(tb.Context(), "ss", "-Hltnp", fmt.Sprintf("sport = :%d", port)).Output()
	if program := regexp.MustCompile(`\(\("([^"]*)",pid=(\d+)`).FindSubmatch(found); program != nil {
		return fmt.Sprintf(" by %s, process %s", program[1], program[2])
	}
	return ""
}

// stablePort returns the address of a free port that depends on a name and the checkout only, unless
// it is taken.
func (l *Local) stablePort(name string) string {
	return freeAddressNear(l, int(crc32.ChecksumIEEE([]byte(l.root+" "+name))))
}

// startPostgres starts a PostgreSQL with a database for each object store, since rows and their
// objects belong together. It is created in the directory home unless it exists. The role veneer has
// the databases and may create others.
func (l *Local) startPostgres(home, auth string, settings ...string) {
	password := l.keys.hex(l, "database_password", 24)
	p := newPostgres(l, makeDirectory(l, 0o755, home), l.address.postgres, settings...)
	l.supervise("postgres", &p.Program)
	if _, err := os.Stat(p.Data()); err != nil {
		l.step("making a PostgreSQL cluster", func() {
			file := filepath.Join(home, "superuser")
			p.write(l, file, l.keys.hex(l, "postgres_password", 24))
			defer func() { _ = os.Remove(file) }()
			p.create(l, "CREATE ROLE veneer LOGIN CREATEDB PASSWORD '"+password+"'\n"+
				"CREATE ROLE veneer_service LOGIN PASSWORD '"+password+"' ROLE veneer\n"+ // for tests
				"CREATE DATABASE veneer_file OWNER veneer\nCREATE DATABASE veneer_minio OWNER veneer\n", "--pwfile="+file, "--auth="+auth)
		})
	}
	l.step("starting PostgreSQL", func() { p.Start(l) })
}

// databaseURL returns the URL of a database of startPostgres.
func (l *Local) databaseURL(database string) string {
	return fmt.Sprintf("postgres://veneer:%s@%s/%s?sslmode=disable", l.keys.hex(l, "database_password", 24), l.address.postgres, database)
}

// startMinIO builds MinIO, and other tools, and starts it with its data in a directory.
func (l *Local) startMinIO(home string, tools ...string) {
	l.keys.hex(l, "s3_access_key", 10)
	l.keys.hex(l, "s3_secret_key", 20)
	l.script("tools", append(tools, "minio")...)
	l.minio = testenv.Must(filepath.EvalSymlinks(filepath.Join(l.dev, "bin/minio")))(l)
	p := newMinIO("minio", l.minio, home, l.address.minio)
	p.command = append(p.command, makeDirectory(l, 0o755, home, "data"))
	p.environ = append(p.environ, "MINIO_ROOT_USER_FILE="+l.keys.path("s3_access_key"), "MINIO_ROOT_PASSWORD_FILE="+l.keys.path("s3_secret_key"))
	l.supervise("minio", &p)
	l.step("starting MinIO", func() {
		p.Start(l)
		p.awaitInitialized(l, "http://"+l.address.minio)
	})
}

// supervise prepares a program that has not started: its log begins anew and stays, and it holds the lock.
func (l *Local) supervise(name string, p *Program) {
	p.log, p.keepsLog = filepath.Join(makeDirectory(l, 0o755, l.state, "logs"), name+".log"), true
	_ = os.Remove(p.log)
	p.inherited = []*os.File{l.lock}
	l.started = append(l.started, p)
}
