package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/edge/api"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
)

const (
	byTexture = "public, max-age=86400, stale-while-revalidate=86400, stale-if-error=604800"
	byName    = "public, max-age=60, stale-while-revalidate=600, stale-if-error=86400"
)

// exposed are the headers that pages of other origins may read.
const exposed = "Age, Cache-Status, Content-Length, ETag, Last-Modified, Retry-After, X-Request-ID"

// longestName is the longest name of a player that core accepts.
var longestName = strings.Repeat("𠮷", edgeproto.MaxNameChars)

// seededServer is a server with players, users and textures.
type seededServer struct {
	*testServer
	robot, slim, cape *edgeproto.Texture
}

func openSeeded(tb testing.TB, changes ...func(*setup)) seededServer {
	tb.Helper()
	s := open(tb, changes...)
	w := seededServer{
		testServer: s,
		robot:      s.put(tb, 11, artwork.Robot(), skin.Classic),
		slim:       s.put(tb, 12, artwork.Ranger(), skin.Slim),
		cape:       s.put(tb, 13, artwork.Sunrise(), skin.Cape),
	}
	s.set(tb, map[edgeproto.Key]edgeproto.Mapping{
		"name:steve":                    {Player: &edgeproto.Player{PID: 1, Name: "Steve", Skin: w.robot, Cape: w.cape}},
		"name:alex":                     {Player: &edgeproto.Player{PID: 2, Name: "Alex", Skin: w.slim}},
		"name:naked":                    {Player: &edgeproto.Player{PID: 3, Name: "Naked"}},
		"name:élan":                     {Player: &edgeproto.Player{PID: 4, Name: "Élan", Skin: w.slim}},
		edgeproto.NameKey(longestName):  {Player: &edgeproto.Player{PID: 5, Name: longestName, Skin: w.slim}},
		"uid:1":                         {User: &edgeproto.User{UID: 1, Avatar: 12, Texture: w.slim}},
		"uid:2":                         {User: &edgeproto.User{UID: 2}},
		"uid:3":                         {User: &edgeproto.User{UID: 3, Avatar: 99}},
		"tid:11":                        {Texture: w.robot},
		"tid:12":                        {Texture: w.slim},
		"tid:13":                        {Texture: w.cape},
		edgeproto.HashKey(w.robot.Hash): {Texture: w.robot},
		edgeproto.HashKey(w.cape.Hash):  {Texture: w.cape},
	})
	return w
}

// drawn returns the picture of a view.
func drawn(t *testing.T, sheet skin.Sheet, view render.View) string {
	t.Helper()
	return drawnWearing(t, sheet, skin.Sheet{}, view)
}

// drawnWearing returns the picture of a view in which a cape's sheet is worn.
func drawnWearing(t *testing.T, sheet, worn skin.Sheet, view render.View) string {
	t.Helper()
	file, _, err := renderer.Render(sheet, worn, view)
	must(t, err)
	return string(file)
}

func TestPictures(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	robot, slim, cape, defaultSkin := artwork.Robot(), artwork.Ranger(), artwork.Sunrise(), artwork.Default()
	revision := " render-" + renderer.Revision()

	for _, test := range []struct {
		path  string
		sheet skin.Sheet
		view  render.View
		cache string
		tags  string
	}{
		{"/avatar/player/Steve", robot, render.View{Type: skin.Classic, Size: 96, Format: render.WebP}, byName, "player-1 texture-11"},
		{"/avatar/player/sTEVE", robot, render.View{Type: skin.Classic, Size: 96, Format: render.WebP}, byName, "player-1 texture-11"},
		{"/avatar/player/Alex?png", slim, render.View{Type: skin.Slim, Size: 96}, byName, "player-2 texture-12"},
		{"/avatar/player/%C3%89LAN?png", slim, render.View{Type: skin.Slim, Size: 96}, byName, "player-4 texture-12"},
		{"/avatar/player/" + url.PathEscape(longestName) + ".png", slim, render.View{Type: skin.Slim, Size: 96}, byName, "player-5 texture-12"},
		{"/avatar/player/Alex.png", slim, render.View{Type: skin.Slim, Size: 96}, byName, "player-2 texture-12"},
		{"/avatar/player/Alex.webp?png=1", slim, render.View{Type: skin.Slim, Size: 96, Format: render.WebP}, byName, "player-2 texture-12"},
		{"/avatar/player/St%65ve?png=0", robot, render.View{Type: skin.Classic, Size: 96}, byName, "player-1 texture-11"},
		{"/avatar/user/1?png", slim, render.View{Type: skin.Slim, Size: 96}, byName, "user-1 texture-12"},
		{"/avatar/user/01?png", slim, render.View{Type: skin.Slim, Size: 96}, byName, "user-1 texture-12"},
		{"/avatar/user/2?png", defaultSkin, render.View{Type: skin.Classic, Size: 96}, byName, "user-2"},
		{"/avatar/user/777?png&3d", defaultSkin, render.View{Mode: render.Isometric, Type: skin.Classic, Size: 96}, byName, "user-777"},
		{"/avatar/user/0.png", defaultSkin, render.View{Type: skin.Classic, Size: 96}, byName, ""},
		{"/avatar/user/-7?png", defaultSkin, render.View{Type: skin.Classic, Size: 96}, byName, ""},
		{"/avatar/user/99999999999999999999999?png", defaultSkin, render.View{Type: skin.Classic, Size: 96}, byName, ""},
		{"/avatar/11", robot, render.View{Type: skin.Classic, Size: 96, Format: render.WebP}, byTexture, "texture-11"},
		{"/avatar/12?3d&png", slim, render.View{Mode: render.Isometric, Type: skin.Slim, Size: 96}, byTexture, "texture-12"},
		{"/avatar/12?3d=false&png", slim, render.View{Mode: render.Isometric, Type: skin.Slim, Size: 96}, byTexture, "texture-12"},
		{"/avatar/hash/" + w.robot.Hash.String() + "?png", robot, render.View{Type: skin.Classic, Size: 96}, byTexture, "texture-11"},
		{"/preview/12", slim, render.View{Mode: render.Preview, Type: skin.Slim, Size: 400, Format: render.WebP}, byTexture, "texture-12"},
		{"/preview/11?png&size=banana&3d", robot, render.View{Mode: render.Preview, Type: skin.Classic, Size: 400}, byTexture, "texture-11"},
		{"/preview/13.png", cape, render.View{Mode: render.Preview, Type: skin.Cape, Size: 400}, byTexture, "texture-13"},
		{"/preview/hash/" + w.cape.Hash.String() + ".png", cape, render.View{Mode: render.Preview, Type: skin.Cape, Size: 400}, byTexture, "texture-13"},

		{"/avatar/11.png?size=64", robot, render.View{Type: skin.Classic, Size: 64}, byTexture, "texture-11"},
		{"/avatar/11.png?size=65", robot, render.View{Type: skin.Classic, Size: 72}, byTexture, "texture-11"},
		{"/avatar/11.png?size=0", robot, render.View{Type: skin.Classic, Size: 8}, byTexture, "texture-11"},
		{"/avatar/11.png?size=-100", robot, render.View{Type: skin.Classic, Size: 8}, byTexture, "texture-11"},
		{"/avatar/11.png?size=-99999999999999999999", robot, render.View{Type: skin.Classic, Size: 8}, byTexture, "texture-11"},
		{"/avatar/11.png?size=99999999999999999999", robot, render.View{Type: skin.Classic, Size: 512}, byTexture, "texture-11"},
		{"/avatar/11.png?size=9223372036854775808", robot, render.View{Type: skin.Classic, Size: 512}, byTexture, "texture-11"},
		{"/avatar/11.png?size=513", robot, render.View{Type: skin.Classic, Size: 512}, byTexture, "texture-11"},
		{"/avatar/11.png?size=0064", robot, render.View{Type: skin.Classic, Size: 64}, byTexture, "texture-11"},
		{"/avatar/11.png?size=64&size=banana", robot, render.View{Type: skin.Classic, Size: 64}, byTexture, "texture-11"},
		{"/avatar/11.png?height=banana", robot, render.View{Type: skin.Classic, Size: 96}, byTexture, "texture-11"},
		{"/preview/11.png?height=1", robot, render.View{Mode: render.Preview, Type: skin.Classic, Size: 64}, byTexture, "texture-11"},
		{"/preview/11.png?height=129", robot, render.View{Mode: render.Preview, Type: skin.Classic, Size: 144}, byTexture, "texture-11"},
		{"/preview/11.png?height=5000", robot, render.View{Mode: render.Preview, Type: skin.Classic, Size: 1024}, byTexture, "texture-11"},
		{"/legacy/steve.PNG", robot, render.View{Mode: render.LegacySheet, Type: skin.Classic, Size: 32}, byName, "player-1 texture-11"},
		{"/legacy/Alex.png?size=banana&3d&png", slim, render.View{Mode: render.LegacySheet, Type: skin.Slim, Size: 32}, byName, "player-2 texture-12"},
		{"/usm/MinecraftSkins/Alex.png", slim, render.View{Mode: render.LegacySheet, Type: skin.Slim, Size: 32}, byName, "player-2 texture-12"},
		{"/api/yggdrasil/skins/MinecraftSkins/Alex.png", slim, render.View{Mode: render.LegacySheet, Type: skin.Slim, Size: 32}, byName, "player-2 texture-12"},
		{"/textures/" + w.robot.Hash.String() + "-legacy", robot, render.View{Mode: render.LegacySheet, Type: skin.Classic, Size: 32}, byTexture, "texture-11"},
		{"/csl/textures/" + w.robot.Hash.String() + "-legacy.png", robot, render.View{Mode: render.LegacySheet, Type: skin.Classic, Size: 32}, byTexture, "texture-11"},
		{"/usm/textures/" + w.robot.Hash.String() + "-LEGACY", robot, render.View{Mode: render.LegacySheet, Type: skin.Classic, Size: 32}, byTexture, "texture-11"},
	} {
		t.Run(test.path, func(t *testing.T) {
			t.Parallel()
			got := w.get(t, test.path)
			if got.status != http.StatusOK || got.body != drawn(t, test.sheet, test.view) {
				t.Fatalf("%d, %d bytes, beginning %q; want 200 and %+v", got.status, len(got.body), got.body[:min(80, len(got.body))], test.view)
			}
			tags := strings.TrimSpace(test.tags + revision)
			want := http.Header{
				"Access-Control-Allow-Origin":   {"*"},
				"Access-Control-Expose-Headers": {exposed},
				"Cache-Control":                 {test.cache},
				"Cache-Tag":                     {strings.ReplaceAll(tags, " ", ",")},
				"Content-Length":                {fmt.Sprint(len(got.body))},
				"Content-Type":                  {"image/" + test.view.Format.String()},
				"Cross-Origin-Resource-Policy":  {"cross-origin"},
				"Surrogate-Key":                 {tags},
				"X-Content-Type-Options":        {"nosniff"},
			}
			status, etag := got.header.Get("Cache-Status"), got.header.Get("Etag")
			for _, name := range []string{"Date", "Cache-Status", "Etag"} {
				got.header.Del(name)
			}
			if diff := cmp.Diff(want, got.header); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
			// Parallel tests request some of the same pictures.
			if status != "veneer; fwd=miss; stored" && status != "veneer; fwd=miss; collapsed" && status != "veneer; hit" {
				t.Errorf("Cache-Status: %s", status)
			}
			again := w.get(t, test.path)
			if status := again.header.Get("Cache-Status"); status != "veneer; hit" || again.body != got.body || again.header.Get("Etag") != etag {
				t.Errorf("the same again: Cache-Status %s, ETag %s, %d bytes; want a hit, %s and %d", status, again.header.Get("Etag"), len(again.body), etag, len(got.body))
			}
		})
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	w := openSeeded(t, func(s *setup) { s.api.Foreign = false })
	// The response to an unknown path depends on Accept.
	const briefly, unknown, never = "public, max-age=15", "public, max-age=15, by Accept", "no-store"
	hash := w.robot.Hash.String()
	for _, test := range []struct {
		path   string
		status int
		code   int
		cache  string
		tags   string
	}{
		{"/nothing", 404, 3, unknown, ""},
		{"/avatar", 404, 3, unknown, ""},
		{"/avatar/", 404, 3, unknown, ""},
		{"/Avatar/11", 404, 3, unknown, ""},
		{"/avatar/11/", 404, 3, unknown, ""},
		{"/avatar/11/12", 404, 3, unknown, ""},
		{"/avatar/player/", 404, 3, unknown, ""},
		{"/avatar/player/.png", 404, 3, unknown, ""},
		{"/avatar/uuid/00000000-0000-0000-0000-000000000000", 404, 3, briefly, ""},
		{"/preview/player/Steve", 404, 3, unknown, ""},
		{"/preview/user/1", 404, 3, unknown, ""},
		{"/textures", 404, 3, unknown, ""},
		{"/textures/" + hash + ".webp", 404, 3, briefly, ""},
		{"/textures/" + strings.ToUpper(hash), 404, 3, briefly, ""},
		{"/textures/" + strings.Repeat("0", 64), 404, 3, briefly, ""},
		{"/skin/Steve", 404, 3, briefly, ""},
		{"/skin/Steve.webp", 404, 3, briefly, ""},
		{"/skin/Naked.png", 404, 3, briefly, "player-3 name-naked"},
		{"/skin/Nobody_1.png", 404, 3, briefly, "name-nobody_1"},
		{"/cape/Alex.png", 404, 3, briefly, "player-2 name-alex"},
		{"/cape/.png", 404, 3, unknown, ""},
		{"/csl/Steve", 404, 3, unknown, ""},
		{"/csl/Steve.png", 404, 3, unknown, ""},
		{"/csl/.json", 404, 3, unknown, ""},
		{"/csl/Nobody_1.json", 404, 3, briefly, "name-nobody_1"},
		{"/Nobody_1.json", 404, 3, briefly, "name-nobody_1"},
		{"/.json", 404, 3, unknown, ""},
		{"/Steve", 404, 3, unknown, ""},
		{"/robots.json", 404, 3, briefly, "name-robots"},
		{"/" + strings.Repeat("x", edgeproto.MaxNameBytes+1) + ".json", 404, 3, briefly, ""},
		{"/usm/Nobody_1.json", 404, 3, briefly, "name-nobody_1"},
		{"/usm/Nobody_1.7d444840-9dc0-11d1-b245-5ffdce74fad2.json", 404, 3, briefly, "name-nobody_1"},
		{"/usm/.7d444840-9dc0-11d1-b245-5ffdce74fad2.json", 404, 3, briefly, ""},
		{"/usm/Steve.7d444840.json", 404, 3, briefly, "name-steve.7d444840"},
		{"/usm/Steve.png", 404, 3, unknown, ""},
		{"/skins/Naked", 404, 3, briefly, "player-3 name-naked"},
		{"/skins/Nobody_1.png", 404, 3, briefly, "name-nobody_1"},
		{"/skins/", 404, 3, unknown, ""},
		{"/skins/.png", 404, 3, unknown, ""},
		{"/skins", 422, 4, never, ""},
		{"/skins?name=", 422, 4, never, ""},
		{"/cloaks?name=.png", 422, 4, never, ""},
		{"/skins?name=Nobody_1", 404, 3, briefly, "name-nobody_1"},
		{"/skins?name=a%0D%0Ab", 404, 3, briefly, ""},
		{"/cloaks?name=Alex", 404, 3, briefly, "player-2 name-alex"},
		{"/cloaks/Alex.png", 404, 3, briefly, "player-2 name-alex"},
		{"/MinecraftSkins/Naked.png", 404, 3, briefly, "player-3 name-naked"},
		{"/minecraftskins/Steve.png", 404, 3, unknown, ""},
		{"/MinecraftCloaks/Alex.png", 404, 3, briefly, "player-2 name-alex"},
		{"/legacy/Naked.png", 404, 3, briefly, "player-3 name-naked"},
		{"/legacy/Nobody_1.png", 404, 3, briefly, "name-nobody_1"},
		{"/legacy/Steve", 404, 3, unknown, ""},
		{"/legacy/Steve.webp", 404, 3, unknown, ""},
		{"/api/yggdrasil/skins/MinecraftSkins/Nobody_1.png", 404, 3, briefly, "name-nobody_1"},
		{"/api/yggdrasil/skins/MinecraftCloaks/Alex.png", 404, 3, briefly, "player-2 name-alex"},
		{"/api/yggdrasil/skins/Steve.png", 404, 3, never, ""},
		{"/raw/99", 404, 3, briefly, "texture-99"},
		{"/raw/0", 404, 3, briefly, ""},
		{"/raw/11.webp", 404, 3, briefly, ""},
		{"/textures/" + strings.Repeat("0", 64) + "-legacy", 404, 3, briefly, ""},
		{"/textures/" + hash[1:] + "-legacy", 404, 3, briefly, ""},
		{"/textures/" + w.cape.Hash.String() + "-legacy", 422, 4, never, ""},
		{"/avatar/uuid/7d444840-9dc0-11d1-b245-5ffdce74fad", 404, 3, briefly, ""},
		{"/avatar/uuid/7d444840-9dc0-11d1-b245-5ffdce74fad2-", 404, 3, briefly, ""},
		{"/avatar/uuid/7d4448409-dc0-11d1-b245-5ffdce74fad2", 404, 3, briefly, ""},
		{"/avatar/uuid/{d444840-9dc0-11d1-b245-5ffdce74fad2}", 404, 3, briefly, ""},
		{"/api", 404, 3, never, ""},
		{"/api/user", 404, 3, never, ""},

		{"/avatar/player/Nobody_1", 404, 3, briefly, "name-nobody_1"},
		{"/avatar/player/No%20body,%3B.png", 404, 3, briefly, "name-no%20body%2C%3B"},
		{"/avatar/player/Naked", 404, 3, briefly, "player-3 name-naked"},
		{"/avatar/player/Steve.png.webp", 404, 3, briefly, "name-steve.png"},
		{"/avatar/player/a%0D%0Ab", 404, 3, briefly, ""},
		{"/avatar/player/%FF%FE", 404, 3, briefly, ""},
		{"/avatar/player/" + strings.Repeat("x", edgeproto.MaxNameBytes+1), 404, 3, briefly, ""},
		{"/avatar/player/a%2Fb", 404, 3, unknown, ""},
		{"/avatar/user/3", 404, 3, briefly, "user-3 texture-99"},
		{"/avatar/user/me", 404, 3, briefly, ""},
		{"/avatar/user/1.5", 404, 3, briefly, ""},
		{"/avatar/user/-", 404, 3, briefly, ""},
		{"/avatar/14", 404, 3, briefly, "texture-14"},
		{"/preview/14", 404, 3, briefly, "texture-14"},
		{"/avatar/0", 404, 3, briefly, ""},
		{"/avatar/-11", 404, 3, briefly, ""},
		{"/avatar/eleven", 404, 3, briefly, ""},
		{"/avatar/hash", 404, 3, briefly, ""},
		{"/preview/99999999999999999999", 404, 3, briefly, ""},
		{"/avatar/hash/" + strings.Repeat("0", 64), 404, 3, briefly, ""},
		{"/avatar/hash/" + strings.ToUpper(hash), 404, 3, briefly, ""},
		{"/preview/hash/" + hash[1:], 404, 3, briefly, ""},
		{"/preview/hash/short", 404, 3, briefly, ""},

		{"/avatar/13", 422, 4, never, ""},
		{"/avatar/hash/" + w.cape.Hash.String(), 422, 4, never, ""},
		{"/avatar/11?size=big", 422, 4, never, ""},
		{"/avatar/11?size=", 422, 4, never, ""},
		{"/avatar/11?size", 422, 4, never, ""},
		{"/avatar/11?size=64.0", 422, 4, never, ""},
		{"/avatar/11?size=1e2", 422, 4, never, ""},
		{"/avatar/11?size=0x40", 422, 4, never, ""},
		{"/avatar/11?size=%2064", 422, 4, never, ""},
		{"/avatar/11?size=%D9%A3", 422, 4, never, ""},
		{"/avatar/11?size=banana&size=64", 422, 4, never, ""},
		{"/avatar/player/Steve?size=--1", 422, 4, never, ""},
		{"/preview/11?height=tall", 422, 4, never, ""},
	} {
		t.Run(test.path, func(t *testing.T) {
			t.Parallel()
			got := w.get(t, test.path)
			if got.status != test.status || !strings.HasPrefix(got.body, fmt.Sprintf(`{"code":%d,"message":"`, test.code)) {
				t.Errorf("%d %s; want %d with code %d", got.status, got.body, test.status, test.code)
			}
			want := http.Header{
				"Access-Control-Allow-Origin":   {"*"},
				"Access-Control-Expose-Headers": {exposed},
				"Cache-Control":                 {test.cache},
				"Content-Length":                {fmt.Sprint(len(got.body))},
				"Content-Type":                  {"application/json; charset=utf-8"},
				"Cross-Origin-Resource-Policy":  {"cross-origin"},
				"X-Content-Type-Options":        {"nosniff"},
			}
			if test.cache == unknown {
				want["Cache-Control"], want["Vary"] = []string{briefly}, []string{"Accept"}
			}
			if strings.HasPrefix(test.path, "/api") && test.cache == never { // as of core
				want["Cross-Origin-Resource-Policy"] = []string{"same-origin"}
				want["Content-Security-Policy"] = []string{"default-src 'none'; frame-ancestors 'none'"}
				want["Referrer-Policy"] = []string{"no-referrer"}
			}
			if test.tags != "" {
				want["Surrogate-Key"] = []string{test.tags}
				want["Cache-Tag"] = []string{strings.ReplaceAll(test.tags, " ", ",")}
			}
			if got.header.Get("Cache-Status") == "" {
				t.Error("there is no Cache-Status")
			}
			got.header.Del("Cache-Status")
			got.header.Del("Date")
			if diff := cmp.Diff(want, got.header); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrongSizeNamesItsField(t *testing.T) {
	t.Parallel()
	got := openSeeded(t).get(t, "/avatar/11?size=big")
	if want := `{"code":4,"message":"The size must be an integer.","errors":{"size":["The size must be an integer."]}}`; got.body != want {
		t.Errorf("%s; want %s", got.body, want)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	for _, path := range []string{"/avatar/11?png", "/avatar/14", "/avatar/13", "/Steve.json", "/legacy/Alex.png", "/skins?name=Steve", "/skins"} {
		get, head := w.get(t, path), w.do(t, http.MethodHead, path, nil, "")
		get.header.Del("Date")
		head.header.Del("Date")
		get.header.Set("Cache-Status", head.header.Get("Cache-Status"))
		if head.body != "" || head.status != get.status {
			t.Errorf("HEAD %s: %d with %q; want %d without a body", path, head.status, head.body, get.status)
		}
		if diff := cmp.Diff(get.header, head.header); diff != "" {
			t.Errorf("header of HEAD %s (-GET +HEAD):\n%s", path, diff)
		}
	}

	options := w.do(t, http.MethodOptions, "/avatar/player/Steve", nil, "")
	options.header.Del("Date")
	if options.status != http.StatusNoContent || options.body != "" {
		t.Errorf("OPTIONS: %d %q; want 204", options.status, options.body)
	}
	if diff := cmp.Diff(http.Header{
		"Access-Control-Allow-Headers":  {"*"},
		"Access-Control-Allow-Methods":  {"GET, HEAD, OPTIONS"},
		"Access-Control-Allow-Origin":   {"*"},
		"Access-Control-Expose-Headers": {exposed},
		"Access-Control-Max-Age":        {"86400"},
		"Allow":                         {"GET, HEAD, OPTIONS"},
		"Cache-Control":                 {"no-store"},
		"Cache-Status":                  {"veneer; fwd=bypass"},
		"Cross-Origin-Resource-Policy":  {"cross-origin"},
		"X-Content-Type-Options":        {"nosniff"},
	}, options.header); diff != "" {
		t.Errorf("header of OPTIONS (-want +got):\n%s", diff)
	}

	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "PURGE"} {
		got := w.do(t, method, "/preview/11", nil, "")
		if got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") != "GET, HEAD, OPTIONS" || got.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d, Allow %q, Cache-Control %q; want 405", method, got.status, got.header.Get("Allow"), got.header.Get("Cache-Control"))
		}
	}
	if got := w.do(t, http.MethodPost, "/elsewhere", nil, ""); got.status != http.StatusNotFound {
		t.Errorf("POST of an unknown path: %d; want 404", got.status)
	}
}

func TestNotModified(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	const path = "/avatar/player/Steve?size=200&3d"
	etag := w.get(t, path).header.Get("Etag")
	if len(etag) != 24 || etag[0] != '"' {
		t.Fatalf("ETag: %s; want a strong one", etag)
	}

	// An edge with empty caches neither fetches nor renders for a 304.
	other := openSeeded(t)
	for _, ask := range [][]string{
		{etag}, {"*"}, {"W/" + etag}, {`"other", ` + etag}, {`"other"`, `W/"another",` + etag}, {` "x" ,W/` + etag + ` `}, {`"a,b",,` + etag},
	} {
		got := other.do(t, http.MethodGet, path, http.Header{"If-None-Match": ask}, "")
		if got.status != http.StatusNotModified || got.body != "" {
			t.Errorf("If-None-Match: %q: %d with %d bytes; want 304", ask, got.status, len(got.body))
		}
		status := got.header.Get("Cache-Status")
		if status != "veneer; hit" && status != "veneer; fwd=miss; stored" {
			t.Errorf("Cache-Status: %s", status)
		}
		got.header.Del("Cache-Status")
		got.header.Del("Date")
		if diff := cmp.Diff(http.Header{
			"Access-Control-Allow-Origin":   {"*"},
			"Access-Control-Expose-Headers": {exposed},
			"Cache-Control":                 {byName},
			"Cache-Tag":                     {"player-1,texture-11,render-" + renderer.Revision()},
			"Cross-Origin-Resource-Policy":  {"cross-origin"},
			"Etag":                          {etag},
			"Surrogate-Key":                 {"player-1 texture-11 render-" + renderer.Revision()},
			"X-Content-Type-Options":        {"nosniff"},
		}, got.header); diff != "" {
			t.Errorf("header of 304 (-want +got):\n%s", diff)
		}
	}
	if fetched, drawn := other.backend.fetched.Load(), other.backend.drawn.Load(); fetched != 0 || drawn != 0 {
		t.Errorf("for 304 %d files were fetched and %d pictures drawn; want none", fetched, drawn)
	}
	// A 412 is not to be cached.
	for ask, want := range map[string]int{etag: 200, "*": 200, `"other", ` + etag: 200, `"other"`: 412, "W/" + etag: 412} {
		got := w.do(t, http.MethodGet, path, http.Header{"If-Match": {ask}}, "")
		if got.status != want || (want == 412 && (got.header.Get("Cache-Control") != "no-store" || got.header.Get("Etag") != "" || !strings.HasPrefix(got.body, `{"code":1,`))) {
			t.Errorf("If-Match: %s: %d %v; want %d", ask, got.status, got.header, want)
		}
	}
	// A picture has no date, so conditions on dates are ignored; one on the tag comes first.
	if got := w.do(t, http.MethodGet, path, http.Header{"If-Modified-Since": {"Sun, 01 Jan 2034 00:00:00 GMT"}}, ""); got.status != http.StatusOK {
		t.Errorf("If-Modified-Since: %d; want 200", got.status)
	}
	if got := w.do(t, http.MethodHead, path, http.Header{"If-None-Match": {etag}}, ""); got.status != http.StatusNotModified {
		t.Errorf("HEAD with If-None-Match: %d; want 304", got.status)
	}
	for _, ask := range []string{`"other"`, strings.Trim(etag, `"`), etag[:20], `"a,*,b"`, `"a", *`, "W/*", "W/", `"x` + etag[1:], `x` + etag[:23]} {
		if got := w.do(t, http.MethodGet, path, http.Header{"If-None-Match": {ask}}, ""); got.status != http.StatusOK {
			t.Errorf("If-None-Match: %s: %d; want 200", ask, got.status)
		}
	}
	// Only a 200 may become a 304.
	for path, want := range map[string]int{"/avatar/14": 404, "/avatar/13": 422, "/avatar/11?size=x": 422} {
		if got := w.do(t, http.MethodGet, path, http.Header{"If-None-Match": {"*"}}, ""); got.status != want {
			t.Errorf("If-None-Match: * on %s: %d; want %d", path, got.status, want)
		}
	}
	// No two pictures have the same tag.
	for _, other := range []string{"/avatar/player/Steve?size=192&3d", "/avatar/player/Steve?size=200", "/avatar/player/Steve.png?size=200&3d", "/avatar/player/Alex?size=200&3d"} {
		if got := w.do(t, http.MethodGet, other, http.Header{"If-None-Match": {etag}}, ""); got.status != http.StatusOK {
			t.Errorf("the tag of %s on %s: %d; want 200", path, other, got.status)
		}
	}
}

func TestChangeIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	const path = "/avatar/player/Steve?png"
	before := w.get(t, path)
	w.set(t, map[edgeproto.Key]edgeproto.Mapping{"name:steve": {Player: &edgeproto.Player{PID: 1, Name: "Steve", Skin: w.slim}}})
	after := w.do(t, http.MethodGet, path, http.Header{"If-None-Match": {before.header.Get("Etag")}}, "")
	if want := drawn(t, artwork.Ranger(), render.View{Type: skin.Slim, Size: 96}); after.status != http.StatusOK || after.body != want {
		t.Errorf("after the change: %d; want 200 and the other skin", after.status)
	}

	const newcomer = "/avatar/player/Newcomer?png"
	if got := w.get(t, newcomer); got.status != http.StatusNotFound {
		t.Errorf("%s: %d; want 404", newcomer, got.status)
	}
	if got := w.get(t, newcomer); got.header.Get("Cache-Status") != "veneer; hit" {
		t.Errorf("a cached 404 has the Cache-Status %s", got.header.Get("Cache-Status"))
	}
	w.set(t, map[edgeproto.Key]edgeproto.Mapping{"name:newcomer": {Player: &edgeproto.Player{PID: 9, Name: "Newcomer", Skin: w.robot}}})
	if got := w.get(t, newcomer); got.status != http.StatusOK {
		t.Errorf("%s once the player exists: %d; want 200", newcomer, got.status)
	}
}

// A change that arrives while a picture is being rendered is in the response.
func TestChangeWhileRenderingIsServed(t *testing.T) {
	t.Parallel()
	drawing, finish := make(chan struct{}), make(chan struct{})
	var first sync.Once
	w := openSeeded(t, func(s *setup) { s.backend.onDraw = func() { first.Do(func() { close(drawing); <-finish }) } })
	asked := make(chan reply, 1)
	go func() { asked <- w.get(t, "/avatar/player/Steve?png") }()
	<-drawing
	w.set(t, map[edgeproto.Key]edgeproto.Mapping{"name:steve": {Player: &edgeproto.Player{PID: 1, Name: "Steve", Skin: w.slim}}})
	close(finish)
	got := <-asked
	if want := drawn(t, artwork.Ranger(), render.View{Type: skin.Slim, Size: 96}); got.status != http.StatusOK || got.body != want {
		t.Errorf("%d, %d bytes; want 200 and the skin that is worn since", got.status, len(got.body))
	}
	if tags := got.header.Get("Surrogate-Key"); !strings.Contains(tags, "texture-12") {
		t.Errorf("Surrogate-Key: %s; want it to name the new texture", tags)
	}
}

func TestPNGWhereWebPCannotBeWritten(t *testing.T) {
	t.Parallel()
	w := openSeeded(t, func(s *setup) { s.backend.png = true })
	for _, path := range []string{"/avatar/11", "/avatar/11.webp", "/preview/13"} {
		got := w.get(t, path)
		if got.status != http.StatusOK || got.header.Get("Content-Type") != "image/png" || !strings.HasPrefix(got.body, "\x89PNG") {
			t.Errorf("%s: %d %s; want a PNG", path, got.status, got.header.Get("Content-Type"))
		}
	}
}

func TestTagsAndSharedAge(t *testing.T) {
	t.Parallel()
	f := func(tags string, wantSurrogate, wantCache bool) {
		t.Helper()
		w := openSeeded(t, func(s *setup) {
			must(t, s.api.CacheTags.UnmarshalText([]byte(tags)))
			s.api.SMaxage = time.Hour
		})
		got := w.get(t, "/avatar/user/1").header
		if (got.Get("Surrogate-Key") != "") != wantSurrogate || (got.Get("Cache-Tag") != "") != wantCache {
			t.Errorf("%s: Surrogate-Key %q, Cache-Tag %q", tags, got.Get("Surrogate-Key"), got.Get("Cache-Tag"))
		}
		if want := "public, max-age=60, s-maxage=3600, stale-while-revalidate=600, stale-if-error=86400"; got.Get("Cache-Control") != want {
			t.Errorf("Cache-Control: %s; want %s", got.Get("Cache-Control"), want)
		}
		if got := w.get(t, "/avatar/11").header.Get("Cache-Control"); got != byTexture {
			t.Errorf("Cache-Control by tid: %s; want %s", got, byTexture)
		}
	}
	f("off", false, false)
	f("surrogate-key", true, false)
	f("cache-tag", false, true)
	f("both", true, true)
	if err := new(api.Tags).UnmarshalText([]byte("all")); err == nil {
		t.Error("UnmarshalText accepts all")
	}
}

// TestOddRequests sends requests that no client library sends.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	f := func(line string, want int) {
		t.Helper()
		connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(w.url, "http://"))
		must(t, err)
		defer func() { _ = connection.Close() }()
		must(t, connection.SetDeadline(time.Now().Add(time.Minute)))
		_, err = io.WriteString(connection, line+"\r\nHost: x\r\nConnection: close\r\n\r\n")
		must(t, err)
		answer, err := io.ReadAll(connection)
		must(t, err)
		if !bytes.HasPrefix(answer, fmt.Appendf(nil, "HTTP/1.1 %d ", want)) {
			t.Errorf("%q: %q; want %d", line, answer[:min(len(answer), 40)], want)
		}
		if bytes.Contains(answer, []byte("\nSet-Cookie:")) {
			t.Errorf("%q: a header was injected: %q", line, answer)
		}
	}
	f("GET /avatar/11 HTTP/1.1", 200)
	f("GET /avatar/%31%31 HTTP/1.1", 200)
	f("GET /avatar/%2531%2531 HTTP/1.1", 404) // decoded once
	f("GET /avatar/player/St%65ve HTTP/1.1", 200)
	f("GET /avatar/player/%zz HTTP/1.1", 404)
	f("GET /avatar/player/Steve%00 HTTP/1.1", 404)
	f("GET /avatar/player/Steve%20 HTTP/1.1", 404)
	f("GET /avatar/player/Ste+ve HTTP/1.1", 404)
	f("GET /avatar/player/x%0d%0aSet-Cookie:a=b HTTP/1.1", 404)
	f("GET /avatar/player/x%20Set-Cookie:a=b HTTP/1.1", 404)
	f("GET /avatar/11#fragment HTTP/1.1", 200)
	f("GET http://elsewhere/avatar/11 HTTP/1.1", 200)
	f("GET /avatar/11?size=64&size=64&png&png&3d=1&3d=2 HTTP/1.1", 200)
	f("GET /avatar/11?&&=&size=64& HTTP/1.1", 200)
	f("GET /avatar/11?SIZE=big HTTP/1.1", 422)
	f("GET /avatar/11?s%69ze=big HTTP/1.1", 422)
	f("GET /avatar/11?size=6%34 HTTP/1.1", 200)
	f("nonsense", 400)
}
