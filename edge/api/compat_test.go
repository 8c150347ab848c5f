package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/yggproto"
)

// steveUUID is the UUID of Steve, whose default skin is classic.
const steveUUID = "7d444840-9dc0-11d1-b245-5ffdce74fad2"

// openCompat starts a server that knows Steve by a UUID as well.
func openCompat(tb testing.TB, changes ...func(*setup)) seededServer {
	tb.Helper()
	w := openSeeded(tb, changes...)
	w.set(tb, map[edgeproto.Key]edgeproto.Mapping{
		edgeproto.UUIDKey(steveUUID): {Player: &edgeproto.Player{PID: 1, UUID: steveUUID, Name: "Steve", Skin: w.robot, Cape: w.cape}},
	})
	return w
}

// Which address wins where an own address and a compatible one, or two compatible ones, mean different
// subjects.
func TestCompatClashes(t *testing.T) {
	t.Parallel()
	w := openCompat(t)
	words := map[edgeproto.Key]edgeproto.Mapping{"name:12345": {Player: &edgeproto.Player{PID: 20, Name: "12345", Skin: w.slim}}}
	for i, word := range []string{"player", "uuid", "user", "hash", "left", "heads"} {
		words[edgeproto.NameKey(word)] = edgeproto.Mapping{Player: &edgeproto.Player{PID: int64(21 + i), Name: word, Skin: w.slim}}
	}
	const decimalUUID = "00000000-0000-0000-0009-012345678901"
	words["uuid:"+decimalUUID] = edgeproto.Mapping{Player: &edgeproto.Player{PID: 30, Name: "Console", UUID: decimalUUID, Skin: w.slim}}
	w.set(t, words)
	uuid, hash := strings.ReplaceAll(steveUUID, "-", ""), w.robot.Hash.String()
	same := func(equals string, addresses ...string) {
		t.Helper()
		want := w.get(t, equals)
		testenv.Equal(t, want.status, http.StatusOK, "%s", equals)
		for _, address := range addresses {
			w.get(t, address).expect(t, address, http.StatusOK,
				"Etag", want.header.Get("Etag"), "Surrogate-Key", want.header.Get("Surrogate-Key"))
		}
	}
	notFound := func(addresses ...string) {
		t.Helper()
		for _, address := range addresses {
			testenv.Equal(t, w.get(t, address).status, http.StatusNotFound, "%s", address)
		}
	}

	// Digits are the number of a texture, on our own addresses in their own format.
	same("/face/11?size=96", "/avatar/11", "/avatar/11.webp", "/face/11")
	same("/face/11.png?size=64", "/avatar/11/64", "/face/64/11", "/helm/11/64", "/avatar/11.png?size=64")
	same("/skin/11", "/skins/11", "/skins/11.png", "/download/11", "/texture/11")
	notFound("/avatar/12345678901234567890", "/skin/12345678901234567890", "/helm/0", "/skins/12345")
	// 64 hexadecimal digits are a hash, 32 and the hyphenated form a UUID, all else a name.
	same("/face/hash/"+hash+".png?size=180&exact", "/avatar/"+hash, "/helm/"+hash)
	same("/face/uuid/"+uuid+".png?size=180&exact", "/avatar/"+uuid, "/avatar/"+steveUUID, "/helm/"+strings.ToUpper(uuid))
	same("/face/player/Steve.png?size=180&exact", "/avatar/Steve", "/helm/sTeVe", "/avatar/Steve.svg")
	same("/face/player/Nobody_1.png?size=180&exact&default=avatar", "/avatar/Nobody_1", "/helm/nobody_1.gif")
	notFound("/avatar/"+strings.Repeat("0", 64), "/helm/a%2Fb")
	same("/face/user/0.png?size=180&exact&default=avatar", "/helm/a%23b", "/helm/.hidden", "/helm/"+strings.Repeat("x", edgeproto.MaxNameBytes+1), "/helm/%ff",
		"/helm/8667ba71-b85a-4004-af54-457a9734eedz", "/helm/12345678901234567890")
	decimal := strings.ReplaceAll(decimalUUID, "-", "")
	same("/face/uuid/"+decimalUUID+".png?size=64", "/avatar/"+decimal+"?size=64", "/face/"+decimal+".png?size=64", "/helm/"+decimal+"/64")
	same("/skin/uuid/"+decimalUUID, "/skin/"+decimal, "/skins/"+decimal)
	// After crafthead's prefix no address is our own.
	same("/face/11.png?size=180&exact", "/minecraft/avatar/11")
	same("/face/user/0.png?size=64&default=avatar", "/minecraft/helm//64")
	// The contract's file names are players' names, digits too.
	same("/skin/player/12345", "/skin/12345.png", "/MinecraftSkins/12345.png", "/skin/player/12345.png")
	notFound("/cape/11", "/skin/13", "/cape/11.png", "/skin/hash/"+w.cape.Hash.String(), "/cape/hash/"+hash)
	same("/cape/13", "/capes/13", "/cape/hash/"+w.cape.Hash.String())
	// Fixed paths win over players, and words of our own addresses as well.
	testenv.Contains(t, w.get(t, "/heads.json?players=heads").body, `{"heads":{"hash":"`, "/heads.json")
	same("/csl/heads.json", "/csl/HEADS.json")
	for _, word := range []string{"player", "uuid", "user", "hash"} {
		notFound("/avatar/"+word, "/helm/"+word, "/skin/"+word)
		same("/face/player/"+word+".png?size=64", "/helm/player/"+word+"/64", "/avatar/player/"+word+".png?size=64")
	}
	same("/face/player/12345.png?size=64", "/helm/player/12345/64")
	same("/face/user/1.png?size=64", "/helm/user/1/64")
	same("/face/hash/"+hash+".png?size=64", "/helm/hash/"+hash+"/64")
	same("/face/uuid/"+uuid+".png?size=64", "/helm/uuid/"+steveUUID+"/64")
	// A word is one only after the subject.
	same("/head/player/left.png?size=64&turn=7", "/head/left/64/left")
	// Of two numbers the first is the subject, unless the service has the size first.
	same("/head/11.png?size=64", "/head/11/64")
	same("/face/11.png?size=12&exact", "/face/12/11", "/helm/11/12")
	same("/body/11.png?height=64", "/full/64/11")
	same("/front/11.png?height=64", "/front/64/11", "/frontfull/64/11", "/player/11/32")
	// Minotar's avatar has no hat and its body is flat; mc-heads.net's avatar and body have more users.
	same("/face/player/Steve.png?size=64", "/avatar/Steve/64")
	same("/body/player/Steve.png?height=128", "/body/Steve/64")
	// A chosen model is drawn in place of that of the texture, and heads have none.
	if got, want := w.get(t, "/front/64/Steve?model=slim&no=cape").body, drawn(t, artwork.Robot(), render.View{Mode: render.Front, Type: skin.Slim, Size: 64, Format: render.PNG}); got != want {
		t.Error("/front/64/Steve?model=slim has not slim arms")
	}
	same("/face/player/Steve.png?size=64", "/helm/Steve/64?model=slim", "/helm/Steve/64?alex&steve")
	// Of repeated parameters the first counts, of a size in the path and one in the query that in the path.
	same("/face/player/Steve.png?size=64", "/helm/Steve?size=64&size=32", "/helm/Steve/64?size=32", "/helm/Steve?size=x&size=64&w=16")
	same("/body/player/Steve.png?height=128&turn=2", "/body/Steve/64?y=90&y=45", "/body/Steve/64?yaw=x&y=90")
	// Any suffix is cut off what is no name, at the end only.
	same("/face/11.png?size=64", "/helm/11/64.bmp", "/helm/11/64", "/face/64/11.bmp")
	same("/face/player/Nobody_1.x.png?size=180&exact&default=avatar", "/helm/Nobody_1.x", "/helm/player/Nobody_1.x")
	testenv.Contains(t, w.get(t, "/helm/player/12345.x").header.Get("Surrogate-Key"), "name-12345.x ", "the tags")
	// Not taken.
	notFound("/avatar/12.x/any/thing", "/helm/64.x/Steve/Alex", "/combo/Steve/64.png", "/profile/Steve", "/render/walking/Steve/arm", "/render/Steve/full", "/helm/Steve/64/32", "/helm/Steve/big", "/skin/Steve/big", "/body", "/body/", "/avatar/player/.png", "/avatar/.png", "/body/player/.webp", "/avatar/user/.png", "/avatar/player//", "/p/body", "/pictures/head",
		"/helm/Steve/64/upside", "/head", "/head.png?size=64", "/api/overlay", "/console/head", "/renders/Steve", "/armor/Steve", "/HELM/Steve",
		"/profile/helm", "/textures/Steve", "/textures/signed/Steve", "/minecraft/profile/Steve", "/minecraft/textures/"+hash, "/minecraft/Steve/helm", "/minecrafthelm/Steve")
	w.checkMethods(t, "/helm/Steve", "/avatars/"+uuid)
}

// Profiles are core's, by names that a player can have. An unknown player is 404, or 204 where that is configured.
func TestCompatProfiles(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("0", 64)
	asked := map[string]string{ // what core is asked for
		"/profile/Steve": "/profile/Steve", "/profile/a%20b.PNG/": "/profile/a%20b", "/profile/helm?unsigned=false": "/profile/helm?unsigned=false",
		"/profile/" + steveUUID: "/profile/" + steveUUID, "/minecraft/profile/Steve.png": "/profile/Steve", "/profile/signed": "/profile/signed",
		"/textures/signed/Steve?proxy=true": "/profile/Steve?unsigned=false", "/textures/signed": "/textures/signed", "/textures/12345": "/textures/12345",
		"/textures/Steve.png": "/textures/Steve", "/textures/" + hash[1:]: "/textures/" + hash[1:], "/x/../profile//Steve": "/profile/Steve",
		"/textures/" + hash: "", "/textures/" + hash + "-legacy.png": "", "/textures/": "", "/textures/.png": "", "/profile": "", "/profile/.x": "", "/profile/%ff": "",
		"/profile/a%2Fb": "", "/profile/%2e%2e%2fmetrics": "", "/profile/Steve/64": "", "/minecraft/textures/Steve": "", "/PROFILE/Steve": "", "/csl/profile/Steve": "",
	}
	for _, status := range []int{http.StatusNotFound, http.StatusNoContent} {
		seen := make(chan string, 1)
		handler := func(w http.ResponseWriter, r *http.Request) {
			seen <- strings.TrimPrefix(r.RequestURI, yggproto.Root)
			http.Error(w, "There is no such player.", http.StatusNotFound)
		}
		s := openForwarding(t, handler, func(s *setup) { s.api.UnknownPlayerStatus = status })
		off := openForwarding(t, handler, func(s *setup) { s.api.CompatRoutes = false })
		for path, want := range asked {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				f := func(s *testServer, want string, status int) {
					t.Helper()
					reply := dial(t, s.url, "").send(t, method+" "+path+" HTTP/1.1\r\nHost: x\r\n\r\n").reply(t, method)
					got := ""
					select {
					case got = <-seen:
					default:
					}
					if got != want || reply.status != status || (reply.status == http.StatusNoContent) != (reply.header.Get("Content-Type") == "") {
						t.Errorf("of %s %s core is asked for %q: %d, %v; want %q, %d", method, path, got, reply.status, reply.header, want, status)
					}
				}
				f(off, "", http.StatusNotFound)
				if want == "" {
					f(s, "", http.StatusNotFound)
				} else {
					f(s, want, status)
				}
			}
		}
	}
}

// Files are those that are stored: what does not exist is 404, or 204 where that is configured, and never
// a picture.
func TestCompatFiles(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusNotFound, http.StatusNoContent} {
		w := openCompat(t, func(s *setup) { s.api.UnknownPlayerStatus = status })
		for _, path := range []string{"/skins/Nobody_1", "/skin/Nobody_1", "/MinecraftSkins/Nobody_1.png", "/capes/Alex", "/cape/Alex", "/download/Naked", "/skin/player/Nobody_1"} {
			if got := w.get(t, path); got.status != status || status == http.StatusNoContent && got.body != "" {
				t.Errorf("%s: %d; want %d", path, got.status, status)
			}
		}
		for _, path := range []string{"/skins/" + strings.ReplaceAll(steveUUID, "7", "8"), "/skin/99", "/skin/user/2", "/skin/user/777", "/cape/user/1"} {
			testenv.Equal(t, w.get(t, path).status, http.StatusNotFound, "%s", path)
		}
	}
}
