package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
)

// stored is the directory of the files in the repository.
const stored = "../../shared/skin"

// The files in the repository are those that the command writes, and their pixels are the same.
// The bytes may differ, as another version of Go may compress better.
func TestFilesAreFresh(t *testing.T) {
	t.Parallel()

	written := t.TempDir()
	for _, directory := range []string{artworkDir, randomDir} {
		if err := os.MkdirAll(filepath.Join(written, directory), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := run([]string{written}); err != nil {
		t.Fatal(err)
	}
	for _, directory := range []string{artworkDir, randomDir} {
		got, want := pictures(t, filepath.Join(stored, directory)), pictures(t, filepath.Join(written, directory))
		if !slices.Equal(got, want) {
			t.Errorf("%s has the files %q; want %q", directory, got, want)
			continue
		}
		for _, name := range want {
			if decode(t, filepath.Join(stored, directory, name)).Digest() != decode(t, filepath.Join(written, directory, name)).Digest() {
				t.Errorf("%s/%s is stale: go run ./bench/artwork shared/skin writes it anew", directory, name)
			}
		}
	}
}

// Files with a palette and files without one hold the exact pixels.
func TestEncode(t *testing.T) {
	t.Parallel()

	for _, p := range slices.Concat(figures(), capes()) {
		file, err := encode(p.sheet)
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		sheet, err := skin.Decode(file)
		if err != nil || !bytes.Equal(sheet.Pix, p.sheet.Pix) {
			t.Errorf("%s: other pixels, or %v", p.name, err)
		}
	}
}

// The files are small: both programs, or the repository, hold them.
func TestFilesAreSmall(t *testing.T) {
	t.Parallel()

	for directory, most := range map[string]int64{artworkDir: 40_000, randomDir: 220_000} {
		var size int64
		for _, name := range pictures(t, filepath.Join(stored, directory)) {
			file, err := os.Stat(filepath.Join(stored, directory, name))
			if err != nil {
				t.Fatal(err)
			}
			size += file.Size()
		}
		if size > most {
			t.Errorf("the files in %s have %d bytes; want %d at most", directory, size, most)
		}
	}
}

func TestRunRequiresADirectory(t *testing.T) {
	t.Parallel()

	for _, args := range [][]string{nil, {filepath.Join(t.TempDir(), "missing")}} {
		if err := run(args); err == nil {
			t.Errorf("no error with the arguments %q", args)
		}
	}
}

// pictures returns the names of the PNG files in a directory, sorted.
func pictures(t *testing.T, directory string) (names []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(directory, "*.png"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

func decode(t *testing.T, path string) skin.Sheet {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sheet, err := skin.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	return sheet
}
