package postgres

import (
	"strings"
	"unicode"

	"github.com/veneer-skins/veneer/shared/casefold"
)

// asciiLetters stand for the characters of ASCII that are neither letters nor digits, and
// anyLetter before all others that are not.
const (
	asciiOthers  = " !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
	asciiLetters = "աբգդեզէըթժիլխծկհձղճմյնշոչպջռսվտրց"
	anyLetter    = 'þ'
)

// letterFor has the letter for each character of asciiOthers.
var letterFor = func() (letters [unicode.MaxASCII + 1]rune) {
	for i, letter := range []rune(asciiLetters) {
		letters[asciiOthers[i]] = letter
	}
	return letters
}()

// NameKey returns the key of a texture's name, in which the key of what is looked for stands
// if the name has it, in any case.
//
// The index of names is by trigrams, which pg_trgm makes of letters and digits alone, three at
// a time. So other characters become letters that are rare in names, or stand behind one, to
// have the index help with "100%" and "___", too. Those letters themselves become upper-case,
// which no key is otherwise. Characters of which names need two, not three (all of Chinese,
// Japanese and Korean are among those from U+1100), stand there twice. PostgreSQL's own
// translate() takes 4.7 µs for a name, and would be asked for each name that the index leads to.
func NameKey(name string) string {
	key := casefold.Key(name)
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
