package edgeproto

import (
	"net/url"
	"strings"
)

// The prefixes of cache tags, by which content delivery networks purge responses.
const (
	PlayerTagPrefix  = "player-"
	NameTagPrefix    = "name-"
	UserTagPrefix    = "user-"
	TextureTagPrefix = "texture-"
)

// Tag returns the cache tag of responses that depend on a key. It is empty for a hash, which
// would reveal private files, and for a UUID, since responses about a player have the tag of
// its pid.
func (k Key) Tag() string {
	kind, value, _ := strings.Cut(string(k), ":")
	switch kind + ":" {
	case PIDPrefix:
		return PlayerTagPrefix + value
	case NamePrefix:
		// Escaped, as the name of a player that does not exist may contain anything.
		return NameTagPrefix + url.PathEscape(value)
	case UIDPrefix:
		return UserTagPrefix + value
	case TIDPrefix:
		return TextureTagPrefix + value
	default:
		return ""
	}
}
