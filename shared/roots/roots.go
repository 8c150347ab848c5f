// Package roots has the paths that core serves. Edges with an upstream forward them, all load
// balancers send them to core, and they win over compatible URLs of pictures.
package roots

import (
	"slices"
	"strings"
)

// The roots that other packages name.
const (
	API     = "/api"
	Console = "/console"
	Front   = "/"
	Robots  = "/robots.txt"
)

// Paths are single paths.
var Paths = []string{Front, Robots, "/manifest.webmanifest", "/favicon.ico", "/apple-touch-icon.png", "/.well-known/change-password"}

// Trees are paths with all that is below them: the API, the console, pages of players, of
// textures, and of the site.
var Trees = []string{API, Console, "/p", "/t", "/site"}

// Files is below API, but has files for games, which load balancers send to edges.
const Files = API + "/yggdrasil/skins/"

// Of returns the root to which a decoded path belongs, empty if that is an edge's.
func Of(path string) string {
	if slices.Contains(Paths, path) {
		return path
	}
	if i := slices.IndexFunc(Trees, func(root string) bool { return IsBelow(path, root) }); i >= 0 {
		return Trees[i]
	}
	return ""
}

// IsBelow reports whether a path is a tree's root or below it.
func IsBelow(path, root string) bool {
	rest, ok := strings.CutPrefix(path, root)
	return ok && (rest == "" || rest[0] == '/')
}
