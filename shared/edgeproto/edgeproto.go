// Package mapping is the protocol between core and its edges: which texture a
// name, a uid, a uuid, a tid or a hash leads to at a moment, and how edges learn
// that this changed.
//
// Positions order it all. Core numbers committed changes: the number is the
// revision, and it means something only within its epoch, which is renewed
// whenever history may have been rewritten (a promotion, a restore). An answer
// carries the position of the snapshot that it was read in; the stream of
// changes carries the position up to which it is complete.
package edgeproto

import (
	"strconv"
	"time"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Paths of core's edge listener. Requests carry a shared secret as a bearer
// token.
const (
	// LookupPath answers a POST of a Question, as JSON, with an Answer.
	LookupPath = "/edges/v1/mappings"
	// ChangesPath answers a GET with an endless stream of Events, one JSON object
	// a line. The query says from where: epoch and revision, as in Position; none
	// from an edge that knows nothing. An edge that had another stream before says
	// which: former, if it had a name.
	ChangesPath = "/edges/v1/changes"
	// AcknowledgePath answers a POST of an Acknowledgement with an empty object.
	AcknowledgePath = "/edges/v1/acknowledgements"

	// LikedPath answers a GET with Liked. The query says how many at most: limit, from
	// 1 to MaxLiked.
	LikedPath = "/edges/v1/liked"
)

// MaxKeys is the most keys that one Question may hold.
const MaxKeys = 256

// MaxLiked is the most hashes that Liked holds.
const MaxLiked = 100_000

// Key is what a mapping leads from: "name:steve", "uid:7", "uuid:…", "tid:12" or
// "hash:…". A change of a player names its "pid:5" as well, which leads nowhere:
// it is there for the sake of its Tag.
type Key string

// The parts of a Key before its value.
const (
	NamePrefix = "name:"
	PIDPrefix  = "pid:"
	UIDPrefix  = "uid:"
	UUIDPrefix = "uuid:"
	TIDPrefix  = "tid:"
	HashPrefix = "hash:"
)

// NameKey returns the key of a player's name, in any case.
func NameKey(name string) Key { return NamePrefix + Key(casefold.Key(name)) }

// AppendNameKey appends the key of a player's name, in any case, to dst.
func AppendNameKey(dst []byte, name string) []byte {
	return casefold.AppendKey(append(dst, NamePrefix...), name)
}

// PIDKey returns the key of a player's number.
func PIDKey(pid int64) Key { return PIDPrefix + Key(strconv.FormatInt(pid, 10)) }

// UIDKey returns the key of a user.
func UIDKey(uid int64) Key { return UIDPrefix + Key(strconv.FormatInt(uid, 10)) }

// UUIDKey returns the key of a player's UUIDKey in its hyphenated lower-case form.
func UUIDKey(uuid string) Key { return UUIDPrefix + Key(uuid) }

// TIDKey returns the key of a texture.
func TIDKey(tid int64) Key { return TIDPrefix + Key(strconv.FormatInt(tid, 10)) }

// HashKey returns the key of a texture file.
func HashKey(hash skin.Hash) Key { return HashPrefix + Key(hash.String()) }

// Cursor is a place in the history of changes. The zero Position is that of
// somebody who knows nothing.
type Cursor struct {
	Epoch    string `json:"epoch"`
	Revision int64  `json:"revision"`
}

// Texture is what a key leads to in the end.
type Texture struct {
	TID  int64     `json:"tid"`
	Hash skin.Hash `json:"hash"`
	Type skin.Type `json:"type"`
}

// Player is what the keys of a name and of a uuid lead to. A slot is nil when
// nothing is applied to it.
type Player struct {
	PID  int64    `json:"pid"`
	UUID string   `json:"uuid"`
	Name string   `json:"name"`
	Skin *Texture `json:"skin,omitempty"`
	Cape *Texture `json:"cape,omitempty"`
}

// User is what the key of a uid leads to. Texture is nil when Avatar is 0, which
// says that none is set, and when the texture with that TIDKey is gone.
type User struct {
	UID     int64    `json:"uid"`
	Avatar  int64    `json:"avatar"`
	Texture *Texture `json:"texture,omitempty"`
}

// Mapping is what a key leads to: a Player for a name or a uuid, a User for a
// uid, a Texture for a tid or a hash. All three nil say that there is no such
// thing.
type Mapping struct {
	Player  *Player  `json:"player,omitempty"`
	User    *User    `json:"user,omitempty"`
	Texture *Texture `json:"texture,omitempty"`
	// Modified is when what a file or a profile says was changed last, in seconds since
	// 1970 in UTC, rounded up: a player's name, slots or the model of its skin; of a
	// texture, its upload. It is 0 for a user, and from a core that does not tell.
	Modified int64 `json:"modified,omitempty"`
}

// LookupRequest asks for the mappings of up to MaxKeys keys.
type LookupRequest struct {
	Keys []Key `json:"keys"`
	// Requests are the ids of the requests that need the answer, as far as they have
	// some. Logs tell them; nothing else depends on them.
	Requests []string `json:"requests,omitempty"`
}

// LookupResponse holds the mappings of a Question's keys, in their order, all read in
// one snapshot, and that snapshot's position.
type LookupResponse struct {
	Cursor
	Mappings []Mapping `json:"mappings"`
}

// LikedTextures is the files of public textures by how many closets hold them, those that
// most hold first, and of equals the latest texture's.
type LikedTextures struct {
	Hashes []skin.Hash `json:"hashes"`
}

// Event is one line of the stream of changes.
//
// The first line of a stream has Start set: its position is where the stream
// begins. When that is not where the reader said it was, the history between
// the two is lost, and the reader must forget all mappings. If it names the
// Stream, core wants to know what the reader has applied of it.
//
// A line with Keys is a change: it says which keys may lead elsewhere since the
// revision before it. A line with neither is a beat: the stream is complete up
// to its position. Beats come at least every 250 ms.
//
// A beat can be long on its way, so it says when it was true. AsOf is a moment by
// whose position all earlier commits come, as the time that had passed since core
// got the request for the stream. The reader knows when it sent that request, and
// so how old the beat is at most, without comparing two clocks.
type Event struct {
	Cursor
	Start  bool          `json:"start,omitempty"`
	Stream string        `json:"stream,omitempty"`
	Keys   []Key         `json:"keys,omitempty"`
	AsOf   time.Duration `json:"as_of,omitempty"` // of a beat, in nanoseconds
}

// Acknowledgement says that the reader of a stream has applied every change up to
// a position: none of its answers begins from what was before. It can reach any
// core, as its stream is known by name to all.
type Acknowledgement struct {
	Cursor
	Stream string `json:"stream"`
}

// IsHeartbeat reports whether the event says only that the stream is complete.
func (e Event) IsHeartbeat() bool { return !e.Start && len(e.Keys) == 0 }
