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

	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// unwritableURL names the variable with the store that a child process of
// TestDirectoryNotWritable checks.
const unwritableURL = "OBJECTS_TEST_UNWRITABLE_URL"

// A store of another user can be read, but is not ready to be written. As root may write
// everywhere, a child process under another account checks it.
func TestDirectoryNotWritable(t *testing.T) {
	t.Parallel()
	if url := os.Getenv(unwritableURL); url != "" {
		reader := testenv.Must(blobstore.New(blobstore.Config{URL: url, Timeout: time.Minute, ReadOnly: true}))(t)
		testenv.Do(t, reader.Ready(t.Context()))
		writer := testenv.Must(blobstore.New(blobstore.Config{URL: url, Timeout: time.Minute}))(t)
		err := writer.Ready(t.Context())
		if !config.IsFinal(err) || !strings.HasPrefix(err.Error(), fmt.Sprintf("URL is %q, a directory that this user cannot write to; ", url)) {
			t.Errorf("Ready: %v; want a final error that says that this user cannot write", err)
		}
		return
	}

	// Another user can enter neither the directory of a test nor that of its program.
	public := t.TempDir()
	testenv.Do(t, os.Chmod(filepath.Dir(public), 0o755))
	root, program := filepath.Join(public, "textures"), filepath.Join(public, "program")
	store := testenv.Must(blobstore.New(blobstore.Config{URL: "file://" + root, Timeout: time.Minute}))(t)
	testenv.Do(t, store.Init(t.Context()))
	testenv.Do(t, store.Ready(t.Context()))
	self := testenv.Must(os.Executable())(t)
	// Copied by another process: a child that a parallel test forks would inherit a file that
	// is open for writing here (ETXTBSY).
	testenv.Do(t, exec.CommandContext(t.Context(), "cp", self, program).Run())
	testenv.Do(t, os.Chmod(program, 0o755))

	check := func(unwritable string) {
		t.Helper()
		testenv.Do(t, os.Chmod(unwritable, 0o555))
		child := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$")
		child.Dir = public
		child.Env = append(os.Environ(), unwritableURL+"=file://"+root)
		if os.Geteuid() == 0 {
			child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}
		out, err := child.CombinedOutput()
		testenv.Check(t, err == nil, "with %s: %v: %s", unwritable, err, out)
		testenv.Do(t, os.Chmod(unwritable, 0o755))
	}
	check(root)
	if os.Geteuid() == 0 {
		testenv.Do(t, os.Chown(root, 65534, 65534)) // but not its subdirectories
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
	store := blobstoretest.OpenInit(t, cfg)
	file := []byte("public")
	hash := skin.HashOf(file)
	testenv.Do(t, store.Put(t.Context(), hash, file))

	info := testenv.Must(os.Stat(filepath.Join(root, hash.String()[:2], hash.String()+".png")))(t)
	testenv.Equal(t, info.Mode(), 0o644, "the mode of the file, which an edge under another account reads")

	// The old temporary file is removed; a recent one may be in use.
	old, young := filepath.Join(root, ".unfinished-old"), filepath.Join(root, ".unfinished-young")
	testenv.Do(t, os.WriteFile(old, file, 0o600))
	testenv.Do(t, os.WriteFile(young, file, 0o600))
	testenv.Do(t, os.Chtimes(old, time.Time{}, time.Now().Add(-2*time.Hour)))
	testenv.Do(t, store.Init(t.Context()))
	testenv.Is(t, testenv.ErrOf(os.Stat(old)), fs.ErrNotExist, "an old temporary file")
	testenv.Is(t, testenv.ErrOf(os.Stat(young)), nil, "a recent temporary file")
}

// Only regular files are listed and cleaned: not directories, and not symbolic links.
func TestDirectoryIgnoresOtherFiles(t *testing.T) {
	t.Parallel()
	cfg := blobstoretest.Directory(t).Config
	root := strings.TrimPrefix(cfg.URL, "file://")
	store := blobstoretest.OpenInit(t, cfg)
	file, long := []byte("cut off"), time.Now().Add(-2*time.Hour)
	name := func(content string) string {
		hash := skin.HashOf([]byte(content)).String()
		return filepath.Join(root, hash[:2], hash+".png")
	}
	testenv.Do(t, os.Mkdir(name("directory"), 0o700))
	testenv.Do(t, os.Symlink(filepath.Join(root, ".veneer"), name("link")))
	testenv.Do(t, os.Mkdir(filepath.Join(root, ".unfinished-directory"), 0o700))
	testenv.Do(t, os.Chtimes(filepath.Join(root, ".unfinished-directory"), time.Time{}, long))
	for _, name := range []string{".unfinished-1", ".unfinished-2", "unfinished", name("put")} {
		path := filepath.Join(root, filepath.Base(name))
		testenv.Do(t, os.WriteFile(path, file, 0o600))
		testenv.Do(t, os.Chtimes(path, time.Time{}, long))
	}

	for object, err := range store.List(t.Context()) {
		testenv.Do(t, err)
		t.Errorf("listed %s", object.Hash)
	}
	before := testenv.Must(os.ReadDir(root))(t)
	for _, remove := range []bool{false, true} {
		if files, size, err := store.CleanTemp(t.Context(), remove); files != 2 || size != 14 || err != nil {
			t.Errorf("cleaned %d files of %d bytes, %v; want 2 of 14", files, size, err)
		}
		after := testenv.Must(os.ReadDir(root))(t)
		gone := len(before) - len(after)
		testenv.Check(t, gone == map[bool]int{true: 2}[remove], "remove %t removed %d", remove, gone)
	}
	files, _, err := store.CleanTemp(t.Context(), true)
	testenv.Check(t, files == 0 && err == nil, "cleaned %d files again, %v", files, err)
}

// One directory has more files than a page.
func TestDirectoryPages(t *testing.T) {
	t.Parallel()
	backend := blobstoretest.Directory(t)
	store := blobstoretest.OpenInit(t, backend.Config)
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
		testenv.Do(t, err)
		got = append(got, object.Hash.String())
	}
	cmptest.Same(t, got, append(want, last), "listed")
}

func TestDirectoryRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	store := blobstoretest.OpenInit(t, blobstore.Config{URL: "file://dev/textures", Timeout: time.Minute})
	t.Chdir(t.TempDir())
	testenv.Do(t, store.Check(t.Context()))
}

func TestDirectoryNotMounted(t *testing.T) {
	t.Parallel()
	cfg := blobstoretest.Directory(t).Config
	root := strings.TrimPrefix(cfg.URL, "file://")
	store := blobstoretest.OpenInit(t, cfg)
	file := []byte("on the disk")
	hash := skin.HashOf(file)
	testenv.Do(t, store.Put(t.Context(), hash, file))

	testenv.Do(t, os.Rename(root, root+"-unmounted"))
	f := func() {
		t.Helper()
		unavailable(t, testenv.ErrOf(store.Get(t.Context(), hash)))
		unavailable(t, store.Put(t.Context(), hash, file))
		unavailable(t, store.Check(t.Context()))
	}
	f() // the directory does not exist
	testenv.Do(t, os.Mkdir(root, 0o700))
	f() // it is an empty mount point
	files, err := os.ReadDir(root)
	testenv.Check(t, err == nil && len(files) == 0, "putting left %v in the mount point (%v)", files, err)

	testenv.Do(t, os.Remove(root))
	testenv.Do(t, os.Rename(root+"-unmounted", root))
	testenv.Is(t, testenv.ErrOf(store.Get(t.Context(), hash)), nil, "get after the disk is back")
}

// TestDirectoryTimeout reads named pipes without a writer: opening one blocks like a dead
// network disk.
func TestDirectoryTimeout(t *testing.T) {
	t.Parallel()
	cfg := blobstoretest.Directory(t).Config
	root := strings.TrimPrefix(cfg.URL, "file://")
	blobstoretest.OpenInit(t, cfg)
	pipe := skin.HashOf([]byte("pipe"))
	path := filepath.Join(root, pipe.String()[:2], pipe.String()+".png")
	testenv.Do(t, syscall.Mkfifo(path, 0o600))

	cfg.Timeout = 50 * time.Millisecond
	store := blobstoretest.Open(t, cfg)

	// More calls than maxDiskCalls: all end, whether they block, are queued, or are rejected
	// by the breaker.
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() { unavailable(t, testenv.ErrOf(store.Get(t.Context(), pipe))) })
	}
	group.Wait()

	// When the disk recovers, so does the store.
	file := []byte("behind the pipe")
	release := func() {
		writer, err := os.OpenFile(path, os.O_RDWR, 0)
		if err == nil {
			err = errors.Join(os.Remove(path), writer.Close())
		}
		testenv.Is(t, err, nil, "the release")
	}
	release()
	testenv.Eventually(t, "the store recovers", func() bool { return store.Put(t.Context(), skin.HashOf(file), file) == nil })
}

// TestDirectoryKilled kills a process that puts files, several times.
func TestDirectoryKilled(t *testing.T) {
	t.Parallel()
	cfg := blobstoretest.Directory(t).Config
	store := blobstoretest.OpenInit(t, cfg)

	acknowledged := map[skin.Hash]bool{}
	for round := range 5 {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), childURL+"="+cfg.URL)
		child.Stderr = os.Stderr
		output := testenv.Must(child.StdoutPipe())(t)
		testenv.Do(t, child.Start())
		lines := bufio.NewScanner(output)
		for n := 0; lines.Scan(); n++ {
			if n == 10+round {
				testenv.Do(t, child.Process.Kill())
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

	testenv.Check(t, len(acknowledged) >= 50, "only %d puts were acknowledged", len(acknowledged))
	for object, err := range store.List(t.Context()) {
		testenv.Do(t, err)
		testenv.Is(t, testenv.ErrOf(store.Get(t.Context(), object.Hash)), nil, "get of a listed file")
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

func unavailable(t *testing.T, err error) {
	t.Helper()
	testenv.Check(t, fault.KindOf(err) == fault.Unavailable, "got %v, want an Unavailable fault", err)
}
