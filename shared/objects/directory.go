package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// diskCalls is how many calls of the operating system may be under way at
	// once. A disk that hangs keeps a thread for each.
	diskCalls = 64

	// Files are written under a name with this prefix, then renamed.
	unfinished = ".unfinished-"
	// longestWrite is the age at which nobody can still be writing an unfinished file.
	longestWrite = time.Hour
)

// directory is a place on a disk.
type directory struct {
	root  string
	slots chan struct{}
	sync  func(*os.File) error // through to the disk; tests watch it
}

var _ place = (*directory)(nil)

func newDirectory(root string) *directory {
	return &directory{root: root, slots: make(chan struct{}, diskCalls), sync: (*os.File).Sync}
}

// wait does work on the disk and waits for it until ctx ends. Nothing can
// interrupt a call of the operating system: work that is abandoned finishes by
// itself, and keeps its slot until then.
func wait[T any](ctx context.Context, d *directory, work func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	select {
	case <-ctx.Done():
		return *new(T), ctx.Err()
	case d.slots <- struct{}{}:
	}
	go func() {
		defer func() { <-d.slots }()
		// Work that was abandoned while it waited for its turn is not begun.
		if err := ctx.Err(); err != nil {
			done <- outcome{err: err}
			return
		}
		value, err := work()
		done <- outcome{value, err}
	}()
	select {
	case <-ctx.Done():
		return *new(T), ctx.Err()
	case o := <-done:
		return o.value, o.err
	}
}

// do is wait for work that returns nothing.
func (d *directory) do(ctx context.Context, work func() error) error {
	_, err := wait(ctx, d, func() (struct{}, error) { return struct{}{}, work() })
	return err
}

func (d *directory) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

// prepare makes every directory that a file may go into. Writing a file makes
// none: where the disk is not mounted, it fails.
func (d *directory) prepare(ctx context.Context) error {
	return d.do(ctx, func() error {
		if err := d.makeDirectory(d.root); err != nil {
			return err
		}
		for group := range 256 {
			err := os.Mkdir(d.path(groupName(group)), 0o755) //nolint:gosec // an edge under another account reads it
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		if err := d.syncDirectory(d.root); err != nil {
			return err
		}
		_, err := d.abandoned(true)
		return err
	})
}

func (d *directory) read(ctx context.Context, name string) ([]byte, error) {
	return wait(ctx, d, func() ([]byte, error) {
		file, err := os.Open(d.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			if _, err := os.Stat(d.root); errors.Is(err, fs.ErrNotExist) {
				return nil, errNoDirectory
			}
		}
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return readSome(file)
	})
}

func (d *directory) write(ctx context.Context, name string, content []byte) error {
	return d.do(ctx, func() error {
		file, err := os.CreateTemp(d.root, unfinished)
		if err != nil {
			return err
		}
		// Once the file has its own name this finds nothing, as it should.
		defer os.Remove(file.Name())
		if err := d.fill(file, content); err != nil {
			return err
		}
		if err := os.Rename(file.Name(), d.path(name)); err != nil {
			return err
		}
		return d.syncDirectory(filepath.Dir(d.path(name)))
	})
}

// errUnwritable says that this user may not write files.
var errUnwritable = errors.New("no write permission")

// writable asks the operating system whether this user may write files, into the root and
// into a directory that prepare has made there. It writes nothing.
func (d *directory) writable(ctx context.Context) error {
	return d.do(ctx, func() error {
		for _, path := range []string{d.root, d.path(groupName(0))} {
			if err := unix.Access(path, unix.W_OK|unix.X_OK); err != nil {
				return fmt.Errorf("%w: %s: %w", errUnwritable, path, err)
			}
		}
		return nil
	})
}

// remove is not made durable: whoever deletes a file that a power cut brings
// back will come across it again.
func (d *directory) remove(ctx context.Context, name string) error {
	return d.do(ctx, func() error {
		err := os.Remove(d.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// page returns files of the next directory that has any.
func (d *directory) page(ctx context.Context, after string) ([]entry, error) {
	return wait(ctx, d, func() ([]entry, error) {
		begun, _, _ := strings.Cut(after, "/")
		for group := range 256 {
			if groupName(group) < begun {
				continue
			}
			page, err := d.group(groupName(group), after)
			if err != nil || len(page) > 0 {
				return page, err
			}
		}
		return nil, nil
	})
}

// group returns no more files than a disk tells about in good time.
func (d *directory) group(name, after string) ([]entry, error) {
	files, err := os.ReadDir(d.path(name))
	if err != nil {
		return nil, err
	}
	var page []entry
	for _, file := range files {
		path := name + "/" + file.Name()
		if path <= after || !file.Type().IsRegular() {
			continue // listed already, or none of ours, whatever its name
		}
		info, err := file.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		if page = append(page, entry{name: path, size: info.Size(), modified: info.ModTime()}); len(page) == pageSize {
			break
		}
	}
	return page, nil
}

func (d *directory) leftovers(ctx context.Context, remove bool) ([]entry, error) {
	return wait(ctx, d, func() ([]entry, error) { return d.abandoned(remove) })
}

// abandoned returns what crashed programs have left unfinished, and removes it if
// told to.
func (d *directory) abandoned(remove bool) ([]entry, error) {
	files, err := os.ReadDir(d.root)
	if err != nil {
		return nil, err
	}
	var found []entry
	for _, file := range files {
		if !strings.HasPrefix(file.Name(), unfinished) || !file.Type().IsRegular() {
			continue
		}
		info, err := file.Info()
		if err == nil && time.Since(info.ModTime()) < longestWrite {
			continue
		}
		if err == nil && remove {
			err = os.Remove(d.path(file.Name()))
		}
		switch {
		case err == nil:
			found = append(found, entry{name: file.Name(), size: info.Size(), modified: info.ModTime()})
		case !errors.Is(err, fs.ErrNotExist): // it was finished, or another program removed it
			return found, err
		}
	}
	return found, nil
}

func groupName(group int) string { return fmt.Sprintf("%02x", group) }

// fill writes a file through to the disk and closes it.
func (d *directory) fill(file *os.File, content []byte) error {
	_, err := file.Write(content)
	if err == nil {
		err = file.Chmod(0o644) // an edge under another account reads it
	}
	if err == nil {
		err = d.sync(file)
	}
	return errors.Join(err, file.Close())
}

// makeDirectory makes a directory and those above it, for good.
func (d *directory) makeDirectory(path string) error {
	err := os.Mkdir(path, 0o755) //nolint:gosec // an edge under another account reads it
	if errors.Is(err, fs.ErrNotExist) {
		if err := d.makeDirectory(filepath.Dir(path)); err != nil {
			return err
		}
		err = os.Mkdir(path, 0o755) //nolint:gosec // an edge under another account reads it
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return d.syncDirectory(filepath.Dir(path))
}

// syncDirectory makes the names in a directory durable.
func (d *directory) syncDirectory(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.sync(directory), directory.Close())
}
