// Package core is the program that remembers: users, their players, textures
// and closets, and who is signed in. It holds the nouns and their rules; how
// they are kept is package postgres's affair, how they are asked for api's, and
// cmd/core ties them together.
//
// # Units of work
//
// A method of a store is one unit of work: it changes all it says, or nothing.
// Transactions never leave the store. Where a rule depends on what a row holds
// at that moment, the store's statement checks it, and the comment at the
// interface says so; every other rule stands here.
//
// # Textures
//
// A texture is a row and a file. The file goes first, named by its hash, so
// that a row without its file cannot exist; a file without a row is a few
// wasted kilobytes for the sweep, which takes the same lock on the hash as an
// upload does. Duplicates are told by pixels, since two encoders write the same
// pixels as different files.
//
// Library lists textures. The store finds them along an index of the list's order as long
// as that takes few rows, and by an index of their names where it would take many.
//
// # Changes
//
// Edges remember what keys lead to (a name, a uid, a uuid, a tid, a hash), so
// they must hear of every change. Whoever changes what a key leads to writes the
// key into the changes table within the same transaction. Feed numbers such
// rows once they are committed and streams them to the edges. Where a site has a
// hook, Purges has content delivery networks forget what is tagged with such a
// key, after the edges.
package core

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/veneer-skins/veneer/shared/fault"
)

// UserID is the uid of a user.
type UserID int64

// PlayerID is the pid of a player.
type PlayerID int64

// TextureID is the TID of a texture. TIDs start at 1; 0 stands for none.
type TextureID int64

// Clock tells the time.
type Clock func() time.Time

// maxName is the most characters in a nickname, a player's, a texture's and an
// item's name.
const maxName = 64

// validateLine checks a text of one line: it is trimmed, has 1 to 64 characters, and no control
// characters.
func validateLine(field, text string) (string, error) {
	text = strings.TrimSpace(text)
	if n := utf8.RuneCountInString(text); !isPrintable(text) || n == 0 || n > maxName {
		return "", fault.Field(field, "A %s has 1 to %d characters, without line breaks and other control characters.", field, maxName)
	}
	return text, nil
}

// validateName checks a text that people gave to something: a line that is legible.
func validateName(field, text string) (string, error) {
	text, err := validateLine(field, text)
	if err == nil && !legible(text) {
		err = fault.Field(field, "A %s has a visible character, and no invisible ones and controls of direction.", field)
	}
	if err != nil {
		return "", err
	}
	return text, nil
}

// validateText checks a text of several lines, which has 1 to so many characters, and
// returns it with line feeds alone between them: forms of browsers send more.
func validateText(field, text string, maxChars int) (string, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	switch n := utf8.RuneCountInString(text); {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return "", fault.Field(field, "The %s must be text without control characters but line feeds and tabs.", field)
	case strings.TrimSpace(text) == "":
		return "", fault.Field(field, "The %s must not be empty.", field)
	case n > maxChars:
		return "", fault.Field(field, "The %s has %d characters, but may have no more than %d.", field, n, maxChars)
	default:
		return text, nil
	}
}

// isPrintable reports whether a text is valid UTF-8 without control characters.
func isPrintable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
