package deploytest

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/roots"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// startStubs starts the balancer for servers that respond with their name, the client's address and the host.
func (b balancer) startStubs(t *testing.T) (url string) {
	t.Helper()
	stub := func(name string) []string {
		return serve(t, func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s for %s as %s", name, strings.Join(r.Header.Values("X-Forwarded-For"), ","), r.Host)
		})
	}
	core, edge := stub("core"), stub("edge")
	if b.file == smallSiteNginx.file {
		return b.start(t, []server{{host: "127.0.0.1", port: "8080", public: core[0]}, {host: "127.0.0.1", port: "8081", public: edge[0]}})
	}
	return b.startSite(t, core, edge, stub("edge"))
}

// All balancers send core's roots to core, and all else to an edge.
func TestRoots(t *testing.T) {
	t.Parallel()
	want := map[string]string{"/pictures": "edge", "/avatar/player/steve": "edge", roots.Files + "MinecraftSkins/steve.png": "edge"}
	for _, path := range roots.Paths {
		want[path], want[path+"?lang=zh"], want[path+"x"] = "core", "core", "edge"
	}
	for _, root := range roots.Trees {
		want[root], want[root+"/"], want[root+"/head/64?a=%2F"], want[root+"x"] = "core", "core", "core", "edge"
	}
	for _, b := range append(slices.Clone(balancers), smallSiteNginx) {
		t.Run(strings.ReplaceAll(b.file, "/", " "), func(t *testing.T) {
			t.Parallel()
			url := b.startStubs(t)
			for path, program := range want {
				got, _, _ := strings.Cut(httpservertest.Get(t, url+path).Body, " ")
				testenv.Equal(t, got, program, "%s", path)
			}
		})
	}
}

// Caddy is not installed, so its file is read, as are the pages that list the roots.
func TestRootsInFiles(t *testing.T) {
	t.Parallel()
	wanted := slices.Clone(roots.Paths)
	for _, root := range roots.Trees {
		wanted = append(wanted, root, root+"/*")
	}
	slices.Sort(wanted)
	_, matcher, _ := strings.Cut(read(t, "deploy/machines/Caddyfile"), "\t\tpath ")
	matcher, _, _ = strings.Cut(matcher, "\n")
	listed := strings.Fields(matcher)
	slices.Sort(listed)
	cmptest.Same(t, listed, wanted, "core's paths in the Caddyfile")

	for _, page := range []string{"balancers.md", "cdn.md"} {
		_, list, _ := strings.Cut(read(t, filepath.Join("docs/operations", page)), "<!-- roots -->")
		list, _, _ = strings.Cut(list, "<!-- end of roots -->")
		listed = nil
		for _, code := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(list, -1) {
			listed = append(listed, strings.TrimSuffix(code[1], "/…"))
		}
		slices.Sort(listed)
		all := slices.Concat(roots.Paths, roots.Trees)
		slices.Sort(all)
		cmptest.Same(t, listed, all, "core's paths in %s", page)
	}
}
