package core

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/fold"
	"github.com/veneer-skins/veneer/shared/skin"
)

// LibraryQuery says which textures are wanted. What is looked for in names is text,
// no pattern, in any case.
type LibraryQuery struct {
	Types    []skin.Type // any of these; none for all
	Name     string      // part of the name; empty for all
	Uploader *UserID     // 0 for those whose uploader is deleted; nil for all
	Liked    bool        // what most closets hold comes first, else what is newest
	Page     int         // from 1
	PerPage  int
}

// Listing is what the library knows of a texture.
type Listing struct {
	ID       TextureID
	Uploader UserID // 0 when the uploader is deleted
	Likes    int64
	Type     skin.Type // zero when the texture is gone
	Public   bool
	Name     string
}

// LibraryMoment is a moment in the history of textures, as the store tells it.
type LibraryMoment struct {
	Epoch    string // of the feed of changes
	Snapshot string // what was committed
	At       time.Time
}

// LibraryStore knows all textures, and which of them changed.
type LibraryStore interface {
	// ReadLibrary calls add with every texture, by TID, and returns as of when.
	ReadLibrary(ctx context.Context, add func(Listing) error) (LibraryMoment, error)

	// LibraryChanges returns the textures that changed since a moment, by TID, and as
	// of when. It reports false when that is too long ago, or too much has changed, to
	// tell.
	LibraryChanges(ctx context.Context, since LibraryMoment) ([]Listing, LibraryMoment, bool, error)

	// TexturesByID returns those of the textures that exist, in any order.
	TexturesByID(ctx context.Context, tids []TextureID) ([]Texture, error)

	// TrimLibrary forgets which textures changed before a time, and returns how many
	// changes.
	TrimLibrary(ctx context.Context, before time.Time) (int, error)
}

// KeepListings is how long the store can tell which textures changed. A library that
// has read nothing for half of that begins anew.
const KeepListings = time.Hour

// Library lists textures. It finds them in memory, in the same few milliseconds
// whatever is looked for and however deep the page lies, and reads from the store
// those alone that are on the page. Before it looks, it reads which textures have
// changed: a page has all that was committed when it was asked for.
//
// An index in the database would do for what is rare, and for what is common. It
// would not for a word that a twentieth of all names have: to find as many as are
// counted, either many times as many names must be read in the order of the page, or
// all that have the word must be put in order. And each like would write to it.
type Library struct {
	store LibraryStore
	slots chan struct{} // a token is a worker that looks for a list
	turn  chan struct{} // holds whoever reads the changes
	begun atomic.Int64  // times that changes were read, or were begun to be

	// Of whose turn it is.
	ended  int64 // the last time that succeeded, counted as in begun
	moment LibraryMoment
	shelf  shelf
}

// NewLibrary returns the library of a store. It is read when it is first needed.
func NewLibrary(store LibraryStore) *Library {
	// There are no more workers than processors, and they give way to others all the
	// time: so many lists take little from those who ask for something else.
	return &Library{store: store, slots: make(chan struct{}, runtime.GOMAXPROCS(0)), turn: make(chan struct{}, 1)}
}

// List returns a page of the textures that a user, whose zero value is somebody not
// signed in, may see. A page past the end is empty.
func (l *Library) List(ctx context.Context, user User, query LibraryQuery) (Found[Texture], error) {
	var wrong fieldFaults
	wrong.addPage(query.Page, query.PerPage, MaxFoundPage)
	if query.Uploader != nil && *query.Uploader < 0 {
		wrong.add(fault.Field("uploader", "A uid is at least 1; 0 stands for users who are deleted."))
	}
	query.Name = strings.TrimSpace(query.Name)
	wrong.add(checkSearch(query.Name))
	if err := wrong.fault(); err != nil {
		return Found[Texture]{}, err
	}

	shelf, err := l.fresh(ctx)
	if err != nil {
		return Found[Texture]{}, fmt.Errorf("read which textures changed: %w", err)
	}
	tids, total, err := l.look(ctx, shelf, newFilter(user, query), query)
	if err != nil {
		return Found[Texture]{}, err
	}
	page := Found[Texture]{Total: min(total, MostFound), More: total > MostFound}
	if len(tids) == 0 {
		return page, nil
	}
	textures, err := l.store.TexturesByID(ctx, tids)
	if err != nil {
		return Found[Texture]{}, err
	}
	found := make(map[TextureID]Texture, len(textures))
	for _, texture := range textures {
		found[texture.ID] = texture
	}
	for _, tid := range tids {
		// It may have gone, or become private, a moment ago.
		if texture, ok := found[tid]; ok && texture.visible(user) {
			page.Items = append(page.Items, texture)
		}
	}
	return page, nil
}

// look finds the textures of a page, with all workers that are free, or, if none is,
// the next.
func (l *Library) look(ctx context.Context, all shelf, f *filter, query LibraryQuery) (tids []TextureID, total int, err error) {
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, 0, fmt.Errorf("wait for other lists: %w", ctx.Err())
	}
	workers := 1 + l.helpers()
	defer func() {
		for range workers {
			<-l.slots
		}
	}()
	from := (query.Page - 1) * query.PerPage
	tids, total = all.find(f, query.Liked, from, from+query.PerPage, workers)
	return tids, total, nil
}

// helpers takes all workers that are free, and returns how many.
func (l *Library) helpers() (n int) {
	for {
		select {
		case l.slots <- struct{}{}:
			n++
		default:
			return n
		}
	}
}

// cjk are the scripts of which two characters say as much as three of others, and the
// marks of long vowels, which belong to no script.
var cjk = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo,
	{R16: []unicode.Range16{{Lo: 'ー', Hi: 'ー', Stride: 1}, {Lo: 'ｰ', Hi: 'ｰ', Stride: 1}}},
}

// checkSearch returns an Invalid fault unless a text may be looked for in names.
func checkSearch(text string) error {
	key, least := fold.Key(text), 3 // as it is looked for
	if !strings.ContainsFunc(key, func(r rune) bool { return !unicode.In(r, cjk...) }) {
		least = 2
	}
	switch n := utf8.RuneCountInString(key); {
	case !plain(text) || n > maxName:
		return fault.Field("q", "Look for text of no more than %d characters, without control characters.", maxName)
	case n > 0 && n < least:
		return fault.Field("q", "Look for at least 3 characters, or 2 of Chinese, Japanese or Korean.")
	default:
		return nil
	}
}

// fresh returns all textures as of a moment after the call. Those who wait for each
// other's turn share what the next one reads.
func (l *Library) fresh(ctx context.Context) (shelf, error) {
	ctx = WithClient(ctx, Client{}) // others wait for it, too
	arrived := l.begun.Load()
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l.ended > arrived {
		return l.shelf, nil
	}
	began := l.begun.Add(1)
	if err := l.read(ctx); err != nil {
		return nil, err
	}
	l.ended = began
	return l.shelf, nil
}

// read reads what has changed, or everything.
func (l *Library) read(ctx context.Context) error {
	if l.moment != (LibraryMoment{}) {
		changed, moment, known, err := l.store.LibraryChanges(ctx, l.moment)
		if err != nil {
			return err
		}
		if known {
			l.shelf, l.moment = l.shelf.with(changed), moment
			return nil
		}
	}
	var all packer
	moment, err := l.store.ReadLibrary(ctx, func(listing Listing) error {
		all.add(volumeOf(listing))
		return nil
	})
	if err != nil {
		return err
	}
	l.shelf, l.moment = all.done(), moment
	return nil
}

// Times of reading what nobody has asked for.
const (
	libraryInterval = 5 * time.Second
	libraryTimeout  = 5 * time.Minute
)

// Run reads the library, and then what changes, until ctx ends, so that those who
// ask find little to be read.
func (l *Library) Run(ctx context.Context, log *slog.Logger) {
	ticker := time.NewTicker(libraryInterval)
	defer ticker.Stop()
	failing := false
	for {
		bounded, cancel := context.WithTimeout(ctx, libraryTimeout)
		_, err := l.fresh(bounded)
		cancel()
		switch {
		case ctx.Err() != nil:
		case err != nil && !failing:
			log.WarnContext(ctx, "the library cannot be read", "error", err)
		case err == nil && failing:
			log.InfoContext(ctx, "the library is read again")
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Trim has the store forget changes that every library knows, and returns how many.
func (l *Library) Trim(ctx context.Context) (int, error) {
	return l.store.TrimLibrary(ctx, time.Now().Add(-KeepListings))
}
