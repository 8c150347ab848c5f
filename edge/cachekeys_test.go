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
	var keys []string // the parameters, in the order of the views
	paths := map[string][]string{}
	add := func(path string, parameters []string) {
		key := code(parameters)
		if len(parameters) == 0 || slices.Contains(paths[key], path) {
			return
		}
		if paths[key] == nil {
			keys = append(keys, key)
		}
		paths[key] = append(paths[key], path)
	}
	for _, view := range edge.Views {
		var all []string
		for _, route := range view.Routes {
			for _, name := range view.Parameters(route.Subject) {
				if !slices.Contains(all, name) {
					all = append(all, name)
				}
			}
			if route.Subject == edge.ByNameParameter {
				add(route.Prefix, []string{"name"})
			}
		}
		add("/"+view.Name()+"/…", all)
	}
	var table strings.Builder
	table.WriteString("\n| paths | parameters |\n|---|---|\n")
	for _, key := range keys {
		fmt.Fprintf(&table, "| %s | %s |\n", code(paths[key]), key)
	}
	table.WriteString("| `/sprite/…` | `players`, `uuids`, `users`, `hashes`, `size`, `columns`, `png` |\n" +
		"| `/heads.json` | `players`, `uuids`, `users` |\n" +
		"| [compatible URLs](../addresses.md), some of which begin as these do | beside these all that stand there under *Parameters* |\n" +
		"| all others | none |\n\n")
	configtest.Section(t, "../docs/operations/cdn.md", "keys", table.String())
}
