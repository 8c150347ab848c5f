package backup

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/blobstore/blobcopy"
	"github.com/veneer-skins/veneer/shared/skin"
)

// list describes a backup: its dump, and the texture files of the dump in the order of their hashes.
type list struct {
	Site     uuid.UUID        `json:"site"`
	DumpSize int64            `json:"dump_bytes"`
	DumpHash skin.Hash        `json:"dump_sha256"`
	Files    []blobcopy.Entry `json:"files"`
}

// bytes returns the size of all files.
func (l *list) bytes() (size int64) {
	for _, entry := range l.Files {
		size += entry.Size
	}
	return size
}

// lost returns how many files are lost.
func (l *list) lost() (count int) {
	for _, entry := range l.Files {
		if entry.IsLost {
			count++
		}
	}
	return count
}

// lostError returns an error if the site had lost files.
func (l *list) lostError(name string) error {
	if lost := l.lost(); lost > 0 {
		return fmt.Errorf("the backup %s lacks %d of %d texture files: the site had lost them, and core sweep -dry-run names them there; all else is whole", name, lost, len(l.Files))
	}
	return nil
}

// describeDump sets the size and the hash of a dump.
func (l *list) describeDump(path string) error {
	size, hash, err := digest(path)
	l.DumpSize, l.DumpHash = size, hash
	return err
}

// check compares a dump and all texture files with the list.
func (l *list) check(ctx context.Context, files blobcopy.Source, dump string) error {
	return errors.Join(l.checkDump(dump), blobcopy.Check(ctx, files, l.Files))
}

// checkDump compares a dump with its size and hash.
func (l *list) checkDump(path string) error {
	size, hash, err := digest(path)
	switch {
	case err != nil:
		return err
	case size != l.DumpSize:
		return fmt.Errorf("the dump %s has %d bytes, and %d in the list", filepath.Base(path), size, l.DumpSize)
	case hash != l.DumpHash:
		return fmt.Errorf("the dump %s is damaged: its SHA-256 is %s, and %s in the list", filepath.Base(path), hash, l.DumpHash)
	}
	return nil
}

// digest returns the size and the SHA-256 of a file.
func digest(path string) (size int64, hash skin.Hash, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, hash, err
	}
	defer file.Close()
	sum := sha256.New()
	size, err = io.Copy(sum, file)
	sum.Sum(hash[:0])
	return size, hash, err
}

// write writes the list to a new file, durably.
func (l *list) write(path string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, filePerm)
	if err != nil {
		return err
	}
	err = json.NewEncoder(file).Encode(l)
	return errors.Join(err, file.Sync(), file.Close())
}

// readList reads what write has written.
func readList(path string) (*list, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	l := new(list)
	if err := json.Unmarshal(text, l); err != nil {
		return nil, fmt.Errorf("the list %s is cut off or damaged: %w", filepath.Base(path), err)
	}
	return l, nil
}
