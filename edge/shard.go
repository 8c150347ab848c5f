package edge

import (
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/veneer-skins/veneer/shared/mapping"
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
// Its memories are bounded in bytes. They stand in a line, the latest first, and
// the hand goes along it from the end, removing what nobody has looked at since
// it last came by. This is the algorithm SIEVE. Finding something moves nothing
// in the line, so that visitors need the lock for reading only.
type shard struct {
	mu      sync.RWMutex
	nodes   map[mapping.Key]*node
	flights map[mapping.Key]*flight

	latest, oldest *node
	hand           *node // nil: at the oldest
	bytes, budget  int64
}

type node struct {
	key mapping.Key
	memory
	bytes        int64
	visited      atomic.Bool
	later, older *node
}

// find returns what is remembered of a key.
func (s *shard) find(key mapping.Key) (memory, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.nodes[key].look()
}

// recall is find for a key that is not yet a text.
func (s *shard) recall(key []byte) (memory, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.nodes[mapping.Key(key)].look()
}

// look returns the memory of a node and notes that somebody wanted it. There is
// no memory where there is no node.
func (n *node) look() (memory, bool) {
	if n == nil {
		return memory{}, false
	}
	// Reading first spares the cores from passing the line around for a bit that
	// is mostly set already.
	if !n.visited.Load() {
		n.visited.Store(true)
	}
	return n.memory, true
}

// drop forgets a key, and makes sure that no answer under way brings it back.
func (s *shard) drop(key mapping.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.nodes[key]; ok {
		s.remove(n)
	}
	if f, ok := s.flights[key]; ok {
		f.outdated = true
		// Whoever comes from here on must not share an answer from before.
		delete(s.flights, key)
	}
}

// forget forgets everything, as drop does for a key.
func (s *shard) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.flights {
		f.outdated = true
	}
	s.nodes, s.flights = map[mapping.Key]*node{}, map[mapping.Key]*flight{}
	s.latest, s.oldest, s.hand = nil, nil, nil
	s.bytes = 0
}

// keep remembers a key. The caller holds mu.
func (s *shard) keep(key mapping.Key, known memory) {
	n := &node{key: key, memory: known, bytes: bytesOf(key, known.mapping)}
	if former, ok := s.nodes[key]; ok {
		// Renewed because somebody wanted it.
		n.visited.Store(true)
		s.remove(former)
	}
	if n.bytes > s.budget {
		return
	}
	for s.bytes+n.bytes > s.budget {
		s.evict()
	}
	n.older = s.latest
	if s.latest != nil {
		s.latest.later = n
	} else {
		s.oldest = n
	}
	s.latest = n
	s.nodes[key] = n
	s.bytes += n.bytes
}

// evict removes one memory. The caller holds mu and knows that there is one.
func (s *shard) evict() {
	n := s.hand
	if n == nil {
		n = s.oldest
	}
	for n.visited.Load() {
		n.visited.Store(false)
		if n = n.later; n == nil {
			n = s.oldest
		}
	}
	s.hand = n
	s.remove(n)
	evictions.Inc()
}

// remove takes a node out of the line. The caller holds mu.
func (s *shard) remove(n *node) {
	if s.hand == n {
		s.hand = n.later
	}
	if n.later != nil {
		n.later.older = n.older
	} else {
		s.latest = n.older
	}
	if n.older != nil {
		n.older.later = n.later
	} else {
		s.oldest = n.later
	}
	delete(s.nodes, n.key)
	s.bytes -= n.bytes
}

// What things take in memory, but for the texts in them. A map has room to spare
// for every entry, and a node is rounded up to a size that the allocator knows.
var (
	nodeBytes    = int64(reflect.TypeFor[node]().Size()) + 96
	playerBytes  = int64(reflect.TypeFor[mapping.Player]().Size())
	userBytes    = int64(reflect.TypeFor[mapping.User]().Size())
	textureBytes = int64(reflect.TypeFor[mapping.Texture]().Size())
)

// bytesOf returns what a memory takes.
func bytesOf(key mapping.Key, known mapping.Mapping) int64 {
	bytes := nodeBytes + int64(len(key))
	textures := []*mapping.Texture{known.Texture}
	if player := known.Player; player != nil {
		bytes += playerBytes + int64(len(player.UUID)+len(player.Name))
		textures = append(textures, player.Skin, player.Cape)
	}
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
