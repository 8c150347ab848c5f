// Package core is the domain of the stateful program: users, sessions, players, textures, closets,
// notifications, reports and scores, a noun a file. It holds their rules. Package postgres stores
// them, package api serves them as JSON over HTTP, package edgeapi serves edges, and cmd/core wires
// these adapters. This package imports none of them: it declares the stores and senders that it
// needs as interfaces.
//
// # Units of work
//
// A store method is one unit of work: it makes all the changes that its comment lists, or none.
// Transactions never leave the store. A rule that depends on the current content of a row is
// checked by the statement that changes the row, and the comment of the interface states it. All
// other rules are checked here. A method without such a rule only calls the store: the interfaces
// over HTTP do not see stores.
//
// # Textures
//
// A texture is a row and a file. The file is stored first, named by its SHA-256, so a row without a
// file cannot exist. A file without a row wastes some kilobytes until the next Sweep, which takes
// the same lock on the hash as an upload. Duplicates are found by pixels, since two PNG encoders
// write the same pixels as different files.
//
// Library lists textures. The store reads them along an index of the list's order while that takes
// few rows, and through an index of their names otherwise.
//
// # Changes
//
// Edges cache mappings: the texture that a key (a name, uid, uuid, tid or hash) resolves to. A
// transaction that changes a mapping also writes its key into the changes table. After the commit
// Feed numbers such rows and streams them to the edges, which drop those mappings. On a site with a
// CDN, package cdnpurge then has the CDN drop the responses tagged with the key.
package core

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
)

// UserID identifies a user (uid).
type UserID int64

// PlayerID identifies a player (pid).
type PlayerID int64

// TextureID identifies a texture (TID). TIDs start at 1; 0 stands for none.
type TextureID int64

// Clock returns the current time.
type Clock func() time.Time

// MaxName is the most characters of a nickname and of the names of players, textures and closet
// items.
const MaxName = edgeproto.MaxNameChars

// validateLine trims a line of text, and checks that it has 1 to 64 characters and no control
// characters.
func validateLine(field, text string) (string, error) {
	text = strings.TrimSpace(text)
	if n := utf8.RuneCountInString(text); !isPrintable(text) || n == 0 || n > MaxName {
		return "", fault.Field(field, "A %s has 1 to %d characters, without line breaks and other control characters.", field, MaxName)
	}
	return text, nil
}

// validateName validates a line that names something: it must also be legible.
func validateName(field, text string) (string, error) {
	text, err := validateLine(field, text)
	if err == nil && !isLegible(text) {
		err = fault.Field(field, "A %s has a visible character, and no invisible ones and controls of direction.", field)
	}
	if err != nil {
		return "", err
	}
	return text, nil
}

// validateText checks that text of several lines has 1 to maxChars characters. It returns the text
// with line feeds only: browsers send CRLF from forms.
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
