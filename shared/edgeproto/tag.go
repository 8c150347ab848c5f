package edgeproto

import (
	"net/url"
	"strings"
)

// Tag returns what edges tag answers with that depend on what a key stands for,
// so that content delivery networks can be told to forget them. It is empty for
// a hash, since it would give private files away, and for a UUIDKey: answers about a
// player carry the pid's.
func (k Key) Tag() string {
	kind, value, _ := strings.Cut(string(k), ":")
	switch kind + ":" {
	case PIDPrefix:
		return "player-" + value
	case NamePrefix:
		// Escaped, as anything can stand in the name of somebody who does not exist.
		return "name-" + url.PathEscape(value)
	case UIDPrefix:
		return "user-" + value
	case TIDPrefix:
		return "texture-" + value
	default:
		return ""
	}
}
