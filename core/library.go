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

// LibraryQuery says which textures are wanted. What is looked for in names is text,
// no pattern, in any case.
type LibraryQuery struct {
	Types    []skin.Type // any of these; none for all
	Name     string      // part of the name; empty for all
	Uploader *UserID     // 0 for those whose uploader is deleted; nil for all
	ByLikes  bool        // what most closets hold comes first, else what is newest
	Page     int         // from 1
	PerPage  int
}

// LibraryStore finds textures.
type LibraryStore interface {
	// FindTextures returns a page of the textures that a user may see, whose zero value
	// stands for a request without a token. Total is exact up to 1,000 at least.
	FindTextures(ctx context.Context, user User, query LibraryQuery) (Page[Texture], error)
}

// Library lists textures.
type Library struct{ store LibraryStore }

// NewLibrary returns the library of a store.
func NewLibrary(store LibraryStore) *Library { return &Library{store} }

// List returns a page of the textures that a user, whose zero value is somebody not
// signed in, may see. A page past the end is empty.
func (l *Library) List(ctx context.Context, user User, query LibraryQuery) (Page[Texture], error) {
	var wrong fieldFaults
	wrong.addPage(query.Page, query.PerPage, MaxCounted/min(max(query.PerPage, 1), maxPerPage))
	if query.Uploader != nil && *query.Uploader < 0 {
		wrong.add(fault.Field("uploader", "A uid is at least 1; 0 stands for users who are deleted."))
	}
	query.Name = strings.TrimSpace(query.Name)
	wrong.add(checkSearch(query.Name))
	if err := wrong.fault(); err != nil {
		return Page[Texture]{}, err
	}
	return l.store.FindTextures(ctx, user, query)
}

// cjk are the scripts of which two characters say as much as three of others, and the
// marks of long vowels, which belong to no script.
var cjk = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo,
	{R16: []unicode.Range16{{Lo: 'ー', Hi: 'ー', Stride: 1}, {Lo: 'ｰ', Hi: 'ｰ', Stride: 1}}},
}

// checkSearch returns an Invalid fault unless a text may be looked for in names.
func checkSearch(text string) error {
	key, minChars := casefold.Key(text), 3 // as it is looked for
	if !strings.ContainsFunc(key, func(r rune) bool { return !unicode.In(r, cjk...) }) {
		minChars = 2
	}
	switch n := utf8.RuneCountInString(key); {
	case !isPrintable(text) || n > maxName:
		return fault.Field("q", "Look for text of no more than %d characters, without control characters.", maxName)
	case n > 0 && n < minChars:
		return fault.Field("q", "Look for at least 3 characters, or 2 of Chinese, Japanese or Korean.")
	default:
		return nil
	}
}
