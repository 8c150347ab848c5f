package core

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

// LibraryQuery selects textures. Name is matched as literal text, case-insensitively.
type LibraryQuery struct {
	Types    []skin.Type // any of these; none for all
	Name     string      // part of the name; empty for all
	Uploader *UserID     // 0 for textures of deleted uploaders; nil for all
	ByLikes  bool        // most liked first instead of newest first
	Page     int         // from 1
	PerPage  int
}

// LibraryTexture is a texture as a user sees it.
type LibraryTexture struct {
	Texture
	ItemName string // in the user's closet; empty if it is not there, or without a user
}

// LibraryStore finds textures.
type LibraryStore interface {
	// FindTextures returns a page of the textures that a user may see; the zero User stands for a
	// request without a token. Total is exact up to at least 1,000.
	FindTextures(ctx context.Context, user User, query LibraryQuery) (Page[LibraryTexture], error)
}

// Library lists textures.
type Library struct{ store LibraryStore }

// NewLibrary returns the library of a store.
func NewLibrary(store LibraryStore) *Library { return &Library{store} }

// List returns a page of the textures that a user may see; the zero User is not signed in. A page
// past the end is empty.
func (l *Library) List(ctx context.Context, user User, query LibraryQuery) (Page[LibraryTexture], error) {
	var wrong fieldFaults
	wrong.addPage(query.Page, query.PerPage, MaxCounted/min(max(query.PerPage, 1), maxPerPage))
	if query.Uploader != nil && *query.Uploader < 0 {
		wrong.add(fault.Field("uploader", "A uid is at least 1; 0 stands for users who are deleted."))
	}
	query.Name = strings.TrimSpace(query.Name)
	wrong.add(checkSearch(query.Name))
	if err := wrong.fault(); err != nil {
		return Page[LibraryTexture]{}, err
	}
	return l.store.FindTextures(ctx, user, query)
}

// cjk lists scripts in which two characters are as selective as three of other scripts, and the
// long vowel marks, which belong to no script.
var cjk = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo,
	{R16: []unicode.Range16{{Lo: 'ー', Hi: 'ー', Stride: 1}, {Lo: 'ｰ', Hi: 'ｰ', Stride: 1}}},
}

// checkSearch returns an Invalid fault unless names can be searched for a text.
func checkSearch(text string) error {
	key, minChars := casefold.SearchKey(text), 3 // folded, as the store searches
	if !strings.ContainsFunc(key, func(r rune) bool { return !unicode.In(r, cjk...) }) {
		minChars = 2
	}
	switch n := utf8.RuneCountInString(key); {
	case !isPrintable(text) || utf8.RuneCountInString(text) > MaxName:
		return fault.Field("q", "Look for text of no more than %d characters, without control characters.", MaxName)
	case n > 0 && n < minChars:
		return fault.Field("q", "Look for at least 3 characters, or 2 of Chinese, Japanese or Korean.")
	default:
		return nil
	}
}
