package edge

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
)

func TestStagesAreToldApart(t *testing.T) {
	t.Parallel()
	view := func(pose render.Pose, kind skin.Type) View { return View{View: render.View{Pose: pose, Type: kind}} }
	var s stages
	for n, v := range []View{
		view(render.Flat, skin.Alex), view(render.Isometric, skin.Steve), view(render.Preview, skin.Steve), view(render.Preview, skin.Cape), {File: true},
	} {
		s.of(v)[stage(n)].Observe(time.Second)
	}
	var text strings.Builder
	s.write(&text)
	var got []string
	for line := range strings.Lines(text.String()) {
		if line, ok := strings.CutPrefix(line, "veneer_edge_render_seconds_count"); ok {
			got = append(got, line)
		}
	}
	if diff := cmp.Diff([]string{
		"{view=\"flat\",stage=\"fetch\"} 1\n",
		"{view=\"isometric\",stage=\"decode\"} 1\n",
		"{view=\"preview-skin\",stage=\"queue\"} 1\n",
		"{view=\"preview-cape\",stage=\"draw\"} 1\n",
		"{view=\"file\",stage=\"encode\"} 1\n",
	}, got); diff != "" {
		t.Errorf("what is counted (-want +got):\n%s", diff)
	}
}
