package casefold_test

import (
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestKey(t *testing.T) {
	t.Parallel()
	f := func(text, want string) {
		t.Helper()
		testenv.Equal(t, casefold.Key(text), want, "Key(%q)", text)
		testenv.Equal(t, string(casefold.AppendKey([]byte("A"), text)), "A"+want, "AppendKey(A, %q)", text)
	}

	f("", "")
	f("steve", "steve")
	f("STEVE_99", "steve_99")
	f("Demo@Example.COM", "demo@example.com")
	f("\u212Aelvin", "kelvin")          // the Kelvin sign is a K
	f("\u017Fteve", "steve")            // long s
	f("Zo\u00CB", "zo\u00EB")           // Ë composed
	f("Zoe\u0308", "zo\u00EB")          // ë as e and diaeresis
	f("ΣΊΣΥΦΟΣ", "σίσυφοσ")             // a final sigma is a sigma
	f("σίσυφος", "σίσυφοσ")             //
	f("\u0130stanbul", "\u0130stanbul") // a dotted capital I has no simple folding
	f("STRASSE", "strasse")
	f("straße", "straße") // simple folding does not expand
}

func TestSearchKey(t *testing.T) {
	t.Parallel()
	f := func(a, b string, want bool) {
		t.Helper()
		testenv.Equal(t, casefold.SearchKey(a) == casefold.SearchKey(b), want, "%q and %q are equal", a, b)
	}
	f("\uff21\uff4c\uff45\uff58", "alex", true)                     // full-width letters
	f("\uff76\uff9e\uff72\uff84\uff9e", "\u30ac\u30a4\u30c9", true) // half-width kana with marks
	f("Zoe\u0308", "zo\u00eb", true)
	f("\u2460", "1", true) // a circled digit
	f("\ufb01sh", "fish", true)
	f("Stra\u00dfe", "STRASSE", true)
	f("\u0130STANBUL", "istanbul", true)
	f("al\u200bpha\u00ad \u00a0 knight\ufeff", "alpha knight", true)
	f("\u0646\u200c\u0645", "\u0646\u0645", false) // a joiner shows
	f("alex", "alix", false)
	f("\u30ab", "\u30ac", false)
	rapid.Check(t, func(t *rapid.T) {
		key := casefold.SearchKey(rapid.String().Draw(t, "text"))
		if again := casefold.SearchKey(key); again != key {
			t.Errorf("the key of the key %q is %q", key, again)
		}
	})
}

// Keys are equal exactly if the standard library's simple case folding says so.
func TestKeysAgreeWithEqualFold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.String().Draw(t, "a")
		b := rapid.OneOf(
			rapid.Just(strings.ToUpper(a)), rapid.Just(strings.ToLower(a)), rapid.Just(norm.NFD.String(a)), rapid.String(),
		).Draw(t, "b")

		if key := casefold.Key(a); casefold.Key(key) != key {
			t.Errorf("Key(%q) = %q, with the key %q", a, key, casefold.Key(key))
		}
		equal := strings.EqualFold(norm.NFC.String(a), norm.NFC.String(b))
		if equal && casefold.Key(a) != casefold.Key(b) {
			t.Errorf("%q and %q are equal under folding, but have the keys %q and %q", a, b, casefold.Key(a), casefold.Key(b))
		}
		if !equal && casefold.Key(a) == casefold.Key(b) && !strings.EqualFold(norm.NFC.String(casefold.Key(a)), norm.NFC.String(casefold.Key(b))) {
			t.Errorf("%q and %q differ, but have the key %q", a, b, casefold.Key(a))
		}
	})
}
