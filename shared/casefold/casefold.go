// Package casefold makes the keys by which e-mail addresses and player names are compared.
// Core stores them under unique constraints and edges look players up by them, so both must
// fold in the same way.
package casefold

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Key returns the comparison key of a text: its Unicode normal form C under
// simple case folding (CaseFolding.txt, statuses C and S). Texts that differ
// only in case or in how accents are composed have the same key, and a key is
// its own key.
func Key(text string) string {
	if isASCIIKey(text) {
		return text
	}
	return string(AppendKey(make([]byte, 0, len(text)), text))
}

// SearchKey returns the key by which names are searched: Key of the text's compatibility form (NFKC), in
// which full-width letters and half-width kana are the usual ones, with ss for ß and i for İ, one space
// for several, none at the ends, and no invisible characters but joiners. A key is its own key.
func SearchKey(text string) string {
	if !isASCIIKey(text) {
		text = norm.NFKC.String(Key(norm.NFKC.String(strings.Map(visible, text))))
		text = norm.NFKC.String(expansions.Replace(text))
	}
	return strings.Join(strings.Fields(text), " ")
}

// expansions are of letters that simple case folding leaves.
var expansions = strings.NewReplacer("\u00df", "ss", "\u1e9e", "ss", "\u0130", "i")

// visible returns a rune, and -1 for an invisible one, which a search may have from where it was copied: a soft hyphen,
// a space of no width, a mark of direction or of the byte order.
func visible(r rune) rune {
	if strings.ContainsRune("\u00ad\u200b\u200e\u200f\u2060\ufeff", r) {
		return -1
	}
	return r
}

// AppendKey appends the comparison key of a text to dst.
func AppendKey(dst []byte, text string) []byte {
	start := len(dst)
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= utf8.RuneSelf:
			return appendUnicodeKey(dst[:start], text)
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// isASCIIKey reports whether a text is ASCII without upper case, and so its own key.
func isASCIIKey(text string) bool {
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf || ('A' <= c && c <= 'Z') {
			return false
		}
	}
	return true
}

func appendUnicodeKey(dst []byte, text string) []byte {
	folded := make([]byte, 0, len(text))
	for _, r := range norm.NFC.String(text) {
		folded = utf8.AppendRune(folded, foldRune(r))
	}
	// After folding, runes may compose further.
	return append(dst, norm.NFC.Bytes(folded)...)
}

// foldRune returns the representative of the runes that are equal to r under simple case
// folding: the lower case of the smallest of them if that is among them, so that keys are
// readable, else the smallest.
func foldRune(r rune) rune {
	smallest := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		smallest = min(smallest, other)
	}
	lower := unicode.ToLower(smallest)
	for other := unicode.SimpleFold(smallest); other != smallest; other = unicode.SimpleFold(other) {
		if other == lower {
			return lower
		}
	}
	return smallest
}
