package blobstore_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// unwritableURL names the variable with the store that a child process of
// TestDirectoryNotWritable checks.
const unwritableURL = "OBJECTS_TEST_UNWRITABLE_URL"

// A store of another user can be read, but is not ready to be written. As root may write
// everywhere, a child process under another account checks it.
func TestDirectoryNotWritable(t *testing.T) {
	t.Parallel()

	if url := os.Getenv(unwritableURL); url != "" {
		reader, err := blobstore.New(blobstore.Config{URL: url, Timeout: time.Minute, ReadOnly: true})
		must(t, err)
		must(t, reader.Ready(t.Context()))
		writer, err := blobstore.New(blobstore.Config{URL: url, Timeout: time.Minute})
		must(t, err)
		err = writer.Ready(t.Context())
		if _, wrong := errors.AsType[config.SettingError](err); !wrong || !strings.HasPrefix(err.Error(), fmt.Sprintf("URL is %q, a directory that this user cannot write to; ", url)) {
			t.Errorf("Ready: %v; want a SettingError that says that this user cannot write", err)
		}
		return
	}

	// Another user can enter neither the directory of a test nor that of its program.
	public := t.TempDir()
	must(t, os.Chmod(filepath.Dir(public), 0o755))
	root, program := filepath.Join(public, "textures"), filepath.Join(public, "program")
	store, err := blobstore.New(blobstore.Config{URL: "file://" + root, Timeout: time.Minute})
	must(t, err)
	must(t, store.Init(t.Context()))
	must(t, store.Ready(t.Context()))
	self, err := os.Executable()
	must(t, err)
	// Copied by another process: a child that a parallel test forks would inherit a file that
	// is open for writing here (ETXTBSY).
	must(t, exec.CommandContext(t.Context(), "cp", self, program).Run())
	must(t, os.Chmod(program, 0o755))

	check := func(unwritable string) {
		t.Helper()
		must(t, os.Chmod(unwritable, 0o555))
		child := exec.CommandContext(t.Context(), program, "-test.run=^TestDirectoryUnwritable$")
		child.Dir = public
		child.Env = append(os.Environ(), unwritableURL+"=file://"+root)
		if os.Geteuid() == 0 {
			child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("with %s: %v: %s", unwritable, err, out)
		}
		must(t, os.Chmod(unwritable, 0o755))
	}
	check(root)
	if os.Geteuid() == 0 {
		must(t, os.Chown(root, 65534, 65534)) // but not its subdirectories
	}
	check(filepath.Join(root, "00"))
}

// childURL names the variable with the store that a child process of TestDirectoryKilled puts
// files into.
const childURL = "OBJECTS_TEST_CHILD_URL"

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); url != "" {
		if err := putForever(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestDirectory(t *testing.T) {
	t.Parallel()
	blobstoretest.Run(t, blobstoretest.Directory)
}

func TestDirectoryFiles(t *testing.T) {
	t.Parallel()
	cfg := blobstoretest.Directory(t).Config
	root := strings.TrimPrefix(cfg.URL, "file://")
	root = filepath.Join(root, "made", "on the way")
	cfg.URL = "file://" + root
	store := blobstoretest.Open(t, cfg)
	must(t, store.Init(t.Context()))
	file := []byte("public")
	hash := skin.HashOf(file)
	must(t, store.Put(t.Context(), hash, file))

	info, err := os.Stat(filepath.Join(root, hash.String()[:2], hash.String()+".png"))
	must(t, err)
	if info.Mode() != 0o644 {
		t.Errorf("the file's mode is %s: an edge under another account cannot read it", info.Mode())
	}

	// The old temporary file is removed; a recent one may be in use.
	old, young := filepath.Join(root, ".unfinished-old"), filepath.Join(root, ".unfinished-young")
	must(t, os.WriteFile(old, file, 0o600))
	must(t, os.WriteFile(young, file, 0o600))
	must(t, os.Chtimes(old, time.Time{}, time.Now().Add(-2*time.Hour)))
	must(t, store.Init(t.Context()))
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an old temporary file: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("a recent temporary file: %v", err)
	}
}

// Only regular files are listed and cleaned: not directories, and not symbolic links.
func TestDirectoryIgnoresOtherFiles(t *testing.T) {
	t.Parallel()
	cfg := blobstoretest.Directory(t).Config
	root := strings.TrimPrefix(cfg.URL, "file://")
	store := blobstoretest.Open(t, cfg)
	must(t, store.Init(t.Context()))
	file, long := []byte("cut off"), time.Now().Add(-2*time.Hour)
	name := func(content string) string {
		hash := skin.HashOf([]byte(content)).String()
		return filepath.Join(root, hash[:2], hash+".png")
	}
	must(t, os.Mkdir(name("directory"), 0o700))
	must(t, os.Symlink(filepath.Join(root, ".veneer"), name("link")))
	must(t, os.Mkdir(filepath.Join(root, ".unfinished-directory"), 0o700))
	must(t, os.Chtimes(filepath.Join(root, ".unfinished-directory"), time.Time{}, long))
	for _, name := range []string{".unfinished-1", ".unfinished-2", "unfinished", name("put")} {
		path := filepath.Join(root, filepath.Base(name))
		must(t, os.WriteFile(path, file, 0o600))
		must(t, os.Chtimes(path, time.Time{}, long))
	}

	for object, err := range store.List(t.Context()) {
		must(t, err)
		t.Errorf("listed %s", object.Hash)
	}
	before, err := os.ReadDir(root)
	must(t, err)
	for _, remove := range []bool{false, true} {
		if files, size, err := store.CleanTemp(t.Context(), remove); files != 2 || size != 14 || err != nil {
			t.Errorf("cleaned %d files of %d bytes, %v; want 2 of 14", files, size, err)
		}
		after, err := os.ReadDir(root)
		must(t, err)
		if gone := len(before) - len(after); gone != map[bool]int{true: 2}[remove] {
			t.Errorf("remove %t removed %d", remove, gone)
		}
	}
	if files, _, err := store.CleanTemp(t.Context(), true); files != 0 || err != nil {
		t.Errorf("cleaned %d files again, %v", files, err)
	}
}

// One directory has more files than a page.
func TestDirectoryPages(t *testing.T) {
	t.Parallel()
	backend := blobstoretest.Directory(t)
	store := blobstoretest.Open(t, backend.Config)
	must(t, store.Init(t.Context()))
	const files = 2345
	var want []string
	for n := range files {
		hash := fmt.Sprintf("ab%062x", n)
		backend.Write(t, "ab/"+hash+".png", nil)
		want = append(want, hash)
	}
	last := strings.Repeat("f", 64)
	backend.Write(t, "ff/"+last+".png", nil)

	var got []string
	for object, err := range store.List(t.Context()) {
		must(t, err)
		got = append(got, object.Hash.String())
	}
	if diff := cmp.Diff(append(want, last), got); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
}

func TestDirectoryRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	store := blobstoretest.Open(t, blobstore.Config{URL: "file://dev/textures", Timeout: time.Minute})
	must(t, store.Init(t.Context()))
	t.Chdir(t.TempDir())
	must(t, store.Check(t.Context()))
}

func TestDirectoryNotMounted(t *testing.T) {
	t.Parallel()
	cfg := blobstoretest.Directory(t).Config
	root := strings.TrimPrefix(cfg.URL, "file://")
	store := blobstoretest.Open(t, cfg)
	must(t, store.Init(t.Context()))
	file := []byte("on the disk")
	hash := skin.HashOf(file)
	must(t, store.Put(t.Context(), hash, file))

	must(t, os.Rename(root, root+"-unmounted"))
	f := func() {
		t.Helper()
		_, err := store.Get(t.Context(), hash)
		unavailable(t, err)
		unavailable(t, store.Put(t.Context(), hash, file))
		unavailable(t, store.Check(t.Context()))
	}
	f() // the directory does not exist
	must(t, os.Mkdir(root, 0o700))
	f() // it is an empty mount point
	if files, err := os.ReadDir(root); err != nil || len(files) > 0 {
		t.Errorf("putting left %v in the mount point (%v)", files, err)
	}

	must(t, os.Remove(root))
	must(t, os.Rename(root+"-unmounted", root))
	if _, err := store.Get(t.Context(), hash); err != nil {
		t.Errorf("get after the disk is back: %v", err)
	}
}

// TestDirectoryTimeout reads named pipes without a writer: opening one blocks like a dead
// network disk.
func TestDirectoryTimeout(t *testing.T) {
	t.Parallel()
	cfg := blobstoretest.Directory(t).Config
	root := strings.TrimPrefix(cfg.URL, "file://")
	must(t, blobstoretest.Open(t, cfg).Init(t.Context()))
	pipe := skin.HashOf([]byte("pipe"))
	path := filepath.Join(root, pipe.String()[:2], pipe.String()+".png")
	must(t, syscall.Mkfifo(path, 0o600))

	cfg.Timeout = 50 * time.Millisecond
	store := blobstoretest.Open(t, cfg)

	// More calls than maxDiskCalls: all end, whether they block, are queued, or are rejected
	// by the breaker.
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			_, err := store.Get(t.Context(), pipe)
			unavailable(t, err)
		})
	}
	group.Wait()

	// When the disk recovers, so does the store.
	file := []byte("behind the pipe")
	release := func() {
		writer, err := os.OpenFile(path, os.O_RDWR, 0)
		if err == nil {
			err = errors.Join(os.Remove(path), writer.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}
	release()
	timeout := time.After(time.Minute)
	for store.Put(t.Context(), skin.HashOf(file), file) != nil {
		select {
		case <-timeout:
			t.Fatal("the store does not recover")
		default:
		}
	}
}

// TestDirectoryKilled kills a process that puts files, several times.
func TestDirectoryKilled(t *testing.T) {
	t.Parallel()
	cfg := blobstoretest.Directory(t).Config
	store := blobstoretest.Open(t, cfg)
	must(t, store.Init(t.Context()))

	acknowledged := map[skin.Hash]bool{}
	for round := range 5 {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), childURL+"="+cfg.URL)
		child.Stderr = os.Stderr
		output, err := child.StdoutPipe()
		must(t, err)
		must(t, child.Start())
		lines := bufio.NewScanner(output)
		for n := 0; lines.Scan(); n++ {
			if n == 10+round {
				must(t, child.Process.Kill())
			}
			// The last line may be truncated, and then acknowledges nothing.
			if hash, err := skin.ParseHash(lines.Text()); err == nil {
				acknowledged[hash] = true
			}
		}
		if err := child.Wait(); err == nil || child.ProcessState.Exited() {
			t.Fatalf("the child was to be killed: %v", err)
		}
	}

	if len(acknowledged) < 50 {
		t.Errorf("only %d puts were acknowledged", len(acknowledged))
	}
	for object, err := range store.List(t.Context()) {
		must(t, err)
		if _, err := store.Get(t.Context(), object.Hash); err != nil {
			t.Errorf("listed, but %v", err)
		}
		delete(acknowledged, object.Hash)
	}
	for hash := range acknowledged {
		t.Errorf("%s was acknowledged, but is not there", hash)
	}
}

// putForever puts files, and prints the hash of each when it is acknowledged. It puts several
// concurrently, so that a kill interrupts some of them.
func putForever(url string) error {
	store, err := blobstore.New(blobstore.Config{URL: url, Timeout: time.Minute})
	if err != nil {
		return err
	}
	failed := make(chan error)
	for worker := range 4 {
		go func() {
			file := bytes.Repeat([]byte("half-written "), 1<<14)
			binary.LittleEndian.PutUint64(file, uint64(os.Getpid()))
			file[8] = byte(worker)
			for n := uint64(0); ; n++ {
				binary.LittleEndian.PutUint64(file[9:], n)
				hash := skin.HashOf(file)
				if err := store.Put(context.Background(), hash, file); err != nil {
					failed <- err
					return
				}
				fmt.Fprintln(os.Stdout, hash)
			}
		}()
	}
	return <-failed
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func unavailable(t *testing.T, err error) {
	t.Helper()
	if fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v, want an Unavailable fault", err)
	}
}
