// Package casefold makes the keys by which e-mail addresses and player names are compared.
// Core stores them under unique constraints and edges look players up by them, so both must
// fold in the same way.
package casefold

import (
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
// which full-width letters and half-width kana are the usual ones. A key is its own key.
func SearchKey(text string) string {
	if isASCIIKey(text) {
		return text
	}
	return norm.NFKC.String(Key(norm.NFKC.String(text)))
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
