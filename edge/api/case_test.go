package api_test

import (
	"net/http"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// Names of parameters and suffixes mean the same in any case: on the fast path, on the server
// behind it, and in the cache.
func TestParametersInAnyCase(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	hash := w.robot.Hash.String()

	f := func(canonical string, others ...string) {
		t.Helper()
		want := w.get(t, canonical)
		if want.status != http.StatusOK {
			t.Fatalf("%s: %d; want 200", canonical, want.status)
		}
		drawn := w.backend.drawn.Load()
		for _, other := range others {
			for _, s := range []*testServer{w.testServer, {url: w.slowURL}} {
				s.get(t, other).expect(t, other, want.status,
					"body", want.body, "Etag", want.header.Get("Etag"), "Content-Type", want.header.Get("Content-Type"))
			}
		}
		testenv.Equal(t, w.backend.drawn.Load()-drawn, 0, "%s: pictures drawn for %q", canonical, others)
	}

	const player = "/avatar/player/Steve"
	f(player+"?3d&png&size=64",
		player+"?3D&PNG&SIZE=64", player+"?3D&Png&Size=64", player+"?3D=&pNg=x&sIzE=64", player+"?%33D&%50ng&%53ize=64",
		player+".png?3D&Size=64", player+".PNG?3D&Size=64", player+".Png?3d&SIZE=64&size=128")
	f(player+".webp?size=48", player+".WebP?size=48", player+".WEBP?Size=48&PNG", player+"?SIZE=48")
	f("/avatar/user/1.png", "/avatar/user/1.PNG", "/avatar/user/1?PNG")
	f("/avatar/11.png", "/avatar/11.PNG", "/avatar/hash/"+hash+".PNG", "/avatar/hash/"+hash+"?pnG")
	f("/preview/12.png?height=128", "/preview/12.PNG?HEIGHT=128", "/preview/12?PNG&Height=128")
	f("/textures/"+hash, "/textures/"+hash+".PNG", "/csl/textures/"+hash+".Png")
	f("/skin/Steve.png", "/skin/Steve.PNG", "/skin/steve.Png")
	f("/cape/Steve.png", "/cape/Steve.PNG")
	f("/csl/Steve.json", "/csl/Steve.JSON", "/csl/STEVE.Json", "/Steve.json", "/STEVE.JSON")
	f("/usm/Steve.json", "/usm/STEVE.Json", "/usm/steve.7D4448409DC011D1B2455FFDCE74FAD2.JSON")
	f("/skins/Steve", "/skins/STEVE.PNG", "/skins?name=steve", "/skins?NAME=STEVE.Png", "/MinecraftSkins/steve.PNG", "/skin/Steve.png")
	f("/cloaks/Steve", "/cloaks/steve.Png", "/cloaks?Name=Steve", "/MinecraftCloaks/STEVE", "/cape/Steve.png")
	f("/legacy/Steve.png", "/legacy/STEVE.PNG", "/textures/"+hash+"-legacy", "/textures/"+hash+"-Legacy.PNG")

	for path, want := range map[string]int{
		"/textures/" + hash + ".WEBP":      http.StatusNotFound,
		"/csl/Steve.WebP":                  http.StatusNotFound,
		player + "?Size=x":                 http.StatusUnprocessableEntity,
		"/preview/12?HEIGHT=":              http.StatusUnprocessableEntity,
		"/AVATAR/player/Steve":             http.StatusNotFound,
		player + "?%C5%BFize=x&heigh%54=x": http.StatusOK, // a long s is no s
	} {
		testenv.Equal(t, w.get(t, path).status, want, "%s", path)
	}
}
