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

// cachedMapping is a mapping that is remembered.
type cachedMapping struct {
	mapping   edgeproto.Mapping
	fetchedAt time.Duration // when core was asked for it, since the birth of Mappings
}

// call is a question that is under way to core.
type call struct {
	revision  int64         // of the edge when the question went out
	startedAt time.Duration // since the birth of Mappings
	done      chan struct{} // closed once mapping and err are set
	mapping   edgeproto.Mapping
	err       error
	// invalidated is set by a change under the lock of the shard: the answer may be
	// from before it.
	invalidated bool
}

// shard is a part of all keys: what is remembered of them and which of them are
// being asked about.
//
// Keys that lead nowhere have a budget of their own, so that made-up names cannot evict
// those that exist.
type shard struct {
	mu sync.RWMutex
	// hits is how often something was found. Whoever counts here has had to come
	// by anyway.
	hits atomic.Uint64
	seed maphash.Seed
	// calls are few, and nobody who finds what they want looks there.
	calls map[edgeproto.Key]*call

	positive, negative *mappingCache
}

// mappingCache are what is remembered by the hash of its key, bounded in bytes.
type mappingCache = sieve.Cache[uint64, mappingEntry]

type mappingEntry struct {
	key edgeproto.Key
	// inlineKey is where the key stands if it fits, as most do: elsewhere it would be one
	// more piece of memory to wait for.
	inlineKey [inlineKeySize]byte
	cachedMapping
}

// inlineKeySize is the length of the key of a UUID. Names are shorter.
const inlineKeySize = len(edgeproto.UUIDPrefix) + 36

// get returns what is remembered of a key.
func (s *shard) get(key edgeproto.Key) (cachedMapping, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.getLocked(key)
}

// getBytes is find for a key that is not yet a text.
func (s *shard) getBytes(key []byte) (cachedMapping, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.getLocked(edgeproto.Key(unsafeString(key)))
}

// getLocked returns what is remembered of a key and counts a hit. The caller holds mu.
func (s *shard) getLocked(key edgeproto.Key) (cachedMapping, bool) {
	hash := s.hash(key)
	for _, in := range [...]*mappingCache{s.positive, s.negative} {
		if n := in.Get(hash); n != nil && n.key == key {
			return n.cachedMapping, true
		}
	}
	return cachedMapping{}, false
}

// hasOrPending reports whether something is remembered of a key, or being asked.
func (s *shard) hasOrPending(key edgeproto.Key) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	hash := s.hash(key)
	return s.positive.Peek(hash) != nil || s.negative.Peek(hash) != nil || s.calls[key] != nil
}

func (s *shard) hash(key edgeproto.Key) uint64 { return maphash.String(s.seed, string(key)) }

// invalidate forgets a key, and makes sure that no answer under way brings it back.
func (s *shard) invalidate(key edgeproto.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(s.hash(key))
	if f, ok := s.calls[key]; ok {
		f.invalidated = true
		// Whoever comes from here on must not share an answer from before.
		delete(s.calls, key)
	}
}

// remove forgets a key by its hash and reports whether it was there. Should another have
// the same hash, that is forgotten.
func (s *shard) remove(hash uint64) bool { return s.positive.Delete(hash) || s.negative.Delete(hash) }

// flush forgets everything, as drop does for a key.
func (s *shard) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.calls {
		f.invalidated = true
	}
	s.calls = map[edgeproto.Key]*call{}
	s.positive.Clear()
	s.negative.Clear()
}

// put remembers a key. Of two keys with the same hash the later one stays. The caller
// holds mu.
func (s *shard) put(key edgeproto.Key, cached cachedMapping) {
	into, other := s.positive, s.negative
	if cached.mapping == (edgeproto.Mapping{}) {
		into, other = other, into
	}
	hash := s.hash(key)
	renewed := other.Delete(hash)
	n := into.Put(hash, mappingEntry{key: key, cachedMapping: cached}, mappingSize(key, cached.mapping))
	if n != nil && len(key) <= inlineKeySize {
		n.key = edgeproto.Key(unsafe.String(&n.inlineKey[0], copy(n.inlineKey[:], key)))
	}
	if renewed {
		into.Get(hash) // somebody wanted it, as if it had been replaced in its own cache
	}
}

// What things take in memory, but for the texts in them. A map has room to spare
// for every entry, the more so when entries come and go.
var (
	entryBytes   = allocSize(sieve.EntrySize[uint64, mappingEntry]()) + 72
	playerBytes  = sizeOf[edgeproto.Player]()
	skinBytes    = sizeOf[playerWithSkin]()
	bothBytes    = sizeOf[playerWithBoth]()
	userBytes    = sizeOf[edgeproto.User]()
	textureBytes = sizeOf[edgeproto.Texture]()
)

func sizeOf[T any]() int64 { return allocSize(int(reflect.TypeFor[T]().Size())) }

// allocSize returns what so many bytes take in memory: the allocator knows few
// sizes, and small ones are multiples of 16 mostly.
func allocSize(bytes int) int64 { return int64(bytes+15) &^ 15 }

// mappingSize returns what a memory takes.
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

// playerWithSkin and playerWithBoth are players with what they wear in one piece: finding the
// one has brought the others near.
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

// compact returns an equal mapping whose player is in one piece.
func compact(cached edgeproto.Mapping) edgeproto.Mapping {
	player := cached.Player
	switch {
	case player == nil || player.Skin == nil:
		return cached
	case player.Cape == nil:
		made := &playerWithSkin{*player, *player.Skin}
		made.player.Skin = &made.skin
		cached.Player = &made.player
	default:
		made := &playerWithBoth{playerWithSkin{*player, *player.Skin}, *player.Cape}
		made.player.Skin, made.player.Cape = &made.skin, &made.cape
		cached.Player = &made.player
	}
	return cached
}
