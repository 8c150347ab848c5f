package postgres_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// The key of a text is a substring of the key of a name exactly if the text is a substring of
// the name, ignoring case.
func TestNameKey(t *testing.T) {
	t.Parallel()
	letters := rapid.SampledFrom([]rune(" !~-_%\\aAbZ19éÉþÞաԱրևև狐狸한★\u0301\u1100"))
	text := rapid.StringOfN(letters, 0, 6, -1)
	rapid.Check(t, func(r *rapid.T) {
		name := text.Draw(r, "name")
		for _, part := range []string{text.Draw(r, "text"), rapid.StringOfN(letters, 1, 2, -1).Draw(r, "short text")} {
			want, got := strings.Contains(casefold.SearchKey(name), casefold.SearchKey(part)), strings.Contains(postgres.NameKey(name), postgres.NameKey(part))
			if want != got {
				r.Errorf("%q in %q: %t, by keys %q and %q: %t", part, name, want, postgres.NameKey(part), postgres.NameKey(name), got)
			}
		}
	})
}

// Keys are stored, so all releases must make the same ones. They depend on Go's Unicode tables;
// if those change, a migration has to make all keys again.
func TestNameKeysAreStable(t *testing.T) {
	t.Parallel()
	digest := sha256.New()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if utf8.ValidRune(r) {
			_, _ = io.WriteString(digest, postgres.NameKey(string(r)))
		}
	}
	const want = "50c70267762615a86529f82fc7f7c579aafb75f93eb825e3e1aded4338072c61"
	testenv.Equal(t, hex.EncodeToString(digest.Sum(nil)), want, "the digest of all keys")
}
