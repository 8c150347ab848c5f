package core

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/shared/fold"
	"github.com/veneer-skins/veneer/shared/skin"
)

// model finds what a shelf should find, one texture after another.
func model(listings []Listing, user User, query LibraryQuery) []TextureID {
	found := slices.DeleteFunc(slices.Clone(listings), func(l Listing) bool {
		texture := Texture{Public: l.Public, Uploader: l.Uploader}
		return !texture.visible(user) || query.Uploader != nil && *query.Uploader != l.Uploader ||
			len(query.Types) > 0 && !slices.Contains(query.Types, l.Type) || !strings.Contains(fold.Key(l.Name), fold.Key(query.Name))
	})
	slices.SortFunc(found, func(a, b Listing) int {
		if query.Liked && a.Likes != b.Likes {
			return cmp.Compare(b.Likes, a.Likes)
		}
		return cmp.Compare(b.ID, a.ID)
	})
	tids := []TextureID{}
	for _, l := range found {
		tids = append(tids, l.ID)
	}
	return tids
}

func randomListing(random *rand.Rand, tid TextureID) Listing {
	words := []string{"Steve", "STEVES", "kÖnig", "狐狸", "a", "%_\\", "es"}
	if random.IntN(20) == 0 { // longer than any that may be given
		words[0] = strings.Repeat("long", random.IntN(100)) + "Steve"
	}
	listing := Listing{
		ID: tid, Uploader: UserID(random.IntN(4)), Likes: int64(random.IntN(4)), Type: skin.Type(1 + random.IntN(3)), Public: random.IntN(4) > 0,
		Name: words[random.IntN(len(words))] + words[random.IntN(len(words))],
	}
	if random.IntN(50) == 0 {
		listing.Likes += int64(random.IntN(100_000))
	}
	return listing
}

// A shelf finds what a look at each texture finds, also after changes.
func TestShelfAgainstModel(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) // the same every time
	books := map[TextureID]Listing{}
	var s shelf
	tids := func() []TextureID {
		var all []TextureID
		for tid := range books {
			all = append(all, tid)
		}
		slices.Sort(all)
		return all
	}
	check := func() {
		t.Helper()
		var listings []Listing
		for _, tid := range tids() {
			listings = append(listings, books[tid])
		}
		for range 60 {
			query := LibraryQuery{Liked: random.IntN(2) == 0}
			query.Name = []string{"", "steve", "esk", "Eve", "könig", "狐狸", "%_\\", "nothing", "evea"}[random.IntN(9)]
			query.Types = [][]skin.Type{nil, {skin.Cape}, {skin.Steve, skin.Alex}}[random.IntN(3)]
			if random.IntN(3) == 0 {
				query.Uploader = new(UserID(random.IntN(4)))
			}
			user := []User{{}, {ID: 1}, {ID: 2, Permission: Administrator}}[random.IntN(3)]
			from := random.IntN(len(listings)/2 + 10)
			to := from + random.IntN(100)

			want := model(listings, user, query)
			found, total := s.find(newFilter(user, query), query.Liked, from, to, 2)
			what := fmt.Sprintf("%+v as %+v, %d to %d", query, user, from, to)
			if total != len(want) {
				t.Fatalf("%s: there are %d; want %d", what, total, len(want))
			}
			if diff := gocmp.Diff(append([]TextureID{}, want[min(from, len(want)):min(to, len(want))]...), append([]TextureID{}, found...)); diff != "" {
				t.Fatalf("%s: (-want +got):\n%s", what, diff)
			}
		}
	}

	check() // an empty one
	next := TextureID(1)
	for range 12 {
		var changes []Listing
		for _, tid := range tids() {
			switch random.IntN(20) {
			case 0:
				changes = append(changes, Listing{ID: tid})
				delete(books, tid)
			case 1:
				books[tid] = randomListing(random, tid)
				changes = append(changes, books[tid])
			}
		}
		if random.IntN(3) > 0 {
			changes = append(changes, Listing{ID: next}) // it came and went
		}
		for range random.IntN(700) {
			next += TextureID(1 + random.IntN(3))
			books[next] = randomListing(random, next)
			changes = append(changes, books[next])
		}
		next++
		s = s.with(changes)
		check()
	}
	var gone []Listing
	for _, tid := range tids() {
		gone = append(gone, Listing{ID: tid})
	}
	clear(books)
	before := s
	if s = s.with(gone); len(s) > 0 {
		t.Errorf("an empty shelf has %d rows", len(s))
	}
	check()
	if len(before) == 0 {
		t.Error("a shelf that somebody reads has changed")
	}
	var p packer
	for tid := range TextureID(3 * rowLength) {
		p.add(volumeOf(randomListing(random, tid+1)))
		books[tid+1] = Listing{}
	}
	s = p.done()
	changed := s.with([]Listing{{ID: rowLength + 1}})
	liked := randomListing(random, 1)
	liked.Name = string(s[0].key(0))
	if again := s.with([]Listing{liked}); again[0] == s[0] || again[0].titles != s[0].titles {
		t.Error("a like makes the index of names anew")
	}
	if changed[0] != s[0] || changed[2] != s[2] || changed[1] == s[1] || len(s[1].tids) != rowLength {
		t.Error("a change of one row makes others anew, or changes the shelf that was there")
	}
}

// Who finds more than are counted is told a number above that.
func TestShelfStopsCounting(t *testing.T) {
	t.Parallel()
	var p packer
	for tid := range TextureID(3 * MostFound) {
		p.add(volumeOf(Listing{ID: tid + 1, Type: skin.Steve, Public: true, Name: "N", Likes: int64(tid % 7)}))
	}
	s := p.done()
	for _, liked := range []bool{false, true} {
		for _, from := range []int{0, 2 * MostFound} {
			found, total := s.find(newFilter(User{}, LibraryQuery{}), liked, from, from+10, 2)
			if len(found) != 10 || total <= MostFound {
				t.Errorf("from %d, liked %t: %d are found of %d", from, liked, len(found), total)
			}
		}
		if found, total := s.find(newFilter(User{}, LibraryQuery{}), liked, 4*MostFound, 4*MostFound+10, 2); len(found) != 0 || total != 3*MostFound {
			t.Errorf("past the end, liked %t: %d are found of %d", liked, len(found), total)
		}
	}
}

// Of more than are counted, the most liked are in order, too.
func TestMostLikedOfMany(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6)) // the same every time
	var p packer
	var listings []Listing
	for tid := range TextureID(60_000) {
		listing := randomListing(random, tid+1)
		listing.Likes = int64(1 / (0.0003 + random.Float64()))
		listings = append(listings, listing)
		p.add(volumeOf(listing))
	}
	s := p.done()
	for _, query := range []LibraryQuery{{Liked: true}, {Liked: true, Name: "eve"}, {Liked: true, Uploader: new(UserID(1))}} {
		user := User{ID: 9, Permission: Administrator}
		want := model(listings, user, query)
		if len(want) <= MostFound {
			t.Fatalf("%+v finds only %d", query, len(want))
		}
		for _, from := range []int{0, 6, 600, MostFound, len(want) - 50, len(want)} {
			to := from + 100
			found, total := s.find(newFilter(user, query), true, from, to, 3)
			if diff := gocmp.Diff(want[from:min(to, len(want))], found); diff != "" || total <= MostFound {
				t.Errorf("%+v from %d finds (-want +got):\n%s", query, from, diff)
			}
		}
	}
}

// BenchmarkShelf looks through a million textures.
func BenchmarkShelf(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2)) // the same every time
	var p packer
	for tid := range TextureID(1_000_000) {
		word := []string{"steve", "dragon", "knight", "wizard"}[max(0, random.IntN(6)-2)]
		p.add(volumeOf(Listing{
			ID: tid + 1, Uploader: UserID(random.IntN(50_000)), Likes: int64(1 / (0.001 + random.Float64())), Type: skin.Type(1 + random.IntN(3)),
			Public: random.IntN(20) > 0, Name: fmt.Sprintf("red %s %x", word, random.IntN(1e9)),
		}))
	}
	s := p.done()
	for name, query := range map[string]LibraryQuery{
		"all": {}, "common": {Name: "steve"}, "some": {Name: "wizard"}, "rare": {Name: "3ab7"}, "none": {Name: "nothing"}, "uploader": {Uploader: new(UserID(7))},
	} {
		for _, liked := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/liked=%t", name, liked), func(b *testing.B) {
				for b.Loop() {
					s.find(newFilter(User{}, query), liked, 99_900, 100_000, runtime.GOMAXPROCS(0))
				}
			})
		}
	}
}
