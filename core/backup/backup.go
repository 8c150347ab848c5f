// Package backup backs a site up into a directory: dumps of the database, each with a list of its
// texture files, and one copy of all files.
//
//	2026-11-30T02-00-00.000Z.dump   pg_dump's custom format
//	2026-11-30T02-00-00.000Z.json   the dump's size and SHA-256, and its texture files
//	textures/                       the files of all dumps, as a texture store in a directory
//
// The list is written last, so a dump with a list is complete.
package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobcopy"
	"github.com/veneer-skins/veneer/shared/skin"
)

const (
	stampFormat      = "2006-01-02T15-04-05.000Z"
	dumpSuffix       = ".dump"
	listSuffix       = ".json"
	unfinishedSuffix = ".unfinished"
	// filePerm is of files with e-mail addresses and password hashes.
	filePerm = 0o600
	// fileTimeout bounds reading or writing a texture file. A disk of another machine is slow.
	fileTimeout = time.Minute
)

// Directory holds backups.
type Directory struct {
	root  string
	files *blobstore.Store
}

// Open returns a directory of backups, which need not exist.
func Open(root string) (*Directory, error) {
	absolute, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	where := url.URL{Scheme: "file", Path: filepath.Join(absolute, "textures")}
	files, err := blobstore.New(blobstore.Config{URL: where.String(), Timeout: fileTimeout})
	if err != nil {
		return nil, err
	}
	return &Directory{root: absolute, files: files}, nil
}

func (d *Directory) path(name, suffix string) string { return filepath.Join(d.root, name+suffix) }

// Names returns the names of all backups with a list, the oldest first.
func (d *Directory) Names() ([]string, error) {
	files, err := os.ReadDir(d.root)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range files { // in the order of their names
		name, isList := strings.CutSuffix(file.Name(), listSuffix)
		if _, err := time.Parse(stampFormat, name); isList && err == nil {
			names = append(names, name)
		}
	}
	return names, nil
}

// Newest returns when the newest backup began, the zero time if there is none.
func (d *Directory) Newest() (began time.Time) {
	if names, err := d.Names(); err == nil && len(names) > 0 {
		began, _ = time.Parse(stampFormat, names[len(names)-1]) // as in Names
	}
	return began
}

// Report counts what a backup has.
type Report struct {
	Name    string
	IsMade  bool  // there is a new backup, whatever the error
	Files   int   // texture files of the dump
	Bytes   int64 // of these
	Copied  int   // files that no backup had before
	Dropped int   // files that no kept backup has
}

// Create makes a backup of a database and a texture store, reads every byte of the backup again, and removes
// all but the newest whole backups to keep; 0 keeps all. Without a new backup it removes none.
func (d *Directory) Create(ctx context.Context, database string, db *postgres.DB, files blobcopy.Source, keep int) (Report, error) {
	began := time.Now()
	r := Report{Name: began.UTC().Format(stampFormat)}
	l := list{}
	site, err := db.Site(ctx)
	if err != nil {
		return r, err
	}
	l.Site = site
	unlock, err := d.lock()
	if err != nil {
		return r, err
	}
	defer unlock()
	if err := d.prepare(ctx, &l); err != nil {
		return r, err
	}

	var hashes []skin.Hash
	dump, listPath := d.path(r.Name, dumpSuffix), d.path(r.Name, listSuffix)
	err = db.WithSnapshot(ctx, func(snapshot string, ofSnapshot []skin.Hash) error {
		hashes = ofSnapshot
		return makeDump(ctx, database, snapshot, dump+unfinishedSuffix)
	}, func() (err error) {
		l.Files, r.Copied, err = blobcopy.Copy(ctx, files, d.files, hashes)
		return err
	})
	if err == nil {
		err = inOrder(
			func() error { return l.describeDump(dump + unfinishedSuffix) },
			func() error { return l.write(listPath + unfinishedSuffix) },
			func() error { return os.Rename(dump+unfinishedSuffix, dump) },
			func() error { return os.Rename(listPath+unfinishedSuffix, listPath) }, // with it the backup counts
			func() error { return syncFile(d.root) },
		)
	}
	if err != nil {
		return r, errors.Join(err, d.removeUnfinished(context.WithoutCancel(ctx)))
	}
	r.IsMade, r.Files, r.Bytes = true, len(l.Files)-l.lost(), l.bytes()
	if l.lost() == 0 {
		err = db.SetBackup(ctx, began)
	}
	var dropErr error
	r.Dropped, dropErr = d.drop(ctx, keep)
	return r, cmp.Or(err, dropErr, l.lostError(r.Name))
}

// makeDump dumps a snapshot to a new file, durably.
func makeDump(ctx context.Context, database, snapshot, path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePerm) // pg_dump's own would be readable for all
	if err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := run(ctx, database, nil, nil, "pg_dump", "--format=custom", "--no-owner", "--no-password", "--snapshot="+snapshot, "--file="+path); err != nil {
		return err
	}
	return syncFile(path)
}

// prepare makes the texture store, and removes what an interrupted backup left. A directory with
// backups of another site, or with backups and no store, is not this site's.
func (d *Directory) prepare(ctx context.Context, l *list) error {
	names, err := d.Names()
	if err != nil {
		return err
	}
	if len(names) > 0 {
		newest, err := readList(d.path(names[len(names)-1], listSuffix))
		switch {
		case err != nil:
			return err
		case newest.Site != l.Site:
			return fmt.Errorf("%s has backups of another site, %s, and this one is %s: restore one of them first, or name another directory", d.root, newest.Site, l.Site)
		}
	}
	err = d.files.Check(ctx)
	switch isEmpty := errors.Is(err, blobstore.ErrNotInitialized) || errors.Is(err, fs.ErrNotExist); {
	case isEmpty && len(names) > 0:
		return fmt.Errorf("%s has backups, but not their texture files: %w", d.root, err)
	case isEmpty:
		err = d.files.Init(ctx)
	}
	if err != nil {
		return err
	}
	return d.removeUnfinished(ctx)
}

// removeUnfinished removes the unfinished files of interrupted backups.
func (d *Directory) removeUnfinished(ctx context.Context) error {
	files, err := os.ReadDir(d.root)
	if err != nil {
		return err
	}
	for _, file := range files {
		if strings.HasSuffix(file.Name(), unfinishedSuffix) {
			if err := os.Remove(filepath.Join(d.root, file.Name())); err != nil {
				return err
			}
		}
	}
	_, _, err = d.files.CleanTemp(ctx, true)
	return err
}

// lock keeps other backups and restores out of the directory until unlock is called.
func (d *Directory) lock() (unlock func(), err error) {
	directory, err := os.Open(d.root)
	if err != nil {
		return nil, fmt.Errorf("%w; make the directory first", err)
	}
	if err := unix.Flock(int(directory.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = directory.Close()
		return nil, fmt.Errorf("lock %s, which another backup may use: %w", d.root, err)
	}
	return func() { _ = directory.Close() }, nil
}

// drop removes all but the newest whole backups to keep and the newest one, and then the texture files
// that no kept one lists. It removes nothing if a list cannot be read.
func (d *Directory) drop(ctx context.Context, keep int) (dropped int, err error) {
	old, kept, err := d.outdated(keep)
	if err != nil || len(old) == 0 {
		return 0, err
	}
	for _, name := range old { // a list without a dump would be taken for a backup, so it goes first
		if err := inOrder(
			func() error { return os.Remove(d.path(name, listSuffix)) },
			func() error { return os.Remove(d.path(name, dumpSuffix)) },
		); err != nil {
			return 0, err
		}
	}
	for object, err := range d.files.List(ctx) {
		if err == nil && !kept[object.Hash] {
			dropped++
			err = d.files.Delete(ctx, object.Hash)
		}
		if err != nil {
			return dropped, err
		}
	}
	return dropped, nil
}

// outdated returns the backups that drop removes, and the files of all others.
func (d *Directory) outdated(keep int) (old []string, kept map[skin.Hash]bool, err error) {
	names, err := d.Names()
	if err != nil || keep == 0 {
		return nil, nil, err
	}
	kept, whole := map[skin.Hash]bool{}, 0
	for i, name := range slices.Backward(names) {
		l, err := readList(d.path(name, listSuffix))
		if err != nil {
			return nil, nil, err
		}
		isWhole := l.lost() == 0
		if i < len(names)-1 && (!isWhole || whole == keep) {
			old = append(old, name)
			continue
		}
		if isWhole {
			whole++
		}
		for _, entry := range l.Files {
			kept[entry.Hash] = true
		}
	}
	return old, kept, nil
}

// Verify checks the dump and every texture file of a backup; an empty name is the newest one's. It needs
// neither database nor texture store.
func (d *Directory) Verify(ctx context.Context, name string) (Report, error) {
	r, l, err := d.verified(ctx, name)
	if err == nil {
		err = l.lostError(r.Name)
	}
	return r, err
}

// verified is Verify, but for files that the site had lost.
func (d *Directory) verified(ctx context.Context, name string) (Report, *list, error) {
	names, err := d.Names()
	switch {
	case err != nil:
		return Report{}, nil, err
	case len(names) == 0:
		return Report{}, nil, fmt.Errorf("%s has no complete backup", d.root)
	case name == "":
		name = names[len(names)-1]
	case !slices.Contains(names, name):
		return Report{}, nil, fmt.Errorf("%s has no backup %s, but %s", d.root, name, strings.Join(names, ", "))
	}
	r := Report{Name: name}
	l, err := readList(d.path(name, listSuffix))
	if err != nil {
		return r, nil, err
	}
	r.Files, r.Bytes = len(l.Files)-l.lost(), l.bytes()
	return r, l, l.check(ctx, d.files, d.path(name, dumpSuffix))
}

// inOrder runs steps until one fails.
func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// syncFile makes a file or a directory durable.
func syncFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
