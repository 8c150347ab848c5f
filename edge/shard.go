package edge

import (
	"hash/maphash"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"

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
// Keys that lead nowhere stand in a line of their own, with a budget of its own:
// anybody can make up any number of names, which must not cost the memory of
// those that exist.
type shard struct {
	mu sync.RWMutex
	// recalled is how often something was found. Whoever counts here has had to come
	// by anyway.
	recalled atomic.Uint64
	seed     maphash.Seed
	nodes    map[uint64]*node // by the hash of their key
	// flights are few, and nobody who finds what they want looks there.
	flights map[mapping.Key]*flight

	existing, missing line
}

// line is memories bounded in bytes, the latest first. The hand goes along it
// from the end, removing what nobody has looked at since it last came by. This is
// the algorithm SIEVE. Finding something moves nothing in the line, so that
// visitors need the lock for reading only.
type line struct {
	latest, oldest *node
	hand           *node // nil: at the oldest
	count          int
	bytes, budget  int64
	evicted        prometheus.Counter
}

type node struct {
	key mapping.Key
	// near is where the key stands if it fits, as most do: elsewhere it would be one
	// more piece of memory to wait for.
	near [nearBytes]byte
	memory
	bytes        int64
	visited      atomic.Bool
	line         *line
	later, older *node
}

// nearBytes is the length of the key of a UUID. Names are shorter.
const nearBytes = len(mapping.UUIDPrefix) + 36

// newNode returns a node for a key.
func newNode(key mapping.Key, known memory) *node {
	n := &node{key: key, memory: known, bytes: bytesOf(key, known.mapping)}
	if len(key) <= nearBytes {
		n.key = mapping.Key(unsafe.String(&n.near[0], copy(n.near[:], key)))
	}
	return n
}

// find returns what is remembered of a key.
func (s *shard) find(key mapping.Key) (memory, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.node(key).look()
}

// concerns reports whether something is remembered of a key, or being asked.
func (s *shard) concerns(key mapping.Key) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.node(key) != nil || s.flights[key] != nil
}

// node returns the node of a key, nil if there is none. The caller holds mu.
func (s *shard) node(key mapping.Key) *node {
	if n := s.nodes[maphash.String(s.seed, string(key))]; n != nil && n.key == key {
		return n
	}
	return nil
}

// recall is find for a key that is not yet a text.
func (s *shard) recall(key []byte) (memory, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.node(mapping.Key(borrowed(key))).look()
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
	if n := s.node(key); n != nil {
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
	s.nodes, s.flights = map[uint64]*node{}, map[mapping.Key]*flight{}
	for _, l := range []*line{&s.existing, &s.missing} {
		*l = line{budget: l.budget, evicted: l.evicted}
	}
}

// keep remembers a key. The caller holds mu.
func (s *shard) keep(key mapping.Key, known memory) {
	n := newNode(key, known)
	n.line = &s.existing
	if known.mapping == (mapping.Mapping{}) {
		n.line = &s.missing
	}
	hash := maphash.String(s.seed, string(key))
	// Of two keys with the same hash, should they ever meet, the later one stays.
	if former := s.nodes[hash]; former != nil {
		// Renewed because somebody wanted it.
		n.visited.Store(true)
		s.remove(former)
	}
	if n.bytes > n.line.budget {
		return
	}
	for n.line.bytes+n.bytes > n.line.budget {
		s.remove(n.line.next())
		n.line.evicted.Inc()
	}
	n.line.add(n)
	s.nodes[hash] = n
}

// remove forgets what a node remembers. The caller holds mu.
func (s *shard) remove(n *node) {
	n.line.remove(n)
	delete(s.nodes, maphash.String(s.seed, string(n.key)))
}

// next returns the memory that is to make room, from a line that is not empty.
func (l *line) next() *node {
	n := l.hand
	if n == nil {
		n = l.oldest
	}
	for n.visited.Load() {
		n.visited.Store(false)
		if n = n.later; n == nil {
			n = l.oldest
		}
	}
	l.hand = n
	return n
}

// add puts a node at the beginning of the line.
func (l *line) add(n *node) {
	n.older = l.latest
	if l.latest != nil {
		l.latest.later = n
	} else {
		l.oldest = n
	}
	l.latest = n
	l.count++
	l.bytes += n.bytes
}

// remove takes a node out of the line.
func (l *line) remove(n *node) {
	if l.hand == n {
		l.hand = n.later
	}
	if n.later != nil {
		n.later.older = n.older
	} else {
		l.latest = n.older
	}
	if n.older != nil {
		n.older.later = n.later
	} else {
		l.oldest = n.later
	}
	l.count--
	l.bytes -= n.bytes
}

// What things take in memory, but for the texts in them. A map has room to spare
// for every entry, the more so when entries come and go.
var (
	nodeBytes    = sizeOf[node]() + 72
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
