package origin_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/veneer-skins/veneer/edge/origin"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

func TestLiked(t *testing.T) {
	t.Parallel()
	fake := origintest.Start(t)
	core := newCore(t, origin.Config{URL: fake.URL}, nil)
	testenv.ErrorHas(t, testenv.ErrOf(core.Liked(t.Context(), 2)), "core is older", "a core without the endpoint")
	fake.SetLiked([]skin.Hash{{3}, {1}, {2}})
	liked := testenv.Must(core.Liked(t.Context(), 2))(t)
	cmptest.Same(t, liked, []skin.Hash{{3}, {1}}, "liked textures")
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
			_, err := core.Liked(t.Context(), 2)
			testenv.Check(t, fault.KindOf(err) == fault.Unavailable, "%v; want it unavailable", err)
		})
	}
}
