package api_test

import (
	"bytes"
	"encoding/json"
	"image/png"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
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
	testenv.Do(t, json.Unmarshal([]byte(got.body), &profile))
	keys := append(orderedKeys(t, profile.Skins), orderedKeys(t, profile.Textures)...)
	values := map[string]string{}
	for _, text := range []json.RawMessage{profile.Skins, profile.Textures} {
		if text != nil {
			testenv.Do(t, json.Unmarshal(text, &values))
		}
	}
	if profile.PlayerName != "" { // UniSkinAPI
		testenv.Check(t, profile.LastUpdate != nil && profile.ModelPreference != nil,
			"%s: the mod fails without last_update and model_preference", got.body)
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
		token := testenv.Must(decoder.Token())(t)
		switch token {
		case json.Delim('{'):
			depth++
		case json.Delim('}'):
			return keys
		default:
			keys = append(keys, token.(string)) //nolint:errcheck,forcetypeassert // keys and values are strings
			testenv.Must(decoder.Token())(t)
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
		testenv.Equal(t, gotModel, model, "the model of %s of %s, with the models %q", name, root, models)
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
	return openSeeded(tb, aging, func(s *setup) { s.api.UnknownPlayerStatus = http.StatusNoContent })
}

// With that setting the responses for games by the name of a player are 204, which caches and
// mods keep for a minute, and purges find. All others stay 404.
func TestNoContent(t *testing.T) {
	t.Parallel()
	w := openNoContent(t)
	hash := strings.Repeat("0", 64)
	for tags, paths := range map[string][]string{
		"name-nobody_1": {
			"/csl/Nobody_1.json", "/Nobody_1.json", "/usm/Nobody_1.json", "/skin/Nobody_1.png", "/skins?name=Nobody_1",
			"/api/yggdrasil/skins/MinecraftSkins/Nobody_1.png", "/api/yggdrasil/skins/MinecraftCloaks/Nobody_1.png",
		},
		"player-3 name-naked": {
			"/skin/Naked.png", "/skins/Naked", "/MinecraftSkins/Naked", "/MinecraftCloaks/Naked", "/legacy/Naked.png",
		},
		"player-2 name-alex": {"/cape/Alex.png", "/cloaks/Alex.png", "/cloaks?name=Alex"},
	} {
		for _, path := range paths {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				for name, s := range map[string]*testServer{"fast path": w.testServer, "server": {url: w.slowURL}} {
					s.do(t, method, path, nil, "") // from now on the mapping is cached
					got := s.do(t, method, path, http.Header{"If-None-Match": {"*"}}, "")
					testenv.Check(t, got.status == http.StatusNoContent && got.body == "",
						"%s %s on the %s: %d %q; want 204", method, path, name, got.status, got.body)
					want := http.Header{"Cache-Control": {"public, max-age=60"}, "Cache-Status": {"veneer; hit"}}
					sameHeader(t, got.header, want, tags, "header of %s %s on the %s", method, path, name)
				}
			}
		}
	}
	for path, want := range map[string]int{
		"/avatar/player/Nobody_1": 404, "/avatar/player/Naked": 404, "/textures/" + hash: 404, "/textures/" + hash + "-legacy": 404, "/raw/99": 404,
		"/nothing": 404, "/skins": 422, "/csl/Naked.json": 200,
	} {
		testenv.Equal(t, w.get(t, path).status, want, "%s", path)
	}
	// A player that gets the name is seen at once.
	w.set(t, map[edgeproto.Key]edgeproto.Mapping{"name:nobody_1": {Player: &edgeproto.Player{PID: 20, Name: "Nobody_1", Skin: w.robot}}})
	for _, path := range []string{"/Nobody_1.json", "/usm/Nobody_1.json", "/skins/Nobody_1", "/legacy/Nobody_1.png"} {
		testenv.Equal(t, w.get(t, path).status, http.StatusOK, "%s of a player that exists now", path)
	}
	// A file that the object store lacks is no player without a skin.
	w.remove(t, w.slim.Hash)
	w.get(t, "/skin/Alex.png").expect(t, "a skin without a file", http.StatusNotFound, "Cache-Control", "no-store")
	// While core is unreachable, the response is kept for a second only.
	w.core.SetUnavailable(true)
	testenv.Eventually(t, "core is found to be unreachable", func() bool {
		got := w.get(t, "/skin/Naked.png")
		return got.status == http.StatusNoContent && got.header.Get("Cache-Control") == "public, max-age=1"
	})
}
