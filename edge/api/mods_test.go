package api_test

import (
	"bytes"
	"encoding/json"
	"image/png"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

// customSkinLoader resolves a profile as the mod of that name does: the fields skin and cape
// first, then skins and textures as one map, in their order. Of the models that the game knows
// the first one counts.
func customSkinLoader(t *testing.T, s *testServer, root, name string, models ...string) (model, texture, cape string) {
	t.Helper()
	got := s.get(t, root+name+".json")
	if got.status != http.StatusOK {
		t.Fatalf("%s of %s: %d", name, root, got.status)
	}
	var profile struct {
		Skins, Textures json.RawMessage
		Cape            string
		ModelPreference []string `json:"model_preference"`
		PlayerName      string   `json:"player_name"`
		LastUpdate      *int64   `json:"last_update"`
	}
	must(t, json.Unmarshal([]byte(got.body), &profile))
	keys := append(orderedKeys(t, profile.Skins), orderedKeys(t, profile.Textures)...)
	values := map[string]string{}
	for _, text := range []json.RawMessage{profile.Skins, profile.Textures} {
		if text != nil {
			must(t, json.Unmarshal(text, &values))
		}
	}
	if profile.PlayerName != "" { // UniSkinAPI
		if profile.LastUpdate == nil || profile.ModelPreference == nil {
			t.Errorf("%s: the mod fails without last_update and model_preference", got.body)
		}
		keys = profile.ModelPreference
	}
	for _, key := range keys {
		if model == "" && slices.Contains(models, key) && values[key] != "" {
			model, texture = key, root+"textures/"+values[key]
		}
	}
	cape = profile.Cape
	if values["cape"] != "" {
		cape = values["cape"]
	}
	if cape != "" {
		cape = root + "textures/" + cape
	}
	return model, texture, cape
}

// orderedKeys returns the keys of a JSON object in their order.
func orderedKeys(t *testing.T, object json.RawMessage) (keys []string) {
	t.Helper()
	if object == nil {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(object))
	for depth := 0; ; {
		token, err := decoder.Token()
		must(t, err)
		switch token {
		case json.Delim('{'):
			depth++
		case json.Delim('}'):
			return keys
		default:
			keys = append(keys, token.(string)) //nolint:errcheck,forcetypeassert // keys and values are strings
			_, err = decoder.Token()
			must(t, err)
		}
	}
}

// Games with both models show the skin that a player wears. Games with the default model only
// show a slim skin as a sheet for that model.
func TestModsFindTextures(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	w.set(t, map[edgeproto.Key]edgeproto.Mapping{edgeproto.HashKey(w.slim.Hash): {Texture: w.slim}})
	robot, ranger := origintest.File(t, artwork.Robot(), skin.Classic), origintest.File(t, artwork.Ranger(), skin.Slim)
	sunrise := origintest.File(t, artwork.Sunrise(), skin.Cape)
	f := func(root, name string, models []string, model string, wantSkin, wantCape []byte) {
		t.Helper()
		gotModel, texture, cape := customSkinLoader(t, w.testServer, root, name, models...)
		if gotModel != model {
			t.Errorf("%s of %s, with the models %q, has the model %q; want %q", name, root, models, gotModel, model)
		}
		if body := w.get(t, texture).body; wantSkin != nil && body != string(wantSkin) {
			t.Errorf("%s of %s, with the models %q: %s is not the skin", name, root, models, texture)
		}
		if (cape != "") != (wantCape != nil) || cape != "" && w.get(t, cape).body != string(wantCape) {
			t.Errorf("%s of %s: the cape is %q", name, root, cape)
		}
	}
	both, old := []string{"default", "slim"}, []string{"default"}
	for _, root := range []string{"/", "/csl/", "/usm/"} {
		f(root, "Steve", both, "default", robot, sunrise)
		f(root, "steve", old, "default", robot, sunrise)
		f(root, "ALEX", both, "slim", ranger, nil)
		f(root, "Alex", old, "default", nil, nil)
		_, texture, _ := customSkinLoader(t, w.testServer, root, "Alex", old...)
		sheet := w.get(t, texture)
		size, err := png.DecodeConfig(strings.NewReader(sheet.body))
		if err != nil || size.Width != 64 || size.Height != 32 || sheet.body != w.get(t, "/legacy/Alex.png").body {
			t.Errorf("%s: %d, %d × %d, %v; want the sheet of 64 × 32", texture, sheet.status, size.Width, size.Height, err)
		}
		if model, texture, cape := customSkinLoader(t, w.testServer, root, "Naked", both...); model != "" || texture != "" || cape != "" {
			t.Errorf("a player without textures has %q, %q and %q at %s", model, texture, cape, root)
		}
	}
}

// openNoContent opens a server that responds 204 for players that do not exist.
func openNoContent(tb testing.TB) seededServer {
	tb.Helper()
	return openSeeded(tb, func(s *setup) { s.api.UnknownPlayerStatus = http.StatusNoContent })
}

// With that setting the responses for games by the name of a player are 204, which caches and
// mods keep for a minute, and purges find. All others stay 404.
func TestNoContent(t *testing.T) {
	t.Parallel()
	w := openNoContent(t)
	hash := strings.Repeat("0", 64)
	for path, tags := range map[string]string{
		"/csl/Nobody_1.json":     "name-nobody_1",
		"/Nobody_1.json":         "name-nobody_1",
		"/usm/Nobody_1.json":     "name-nobody_1",
		"/skin/Nobody_1.png":     "name-nobody_1",
		"/skin/Naked.png":        "player-3 name-naked",
		"/cape/Alex.png":         "player-2 name-alex",
		"/skins/Naked":           "player-3 name-naked",
		"/skins?name=Nobody_1":   "name-nobody_1",
		"/cloaks/Alex.png":       "player-2 name-alex",
		"/cloaks?name=Alex":      "player-2 name-alex",
		"/MinecraftSkins/Naked":  "player-3 name-naked",
		"/MinecraftCloaks/Naked": "player-3 name-naked",
		"/legacy/Naked.png":      "player-3 name-naked",
		"/api/yggdrasil/skins/MinecraftSkins/Nobody_1.png":  "name-nobody_1",
		"/api/yggdrasil/skins/MinecraftCloaks/Nobody_1.png": "name-nobody_1",
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			for name, s := range map[string]*testServer{"fast path": w.testServer, "server": {url: w.slowURL}} {
				s.do(t, method, path, nil, "") // from now on the mapping is cached
				got := s.do(t, method, path, http.Header{"If-None-Match": {"*"}}, "")
				got.header.Del("Date")
				if got.status != http.StatusNoContent || got.body != "" {
					t.Errorf("%s %s on the %s: %d %q; want 204", method, path, name, got.status, got.body)
				}
				if diff := cmp.Diff(http.Header{
					"Access-Control-Allow-Origin":   {"*"},
					"Access-Control-Expose-Headers": {exposed},
					"Cache-Control":                 {"public, max-age=60"},
					"Cache-Status":                  {"veneer; hit"},
					"Cache-Tag":                     {strings.ReplaceAll(tags, " ", ",")},
					"Cross-Origin-Resource-Policy":  {"cross-origin"},
					"Surrogate-Key":                 {tags},
					"X-Content-Type-Options":        {"nosniff"},
				}, got.header); diff != "" {
					t.Errorf("header of %s %s on the %s (-want +got):\n%s", method, path, name, diff)
				}
			}
		}
	}
	for path, want := range map[string]int{
		"/avatar/player/Nobody_1": 404, "/avatar/player/Naked": 404, "/textures/" + hash: 404, "/textures/" + hash + "-legacy": 404, "/raw/99": 404,
		"/nothing": 404, "/skins": 422, "/csl/Naked.json": 200,
	} {
		if got := w.get(t, path); got.status != want {
			t.Errorf("%s: %d; want %d", path, got.status, want)
		}
	}
	// A player that gets the name is seen at once.
	w.set(t, map[edgeproto.Key]edgeproto.Mapping{"name:nobody_1": {Player: &edgeproto.Player{PID: 20, Name: "Nobody_1", Skin: w.robot}}})
	for _, path := range []string{"/Nobody_1.json", "/usm/Nobody_1.json", "/skins/Nobody_1", "/legacy/Nobody_1.png"} {
		if got := w.get(t, path); got.status != http.StatusOK {
			t.Errorf("%s of a player that exists now: %d; want 200", path, got.status)
		}
	}
	// A file that the object store lacks is no player without a skin.
	w.remove(t, w.slim.Hash)
	if got := w.get(t, "/skin/Alex.png"); got.status != http.StatusNotFound || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("a skin without a file: %d, Cache-Control %q; want 404, no-store", got.status, got.header.Get("Cache-Control"))
	}
	// While core is unreachable, the response is kept for a second only.
	w.core.SetUnavailable(true)
	eventually(t, "core is found to be unreachable", func() bool {
		got := w.get(t, "/skin/Naked.png")
		return got.status == http.StatusNoContent && got.header.Get("Cache-Control") == "public, max-age=1"
	})
}
