package api_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// The fast path responds exactly as the server behind it. It serves all hits, and leaves all
// other requests to the server.
func TestFastPath(t *testing.T) {
	t.Parallel()
	w := openSeeded(t, aging)
	ask := func(url string) func(request string) reply {
		conn := dial(t, url, "")
		return func(request string) reply {
			got := conn.send(t, request).reply(t, http.MethodGet)
			testenv.Check(t, got.id != "", "the answer to %q has no X-Request-ID", request)
			got.header.Del("Date")
			got.id = ""
			return got
		}
	}
	short, long := ask(w.url), ask(w.slowURL)
	same := func(request string, want, got reply) {
		t.Helper()
		diff := cmp.Diff(want, got, cmp.AllowUnexported(reply{}))
		testenv.Check(t, diff == "", "%q is answered differently (-server +fast path):\n%s", request, diff)
	}
	f := func(target, fields string, wantStatus int, wantShort bool) {
		t.Helper()
		request := "GET " + target + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n"
		want := long(request)
		if want.header.Get("Cache-Status") == "veneer; fwd=miss; stored" {
			want = long(request) // once more, as a hit
		}
		before := w.handled.Load()
		got := short(request)
		testenv.Equal(t, got.status, wantStatus, "%s, %q", target, fields)
		same(request, want, got)
		testenv.Equal(t, w.handled.Load() == before, wantShort, "%s, %q: the fast path is taken", target, fields)
	}

	f("/", "", http.StatusOK, false) // the server serves the first request of a connection
	hash := w.robot.Hash.String()
	for _, target := range []string{
		"/avatar/player/Steve", "/avatar/player/STEVE.png?size=64", "/avatar/player/Steve?3d&size=64&png", "/avatar/player/Steve?s%69ze=64&x",
		"/avatar/user/1?3d", "/avatar/user/2", "/avatar/user/777.png?size=256", "/avatar/user/0", "/avatar/11", "/avatar/12.webp?3d&png",
		"/avatar/hash/" + hash + "?size=128", "/preview/12", "/preview/13.png", "/preview/hash/" + hash + "?height=480&png",
		"/textures/" + hash, "/textures/" + hash + ".png", "/csl/textures/" + hash, "/skin/Steve.png", "/cape/steve.png", "/csl/Steve.json", "/csl/Naked.json",
		"/Steve.json", "/usm/Alex.json", "/raw/11", "/skins?name=Steve", "/cloaks/Steve", "/MinecraftSkins/Alex.png", "/legacy/Alex.png", "/textures/" + hash + "-legacy",
		"/api/yggdrasil/skins/MinecraftSkins/Alex.png", "/api/yggdrasil/skins/MinecraftCloaks/Steve.png",
		"/helm/Steve/128", "/helm/Nobody_1/24.png", "/full/384/Steve.png?no=cape", "/renders/body/7d4448409dc011d1b2455ffdce74fad2?scale=4&overlay", "/download/Steve",
		"/head/player/Steve?download", "/back/player/Steve?size=64&wear=elytra", "/face/player/Nobody_2?default=slim&size=17&exact", "/skin/user/1", "/cape/13",
	} {
		// The first response is there once the picture is rendered, and just before it is in the store.
		first := long("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n")
		testenv.Equal(t, first.status, http.StatusOK, "%s", target)
		testenv.Eventually(t, "the picture is in its place", func() bool {
			before := w.handled.Load()
			short("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n")
			return w.handled.Load() == before
		})
		f(target, "", http.StatusOK, true)
		f(target, "Accept: image/webp,*/*\r\nConnection: keep-alive\r\nIf-Modified-Since: Sat, 21 Nov 2026 00:00:00 GMT\r\n", http.StatusOK, true)
		f(target, "If-None-Match: *\r\n", http.StatusNotModified, true)
		f(target, "If-Match: *\r\nIf-None-Match: \"other\"\r\n", http.StatusOK, true)
		f(target, "If-Match: \"other\"\r\n", http.StatusPreconditionFailed, false)
	}
	for target, isShort := range map[string]bool{
		"/avatar/player/Naked": true, "/avatar/player/Nobody": true, "/avatar/user/3": true, "/avatar/99": true, "/cape/Alex.png": true, "/csl/Nobody.json": true,
		"/Nobody.json": true, "/skins?name=Naked": true, "/legacy/Naked.png": true, "/skins": false, "/api/yggdrasil/skins/MinecraftCloaks/Alex.png": true,
		"/avatar/13": false, "/skin/Steve/x": false, "/nothing": false, "/api/players/1": false, "/avatar/11/12/13": false,
	} {
		status := long("GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n").status
		f(target, "", status, isShort)
		testenv.Check(t, status >= http.StatusBadRequest, "%s: %d; want an error", target, status)
	}
	f("/avatar/11?size=big", "", http.StatusUnprocessableEntity, false)
	f("/avatar/player/%53teve", "", http.StatusOK, false)

	// A change is in the next response, even if the former one was sent again as it was.
	steve := func(fields string) (request string) {
		return "GET /avatar/player/Steve HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n"
	}
	former := short(steve("")).header.Get("Etag")
	again := steve("If-None-Match: " + former + "\r\n")
	testenv.Equal(t, short(again).status, http.StatusNotModified, "the former picture")
	const file = "GET /skin/Steve.png HTTP/1.1\r\nHost: x\r\n\r\n"
	long(file)
	formerFile := short(file).header.Get("Etag")
	same(file, long(file), short(file))
	w.set(t, map[edgeproto.Key]edgeproto.Mapping{"name:steve": {Player: &edgeproto.Player{PID: 1, Name: "Steve", Skin: w.put(t, 99, artwork.Fox(), skin.Slim)}}})
	if got := short(again); got.status != http.StatusOK || got.header.Get("Etag") == former {
		t.Errorf("after a change: %d, ETag %s; want another picture than %s", got.status, got.header.Get("Etag"), former)
	}
	same(steve(""), long(steve("")), short(steve("")))
	testenv.Check(t, short(file).header.Get("Etag") != formerFile, "after a change the file is the former one")
	same(file, long(file), short(file))

	// Requests that would be rejected at once are rejected on the fast path, but for the few
	// that are logged.
	w.core.SetUnavailable(true)
	const request = "GET /avatar/player/Herobrine HTTP/1.1\r\nHost: x\r\n\r\n"
	var want reply
	testenv.Eventually(t, "core is known to be unreachable", func() bool {
		want = long(request)
		return want.status == http.StatusServiceUnavailable
	})
	testenv.Eventually(t, "the fast path rejects", func() bool {
		before := w.handled.Load()
		same(request, want, short(request))
		return w.handled.Load() == before
	})
	testenv.Check(t, want.status == http.StatusServiceUnavailable && want.header.Get("Retry-After") == "1",
		"a player that is not cached, while core is unreachable: %v", want)
}
