package e2e

import (
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
)

// An edge that is configured with the wrong listener reports which one it is, and exits before it
// listens.
func TestEdgeReportsWrongListener(t *testing.T) {
	t.Parallel()
	files := blobstoretest.Directory(t).Config
	core := stack.NewCore(t, files)
	core.Start(t)
	public, edges, operators := core.BaseURL(t, "public"), core.BaseURL(t, "edges"), core.BaseURL(t, "operators")
	edge := stack.NewEdge(t, files, core)
	edge.Start(t)
	edge.AwaitReady(t)

	const mentionsEdges, mentionsPublic = "CORE_EDGES_LISTEN names there, whose port is 9090", "CORE_LISTEN names there, whose port is 8080"
	for _, test := range []struct{ setting, value, what, want string }{
		{"EDGE_CORE_URL", public, "core's public listener", mentionsEdges},
		{"EDGE_CORE_URL", operators, "a listener for operators", mentionsEdges},
		{"EDGE_CORE_URL", edge.BaseURL(t, "public"), "an edge's public listener", mentionsEdges},
		{"EDGE_API_UPSTREAM", edges, "a listener for edges", mentionsPublic},
		{"EDGE_API_UPSTREAM", operators, "a listener for operators", mentionsPublic},
		{"EDGE_CORE_SECRETS", "not-the-secret-of-core", "", "CORE_EDGE_SECRETS"},
	} {
		t.Run(test.setting+" is "+test.what, func(t *testing.T) {
			t.Parallel()
			other := stack.NewEdge(t, files, core)
			if test.setting == "EDGE_CORE_URL" { // so that nothing is passed on to core
				other.Set("EDGE_API_UPSTREAM", "")
			}
			other.Set(test.setting, test.value)
			output, err := other.Try(t, "serve")
			last := output[strings.LastIndexByte(strings.TrimSpace(output), '\n')+1:]
			if err == nil || !strings.HasPrefix(last, "edge: "+test.setting+" ") || !strings.Contains(last, test.what) || !strings.Contains(last, test.want) ||
				!strings.Contains(last, "; for example "+test.setting+"=") || strings.Contains(output, `"msg":"listening"`) {
				t.Errorf("it ends with %v and says %s; want what names %s, %s and %s", err, output, test.setting, test.what, test.want)
			}
		})
	}
}
