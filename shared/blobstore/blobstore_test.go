package blobstore

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/veneer-skins/veneer/shared/skin"
)

func TestNames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hash := skin.HashOf(rapid.SliceOf(rapid.Byte()).Draw(t, "file"))
		if got, ok := hashOf(nameOf(hash)); !ok || got != hash {
			t.Fatalf("%s became %s", nameOf(hash), got)
		}
		// Each file has exactly one valid name.
		name := []byte(nameOf(hash))
		name[rapid.IntRange(0, len(name)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "byte")
		if got, ok := hashOf(string(name)); ok && nameOf(got) != string(name) {
			t.Fatalf("%s is parsed as %s", name, got)
		}
	})
}
