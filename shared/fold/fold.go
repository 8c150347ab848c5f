// Package fold makes the keys by which e-mail addresses and player names are
// compared. Core stores them under unique constraints and edges look players up
// by them, so both must fold alike.
package fold

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
	if key, ok := asciiKey(text); ok {
		return key
	}
	folded := make([]byte, 0, len(text))
	for _, r := range norm.NFC.String(text) {
		folded = utf8.AppendRune(folded, fold(r))
	}
	// Folding can bring letters together that compose further.
	return string(norm.NFC.Bytes(folded))
}

func asciiKey(text string) (key string, ok bool) {
	upper := false
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return "", false
		}
		upper = upper || ('A' <= text[i] && text[i] <= 'Z')
	}
	if !upper {
		return text, true
	}
	lower := []byte(text)
	for i, c := range lower {
		if 'A' <= c && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return string(lower), true
}

// fold returns the representative of the runes that are equal to r under simple
// case folding: the lower case of the smallest of them where that is one of
// them too, so that keys read naturally, else the smallest.
func fold(r rune) rune {
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
