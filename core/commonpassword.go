package core

import (
	_ "embed"
	"iter"
	"slices"
	"strings"
	"unicode"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
)

// commonPasswords are passwords that attackers try first, and the words of such passwords.
//
//go:embed commonpasswords.txt
var commonPasswords string

// commonWords has the keys of commonPasswords.
var commonWords = func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(commonPasswords) {
		words[casefold.SearchKey(word)] = true
	}
	return words
}()

// checkCommon returns an Invalid fault for a password that is easily guessed: a common one, a row of the
// same or of successive characters, or a name: the site's, the user's or the user's e-mail address. Empty
// names are ignored.
func checkCommon(field, password string, names ...string) error {
	key := []rune(casefold.SearchKey(password))
	if isRow(key) {
		return errGuessed(field)
	}
	own := map[string]bool{}
	for _, name := range names {
		local, _, _ := strings.Cut(name, "@")
		for _, form := range []string{name, local, strings.ReplaceAll(name, " ", ""), strings.NewReplacer(".", "", "-", "", "_", "").Replace(local)} {
			own[casefold.SearchKey(form)] = len(form) > 3
		}
	}
	for core := range cores(key) {
		switch {
		case commonWords[string(core)] || len(core) >= 5 && len(key)-len(core) <= 3 && isRow(core):
			return errGuessed(field)
		case own[string(core)]:
			return fault.Field(field, "The password must not be the name of the site or your e-mail address.")
		}
	}
	return nil
}

func errGuessed(field string) error {
	return fault.Field(field, "This password is among the first that attackers try. Choose another one.")
}

// cores returns a password, and what is left without up to three characters at its beginning and up to two, or
// up to six digits and signs, at its end: Minecraft2026! is as easily guessed as minecraft.
func cores(password []rune) iter.Seq[[]rune] {
	return func(yield func([]rune) bool) {
		for begin := range min(4, len(password)) {
			for cut := range min(7, len(password)-begin) {
				end := len(password) - cut
				if cut > 2 && slices.ContainsFunc(password[end:], unicode.IsLetter) {
					break
				}
				if !yield(password[begin:end]) {
					return
				}
			}
		}
	}
}

// isRow reports whether a text has two different characters at most, or each one follows the one before
// in the alphabet or among the digits, up or down.
func isRow(text []rune) bool {
	different := slices.Compact(slices.Sorted(slices.Values(text)))
	return len(different) <= 2 || isSequence(text, 1) || isSequence(text, -1)
}

// isSequence reports whether each character is the one before plus a step; 0 follows 9.
func isSequence(text []rune, step rune) bool {
	for i := 1; i < len(text); i++ {
		last, next := text[i-1], text[i]
		wraps := step == 1 && last == '9' && next == '0' || step == -1 && last == '0' && next == '9'
		if next != last+step && !wraps {
			return false
		}
	}
	return true
}
