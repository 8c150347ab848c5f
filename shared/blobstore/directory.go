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
	// maxDiskCalls is the most concurrent system calls. Each call to a disk that hangs blocks
	// a thread.
	maxDiskCalls = 64

	// tempPrefix begins the names of files that are being written; they are renamed at the
	// end.
	tempPrefix = ".unfinished-"
	// maxWriteTime is the age after which a temporary file cannot be in use any more.
	maxWriteTime = time.Hour
)

// dirBackend stores files in a directory.
type dirBackend struct {
	root string
	sem  chan struct{}
	sync func(*os.File) error // fsync; replaced in tests
}

var _ backend = (*dirBackend)(nil)

func newDirBackend(root string) *dirBackend {
	return &dirBackend{root: root, sem: make(chan struct{}, maxDiskCalls), sync: (*os.File).Sync}
}

// runUntilDone runs work on the disk and waits for it until ctx ends. System calls cannot be
// interrupted: abandoned work runs to its end, and holds its token until then.
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
		// Work that was abandoned while it waited for a token is not started.
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

// run runs work without a result.
func (d *dirBackend) run(ctx context.Context, work func() error) error {
	_, err := runUntilDone(ctx, d, func() (struct{}, error) { return struct{}{}, work() })
	return err
}

func (d *dirBackend) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

// create creates the directories of all files. write creates none, so that it fails if the
// disk is not mounted.
func (d *dirBackend) create(ctx context.Context) error {
	return d.run(ctx, func() error {
		if err := d.makeDir(d.root); err != nil {
			return err
		}
		for group := range 256 {
			err := os.Mkdir(d.path(groupName(group)), 0o755) //nolint:gosec // edges may run as another user
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
		// After the rename there is nothing to remove.
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

// errNotWritable says that the user of the process cannot write files.
var errNotWritable = errors.New("no write permission")

// checkWritable checks the permission to write in the root and in a directory below it. It
// writes nothing.
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

// remove does not sync: a file that comes back after a power failure will be found and
// removed again.
func (d *dirBackend) remove(ctx context.Context, name string) error {
	return d.run(ctx, func() error {
		err := os.Remove(d.path(name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// page returns files of the next directory that is not empty.
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

// listGroup returns at most pageSize files, which a disk can stat within the timeout.
func (d *dirBackend) listGroup(name, after string) ([]entry, error) {
	files, err := os.ReadDir(d.path(name))
	if err != nil {
		return nil, err
	}
	var page []entry
	for _, file := range files {
		path := name + "/" + file.Name()
		if path <= after || !file.Type().IsRegular() {
			continue // listed already, or not a regular file
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

// staleTempFiles returns the temporary files that crashed programs have left, and removes
// them if remove is set.
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
		case !errors.Is(err, fs.ErrNotExist): // unless the write finished, or another program removed it
			return temps, err
		}
	}
	return temps, nil
}

func groupName(group int) string { return fmt.Sprintf("%02x", group) }

// writeAndSync writes a file, syncs and closes it.
func (d *dirBackend) writeAndSync(file *os.File, content []byte) error {
	_, err := file.Write(content)
	if err == nil {
		err = file.Chmod(0o644) // edges may run as another user
	}
	if err == nil {
		err = d.sync(file)
	}
	return errors.Join(err, file.Close())
}

// makeDir creates a directory and its parents, durably.
func (d *dirBackend) makeDir(path string) error {
	err := os.Mkdir(path, 0o755) //nolint:gosec // edges may run as another user
	if errors.Is(err, fs.ErrNotExist) {
		if err := d.makeDir(filepath.Dir(path)); err != nil {
			return err
		}
		err = os.Mkdir(path, 0o755) //nolint:gosec // edges may run as another user
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	return d.syncDir(filepath.Dir(path))
}

// syncDir makes changes to a directory durable.
func (d *dirBackend) syncDir(path string) error {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.sync(directory), directory.Close())
}
