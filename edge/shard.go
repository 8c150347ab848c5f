package edge

import (
	"hash/maphash"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/veneer-skins/veneer/shared/mapping"
	"github.com/veneer-skins/veneer/shared/sieve"
)

// memory is a mapping that is remembered.
type memory struct {
	mapping   mapping.Mapping
	confirmed time.Duration // when core was asked for it, since the birth of Mappings
}

// flight is a question that is under way to core.
type flight struct {
	revision int64         // of the edge when the question went out
	asked    time.Duration // since the birth of Mappings
	landed   chan struct{} // closed once mapping and err are set
	mapping  mapping.Mapping
	err      error
	// outdated is set by a change under the lock of the shard: the answer may be
	// from before it.
	outdated bool
}

// shard is a part of all keys: what is remembered of them and which of them are
// being asked about.
//
// Keys that lead nowhere have a budget of their own, so that made-up names cannot evict
// those that exist.
type shard struct {
	mu sync.RWMutex
	// recalled is how often something was found. Whoever counts here has had to come
	// by anyway.
	recalled atomic.Uint64
	seed     maphash.Seed
	// flights are few, and nobody who finds what they want looks there.
	flights map[mapping.Key]*flight

	existing, missing *memories
}

// memories are what is remembered by the hash of its key, bounded in bytes.
type memories = sieve.Cache[uint64, node]

type node struct {
	key mapping.Key
	// near is where the key stands if it fits, as most do: elsewhere it would be one
	// more piece of memory to wait for.
	near [nearBytes]byte
	memory
}

// nearBytes is the length of the key of a UUID. Names are shorter.
const nearBytes = len(mapping.UUIDPrefix) + 36

// find returns what is remembered of a key.
func (s *shard) find(key mapping.Key) (memory, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.look(key)
}

// recall is find for a key that is not yet a text.
func (s *shard) recall(key []byte) (memory, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.look(mapping.Key(borrowed(key)))
}

// look returns what is remembered of a key and counts a hit. The caller holds mu.
func (s *shard) look(key mapping.Key) (memory, bool) {
	hash := s.hash(key)
	for _, in := range [...]*memories{s.existing, s.missing} {
		if n := in.Get(hash); n != nil && n.key == key {
			return n.memory, true
		}
	}
	return memory{}, false
}

// concerns reports whether something is remembered of a key, or being asked.
func (s *shard) concerns(key mapping.Key) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	hash := s.hash(key)
	return s.existing.Peek(hash) != nil || s.missing.Peek(hash) != nil || s.flights[key] != nil
}

func (s *shard) hash(key mapping.Key) uint64 { return maphash.String(s.seed, string(key)) }

// drop forgets a key, and makes sure that no answer under way brings it back.
func (s *shard) drop(key mapping.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(s.hash(key))
	if f, ok := s.flights[key]; ok {
		f.outdated = true
		// Whoever comes from here on must not share an answer from before.
		delete(s.flights, key)
	}
}

// remove forgets a key by its hash and reports whether it was there. Should another have
// the same hash, that is forgotten.
func (s *shard) remove(hash uint64) bool { return s.existing.Delete(hash) || s.missing.Delete(hash) }

// forget forgets everything, as drop does for a key.
func (s *shard) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.flights {
		f.outdated = true
	}
	s.flights = map[mapping.Key]*flight{}
	s.existing.Clear()
	s.missing.Clear()
}

// keep remembers a key. Of two keys with the same hash the later one stays. The caller
// holds mu.
func (s *shard) keep(key mapping.Key, known memory) {
	into, other := s.existing, s.missing
	if known.mapping == (mapping.Mapping{}) {
		into, other = other, into
	}
	hash := s.hash(key)
	renewed := other.Delete(hash)
	n := into.Put(hash, node{key: key, memory: known}, bytesOf(key, known.mapping))
	if n != nil && len(key) <= nearBytes {
		n.key = mapping.Key(unsafe.String(&n.near[0], copy(n.near[:], key)))
	}
	if renewed {
		into.Get(hash) // somebody wanted it, as if it had been replaced in its own cache
	}
}

// What things take in memory, but for the texts in them. A map has room to spare
// for every entry, the more so when entries come and go.
var (
	nodeBytes    = allocated(sieve.EntrySize[uint64, node]()) + 72
	playerBytes  = sizeOf[mapping.Player]()
	skinBytes    = sizeOf[withSkin]()
	bothBytes    = sizeOf[withBoth]()
	userBytes    = sizeOf[mapping.User]()
	textureBytes = sizeOf[mapping.Texture]()
)

func sizeOf[T any]() int64 { return allocated(int(reflect.TypeFor[T]().Size())) }

// allocated returns what so many bytes take in memory: the allocator knows few
// sizes, and small ones are multiples of 16 mostly.
func allocated(bytes int) int64 { return int64(bytes+15) &^ 15 }

// bytesOf returns what a memory takes.
func bytesOf(key mapping.Key, known mapping.Mapping) int64 {
	bytes := nodeBytes
	if len(key) > nearBytes {
		bytes += allocated(len(key))
	}
	if player := known.Player; player != nil {
		bytes += allocated(len(player.UUID)) + allocated(len(player.Name))
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
	textures := []*mapping.Texture{known.Texture}
	if user := known.User; user != nil {
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

// withSkin and withBoth are players with what they wear in one piece: finding the
// one has brought the others near.
type (
	withSkin struct {
		player mapping.Player
		skin   mapping.Texture
	}
	withBoth struct {
		withSkin
		cape mapping.Texture
	}
)

// inOnePiece returns an equal mapping whose player is in one piece.
func inOnePiece(known mapping.Mapping) mapping.Mapping {
	player := known.Player
	switch {
	case player == nil || player.Skin == nil:
		return known
	case player.Cape == nil:
		made := &withSkin{*player, *player.Skin}
		made.player.Skin = &made.skin
		known.Player = &made.player
	default:
		made := &withBoth{withSkin{*player, *player.Skin}, *player.Cape}
		made.player.Skin, made.player.Cape = &made.skin, &made.cape
		known.Player = &made.player
	}
	return known
}
