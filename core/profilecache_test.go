package core

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// scriptedSite is a database of players and changes as a test sets it.
type scriptedSite struct {
	ProfileStore
	ChangeStore
	head     FeedHead
	down     bool // whether polls fail
	changes  []edgeproto.Event
	profiles map[uuid.UUID]Profile
	reads    int
	// during, unless nil, runs once while a profile is read: after it was found, before it is
	// returned.
	during func()
	// behind, unless nil, changes the cursor of the next result.
	behind func(*edgeproto.Cursor)
}

func (s *scriptedSite) Profile(_ context.Context, player uuid.UUID) (Profile, edgeproto.Cursor, error) {
	s.reads++
	profile, ok := s.profiles[player]
	cursor := s.head.Cursor
	if during := s.during; during != nil {
		s.during = nil
		during()
	}
	if s.behind != nil {
		s.behind(&cursor)
		s.behind = nil
	}
	if !ok {
		return Profile{}, edgeproto.Cursor{}, errNoPlayer
	}
	return profile, cursor, nil
}

func (s *scriptedSite) PlayersNamed(_ context.Context, keys []string) (map[string]NamedPlayer, edgeproto.Cursor, error) {
	s.reads++
	players, cursor := map[string]NamedPlayer{}, s.head.Cursor
	for _, profile := range s.profiles {
		if key := casefold.Key(profile.Name); slices.Contains(keys, key) {
			players[key] = profile.NamedPlayer
		}
	}
	if during := s.during; during != nil {
		s.during = nil
		during()
	}
	return players, cursor, nil
}

func (s *scriptedSite) NumberChanges(context.Context) (FeedHead, error) {
	if s.down {
		return FeedHead{}, errors.New("the database is down")
	}
	return s.head, nil
}

func (s *scriptedSite) ChangesAfter(_ context.Context, revision int64, limit int) (found []edgeproto.Event, err error) {
	for _, change := range s.changes {
		if change.Revision > revision && len(found) < limit {
			found = append(found, change)
		}
	}
	return found, nil
}

func (s *scriptedSite) RenewEpoch(context.Context, edgeproto.Cursor) error {
	s.head.Epoch += "'"
	return nil
}

// change numbers a change of players.
func (s *scriptedSite) change(players ...uuid.UUID) {
	s.head.Revision++
	change := edgeproto.Event{Cursor: edgeproto.Cursor{Revision: s.head.Revision}}
	for _, player := range players {
		change.Keys = append(change.Keys, "pid:1", edgeproto.NameKey(s.profiles[player].Name), edgeproto.UUIDKey(player.String()))
	}
	s.changes = append(s.changes, change)
}

// cacheTestKey is one key for all tests, since it takes a while to make.
var cacheTestKey = sync.OnceValue(func() *ProfileKey {
	private, err := rsa.GenerateKey(rand.Reader, minProfileKey)
	if err != nil {
		panic(err)
	}
	return &ProfileKey{private: private}
})

// cacheTest is a cache of a scripted site. It runs in a bubble of synctest.
type cacheTest struct {
	*scriptedSite
	t        *testing.T
	feed     *Feed
	profiles *Profiles
	player   uuid.UUID
}

func newCacheTest(t *testing.T, bytes int64) *cacheTest {
	t.Helper()
	site := &scriptedSite{head: FeedHead{Cursor: edgeproto.Cursor{Epoch: "e", Revision: 7}}, profiles: map[uuid.UUID]Profile{}}
	c := &cacheTest{scriptedSite: site, t: t, feed: NewFeed(site, slog.New(slog.DiscardHandler)), player: uuid.New()}
	profiles := testenv.Must(NewProfiles(site, nil, c.feed, cacheTestKey(), ProfileLimits{Bytes: bytes}, "https://example.org", time.Now))(t)
	c.profiles = profiles
	c.set("Ann")
	c.poll()
	return c
}

// set has the player a name.
func (c *cacheTest) set(name string) {
	c.scriptedSite.profiles[c.player] = namedProfile(c.player, name)
}

func namedProfile(player uuid.UUID, name string) Profile {
	return Profile{NamedPlayer: NamedPlayer{UUID: player, Name: name}, Skin: skin.HashOf(player[:]), Slim: true}
}

// poll lets the feed poll once, later than all that came before.
func (c *cacheTest) poll() {
	c.t.Helper()
	<-time.After(time.Nanosecond)
	if err := c.feed.pollOnce(c.t.Context()); err != nil && !c.down && !errors.Is(err, errRevisionRegressed) {
		c.t.Fatal(err)
	}
}

// find checks the player's name, and whether that is read from the store.
func (c *cacheTest) find(what, name string, isRead bool) {
	c.t.Helper()
	before := c.reads
	profile, err := c.profiles.Find(c.t.Context(), c.player)
	if name == "" {
		testenv.Equal(c.t, fault.KindOf(err), fault.NotFound, "%s: the look-up, with %+v, %v", what, profile, err)
	} else if err != nil || profile.Name != name {
		c.t.Errorf("%s: the player is %q, %v; want %q", what, profile.Name, err, name)
	}
	testenv.Equal(c.t, c.reads > before, isRead, "%s: the store is read", what)
}

// Once too many look-ups have found nothing, only what is in memory is found.
func TestProfilesFromMemoryAreNotLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCacheTest(t, 1<<20)
		c.profiles.cache.unknown = NewUnknownLimit(UnknownLimits{PerSecond: 1})
		c.find("at first", "Ann", true)
		kinds := map[fault.Kind]int{}
		for range 100 {
			kinds[fault.KindOf(testenv.ErrOf(c.profiles.Find(t.Context(), uuid.New())))]++
		}
		testenv.Check(t, kinds[fault.NotFound] == 11 && kinds[fault.TooMany] == 89, "100 unknown players: %v", kinds)
		c.find("then", "Ann", false)
	})
}

// Profiles come from memory until a change names the player.
func TestProfilesFromMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCacheTest(t, 1<<20)
		c.find("at first", "Ann", true)
		c.find("then", "Ann", false)
		c.change(uuid.New())
		c.poll()
		c.find("after a change of another player", "Ann", false)

		c.set("Bob")
		c.change(uuid.New(), c.player)
		c.find("before the change is polled", "Ann", false)
		c.poll()
		c.find("after it was", "Bob", true)
		c.find("then", "Bob", false)

		delete(c.scriptedSite.profiles, c.player)
		c.change(c.player)
		c.poll()
		c.find("after the deletion", "", true)
		c.find("then, since unknown players take no memory", "", true)
		testenv.Equal(t, c.profiles.cache.entries.Len(), 0, "profiles are cached")
		c.set("Cat")
		c.change(c.player)
		c.find("created again", "Cat", true)
		c.poll()
		c.find("after the change was polled", "Cat", true)
		c.find("then", "Cat", false)
	})
}

// Names are looked up in memory until a change names them. Only those that are not there are read.
func TestNamesFromMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCacheTest(t, 1<<20)
		dan := uuid.New()
		c.scriptedSite.profiles[dan] = namedProfile(dan, "Dan")
		named := func(what string, isRead bool, want []string, names ...string) {
			t.Helper()
			before := c.reads
			players := testenv.Must(c.profiles.Named(t.Context(), names))(t)
			var got []string
			for _, player := range players {
				got = append(got, player.Name)
			}
			slices.Sort(got)
			cmptest.Same(t, got, want, "%s", what)
			testenv.Equal(t, c.reads > before, isRead, "%s: the store is read", what)
		}
		named("at first", true, []string{"Ann"}, "ann")
		named("then", false, []string{"Ann"}, "ANN", "Ann")
		named("one more", true, []string{"Ann", "Dan"}, "Dan", "Ann")
		named("both", false, []string{"Ann", "Dan"}, "Dan", "Ann")
		named("an unknown one", true, []string{"Dan"}, "Dan", "Bob")
		named("the same, since unknown ones take no memory", true, []string{"Dan"}, "Dan", "Bob")

		c.change(c.player) // names Ann
		c.set("Bob")
		c.change(c.player)
		c.poll()
		named("after a rename", true, []string{"Bob", "Dan"}, "Ann", "Bob", "Dan")
		named("the new name", false, []string{"Bob", "Dan"}, "Bob", "Dan")
		named("the former name", true, nil, "Ann")

		c.change(c.player)
		c.poll()
		c.during = func() { c.change(c.player); c.set("Cat"); c.poll() }
		named("renamed while it is read", true, []string{"Bob"}, "Bob")
		named("then", true, nil, "Bob")
		c.down = true
		<-time.After(edgeproto.TrustWindow)
		named("without polls", true, []string{"Dan"}, "Dan")
	})
}

// A commit of this core is seen at once, though no poll has found it.
func TestProfilesAfterOwnCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCacheTest(t, 1<<20)
		c.find("at first", "Ann", true)
		<-time.After(time.Nanosecond)
		c.set("Bob")
		c.feed.Committed()
		c.find("after the commit", "Bob", true)
		c.find("then", "Bob", true)
		c.change(c.player)
		c.poll()
		c.find("after a poll", "Bob", true)
		c.find("then", "Bob", false)
	})
}

// Without polls nothing is answered from memory, and what is cached is used again after a poll.
func TestProfilesWithoutPolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCacheTest(t, 1<<20)
		c.find("at first", "Ann", true)
		<-time.After(edgeproto.TrustWindow - time.Nanosecond)
		c.find("just within the window", "Ann", false)
		c.down = true
		c.poll()
		c.find("after the window", "Ann", true)
		c.set("Bob")
		c.find("changed while polls fail", "Bob", true)
		c.down = false
		c.change(c.player)
		c.poll()
		c.find("after the next poll", "Bob", true)
		c.find("then", "Bob", false)

		unpolled := newCacheTest(t, 1<<20)
		unpolled.feed = NewFeed(unpolled.scriptedSite, slog.New(slog.DiscardHandler))
		unpolled.profiles.cache = newProfileCache(unpolled.scriptedSite, nil, unpolled.feed, 1<<20, 256)
		unpolled.find("before the first poll", "Ann", true)
		unpolled.find("then", "Ann", true)
	})
}

// A result that a change has overtaken is returned to its reader, and to no other.
func TestProfileReadsOvertakenByChanges(t *testing.T) {
	t.Parallel()
	f := func(what string, isKept bool, overtake func(*cacheTest)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			c := newCacheTest(t, 1<<20)
			c.during = func() { overtake(c) }
			name := c.scriptedSite.profiles[c.player].Name
			c.find(what, name, true)
			c.poll()
			c.find(what+", then", c.scriptedSite.profiles[c.player].Name, !isKept)
			c.find(what+", in the end", c.scriptedSite.profiles[c.player].Name, false)
		})
	}
	f("no change", true, func(*cacheTest) {})
	f("another player", true, func(c *cacheTest) { c.change(uuid.New()); c.poll() })
	f("a rename, polled meanwhile", false, func(c *cacheTest) { c.set("Bob"); c.change(c.player); c.poll() })
	f("a rename, polled later", false, func(c *cacheTest) { c.set("Bob"); c.change(c.player) })
	f("a newer read that has ended", true, func(c *cacheTest) {
		c.set("Bob")
		c.change(c.player)
		c.poll()
		c.find("the newer read", "Bob", true)
	})
	f("another epoch", false, func(c *cacheTest) { c.set("Bob"); c.head.Epoch = "f"; c.poll() })
	f("another epoch, polled later", false, func(c *cacheTest) { c.set("Bob"); c.head.Epoch = "f" })
	f("trimmed changes", false, func(c *cacheTest) {
		c.set("Bob")
		c.head.Revision, c.head.Trimmed = 20, 15
		c.poll()
	})
	f("an answer of a database that is behind", false, func(c *cacheTest) {
		c.behind = func(at *edgeproto.Cursor) { at.Revision-- }
	})
	f("an answer of another history", false, func(c *cacheTest) {
		c.behind = func(at *edgeproto.Cursor) { at.Epoch = "former" }
	})
}

// After a restore, and wherever changes are missing, all profiles are read again.
func TestProfilesOfAnotherHistory(t *testing.T) {
	t.Parallel()
	f := func(what string, happens func(*cacheTest)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			c := newCacheTest(t, 1<<20)
			c.find(what, "Ann", true)
			c.set("Bob")
			happens(c)
			c.poll()
			c.poll() // the first one renews the epoch of a database that is behind
			c.find(what+", then", "Bob", true)
			c.find(what+", in the end", "Bob", false)
		})
	}
	f("a promotion", func(c *cacheTest) { c.head.Epoch = "f" })
	f("a restore in place", func(c *cacheTest) { c.head.Revision = 3 })
	f("trimmed changes", func(c *cacheTest) { c.head.Revision, c.head.Trimmed = 20, 15 })
	f("more changes than are read at once", func(c *cacheTest) { c.head.Revision += maxRecent + 1 })
}

// signedAt returns when the player's profile was signed.
func (c *cacheTest) signedAt() time.Time {
	t := c.t
	t.Helper()
	profile := testenv.Must(c.profiles.Find(t.Context(), c.player))(t)
	properties := testenv.Must(c.profiles.SignedProperties(t.Context(), profile))(t)
	value := testenv.Must(base64.StdEncoding.DecodeString(properties[0].Value))(t)
	var payload struct {
		Timestamp   int64
		ProfileName string
	}
	testenv.Do(t, json.Unmarshal(value, &payload))
	testenv.Equal(t, payload.ProfileName, profile.Name, "the signed name")
	return time.UnixMilli(payload.Timestamp)
}

// A profile is signed again only when it has changed.
func TestSignaturesOutliveReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCacheTest(t, 1<<20)
		f := func(what string, want time.Time) {
			t.Helper()
			for range 2 {
				testenv.Equal(t, c.signedAt().UnixMilli(), want.UnixMilli(), "%s: when it was signed", what)
			}
		}
		later := func() time.Time {
			<-time.After(50 * time.Millisecond)
			return time.Now()
		}
		first := later()
		f("at first", first)
		later()
		c.change(c.player)
		c.poll()
		f("named by a change, but the same", first)
		c.head.Epoch = "f"
		c.poll()
		f("in another epoch, but the same", first)
		<-time.After(edgeproto.TrustWindow)
		f("without polls", first)
		c.poll()
		f("with polls again", first)

		second := later()
		c.set("Bob")
		c.change(c.player)
		c.poll()
		f("with another name", second)
		c.down = true
		<-time.After(edgeproto.TrustWindow)
		third := later()
		c.set("Cat")
		f("changed while polls fail", third)
	})
}

// Game servers that verify a join read profiles themselves, at times older ones than the cache has.
func TestSignaturesOfOtherReads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCacheTest(t, 1<<20)
		signed := c.signedAt()
		f := func(what string, profile Profile) {
			t.Helper()
			<-time.After(time.Millisecond)
			properties := testenv.Must(c.profiles.SignedProperties(t.Context(), profile))(t)
			want := testenv.Must(c.profiles.textures(profile, time.Now().UnixMilli()))(t)
			testenv.Equal(t, properties[0].Value, want.Value, "%s: the property", what)
		}
		f("an older read", namedProfile(c.player, "Before"))
		testenv.Equal(t, c.signedAt(), signed, "when the profile was signed, after an older read")
		c.find("after an older read", "Ann", false)

		joined := namedProfile(uuid.New(), "Joined")
		f("a player that is not cached", joined)
		signature, _ := c.profiles.cache.signature(joined)
		testenv.Equal(t, signature != nil, true, "the signature of a player that was not cached is cached")
		c.player = joined.UUID
		c.set("Joined")
		c.find("a profile of which only the signature is known", "Joined", true)
	})
}

// A scan of all players evicts none in use, and memory stays bounded.
func TestProfilesInUseStayCached(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCacheTest(t, 1<<16)
		signed := c.signedAt()
		cache := c.profiles.cache
		for i := range 300 {
			scanned := uuid.New()
			c.scriptedSite.profiles[scanned] = namedProfile(scanned, fmt.Sprint("Player_", i))
			profile := testenv.Must(c.profiles.Find(t.Context(), scanned))(t)
			cache.addSignature(profile, make([]byte, 256), 1)
			if i%20 == 0 && !c.signedAt().Equal(signed) {
				t.Fatalf("the player in use was evicted after %d others", i)
			}
			<-time.After(10 * time.Millisecond)
			c.poll()
		}
		if cost := cache.entries.Cost(); cost > cache.budget || cost < cache.budget*9/10 || len(cache.reads) != 0 {
			t.Errorf("%d profiles take %d of %d bytes, %d are being read", cache.entries.Len(), cost, cache.budget, len(cache.reads))
		}
	})
}

// A network that has many profiles signed leaves half of the queue to others. Their profiles come
// before those that it still waits for.
func TestSignaturesOfOneNetworkLeaveCapacity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCacheTest(t, 1<<20)
		w := c.profiles.limiter
		sign := func(network string) error {
			ctx := WithClient(t.Context(), Client{Network: netip.MustParsePrefix(network)})
			return testenv.ErrOf(c.profiles.SignedProperties(ctx, namedProfile(uuid.New(), "Somebody")))
		}
		for range cap(w.sem) {
			w.sem <- struct{}{} // all processors are busy
		}
		share := w.queue.capacity / 2
		var signed atomic.Int64
		for range share {
			go func() {
				testenv.Is(t, sign("192.0.2.0/24"), nil, "a signature")
				signed.Add(1)
			}()
		}
		synctest.Wait()
		testenv.Equal(t, fault.KindOf(sign("192.0.2.0/24")), fault.Unavailable, "beyond half of the queue, the kind of fault")
		before := make(chan int64, 1)
		go func() {
			testenv.Is(t, sign("198.51.100.0/24"), nil, "another network")
			before <- signed.Load()
		}()
		synctest.Wait()
		for range cap(w.sem) {
			<-w.sem
		}
		n := <-before
		// Networks take turns, but others go on until this one's goroutine counts.
		testenv.Check(t, n <= int64(share/4), "another network's profile came after %d of %d", n, share)
		synctest.Wait()
		testenv.Equal(t, signed.Load(), int64(share), "profiles that were signed")
	})
}
