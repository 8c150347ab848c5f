package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
)

// The most liked textures are cached before they are requested.
func TestWarmTheMostLiked(t *testing.T) {
	t.Parallel()
	s := stack.Start(t, blobstoretest.Directory(t).Config)
	ann := signUp(t, s.CoreURL)
	bob := &client{http: &http.Client{}, base: s.CoreURL}
	bob.call(t, http.MethodPost, "/api/auth/register", map[string]any{"email": "bob@example.com", "password": "correct horse", "nickname": "Bob"})
	bob.token = bob.call(t, http.MethodPost, "/api/auth/login", map[string]any{"email": "bob@example.com", "password": "correct horse"}).Token

	liked := ann.upload(t, "liked", drawSheet(1)).Data
	for seed := range uint8(3) {
		ann.upload(t, fmt.Sprintf("skin %d", seed), drawSheet(100+seed))
	}
	bob.call(t, http.MethodPost, "/api/closet", map[string]any{"tid": liked.TID, "name": "it"})
	pid := ann.call(t, http.MethodPost, "/api/players", map[string]any{"name": "Ann_1"}).Data.PID
	ann.call(t, http.MethodPut, fmt.Sprintf("/api/players/%d/textures", pid), map[string]any{"skin": liked.TID})

	warm := func(n int, want string) {
		t.Helper()
		out := s.Edge.Run(t, "warm", "-to", s.EdgeURL, "-liked", fmt.Sprint(n))
		if want := s.EdgeURL + ": " + want; !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 1 {
			t.Errorf("edge warm printed %q; want one line beginning with %q", out, want)
		}
	}
	warm(1, "of 5 pictures of 1 textures, 5 were loaded, 0 were cached, ")
	// The picture is cached under any key, once core has resolved that.
	for range 2 {
		if _, status := fetch(t, s.EdgeURL+"/avatar/player/Ann_1?png"); status != http.StatusOK {
			t.Fatalf("the picture: %d", status)
		}
	}
	metrics := getText(t, "http://"+s.Edge.Address(t, "operators")+"/metrics")
	if sample := `veneer_edge_render_seconds_count{stage="draw",view="flat"} 2`; !strings.Contains(metrics, sample+"\n") {
		t.Errorf("the edge drew other flat pictures than the two of edge warm:\n%s", metrics)
	}
	warm(10, "of 20 pictures of 4 textures, 15 were loaded, 5 were cached, ")
}

// getText returns the body at a URL.
func getText(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
