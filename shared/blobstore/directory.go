package blobstore

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
	// maxDiskCalls is how many calls of the operating system may be under way at
	// once. A disk that hangs keeps a thread for each.
	maxDiskCalls = 64

	// Files are written under a name with this prefix, then renamed.
	tempPrefix = ".unfinished-"
	// maxWriteTime is the age at which nobody can still be writing an unfinished file.
	maxWriteTime = time.Hour
)

// dirBackend is a place on a disk.
type dirBackend struct {
	root string
	sem  chan struct{}
	sync func(*os.File) error // through to the disk; tests watch it
}

var _ backend = (*dirBackend)(nil)

func newDirBackend(root string) *dirBackend {
	return &dirBackend{root: root, sem: make(chan struct{}, maxDiskCalls), sync: (*os.File).Sync}
}

// runUntilDone does work on the disk and waits for it until ctx ends. Nothing can
// interrupt a call of the operating system: work that is abandoned finishes by
// itself, and keeps its slot until then.
func runUntilDone[T any](ctx context.Context, d *dirBackend, work func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	select {
	case <-ctx.Done():
		return *new(T), ctx.Err()
	case d.sem <- struct{}{}:
	}
	go func() {
		defer func() { <-d.sem }()
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

// run is wait for work that returns nothing.
func (d *dirBackend) run(ctx context.Context, work func() error) error {
	_, err := runUntilDone(ctx, d, func() (struct{}, error) { return struct{}{}, work() })
	return err
}

func (d *dirBackend) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

// create makes every directory that a file may go into. Writing a file makes
// none: where the disk is not mounted, it fails.
func (d *dirBackend) create(ctx context.Context) error {
	return d.run(ctx, func() error {
		if err := d.makeDir(d.root); err != nil {
			return err
		}
		for group := range 256 {
			err := os.Mkdir(d.path(groupName(group)), 0o755) //nolint:gosec // an edge under another account reads it
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		if err := d.syncDir(d.root); err != nil {
			return err
		}
		_, err := d.staleTempFiles(true)
		return err
	})
}

func (d *dirBackend) read(ctx context.Context, name string) ([]byte, error) {
	return runUntilDone(ctx, d, func() ([]byte, error) {
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
		return readCapped(file)
	})
}

func (d *dirBackend) write(ctx context.Context, name string, content []byte) error {
	return d.run(ctx, func() error {
		file, err := os.CreateTemp(d.root, tempPrefix)
		if err != nil {
			return err
		}
		// Once the file has its own name this finds nothing, as it should.
		defer os.Remove(file.Name())
		if err := d.writeAndSync(file, content); err != nil {
			return err
		}
		if err := os.Rename(file.Name(), d.path(name)); err != nil {
			return err
		}
		return d.syncDir(filepath.Dir(d.path(name)))
	})
}

// errNotWritable says that this user may not write files.
var errNotWritable = errors.New("no write permission")

// checkWritable asks the operating system whether this user may write files, into the root and
// into a directory that prepare has made there. It writes nothing.
func (d *dirBackend) checkWritable(ctx context.Context) error {
	return d.run(ctx, func() error {
		for _, path := range []string{d.root, d.path(groupName(0))} {
			if err := unix.Access(path, unix.W_OK|unix.X_OK); err != nil {
				return fmt.Errorf("%w: %s: %w", errNotWritable, path, err)
			}
		}
		return nil
	})
}

// remove is not made durable: whoever deletes a file that a power cut brings
// back will come across it again.
func (d *dirBackend) remove(ctx context.Context, name string) error {
	return d.run(ctx, func() error {
		err := os.Remove(d.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// page returns files of the next directory that has any.
func (d *dirBackend) page(ctx context.Context, after string) ([]entry, error) {
	return runUntilDone(ctx, d, func() ([]entry, error) {
		afterGroup, _, _ := strings.Cut(after, "/")
		for group := range 256 {
			if groupName(group) < afterGroup {
				continue
			}
			page, err := d.listGroup(groupName(group), after)
			if err != nil || len(page) > 0 {
				return page, err
			}
		}
		return nil, nil
	})
}

// listGroup returns no more files than a disk tells about in good time.
func (d *dirBackend) listGroup(name, after string) ([]entry, error) {
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

func (d *dirBackend) tempFiles(ctx context.Context, remove bool) ([]entry, error) {
	return runUntilDone(ctx, d, func() ([]entry, error) { return d.staleTempFiles(remove) })
}

// staleTempFiles returns what crashed programs have left unfinished, and removes it if
// told to.
func (d *dirBackend) staleTempFiles(remove bool) ([]entry, error) {
	files, err := os.ReadDir(d.root)
	if err != nil {
		return nil, err
	}
	var temps []entry
	for _, file := range files {
		if !strings.HasPrefix(file.Name(), tempPrefix) || !file.Type().IsRegular() {
			continue
		}
		info, err := file.Info()
		if err == nil && time.Since(info.ModTime()) < maxWriteTime {
			continue
		}
		if err == nil && remove {
			err = os.Remove(d.path(file.Name()))
		}
		switch {
		case err == nil:
			temps = append(temps, entry{name: file.Name(), size: info.Size(), modified: info.ModTime()})
		case !errors.Is(err, fs.ErrNotExist): // it was finished, or another program removed it
			return temps, err
		}
	}
	return temps, nil
}

func groupName(group int) string { return fmt.Sprintf("%02x", group) }

// writeAndSync writes a file through to the disk and closes it.
func (d *dirBackend) writeAndSync(file *os.File, content []byte) error {
	_, err := file.Write(content)
	if err == nil {
		err = file.Chmod(0o644) // an edge under another account reads it
	}
	if err == nil {
		err = d.sync(file)
	}
	return errors.Join(err, file.Close())
}

// makeDir makes a directory and those above it, for good.
func (d *dirBackend) makeDir(path string) error {
	err := os.Mkdir(path, 0o755) //nolint:gosec // an edge under another account reads it
	if errors.Is(err, fs.ErrNotExist) {
		if err := d.makeDir(filepath.Dir(path)); err != nil {
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
	return d.syncDir(filepath.Dir(path))
}

// syncDir makes the names in a directory durable.
func (d *dirBackend) syncDir(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.sync(directory), directory.Close())
}
