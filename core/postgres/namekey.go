package postgres

import (
	"strings"
	"unicode"

	"github.com/veneer-skins/veneer/shared/casefold"
)

// asciiLetters replace the ASCII characters that are neither letters nor digits. anyLetter
// precedes all other such characters.
const (
	asciiOthers  = " !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
	asciiLetters = "աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրց"
	anyLetter    = 'þ'
)

// letterFor maps each character of asciiOthers to its letter.
var letterFor = func() (letters [unicode.MaxASCII + 1]rune) {
	for i, letter := range []rune(asciiLetters) {
		letters[asciiOthers[i]] = letter
	}
	return letters
}()

// NameKey returns the search key of a texture's name: the key of a text is a substring of it
// exactly if the text is a substring of the name, as casefold.SearchKey compares them.
//
// The index of names uses pg_trgm, which makes trigrams of letters and digits only. So other
// characters are replaced by letters that are rare in names, or preceded by one, for the index
// to help with "100%" and "___", too. Those letters themselves become upper-case, which no key
// has otherwise. Characters of which two often make a word (Chinese, Japanese and Korean are
// all from U+1100) are doubled, to make a trigram. PostgreSQL's translate() takes 4.7 µs for a
// name, and would be called for each name that the index returns.
func NameKey(name string) string {
	key := casefold.SearchKey(name)
	var b strings.Builder
	b.Grow(2 * len(key))
	for _, r := range key {
		switch {
		case r <= unicode.MaxASCII && letterFor[r] != 0:
			b.WriteRune(letterFor[r])
		case r <= unicode.MaxASCII:
			b.WriteRune(r)
		case r == anyLetter || 'ա' <= r && r <= 'ֆ':
			b.WriteRune(unicode.ToUpper(r))
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			b.WriteRune(anyLetter)
			b.WriteRune(r)
		default:
			b.WriteRune(r)
			if r >= '\u1100' {
				b.WriteRune(r)
			}
		}
	}
	return b.String()
}
