package core

import (
	"strings"
	"unicode/utf8"

	"github.com/veneer-skins/veneer/shared/fault"
)

// Bounds of pages.
const (
	DefaultPerPage = 6
	maxPerPage     = 100
	// maxPage keeps the number of an item within what the store counts with.
	maxPage = 1 << 31
)

// Page is a page of what a search has found.
type Page[T any] struct {
	Items []T
	Total int  // how many are counted, no more than MostFound
	More  bool // whether there may be others
}

// MaxCounted is how many things a search counts: whoever gets so many looks for fewer
// of them, not for their number.
const MaxCounted = 10_000

// Bounds of a page of a search.
const (
	DefaultSearchPerPage = 20
	MaxSearchPage        = 1000
)

// addPage takes note of a page that nobody can have, of which last is the last.
func (f *fieldFaults) addPage(page, perPage, maxPage int) {
	if page < 1 || page > maxPage {
		f.add(fault.Field("page", "The page must be at least 1, and no more than %d.", maxPage))
	}
	if perPage < 1 || perPage > maxPerPage {
		f.add(fault.Field("perPage", "There may be 1 to %d items on a page.", maxPerPage))
	}
}

// addPart takes note of what is wrong with a part of a text to look for, and trims it.
func (f *fieldFaults) addPart(field string, part *string, maxChars int) {
	*part = strings.TrimSpace(*part)
	if !isPrintable(*part) || utf8.RuneCountInString(*part) > maxChars {
		f.add(fault.Field(field, "Look for text of no more than %d characters, without control characters.", maxChars))
	}
}
