package edgeproto

import (
	"net/url"
	"strings"
)

// Tag returns the cache tag of responses that depend on a key, by which content delivery
// networks purge them. It is empty for a hash, which would reveal private files, and for a
// UUID, since responses about a player have the tag of its pid.
func (k Key) Tag() string {
	kind, value, _ := strings.Cut(string(k), ":")
	switch kind + ":" {
	case PIDPrefix:
		return "player-" + value
	case NamePrefix:
		// Escaped, as the name of a player that does not exist may contain anything.
		return "name-" + url.PathEscape(value)
	case UIDPrefix:
		return "user-" + value
	case TIDPrefix:
		return "texture-" + value
	default:
		return ""
	}
}
