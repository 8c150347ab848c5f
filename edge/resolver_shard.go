package edge

import (
	"hash/maphash"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/sieve"
)

// cachedMapping is a mapping and how old it may be.
type cachedMapping struct {
	mapping   edgeproto.Mapping
	fetchedAt time.Duration // start of its look-up, since the start of the resolver
}

// call is a look-up that waits for core.
type call struct {
	revision  int64         // of the edge when the call started
	startedAt time.Duration // since the start of the resolver
	done      chan struct{} // closed once mapping and err are set
	mapping   edgeproto.Mapping
	err       error
	// invalidated is set by a change, under the lock of the shard: the result may be from
	// before the change.
	invalidated bool
}

// shard is the cache and the calls of a part of all keys.
//
// Negative entries have their own budget, so that made-up names cannot evict real ones.
type shard struct {
	mu sync.RWMutex
	// hits counts hits, beside mu: most hits write its cache line anyway.
	hits atomic.Uint64
	seed maphash.Seed
	// calls are few, and hits do not read them.
	calls map[edgeproto.Key]*call

	positive, negative *mappingCache
}

// mappingCache is mappings by the hash of their key, bounded in bytes.
type mappingCache = sieve.Cache[uint64, mappingEntry]

type mappingEntry struct {
	key edgeproto.Key
	// inlineKey holds the bytes of the key if they fit, as most do. Elsewhere they would cost
	// a hit one more cache miss.
	inlineKey [inlineKeySize]byte
	cachedMapping
}

// foundMapping is the entry of a mapping in the cache, or formerly in it.
type foundMapping = sieve.Entry[uint64, mappingEntry]

// inlineKeySize is the length of the key of a UUID. Most names are shorter.
const inlineKeySize = len(edgeproto.UUIDPrefix) + 36

// get returns the cached mapping of a key.
func (s *shard) get(key edgeproto.Key) (cachedMapping, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.getLocked(key)
}

// getLocked returns the cached mapping of a key and marks it as used. The caller holds mu.
func (s *shard) getLocked(key edgeproto.Key) (cachedMapping, bool) {
	if e := s.entry(s.hash(key), key); e != nil {
		return e.Value.cachedMapping, true
	}
	return cachedMapping{}, false
}

// entry returns the entry of a key with a hash, nil if it is not cached, and marks it as used. The caller holds mu.
func (s *shard) entry(hash uint64, key edgeproto.Key) *foundMapping {
	for _, in := range [...]*mappingCache{s.positive, s.negative} {
		if e := in.GetEntry(hash); e != nil && e.Value.key == key {
			return e
		}
	}
	return nil
}

// hasOrPending reports whether a key is cached, or is being looked up.
func (s *shard) hasOrPending(key edgeproto.Key) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	hash := s.hash(key)
	return s.positive.Peek(hash) != nil || s.negative.Peek(hash) != nil || s.calls[key] != nil
}

func (s *shard) hash(key edgeproto.Key) uint64 { return maphash.String(s.seed, string(key)) }

// invalidate drops a key, and makes sure that no running call puts it back.
func (s *shard) invalidate(key edgeproto.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(s.hash(key))
	if c, ok := s.calls[key]; ok {
		c.invalidated = true
		// Later callers must not join a call from before the change.
		delete(s.calls, key)
	}
}

// remove drops a key by its hash and reports whether it was there. If another key has the
// same hash, that is dropped instead.
func (s *shard) remove(hash uint64) bool { return s.positive.Delete(hash) || s.negative.Delete(hash) }

// flush drops all keys, as invalidate drops one.
func (s *shard) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		c.invalidated = true
	}
	s.calls = map[edgeproto.Key]*call{}
	s.positive.Clear()
	s.negative.Clear()
}

// put caches the mapping of a key. Of two keys with the same hash, the later one stays. The
// caller holds mu.
func (s *shard) put(key edgeproto.Key, cached cachedMapping) {
	into, other := s.positive, s.negative
	if cached.mapping == (edgeproto.Mapping{}) {
		into, other = other, into
	}
	hash := s.hash(key)
	replaced := other.Delete(hash)
	n := into.Put(hash, mappingEntry{key: key, cachedMapping: cached}, mappingSize(key, cached.mapping))
	if n != nil && len(key) <= inlineKeySize {
		n.key = edgeproto.Key(unsafe.String(&n.inlineKey[0], copy(n.inlineKey[:], key)))
	}
	if replaced {
		into.Get(hash) // counts as a use, as replacing it in its own cache would
	}
}

// Sizes in memory, without strings. A map has spare space for each entry, the more so when
// entries are added and deleted: 72 bytes.
var (
	entryBytes   = allocSize(sieve.EntrySize[uint64, mappingEntry]()) + 72
	playerBytes  = sizeOf[edgeproto.Player]()
	skinBytes    = sizeOf[playerWithSkin]()
	bothBytes    = sizeOf[playerWithBoth]()
	userBytes    = sizeOf[edgeproto.User]()
	textureBytes = sizeOf[edgeproto.Texture]()
)

func sizeOf[T any]() int64 { return allocSize(int(reflect.TypeFor[T]().Size())) }

// allocSize returns how many bytes the allocator takes for an object of a size: small ones
// have size classes that are mostly multiples of 16.
func allocSize(bytes int) int64 { return int64(bytes+15) &^ 15 }

// mappingSize returns how many bytes a cached mapping takes, its entry included.
func mappingSize(key edgeproto.Key, cached edgeproto.Mapping) int64 {
	bytes := entryBytes
	if len(key) > inlineKeySize {
		bytes += allocSize(len(key))
	}
	if player := cached.Player; player != nil {
		bytes += allocSize(len(player.UUID)) + allocSize(len(player.Name))
		switch {
		case player.Skin != nil && player.Cape != nil:
			bytes += bothBytes
		case player.Skin != nil:
			bytes += skinBytes
		case player.Cape != nil:
			bytes += playerBytes + textureBytes
		default:
			bytes += playerBytes
		}
	}
	textures := []*edgeproto.Texture{cached.Texture}
	if user := cached.User; user != nil {
		bytes += userBytes
		textures = append(textures, user.Texture)
	}
	for _, texture := range textures {
		if texture != nil {
			bytes += textureBytes
		}
	}
	return bytes
}

// playerWithSkin and playerWithBoth are a player and its textures in one allocation, so that
// reading them is one cache miss and not up to three.
type (
	playerWithSkin struct {
		player edgeproto.Player
		skin   edgeproto.Texture
	}
	playerWithBoth struct {
		playerWithSkin
		cape edgeproto.Texture
	}
)

// compact returns an equal mapping with the player and its textures in one allocation.
func compact(cached edgeproto.Mapping) edgeproto.Mapping {
	player := cached.Player
	switch {
	case player == nil || player.Skin == nil:
		return cached
	case player.Cape == nil:
		packed := &playerWithSkin{*player, *player.Skin}
		packed.player.Skin = &packed.skin
		cached.Player = &packed.player
	default:
		packed := &playerWithBoth{playerWithSkin{*player, *player.Skin}, *player.Cape}
		packed.player.Skin, packed.player.Cape = &packed.skin, &packed.cape
		cached.Player = &packed.player
	}
	return cached
}
