package edgeproto

import "unicode/utf8"

// The greatest length of a player's name. Core accepts no longer one, and edges look none up.
const (
	MaxNameChars = 64
	MaxNameBytes = MaxNameChars * utf8.UTFMax // in UTF-8
)

// Suffixes returns what edges cut from the end of a path, in any case, before they look a player
// up. No name ends so.
func Suffixes() []string {
	return []string{".png", ".webp", ".json", ".svg", ".jpg", ".jpeg", ".gif", ".jxl"}
}
