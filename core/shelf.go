package core

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/veneer-skins/veneer/shared/fold"
	"github.com/veneer-skins/veneer/shared/skin"
)

// volume is a texture on a shelf.
type volume struct {
	Listing
	key []byte // of its name, by which names are compared
}

func volumeOf(listing Listing) volume {
	return volume{Listing: listing, key: []byte(fold.Key(listing.Name))}
}

// shelf is all textures, by TID. It never changes: who reads one while textures
// change sees them as they were.
type shelf []*row

// row is some neighbouring textures, each of whose properties stand side by side:
// who looks at one property of all textures goes through memory from end to end.
type row struct {
	tids      []TextureID
	uploaders []UserID
	likes     []int64
	kinds     []kind
	most      int64 // likes of one of them
	*titles         // often the same as before a change
}

// rowLength is the most textures of a row, of which a change makes a copy.
const rowLength = 1024

// kind is a texture's type, and whether it is public.
type kind uint8

const kinds = 8

func kindOf(t skin.Type, public bool) kind {
	k := kind(t)
	if public {
		k |= kinds / 2
	}
	return k
}

func (k kind) public() bool { return k >= kinds/2 }

// packer puts volumes on a shelf, by TID.
type packer struct {
	shelf   shelf
	former  *titles  // of the row that was there, if any
	volumes []volume // of a row that is not full
}

func (p *packer) add(v volume) {
	if p.volumes = append(p.volumes, v); len(p.volumes) == rowLength {
		p.pack()
	}
}

func (p *packer) done() shelf {
	if len(p.volumes) > 0 {
		p.pack()
	}
	return p.shelf
}

func (p *packer) pack() {
	n := len(p.volumes)
	r := &row{tids: make([]TextureID, n), uploaders: make([]UserID, n), likes: make([]int64, n), kinds: make([]kind, n), titles: newTitles(p.volumes, p.former)}
	for i, v := range p.volumes {
		r.tids[i], r.uploaders[i], r.likes[i], r.kinds[i] = v.ID, v.Uploader, v.Likes, kindOf(v.Type, v.Public)
		r.most = max(r.most, v.Likes)
	}
	p.shelf, p.volumes = append(p.shelf, r), p.volumes[:0]
}

// volumes returns what pack was given, but for the names.
func (r *row) volumes() []volume {
	volumes := make([]volume, len(r.tids))
	for i := range volumes {
		k := r.kinds[i]
		volumes[i] = volume{
			Listing: Listing{ID: r.tids[i], Uploader: r.uploaders[i], Likes: r.likes[i], Type: skin.Type(k % (kinds / 2)), Public: k.public()},
			key:     r.key(i),
		}
	}
	return volumes
}

// with returns the shelf after changes, which are by TID. All but the rows that
// change are in both.
func (s shelf) with(changes []Listing) shelf {
	if len(changes) == 0 {
		return s
	}
	next := make(shelf, 0, len(s)+1+len(changes)/rowLength)
	for i, r := range s {
		// A row has all TIDs up to the first one of the next.
		n := len(changes)
		if i+1 < len(s) {
			n, _ = slices.BinarySearchFunc(changes, s[i+1].tids[0], func(l Listing, tid TextureID) int { return cmp.Compare(l.ID, tid) })
		}
		if n == 0 {
			next = append(next, r)
		} else {
			next = append(next, merged(r, changes[:n])...)
		}
		changes = changes[n:]
	}
	return append(next, merged(nil, changes)...)
}

// merged returns a row, or none, after changes.
func merged(former *row, changes []Listing) shelf {
	var p packer
	var volumes []volume
	if former != nil {
		p.former, volumes = former.titles, former.volumes()
	}
	for _, change := range changes {
		for len(volumes) > 0 && volumes[0].ID < change.ID {
			p.add(volumes[0])
			volumes = volumes[1:]
		}
		if len(volumes) > 0 && volumes[0].ID == change.ID {
			volumes = volumes[1:]
		}
		if change.Type != 0 {
			p.add(volumeOf(change))
		}
	}
	for _, v := range volumes {
		p.add(v)
	}
	return p.done()
}

// filter says which textures are wanted.
type filter struct {
	wanted   [kinds]bool
	own      [kinds]bool // wanted if they are the user's
	user     UserID
	uploader *UserID
	key      []byte
}

func newFilter(user User, query LibraryQuery) *filter {
	f := &filter{user: user.ID, uploader: query.Uploader, key: []byte(fold.Key(query.Name))}
	types := query.Types
	if len(types) == 0 {
		types = []skin.Type{skin.Steve, skin.Alex, skin.Cape}
	}
	for _, t := range types {
		f.wanted[kindOf(t, true)] = true
		f.wanted[kindOf(t, false)] = user.Permission >= Administrator
		f.own[kindOf(t, false)] = user.ID != 0
	}
	return f
}

func (f *filter) wants(r *row, i int) bool {
	k := r.kinds[i]
	return (f.wanted[k] || f.own[k] && r.uploaders[i] == f.user) && (f.uploader == nil || r.uploaders[i] == *f.uploader)
}

// marks are textures of a row.
type marks [rowLength / 64]uint64

func (m *marks) set(i int) { m[i/64] |= 1 << (i % 64) }

func (m *marks) count() int {
	n := 0
	for _, word := range m {
		n += bits.OnesCount64(word)
	}
	return n
}

// mark marks those textures that a filter wants, of those with at least so many likes.
func (r *row) mark(f *filter, least int64) (m marks) {
	if r.most < least {
		return m
	}
	if len(f.key) > 0 {
		found := r.candidates(f.key)
		within := found.within[:len(found.places)]
		for n, place := range found.places {
			if i := int(place); r.likes[i] >= least && f.wants(r, i) && r.stands(f.key, i, within[n], found.before) {
				m.set(i)
			}
		}
		return m
	}
	for i := range r.kinds {
		if r.likes[i] >= least && f.wants(r, i) {
			m.set(i)
		}
	}
	return m
}

// block is how many rows are looked through before others may come in between.
const block = 32

// mark marks the textures of each row that a filter wants, of those with at least so
// many likes, with so many workers at most. It counts them by their likes, unless that
// is nil.
func (s shelf) mark(f *filter, least int64, by *tally, workers int) []marks {
	all := make([]marks, len(s))
	var taken atomic.Int64
	var adding sync.Mutex
	look := func() {
		var own tally
		for {
			end := int(taken.Add(block))
			if end-block >= len(s) {
				break
			}
			for i := end - block; i < min(end, len(s)); i++ {
				all[i] = s[i].mark(f, least)
				if by != nil {
					s[i].count(all[i], &own)
				}
			}
			runtime.Gosched()
		}
		if by != nil {
			adding.Lock()
			defer adding.Unlock()
			by.add(&own)
		}
	}
	var helpers sync.WaitGroup
	for range min(workers, len(s)/block) - 1 {
		helpers.Go(look)
	}
	look()
	helpers.Wait()
	return all
}

// find returns the TIDs of the textures that a filter wants, in an order, of those
// from and to numbers that count from 0; and how many there are, or, if those are
// more than MostFound, some number above it. So many workers look at most.
func (s shelf) find(f *filter, liked bool, from, to, workers int) (found []TextureID, total int) {
	if liked {
		return s.mostLiked(f, from, to, workers)
	}
	// Of what many have the first rows have enough.
	for rows := block / 2; len(s) > 0 && (total < to || total <= MostFound); rows *= 2 {
		latest := s[max(0, len(s)-rows):]
		s = s[:len(s)-len(latest)]
		for n, m := range slices.Backward(latest.mark(f, 0, nil, workers)) {
			count := m.count()
			if total+count > from && total < to {
				found = latest[n].newest(m, from-total, to-total, found)
			}
			total += count
		}
	}
	return found, total
}

// newest adds TIDs of what is marked, the newest first: of those from and to numbers
// that count from 0.
func (r *row) newest(m marks, from, to int, found []TextureID) []TextureID {
	n := 0
	for w, word := range slices.Backward(m[:]) {
		for ; word != 0 && n < to; n++ {
			i := bits.Len64(word) - 1
			word &^= 1 << i
			if n >= from {
				found = append(found, r.tids[64*w+i])
			}
		}
	}
	return found
}

// mostLiked finds textures by their likes, and of equals the newest first. It puts
// none in order: it counts how many have how many likes, so that each knows its
// place. Once there are more than anybody counts, it looks no more for those that have
// fewer likes than as many as are wanted.
func (s shelf) mostLiked(f *filter, from, to, workers int) (found []TextureID, total int) {
	all := make([]marks, 0, len(s))
	var places tally
	least := int64(0)
	for rows := block / 2; len(all) < len(s); rows = min(2*rows, 8*block) {
		next := s[len(all):min(len(all)+rows, len(s))]
		all = append(all, next.mark(f, least, &places, workers)...)
		if places.total > MostFound {
			least = places.reach(to)
		}
	}
	total = places.pile(from, to)
	found = make([]TextureID, max(0, min(to, total)-from))
	missing := len(found)
	for n, r := range slices.Backward(s) {
		if missing == 0 {
			break
		}
		for w, word := range slices.Backward(all[n][:]) {
			for word != 0 {
				i := bits.Len64(word) - 1
				word &^= 1 << i
				if place := places.next(r.likes[64*w+i]); place >= from && place < to {
					found[place-from] = r.tids[64*w+i]
					missing--
				}
			}
		}
	}
	return found, total
}

// count counts what is marked by its likes.
func (r *row) count(m marks, by *tally) {
	for w, word := range m {
		by.total += bits.OnesCount64(word)
		for ; word != 0; word &= word - 1 {
			*by.of(r.likes[64*w+bits.TrailingZeros64(word)])++
		}
	}
}

// tally is a number for each number of likes, of which most are small.
type tally struct {
	few         [1024]int
	many        map[int64]*int
	total       int   // of what was counted
	least, most int64 // likes of those whose places are asked for
}

// add adds what another one has counted.
func (t *tally) add(other *tally) {
	t.total += other.total
	for likes, n := range other.few {
		t.few[likes] += n
	}
	for likes, n := range other.many {
		*t.ofMany(likes) += *n
	}
}

func (t *tally) of(likes int64) *int {
	if uint64(likes) < uint64(len(t.few)) {
		return &t.few[likes]
	}
	return t.ofMany(likes)
}

func (t *tally) ofMany(likes int64) *int {
	n := t.many[likes]
	if n == nil {
		if t.many == nil {
			t.many = map[int64]*int{}
		}
		n = new(int)
		t.many[likes] = n
	}
	return n
}

// reach returns a number of likes that so many have, or more, and 0 if there are not
// so many.
func (t *tally) reach(n int) int64 {
	for _, more := range t.many {
		n -= *more
	}
	likes := len(t.few)
	for ; n > 0 && likes > 0; likes-- {
		n -= t.few[likes-1]
	}
	return int64(likes)
}

// pile replaces each number by the sum of those of more likes, which is the first
// place of its own, and returns the sum of all. Places are asked for from one to
// another.
func (t *tally) pile(from, to int) int {
	sum := 0
	t.least, t.most = math.MaxInt64, -1
	add := func(likes int64, n *int) {
		if sum < to && sum+*n > from {
			t.least, t.most = likes, max(t.most, likes)
		}
		*n, sum = sum, sum+*n
	}
	for _, likes := range slices.Backward(slices.Sorted(maps.Keys(t.many))) {
		add(likes, t.many[likes])
	}
	for likes := range slices.Backward(t.few[:]) {
		add(int64(likes), &t.few[likes])
	}
	return sum
}

// next returns the next place of so many likes, or -1 if it is not asked for.
func (t *tally) next(likes int64) int {
	if likes < t.least || likes > t.most {
		return -1
	}
	n := t.of(likes)
	*n++
	return *n - 1
}
