package blobstore

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// A put is acknowledged after two syncs: of the file before its rename, and of the directory
// after it.
func TestDirectorySyncs(t *testing.T) {
	t.Parallel()
	d := newDirBackend(t.TempDir())
	testenv.Do(t, d.create(t.Context()))
	path := d.path("ab/name.png")
	var synced []string
	d.sync = func(file *os.File) error {
		info, err := file.Stat()
		if err != nil {
			return err
		}
		what := "the file"
		if info.IsDir() {
			what = filepath.Base(file.Name())
		}
		if _, err := os.Stat(path); err != nil {
			what += ", not named yet"
		}
		synced = append(synced, what)
		return file.Sync()
	}
	testenv.Do(t, d.write(t.Context(), "ab/name.png", []byte("content")))
	want := []string{"the file, not named yet", "ab"}
	testenv.Check(t, slices.Equal(synced, want), "synced: %q; want %q", synced, want)
}
