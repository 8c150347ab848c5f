package core

import (
	"context"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/sieve"
)

var (
	profileHits      = promauto.NewCounter(profileCounterOpts("hit"))
	profileMisses    = promauto.NewCounter(profileCounterOpts("miss"))
	profileDiscarded = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_profiles_discarded_total", Help: "Profiles that were not cached, since a change in the meantime may have made them wrong."})
	profileSigned    = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_profiles_signed_total", Help: "Profiles that were signed."})
)

// profileCounterOpts returns the options of the counter of profiles with a result.
func profileCounterOpts(result string) prometheus.CounterOpts {
	return prometheus.CounterOpts{
		Name: "veneer_core_profiles_total", Help: "Profiles that were asked for by UUID: from memory (hit), or from the database (miss).",
		ConstLabels: prometheus.Labels{"result": result},
	}
}

// profileCache caches profiles of a store, and their signatures.
//
// It follows the feed as edges do. A change names its players, so a cached profile that no change
// has named was right at the time of the feed's last poll. While polls fail, and from a commit of
// this core until the next poll, the store is asked.
//
// A result and a change can overtake each other. So a result is not kept as current if a change
// named the player after the read began, if changes may have been missed since, or if the database
// that answered is behind the feed or has another history.
//
// A signature belongs to what was signed. It stays when a profile is read again and is the same.
type profileCache struct {
	store          ProfileStore
	feed           *Feed
	signatureBytes int64

	mu      sync.RWMutex
	entries *sieve.Cache[uuid.UUID, cachedProfile]
	reads   map[uuid.UUID]*profileRead
	cursor  edgeproto.Cursor // up to which changes have been applied
	// era increases when changes may have been missed.
	era int64
}

// cachedProfile is a profile as it was read last.
type cachedProfile struct {
	Profile
	era       int64 // the cache's while it is current
	signedAt  int64 // in milliseconds since 1970
	signature []byte
}

// profileRead is what is being read of one player. Readers that begin after a change share another
// one.
type profileRead struct {
	readers   int
	revision  int64 // of the cache when the first reader began
	overtaken bool  // by a change
}

func newProfileCache(store ProfileStore, feed *Feed, budget int64, signatureBytes int) *profileCache {
	c := &profileCache{
		store: store, feed: feed, signatureBytes: int64(signatureBytes),
		entries: sieve.New[uuid.UUID, cachedProfile](budget), reads: map[uuid.UUID]*profileRead{}, era: 1,
	}
	feed.subscribe(c.apply)
	return c
}

// find returns the profile of a player, or a NotFound fault.
func (c *profileCache) find(ctx context.Context, player uuid.UUID) (Profile, error) {
	if c.feed.isCurrent() {
		if profile, ok := c.current(player); ok {
			profileHits.Inc()
			return profile, nil
		}
	}
	profileMisses.Inc()
	read := c.beginRead(player)
	profile, cursor, err := c.store.Profile(ctx, player)
	c.endRead(player, read, profile, cursor, err)
	return profile, err
}

// current returns a cached profile that no change has named.
func (c *profileCache) current(player uuid.UUID) (Profile, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	cached := c.entries.Get(player)
	if cached == nil || cached.era != c.era {
		return Profile{}, false
	}
	return cached.Profile, true
}

func (c *profileCache) beginRead(player uuid.UUID) *profileRead {
	c.mu.Lock()
	defer c.mu.Unlock()
	read := c.reads[player]
	if read == nil {
		read = &profileRead{revision: c.cursor.Revision}
		c.reads[player] = read
	}
	read.readers++
	return read
}

// endRead caches what was read at a cursor. Unknown players are not cached, so that made-up UUIDs
// take no memory.
func (c *profileCache) endRead(player uuid.UUID, read *profileRead, profile Profile, at edgeproto.Cursor, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if read.readers--; read.readers == 0 && c.reads[player] == read {
		delete(c.reads, player)
	}
	cached := c.entries.Peek(player)
	switch {
	case fault.KindOf(err) == fault.NotFound:
		c.entries.Delete(player)
	case err != nil:
	case !read.overtaken && at.Epoch == c.cursor.Epoch && at.Revision >= read.revision:
		c.put(cached, profile, c.era)
	default:
		profileDiscarded.Inc()
		// Its signature may be of use.
		if cached == nil || cached.era != c.era {
			c.put(cached, profile, 0)
		}
	}
}

// put stores a profile over the cached one, nil if there is none. The caller holds mu.
func (c *profileCache) put(cached *cachedProfile, profile Profile, era int64) *cachedProfile {
	if cached == nil || cached.Profile != profile {
		return c.entries.Put(profile.UUID, cachedProfile{Profile: profile, era: era}, c.cost(profile))
	}
	cached.era = era
	return cached
}

// apply drops what changes have named.
func (c *profileCache) apply(polled polledChanges) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cursor = polled.head.Cursor
	if !polled.complete {
		c.era++
		for _, read := range c.reads {
			read.overtaken = true
		}
		clear(c.reads)
		return
	}
	for _, change := range polled.changes {
		for _, key := range change.Keys {
			if text, ok := strings.CutPrefix(string(key), edgeproto.UUIDPrefix); ok {
				if player, err := uuid.Parse(text); err == nil {
					c.invalidate(player)
				}
			}
		}
	}
}

// invalidate has a player read again. The caller holds mu.
func (c *profileCache) invalidate(player uuid.UUID) {
	if cached := c.entries.Peek(player); cached != nil {
		cached.era = 0
	}
	if read := c.reads[player]; read != nil {
		read.overtaken = true
		delete(c.reads, player)
	}
}

// signature returns the signature of a profile and when it was made; nil if there is none.
func (c *profileCache) signature(profile Profile) (signature []byte, signedAt int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	cached := c.entries.Peek(profile.UUID)
	if cached == nil || cached.signature == nil || cached.Profile != profile {
		return nil, 0
	}
	// Counts as a hit only here: profiles that are asked for once are the first to be evicted.
	c.entries.Get(profile.UUID)
	return cached.signature, cached.signedAt
}

// addSignature caches the signature of a profile, unless the profile is known to be another by now.
func (c *profileCache) addSignature(profile Profile, signature []byte, signedAt int64) {
	profileSigned.Inc()
	c.mu.Lock()
	defer c.mu.Unlock()
	cached := c.entries.Peek(profile.UUID)
	if cached == nil || cached.Profile != profile {
		if cached != nil && cached.era == c.era {
			return
		}
		cached = c.put(cached, profile, 0)
	}
	if cached != nil { // it fits
		cached.signature, cached.signedAt = signature, signedAt
	}
}

// profileEntryBytes is the size of an entry without what it points to. A map has spare space for
// each entry: 72 bytes.
var profileEntryBytes = int64(sieve.EntrySize[uuid.UUID, cachedProfile]() + 72)

// cost returns how many bytes a cached profile takes with a signature.
func (c *profileCache) cost(profile Profile) int64 {
	return profileEntryBytes + c.signatureBytes + int64(len(profile.Name)+15)&^15
}
