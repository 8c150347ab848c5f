package api_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/edge/api"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
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
	testenv.Do(t, err)
	return string(file)
}

// sameHeader checks the header of an edge's own response, but for its date: it has the wanted fields, the fields of
// all responses, and the tags in both of their fields.
func sameHeader(t *testing.T, got, want http.Header, tags, format string, args ...any) {
	t.Helper()
	for name, value := range map[string]string{
		"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": exposed,
		"Cross-Origin-Resource-Policy": "cross-origin", "X-Content-Type-Options": "nosniff",
	} {
		if want.Get(name) == "" {
			want.Set(name, value)
		}
	}
	if tags != "" {
		want.Set("Surrogate-Key", tags)
		want.Set("Cache-Tag", strings.ReplaceAll(tags, " ", ","))
	}
	got.Del("Date")
	cmptest.Same(t, got, want, format, args...)
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
			status, etag := got.header.Get("Cache-Status"), got.header.Get("Etag")
			got.header.Del("Cache-Status")
			got.header.Del("Etag")
			sameHeader(t, got.header, http.Header{
				"Cache-Control":  {test.cache},
				"Content-Length": {fmt.Sprint(len(got.body))},
				"Content-Type":   {"image/" + test.view.Format.String()},
			}, tags, "header")
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
	w := openSeeded(t, func(s *setup) { s.api.CompatRoutes = false })
	// The response to an unknown path depends on Accept.
	const briefly, unknown, never = "public, max-age=15", "public, max-age=15, by Accept", "no-store"
	hash := w.robot.Hash.String()
	for _, group := range []struct {
		status int
		cache  string
		tags   string
		paths  []string
	}{
		{404, unknown, "", []string{
			"/nothing", "/avatar", "/avatar/", "/Avatar/11", "/avatar/11/12",
			"/avatar/player/.png", "/preview/player/Steve", "/preview/user/1", "/textures", "/cape/.png", "/csl/Steve",
			"/csl/Steve.png", "/csl/.json", "/.json", "/Steve", "/usm/Steve.png", "/skins/.png",
			"/minecraftskins/Steve.png", "/legacy/Steve", "/legacy/Steve.webp", "/avatar/player/a%2Fb",
		}},
		{404, briefly, "", []string{
			"/avatar/uuid/00000000-0000-0000-0000-000000000000", "/textures/" + hash + ".webp",
			"/textures/" + strings.ToUpper(hash), "/textures/" + strings.Repeat("0", 64), "/skin/Steve",
			"/skin/Steve.webp", "/" + strings.Repeat("x", edgeproto.MaxNameBytes+1) + ".json",
			"/usm/.7d444840-9dc0-11d1-b245-5ffdce74fad2.json", "/skins?name=a%0D%0Ab", "/raw/0", "/raw/11.webp",
			"/textures/" + strings.Repeat("0", 64) + "-legacy", "/textures/" + hash[1:] + "-legacy",
			"/avatar/uuid/7d444840-9dc0-11d1-b245-5ffdce74fad", "/avatar/uuid/7d444840-9dc0-11d1-b245-5ffdce74fad2-",
			"/avatar/uuid/7d4448409-dc0-11d1-b245-5ffdce74fad2", "/avatar/uuid/{d444840-9dc0-11d1-b245-5ffdce74fad2}",
			"/avatar/player/", "/avatar/player/a%0D%0Ab", "/avatar/player/%FF%FE",
			"/avatar/player/" + strings.Repeat("x", edgeproto.MaxNameBytes+1), "/avatar/user/me", "/avatar/user/1.5",
			"/avatar/user/-", "/avatar/0", "/avatar/-11", "/avatar/eleven", "/avatar/hash",
			"/preview/99999999999999999999", "/avatar/hash/" + strings.Repeat("0", 64),
			"/avatar/hash/" + strings.ToUpper(hash), "/preview/hash/" + hash[1:], "/preview/hash/short",
		}},
		{404, briefly, "player-3 name-naked", []string{
			"/skin/Naked.png", "/skins/Naked", "/MinecraftSkins/Naked.png", "/legacy/Naked.png", "/avatar/player/Naked",
		}},
		{404, briefly, "name-nobody_1", []string{
			"/skin/Nobody_1.png", "/csl/Nobody_1.json", "/Nobody_1.json", "/usm/Nobody_1.json",
			"/usm/Nobody_1.7d444840-9dc0-11d1-b245-5ffdce74fad2.json", "/skins/Nobody_1.png", "/skins?name=Nobody_1",
			"/legacy/Nobody_1.png", "/api/yggdrasil/skins/MinecraftSkins/Nobody_1.png", "/avatar/player/Nobody_1",
		}},
		{404, briefly, "player-2 name-alex", []string{
			"/cape/Alex.png", "/cloaks?name=Alex", "/cloaks/Alex.png", "/MinecraftCloaks/Alex.png",
			"/api/yggdrasil/skins/MinecraftCloaks/Alex.png",
		}},
		{404, briefly, "name-robots", []string{"/robots.json"}},
		{404, briefly, "name-steve.7d444840", []string{"/usm/Steve.7d444840.json"}},
		{422, never, "", []string{
			"/skins", "/skins/", "/skins?name=", "/cloaks?name=.png", "/textures/" + w.cape.Hash.String() + "-legacy",
			"/avatar/13", "/avatar/hash/" + w.cape.Hash.String(), "/avatar/11?size=big", "/avatar/11?size=",
			"/avatar/11?size", "/avatar/11?size=64.0", "/avatar/11?size=1e2", "/avatar/11?size=0x40",
			"/avatar/11?size=%2064", "/avatar/11?size=%D9%A3", "/avatar/11?size=banana&size=64",
			"/avatar/player/Steve?size=--1", "/preview/11?height=tall",
		}},
		{404, never, "", []string{"/api/yggdrasil/skins/Steve.png", "/api", "/api/user"}},
		{404, briefly, "texture-99", []string{"/raw/99"}},
		{404, briefly, "name-no%20body%2C%3B", []string{"/avatar/player/No%20body,%3B.png"}},
		{404, briefly, "name-steve.png", []string{"/avatar/player/Steve.png.webp"}},
		{404, briefly, "user-3 texture-99", []string{"/avatar/user/3"}},
		{404, briefly, "texture-14", []string{"/avatar/14", "/preview/14"}},
	} {
		for _, path := range group.paths {
			t.Run(path, func(t *testing.T) {
				t.Parallel()
				code := map[int]int{404: 3, 422: 4}[group.status]
				got := w.get(t, path)
				if got.status != group.status || !strings.HasPrefix(got.body, fmt.Sprintf(`{"code":%d,"message":"`, code)) {
					t.Errorf("%d %s; want %d with code %d", got.status, got.body, group.status, code)
				}
				want := http.Header{
					"Cache-Control":  {group.cache},
					"Content-Length": {fmt.Sprint(len(got.body))},
					"Content-Type":   {"application/json; charset=utf-8"},
				}
				if group.cache == unknown {
					want["Cache-Control"], want["Vary"] = []string{briefly}, []string{"Accept"}
				}
				if strings.HasPrefix(path, "/api") && group.cache == never { // as of core
					want["Cross-Origin-Resource-Policy"] = []string{"same-origin"}
					want["Content-Security-Policy"] = []string{"default-src 'none'; frame-ancestors 'none'"}
					want["Referrer-Policy"] = []string{"no-referrer"}
				}
				testenv.Check(t, got.header.Get("Cache-Status") != "", "there is no Cache-Status")
				got.header.Del("Cache-Status")
				sameHeader(t, got.header, want, group.tags, "header")
			})
		}
	}
}

func TestWrongSizeNamesItsField(t *testing.T) {
	t.Parallel()
	got := openSeeded(t).get(t, "/avatar/11?size=big")
	const message = "The size must be an integer."
	testenv.Equal(t, got.body, `{"code":4,"message":"`+message+`","errors":{"size":["`+message+`"]}}`, "the body")
}

// checkMethods checks that paths take the methods GET, HEAD and OPTIONS only.
func (s *testServer) checkMethods(t *testing.T, paths ...string) {
	t.Helper()
	const allowed = "GET, HEAD, OPTIONS"
	for _, path := range paths {
		for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "PURGE"} {
			got := s.do(t, method, path, nil, "")
			got.expect(t, method+" "+path, http.StatusMethodNotAllowed, "Allow", allowed, "Cache-Control", "no-store")
		}
		s.do(t, http.MethodOptions, path, nil, "").expect(t, "OPTIONS "+path, http.StatusNoContent,
			"Access-Control-Allow-Methods", allowed)
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
		head.expect(t, "HEAD "+path, get.status, "body", "")
		cmptest.Same(t, head.header, get.header, "header of HEAD %s", path)
	}

	options := w.do(t, http.MethodOptions, "/avatar/player/Steve", nil, "")
	options.expect(t, "OPTIONS", http.StatusNoContent, "body", "")
	sameHeader(t, options.header, http.Header{
		"Access-Control-Allow-Headers": {"*"},
		"Access-Control-Allow-Methods": {"GET, HEAD, OPTIONS"},
		"Access-Control-Max-Age":       {"86400"},
		"Allow":                        {"GET, HEAD, OPTIONS"},
		"Cache-Control":                {"no-store"},
		"Cache-Status":                 {"veneer; fwd=bypass"},
	}, "", "header of OPTIONS")

	w.checkMethods(t, "/preview/11")
	testenv.Equal(t, w.do(t, http.MethodPost, "/elsewhere", nil, "").status, http.StatusNotFound,
		"POST of an unknown path")
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
		got.expect(t, fmt.Sprintf("If-None-Match: %q", ask), http.StatusNotModified, "body", "")
		status := got.header.Get("Cache-Status")
		testenv.Check(t, status == "veneer; hit" || status == "veneer; fwd=miss; stored", "Cache-Status: %s", status)
		got.header.Del("Cache-Status")
		tags := "player-1 texture-11 render-" + renderer.Revision()
		sameHeader(t, got.header, http.Header{"Cache-Control": {byName}, "Etag": {etag}}, tags, "header of 304")
	}
	testenv.Equal(t, other.backend.fetched.Load(), 0, "files fetched for 304")
	testenv.Equal(t, other.backend.drawn.Load(), 0, "pictures drawn for 304")
	// A 412 is not to be cached.
	for ask, want := range map[string]int{etag: 200, "*": 200, `"other", ` + etag: 200, `"other"`: 412, "W/" + etag: 412} {
		got := w.do(t, http.MethodGet, path, http.Header{"If-Match": {ask}}, "")
		if got.status != want || (want == 412 && (got.header.Get("Cache-Control") != "no-store" || got.header.Get("Etag") != "" || !strings.HasPrefix(got.body, `{"code":1,`))) {
			t.Errorf("If-Match: %s: %d %v; want %d", ask, got.status, got.header, want)
		}
	}
	// A picture has no date, so conditions on dates are ignored; one on the tag comes first.
	since := w.do(t, http.MethodGet, path, http.Header{"If-Modified-Since": {"Sun, 01 Jan 2034 00:00:00 GMT"}}, "")
	testenv.Equal(t, since.status, http.StatusOK, "If-Modified-Since")
	head := w.do(t, http.MethodHead, path, http.Header{"If-None-Match": {etag}}, "")
	testenv.Equal(t, head.status, http.StatusNotModified, "HEAD with If-None-Match")
	for _, ask := range []string{`"other"`, strings.Trim(etag, `"`), etag[:20], `"a,*,b"`, `"a", *`, "W/*", "W/", `"x` + etag[1:], `x` + etag[:23]} {
		testenv.Equal(t, w.do(t, http.MethodGet, path, http.Header{"If-None-Match": {ask}}, "").status, http.StatusOK,
			"If-None-Match: %s", ask)
	}
	// Only a 200 may become a 304.
	for path, want := range map[string]int{"/avatar/14": 404, "/avatar/13": 422, "/avatar/11?size=x": 422} {
		testenv.Equal(t, w.do(t, http.MethodGet, path, http.Header{"If-None-Match": {"*"}}, "").status, want,
			"If-None-Match: * on %s", path)
	}
	// No two pictures have the same tag.
	for _, other := range []string{"/avatar/player/Steve?size=192&3d", "/avatar/player/Steve?size=200", "/avatar/player/Steve.png?size=200&3d", "/avatar/player/Alex?size=200&3d"} {
		testenv.Equal(t, w.do(t, http.MethodGet, other, http.Header{"If-None-Match": {etag}}, "").status, http.StatusOK,
			"the tag of %s on %s", path, other)
	}
}

func TestChangeIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	const path = "/avatar/player/Steve?png"
	before := w.get(t, path)
	w.set(t, map[edgeproto.Key]edgeproto.Mapping{"name:steve": {Player: &edgeproto.Player{PID: 1, Name: "Steve", Skin: w.slim}}})
	after := w.do(t, http.MethodGet, path, http.Header{"If-None-Match": {before.header.Get("Etag")}}, "")
	after.expect(t, "after the change", http.StatusOK,
		"body", drawn(t, artwork.Ranger(), render.View{Type: skin.Slim, Size: 96}))

	const newcomer = "/avatar/player/Newcomer?png"
	testenv.Equal(t, w.get(t, newcomer).status, http.StatusNotFound, "%s", newcomer)
	testenv.Equal(t, w.get(t, newcomer).header.Get("Cache-Status"), "veneer; hit", "the Cache-Status of a cached 404")
	w.set(t, map[edgeproto.Key]edgeproto.Mapping{"name:newcomer": {Player: &edgeproto.Player{PID: 9, Name: "Newcomer", Skin: w.robot}}})
	testenv.Equal(t, w.get(t, newcomer).status, http.StatusOK, "%s once the player exists", newcomer)
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
	got.expect(t, "the skin that is worn since", http.StatusOK,
		"body", drawn(t, artwork.Ranger(), render.View{Type: skin.Slim, Size: 96}))
	testenv.Contains(t, got.header.Get("Surrogate-Key"), "texture-12", "Surrogate-Key, of the new texture")
}

func TestTagsAndSharedAge(t *testing.T) {
	t.Parallel()
	f := func(tags string, wantSurrogate, wantCache bool) {
		t.Helper()
		w := openSeeded(t, func(s *setup) {
			testenv.Do(t, s.api.CacheTags.UnmarshalText([]byte(tags)))
			s.api.SMaxage = time.Hour
		})
		got := w.get(t, "/avatar/user/1").header
		testenv.Check(t, (got.Get("Surrogate-Key") != "") == wantSurrogate && (got.Get("Cache-Tag") != "") == wantCache,
			"%s: Surrogate-Key %q, Cache-Tag %q", tags, got.Get("Surrogate-Key"), got.Get("Cache-Tag"))
		const want = "public, max-age=60, s-maxage=3600, stale-while-revalidate=600, stale-if-error=86400"
		testenv.Equal(t, got.Get("Cache-Control"), want, "Cache-Control")
		testenv.Equal(t, w.get(t, "/avatar/11").header.Get("Cache-Control"), byTexture, "Cache-Control by tid")
	}
	f("off", false, false)
	f("surrogate-key", true, false)
	f("cache-tag", false, true)
	f("both", true, true)
	err := new(api.Tags).UnmarshalText([]byte("all"))
	testenv.Check(t, err != nil, "UnmarshalText accepts all")
}

// TestOddRequests sends requests that no client library sends.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	f := func(line string, want int) {
		t.Helper()
		answer, err := io.ReadAll(dial(t, w.url, "").send(t, line+"\r\nHost: x\r\nConnection: close\r\n\r\n"))
		testenv.Do(t, err)
		testenv.Check(t, bytes.HasPrefix(answer, fmt.Appendf(nil, "HTTP/1.1 %d ", want)),
			"%q: %q; want %d", line, answer[:min(len(answer), 40)], want)
		testenv.Check(t, !bytes.Contains(answer, []byte("\nSet-Cookie:")),
			"%q: a header was injected: %q", line, answer)
	}
	f("GET /avatar/11 HTTP/1.1", 200)
	f("GET /avatar/%31%31 HTTP/1.1", 200)
	f("GET /avatar/%2531%2531 HTTP/1.1", 200) // decoded once: a name that no player has
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
	f("OPTIONS * HTTP/1.1", 204)
	f("nonsense", 400)
}
