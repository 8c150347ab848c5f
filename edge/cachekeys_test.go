package edge_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/config/configtest"
)

// The table of docs/operations/cdn.md names the parameters that a cache in front must have in its
// key. A parameter that only some subjects have is in the key of all.
func TestCacheKeys(t *testing.T) {
	t.Parallel()
	var paths []string
	parameters := map[string][]string{}
	add := func(path string, names ...string) {
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
		for _, name := range names {
			if !slices.Contains(parameters[path], name) {
				parameters[path] = append(parameters[path], name)
			}
		}
	}
	for _, view := range edge.Views {
		for _, route := range view.Routes {
			if route.Subject == edge.ByNameParameter {
				add(route.Prefix, "name")
			}
			add("/"+view.Name()+"/…", view.Parameters(route.Subject)...)
		}
	}
	var keys []string // the parameters, in the order of the views
	pathsOf := map[string][]string{}
	for _, path := range paths {
		if len(parameters[path]) == 0 {
			continue
		}
		key := code(parameters[path])
		if pathsOf[key] == nil {
			keys = append(keys, key)
		}
		pathsOf[key] = append(pathsOf[key], path)
	}
	var table strings.Builder
	table.WriteString("\n| paths | parameters |\n|---|---|\n")
	for _, key := range keys {
		fmt.Fprintf(&table, "| %s | %s |\n", code(pathsOf[key]), key)
	}
	table.WriteString("| `/sprite/…` | `players`, `uuids`, `users`, `hashes`, `size`, `exact`, `columns`, `png` |\n" +
		"| `/heads.json` | `players`, `uuids`, `users` |\n" +
		"| `/head`, `/head.png` | `name`, `uuid`, `texture`, and those of compatible URLs |\n" +
		"| [compatible URLs](../addresses.md), some of which begin as these do | beside these all that stand there under *Parameters* |\n" +
		"| all others | none |\n\n")
	configtest.Section(t, "../docs/operations/cdn.md", "keys", table.String())
}
