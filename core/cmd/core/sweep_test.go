package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestSweep(t *testing.T) {
	t.Parallel()

	environ, conn := newDatabase(t)
	root := strings.TrimPrefix(environ[1], "CORE_OBJECTS_URL=file://")
	testenv.Contains(t, succeed(t, nil, "", "help"), "core sweep ", "help")
	fails(t, "-age", environ, "", "sweep", "-age", "-1s")
	fails(t, "-progress", environ, "", "sweep", "-progress", "0s")
	fails(t, "takes no argument", environ, "", "sweep", "all")
	fails(t, "CORE_OBJECTS_URL", withSetting(environ, "CORE_OBJECTS_URL", ""), "", "sweep")
	fails(t, "CORE_DATABASE_URL", withSetting(environ, "CORE_DATABASE_URL", ""), "", "sweep")

	succeed(t, environ, "", "migrate")
	succeed(t, environ, "correct horse", "user", "add", "steve@example.com")
	sheet := artwork.Explorer()
	succeed(t, environ, "", "texture", "add", "-uploader", "steve@example.com", paintedFile(t, "Skin.png", sheet))
	hash := selected[string](t, conn, "SELECT encode(hash, 'hex') FROM textures")
	texture := filepath.Join(root, hash[:2], hash+".png")

	// Files with a modification time in the past.
	put := func(path string, age time.Duration) string {
		t.Helper()
		testenv.Do(t, os.WriteFile(path, []byte(path), 0o600))
		testenv.Do(t, os.Chtimes(path, time.Time{}, time.Now().Add(-age)))
		return path
	}
	orphan := func(age time.Duration) string {
		t.Helper()
		name := skin.HashOf([]byte(root + age.String())).String()
		return put(filepath.Join(root, name[:2], name+".png"), age)
	}
	old, middle, young := orphan(25*time.Hour), orphan(23*time.Hour), orphan(0)
	leftover, foreign := put(filepath.Join(root, ".unfinished-1"), 2*time.Hour), put(filepath.Join(root, "notes.txt"), 48*time.Hour)
	there := func(want bool, paths ...string) {
		t.Helper()
		for _, path := range paths {
			if _, err := os.Stat(path); want != (err == nil) || err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s exists: %v; want %t", path, err, want)
			}
		}
	}
	says := func(want string, args ...string) {
		t.Helper()
		testenv.Contains(t, succeed(t, environ, "", append([]string{"sweep"}, args...)...), "in all: "+want, "the output")
	}

	says("4 files seen, 1 named by no texture (0.0 MiB), 0 removed, 2 too young, 0 in use, 1 leftovers of uploads, 0.0 MiB freed, 0 textures without a file; ", "-dry-run")
	there(true, texture, old, middle, young, leftover, foreign, filepath.Join(root, ".veneer"))
	says("4 files seen, 1 named by no texture (0.0 MiB), 1 removed, 2 too young, 0 in use, 1 leftovers")
	there(false, old, leftover)
	says("3 files seen, 1 named by no texture (0.0 MiB), 1 removed, 1 too young", "-age", "22h30m")
	there(false, middle)
	there(true, texture, young, foreign, filepath.Join(root, ".veneer"))
	progress := succeed(t, environ, "", "sweep", "-age", "0s", "-progress", "1ns")
	testenv.Check(t, strings.HasPrefix(progress, "so far: "), "it prints %q; want progress", progress)
	there(false, young)

	testenv.Do(t, os.Remove(texture))
	out, err := invoke(t, environ, "", "sweep")
	testenv.ErrorHas(t, err, "textures without a file: 1", "core sweep")
	testenv.Check(t, strings.HasPrefix(out, "texture 1 has no file: "+hash+"\nin all: 0 files seen, "),
		"it prints %q", out)
}
