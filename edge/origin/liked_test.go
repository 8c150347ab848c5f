package origin_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/edge/origin"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
)

func TestLiked(t *testing.T) {
	t.Parallel()
	fake := origintest.Start(t)
	core := newCore(t, origin.Config{URL: fake.URL}, nil)
	if _, err := core.Liked(t.Context(), 2); err == nil || !strings.Contains(err.Error(), "core is older") {
		t.Errorf("a core without the endpoint: %v; want an error that it is old", err)
	}
	fake.SetLiked([]skin.Hash{{3}, {1}, {2}})
	liked, err := core.Liked(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]skin.Hash{{3}, {1}}, liked); diff != "" {
		t.Errorf("liked textures (-want +got):\n%s", diff)
	}
}

func TestLikedFails(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"down":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"malformed": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"hashes":["ab"]}`)) },
		"truncated": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"hashes":[`)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(answer)
			t.Cleanup(server.Close)
			core := newCore(t, origin.Config{URL: server.URL}, nil)
			if _, err := core.Liked(t.Context(), 2); fault.KindOf(err) != fault.Unavailable {
				t.Errorf("%v; want it unavailable", err)
			}
		})
	}
}
