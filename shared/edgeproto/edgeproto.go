// Package edgeproto is the protocol between core and its edges: look-ups of the texture that
// belongs to a name, a uid, a uuid, a tid or a hash, and the stream of changes that
// invalidates cached answers.
//
// Cursors order both. Core numbers committed changes: the number is the revision, which is
// valid only within its epoch. The epoch is renewed whenever history may have been rewritten
// (a promotion, a restore). A response carries the cursor of the snapshot in which it was
// read; the stream of changes carries the cursor up to which it is complete.
package edgeproto

import (
	"strconv"
	"time"

	"github.com/veneer-skins/veneer/shared/casefold"
	"github.com/veneer-skins/veneer/shared/skin"
)

// Paths of core's listener for edges. Requests carry a shared secret as a bearer token.
const (
	// LookupPath answers a POST of a LookupRequest, as JSON, with a LookupResponse.
	LookupPath = "/edges/v1/mappings"
	// ChangesPath answers a GET with an endless stream of Events, one JSON object a line. The
	// query has the cursor from which to stream: epoch and revision; both are omitted by an
	// edge without cached mappings. former is the name of the edge's stream before, if it had
	// one.
	ChangesPath = "/edges/v1/changes"
	// AcknowledgePath answers a POST of an Acknowledgement with an empty object.
	AcknowledgePath = "/edges/v1/acknowledgements"

	// LikedPath answers a GET with LikedTextures. The query has the most hashes to return:
	// limit, from 1 to MaxLiked.
	LikedPath = "/edges/v1/liked"
)

// MaxKeys is the most keys in one LookupRequest.
const MaxKeys = 256

// MaxLiked is the most hashes in LikedTextures.
const MaxLiked = 100_000

// TrustWindow is how long edges use cached mappings after the time of the last heartbeat.
const TrustWindow = time.Second

// Key is what a mapping is looked up by: "name:steve", "uid:7", "uuid:…", "tid:12" or
// "hash:…". The change of a player also has its "pid:5". That key has no mapping; it is
// needed for its Tag.
type Key string

// The prefixes of a Key.
const (
	NamePrefix = "name:"
	PIDPrefix  = "pid:"
	UIDPrefix  = "uid:"
	UUIDPrefix = "uuid:"
	TIDPrefix  = "tid:"
	HashPrefix = "hash:"
)

// NameKey returns the key of a player's name, ignoring case.
func NameKey(name string) Key { return NamePrefix + Key(casefold.Key(name)) }

// AppendNameKey appends the key of a player's name, ignoring case, to dst.
func AppendNameKey(dst []byte, name string) []byte {
	return casefold.AppendKey(append(dst, NamePrefix...), name)
}

// PIDKey returns the key of a player.
func PIDKey(pid int64) Key { return PIDPrefix + Key(strconv.FormatInt(pid, 10)) }

// UIDKey returns the key of a user.
func UIDKey(uid int64) Key { return UIDPrefix + Key(strconv.FormatInt(uid, 10)) }

// UUIDKey returns the key of a player's UUID in its hyphenated lower-case form.
func UUIDKey(uuid string) Key { return UUIDPrefix + Key(uuid) }

// TIDKey returns the key of a texture.
func TIDKey(tid int64) Key { return TIDPrefix + Key(strconv.FormatInt(tid, 10)) }

// HashKey returns the key of a texture file.
func HashKey(hash skin.Hash) Key { return HashPrefix + Key(hash.String()) }

// Cursor is a position in the history of changes. The zero Cursor is before all of them.
type Cursor struct {
	Epoch    string `json:"epoch"`
	Revision int64  `json:"revision"`
}

// Texture is the texture that a key resolves to.
type Texture struct {
	TID  int64     `json:"tid"`
	Hash skin.Hash `json:"hash"`
	Type skin.Type `json:"type"`
	// Private is set in the mapping of a tid: the file has no address by that, since tids are consecutive.
	Private bool `json:"private,omitempty"`
}

// Player is the mapping of a name or a uuid. Skin and Cape are nil if the player has none.
type Player struct {
	PID  int64    `json:"pid"`
	UUID string   `json:"uuid"`
	Name string   `json:"name"`
	Skin *Texture `json:"skin,omitempty"`
	Cape *Texture `json:"cape,omitempty"`
}

// User is the mapping of a uid. Texture is nil if Avatar is 0, which stands for none, and if
// the texture with that tid is gone.
type User struct {
	UID     int64    `json:"uid"`
	Avatar  int64    `json:"avatar"`
	Texture *Texture `json:"texture,omitempty"`
}

// Mapping is the result of a look-up: a Player for a name or a uuid, a User for a uid, a
// Texture for a tid or a hash. If all three are nil, the key does not exist.
type Mapping struct {
	Player  *Player  `json:"player,omitempty"`
	User    *User    `json:"user,omitempty"`
	Texture *Texture `json:"texture,omitempty"`
	// Modified is when the content of the file or the profile changed last, in seconds since
	// 1970 in UTC, rounded up: a player's name, its textures or the model of its skin; a
	// texture's upload. It is 0 for a user, and from a core that does not send it.
	Modified int64 `json:"modified,omitempty"`
}

// LookupRequest asks for the mappings of up to MaxKeys keys.
type LookupRequest struct {
	Keys []Key `json:"keys"`
	// Requests are the ids of the requests that wait for the response, for the log only.
	Requests []string `json:"requests,omitempty"`
}

// LookupResponse has the mappings of a LookupRequest's keys, in their order, all read in one
// snapshot, and the cursor of that snapshot.
type LookupResponse struct {
	Cursor
	Mappings []Mapping `json:"mappings"`
}

// LikedTextures is the files of public textures by the number of closets that contain them,
// the most first; of equals, the latest texture's comes first.
type LikedTextures struct {
	Hashes []skin.Hash `json:"hashes"`
}

// Event is one line of the stream of changes.
//
// The first line of a stream has Start set; its cursor is where the stream begins. If that is
// not the cursor of the request, the history between the two is lost, and the reader must
// drop all mappings. If the line has the name of the Stream, core expects Acknowledgements.
//
// A line with Keys is a change: the mappings of these keys may have changed since the
// revision before it. A line with neither is a heartbeat: the stream is complete up to its
// cursor. Heartbeats are sent at least every 250 ms.
//
// A heartbeat may be delayed, so it carries its age. All commits before the moment AsOf are
// covered by the heartbeat's cursor. AsOf is the time since core received the request for the
// stream. The reader knows when it sent that request, and so the greatest age of the
// heartbeat, without comparing two clocks.
type Event struct {
	Cursor
	Start  bool          `json:"start,omitempty"`
	Stream string        `json:"stream,omitempty"`
	Keys   []Key         `json:"keys,omitempty"`
	AsOf   time.Duration `json:"as_of,omitempty"` // of a heartbeat, in nanoseconds
}

// Acknowledgement says that the reader of a stream has applied every change up to a cursor:
// none of its responses uses an older mapping. It may be sent to any core, as the names of
// streams are known to all.
type Acknowledgement struct {
	Cursor
	Stream string `json:"stream"`
}

// IsHeartbeat reports whether the event only says that the stream is complete.
func (e Event) IsHeartbeat() bool { return !e.Start && len(e.Keys) == 0 }
