package edge

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// fill loads pictures, the first one three times and the second one twice, and returns them.
func (p *Pictures) fill(t *testing.T, variants ...Variant) (pictures []picture) {
	t.Helper()
	for at, variant := range variants {
		for range max(1, 3-at) {
			loaded, _, err := p.picture(t.Context(), variant, variant.etag(p.revisionOf(variant.View)))
			testenv.Do(t, err)
			waitIdle(t, p.pictureCache)
			if len(pictures) == at {
				pictures = append(pictures, loaded)
			}
		}
	}
	return pictures
}

// wantCached checks that a picture is cached, and the same.
func (p *Pictures) wantCached(t *testing.T, variant Variant, want picture) {
	t.Helper()
	got, outcome, err := p.picture(t.Context(), variant, ETag{})
	if err != nil || outcome != cache.Hit || got.etag != want.etag || !bytes.Equal(got.body, want.body) {
		t.Errorf("%+v: %q, %v, %v; want %q from the cache", variant, got.body, outcome, err, want.body)
	}
}

// A process has the pictures that another one kept, of the same revision, and the most requested ones if there is no room for all.
func TestKeep(t *testing.T) {
	t.Parallel()
	exact := viewOf(3, 64)
	exact.Exact = 50
	variants := []Variant{viewOf(1, 64), viewOf(2, 64), exact, {Texture: [32]byte{4}, File: true}}
	before, directory := (&fakeBackend{}).open(t, testConfig()), t.TempDir()
	want := before.fill(t, variants...)
	n, err := before.Keep(directory, 1<<20)
	testenv.Do(t, err)
	testenv.Equal(t, n, len(variants), "pictures that are kept")

	after := (&fakeBackend{}).open(t, testConfig())
	n, err = after.Restore(directory)
	testenv.Do(t, err)
	testenv.Equal(t, n, len(variants), "pictures that are restored")
	for at, variant := range variants {
		after.wantCached(t, variant, want[at])
	}

	// The first is requested most, also by what the second process knows of it.
	again := t.TempDir()
	n, err = after.Keep(again, before.pictureCache.Stats().Bytes/int64(len(variants)))
	testenv.Do(t, err)
	testenv.Equal(t, n, 1, "pictures that are kept in a quarter of the room")
	few := (&fakeBackend{}).open(t, testConfig())
	testenv.Equal(t, testenv.Must(few.Restore(again))(t), 1, "pictures that are restored of them")
	few.wantCached(t, variants[0], want[0])
	testenv.Do(t, os.WriteFile(filepath.Join(directory, keepName+unfinished), []byte("of an edge that was killed"), 0o600))
	testenv.Equal(t, testenv.Must((&fakeBackend{}).open(t, testConfig()).Restore(directory))(t), len(variants), "pictures beside unfinished ones")
	names := testenv.Must(os.ReadDir(directory))(t)
	testenv.Equal(t, len(names), 1, "files in the directory: %v", names)

	other := (&fakeBackend{}).open(t, testConfig())
	other.revision = "r3"
	testenv.Equal(t, testenv.Must(other.Restore(directory))(t), 0, "pictures of another revision")
	testenv.Equal(t, testenv.Must(other.Restore(t.TempDir()))(t), 0, "pictures of an empty directory")
	_, err = before.Keep(filepath.Join(directory, "none"), 1<<20)
	testenv.Check(t, err != nil, "pictures are kept in a directory that does not exist")
}

// What is damaged, or cut off, is not cached, wherever that is.
func TestKeptPicturesAreChecked(t *testing.T) {
	t.Parallel()
	variants := []Variant{viewOf(1, 64), viewOf(2, 64)}
	before, directory := (&fakeBackend{}).open(t, testConfig()), t.TempDir()
	want := before.fill(t, variants...)
	_ = testenv.Must(before.Keep(directory, 1<<20))(t)
	path := filepath.Join(directory, keepName)
	whole := testenv.Must(os.ReadFile(path))(t)
	for at := len(before.keepHeader()); at < len(whole); at += 7 {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 0x81
		for _, content := range [][]byte{damaged, whole[:at]} {
			testenv.Do(t, os.WriteFile(path, content, 0o600))
			after := (&fakeBackend{}).open(t, testConfig())
			n, err := after.Restore(directory)
			isAtRecord := bytes.HasPrefix(whole, content) && (at == len(before.keepHeader()) || n == 1 && err == nil)
			testenv.Check(t, n < 2 && (err != nil || isAtRecord), "with byte %d damaged: %d pictures, %v", at, n, err)
			for _, kept := range after.pictureCache.Hottest(1 << 20) {
				if i := int(kept.Key[0]) - 1; i > 1 || !bytes.Equal(kept.Value.body, want[i].body) || kept.Value.etag != want[i].etag {
					t.Fatalf("with byte %d damaged: %q is cached", at, kept.Value.body)
				}
			}
		}
	}
}
