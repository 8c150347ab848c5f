package core

import (
	"strings"
	"unicode/utf8"

	"github.com/veneer-skins/veneer/shared/fault"
)

// Bounds of a page.
const (
	DefaultPerPage = 6
	maxPerPage     = 100
	// maxPage keeps the number of an item within the integers of the store.
	maxPage = 1 << 31
)

// Page is a page of the results of a search.
type Page[T any] struct {
	Items []T
	Total int  // results, counted up to MaxCounted
	More  bool // whether there may be more results than Total
}

// MaxCounted is where a search stops counting: with more results a user narrows the search, and
// does not need their number.
const MaxCounted = 10_000

// Bounds of a page of a search.
const (
	DefaultSearchPerPage = 20
	MaxSearchPage        = 1000
)

// addPage adds the faults of a page number and size.
func (f *fieldFaults) addPage(page, perPage, maxPage int) {
	if page < 1 || page > maxPage {
		f.add(fault.Field("page", "The page must be at least 1, and no more than %d.", maxPage))
	}
	if perPage < 1 || perPage > maxPerPage {
		f.add(fault.Field("perPage", "There may be 1 to %d items on a page.", maxPerPage))
	}
}

// addPart adds the faults of a text to search for, and trims it.
func (f *fieldFaults) addPart(field string, part *string, maxChars int) {
	*part = strings.TrimSpace(*part)
	if !isPrintable(*part) || utf8.RuneCountInString(*part) > maxChars {
		f.add(fault.Field(field, "Look for text of no more than %d characters, without control characters.", maxChars))
	}
}
