package core

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
)

var (
	profileHits   = promauto.NewCounter(profileCounterOpts("uuid", "hit"))
	profileMisses = promauto.NewCounter(profileCounterOpts("uuid", "miss"))
	nameHits      = promauto.NewCounter(profileCounterOpts("name", "hit"))
	nameMisses    = promauto.NewCounter(profileCounterOpts("name", "miss"))
	profileSigned = promauto.NewCounter(prometheus.CounterOpts{Name: "veneer_core_profiles_signed_total", Help: "Profiles that were signed."})
)

// profileCounterOpts returns the options of the counter of players that were asked for by a key, with a
// result.
func profileCounterOpts(by, result string) prometheus.CounterOpts {
	return prometheus.CounterOpts{
		Name: "veneer_core_profiles_total", Help: "Players that launchers and game servers asked for by UUID or by name: from memory (hit), or from the database (miss).",
		ConstLabels: prometheus.Labels{"by": by, "result": result},
	}
}

// profileCache caches profiles of a store, and their signatures. A signature belongs to what was
// signed. It stays when a profile is read again and is the same.
type profileCache struct {
	store   ProfileStore
	unknown *UnknownLimit
	*feedCache[uuid.UUID, signedProfile]
}

// signedProfile is a profile with its signature, if it has one.
type signedProfile struct {
	Profile
	signedAt  int64 // in milliseconds since 1970
	signature []byte
}

func newProfileCache(store ProfileStore, unknown *UnknownLimit, feed *Feed, budget int64, signatureBytes int) *profileCache {
	return &profileCache{store, unknown, newFeedCache(feed, feedCacheConfig[uuid.UUID, signedProfile]{
		budget: budget,
		keyOf: func(key edgeproto.Key) (uuid.UUID, bool) {
			text, ok := strings.CutPrefix(string(key), edgeproto.UUIDPrefix)
			if !ok {
				return uuid.Nil, false
			}
			player, err := uuid.Parse(text)
			return player, err == nil
		},
		isSame: func(old, read signedProfile) bool { return old.Profile == read.Profile },
		cost: func(p signedProfile) int64 {
			return feedEntryBytes[uuid.UUID, signedProfile]() + int64(signatureBytes) + stringBytes(p.Name)
		},
	})}
}

// find returns the profile of a player, or a NotFound fault.
func (c *profileCache) find(ctx context.Context, player uuid.UUID) (profile Profile, err error) {
	var dst [1]signedProfile
	if found, _ := c.current(dst[:0], player); len(found) > 0 {
		profileHits.Inc()
		return found[0].Profile, nil
	}
	profileMisses.Inc()
	err = c.unknown.doOne(ctx, edgeproto.UUIDPrefix+player.String(), func() error {
		profile, err = c.read(ctx, player)
		return err
	})
	return profile, err
}

// read reads the profile of a player, and caches it.
func (c *profileCache) read(ctx context.Context, player uuid.UUID) (Profile, error) {
	keys := []uuid.UUID{player}
	reads := c.beginRead(keys...)
	profile, cursor, err := c.store.Profile(ctx, player)
	read := map[uuid.UUID]signedProfile{}
	if err == nil {
		read[player] = signedProfile{Profile: profile}
	}
	c.endRead(keys, reads, read, cursor, err != nil && fault.KindOf(err) != fault.NotFound)
	return profile, err
}

// signature returns the signature of a profile and when it was made; nil if there is none.
func (c *profileCache) signature(profile Profile) (signature []byte, signedAt int64) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	cached := c.entries.Peek(profile.UUID)
	if cached == nil || cached.value.signature == nil || cached.value.Profile != profile {
		return nil, 0
	}
	// Counts as a hit only here: profiles that are asked for once are the first to be evicted.
	c.entries.Get(profile.UUID)
	return cached.value.signature, cached.value.signedAt
}

// addSignature caches the signature of a profile, unless the profile is known to be another by now.
func (c *profileCache) addSignature(profile Profile, signature []byte, signedAt int64) {
	profileSigned.Inc()
	c.mu.Lock()
	defer c.mu.Unlock()
	cached := c.entries.Peek(profile.UUID)
	if cached == nil || cached.value.Profile != profile {
		if cached != nil && cached.era == c.era {
			return
		}
		cached = c.put(profile.UUID, signedProfile{Profile: profile}, 0)
	}
	if cached != nil { // it fits
		cached.value.signature, cached.value.signedAt = signature, signedAt
	}
}

// nameCache caches the players of a store by the comparison keys of their names.
type nameCache struct {
	store   ProfileStore
	unknown *UnknownLimit
	*feedCache[string, NamedPlayer]
}

func newNameCache(store ProfileStore, unknown *UnknownLimit, feed *Feed, budget int64) *nameCache {
	return &nameCache{store, unknown, newFeedCache(feed, feedCacheConfig[string, NamedPlayer]{
		budget: budget,
		keyOf: func(key edgeproto.Key) (string, bool) {
			return strings.CutPrefix(string(key), edgeproto.NamePrefix)
		},
		isSame: func(old, read NamedPlayer) bool { return old == read },
		cost: func(p NamedPlayer) int64 {
			return feedEntryBytes[string, NamedPlayer]() + 2*stringBytes(p.Name) // the key is about as long
		},
	})}
}

// find returns the players with comparison keys, without duplicates, in any order.
func (c *nameCache) find(ctx context.Context, keys []string) ([]NamedPlayer, error) {
	players, missing := c.current(make([]NamedPlayer, 0, len(keys)), keys...)
	nameHits.Add(float64(len(players)))
	if len(missing) == 0 {
		return players, nil
	}
	nameMisses.Add(float64(len(missing)))
	for i := range missing {
		missing[i] = strings.Clone(missing[i]) // it may be a part of the request
	}
	if err := c.unknown.do(ctx, missing, func() (func(string) bool, error) {
		reads := c.beginRead(missing...)
		found, cursor, err := c.store.PlayersNamed(ctx, missing)
		c.endRead(missing, reads, found, cursor, err != nil)
		players = slices.AppendSeq(players, maps.Values(found))
		return func(key string) bool { _, ok := found[key]; return ok }, err
	}); err != nil {
		return nil, err
	}
	return players, nil
}
