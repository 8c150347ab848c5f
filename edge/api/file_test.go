package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Mods request the files themselves, by hash and by player.
func TestFiles(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	robot := string(origintest.File(t, artwork.Robot(), skin.Classic))
	ranger := string(origintest.File(t, artwork.Ranger(), skin.Slim))
	cape := string(origintest.File(t, artwork.Sunrise(), skin.Cape))
	const forEver = "public, max-age=31536000, immutable"

	f := func(path, want, cache, tags string) {
		t.Helper()
		got := w.get(t, path)
		if got.status != http.StatusOK || got.body != want {
			t.Fatalf("%s: %d, %d bytes; want 200 and the file of %d", path, got.status, len(got.body), len(want))
		}
		etag := got.header.Get("Etag")
		for _, name := range []string{"Cache-Status", "Etag", "Content-Length"} {
			got.header.Del(name)
		}
		header := http.Header{"Cache-Control": {cache}, "Content-Type": {"image/png"}}
		sameHeader(t, got.header, header, tags, "header of %s", path)
		w.do(t, http.MethodGet, path, http.Header{"If-None-Match": {etag}}, "").expect(t, path, http.StatusNotModified,
			"Cache-Control", cache)
	}

	f("/textures/"+w.robot.Hash.String(), robot, forEver, "texture-11")
	f("/textures/"+w.robot.Hash.String()+".png", robot, forEver, "texture-11")
	f("/textures/"+w.cape.Hash.String()+"?size=x&png", cape, forEver, "texture-13")
	f("/csl/textures/"+w.cape.Hash.String(), cape, forEver, "texture-13")
	f("/usm/textures/"+w.cape.Hash.String()+".png", cape, forEver, "texture-13")
	f("/raw/11", robot, byTexture, "texture-11")
	f("/raw/13.png", cape, byTexture, "texture-13")
	f("/skin/Steve.png", robot, byName, "player-1 texture-11")
	f("/skin/ALEX.png", ranger, byName, "player-2 texture-12")
	f("/cape/steve.png", cape, byName, "player-1 texture-13")
	for _, prefix := range []string{"/skins/", "/skins?name=", "/MinecraftSkins/"} {
		f(prefix+"Steve", robot, byName, "player-1 texture-11")
		f(prefix+"aLEX.PNG", ranger, byName, "player-2 texture-12")
		f(prefix+"%C3%89lan.png", ranger, byName, "player-4 texture-12")
	}
	for _, prefix := range []string{"/cloaks/", "/cloaks?name=", "/MinecraftCloaks/", "/usm/MinecraftCloaks/", "/api/yggdrasil/skins/MinecraftCloaks/"} {
		f(prefix+"Steve", cape, byName, "player-1 texture-13")
		f(prefix+"STEVE.png", cape, byName, "player-1 texture-13")
	}
	f("/skins?x=Alex&n%61me=St%65ve&name=Alex", robot, byName, "player-1 texture-11")
	f("/skins?NAME=Steve.png", robot, byName, "player-1 texture-11")

	// A file is fetched once, whatever the routes that it is requested by.
	testenv.Equal(t, w.backend.fetched.Load(), 3, "files were fetched")
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	w.set(t, map[edgeproto.Key]edgeproto.Mapping{
		`name:"é\`:   {Player: &edgeproto.Player{PID: 6, Name: `"É\`}},
		"name:steve": {Player: &edgeproto.Player{PID: 1, Name: "Steve", Skin: w.robot, Cape: w.cape}, Modified: 1772600767},
		"name:caped": {Player: &edgeproto.Player{PID: 7, Name: "Caped", Cape: w.cape}},
		"name:skins": {Player: &edgeproto.Player{PID: 8, Name: "skins"}},
		"name:a.b":   {Player: &edgeproto.Player{PID: 9, Name: "a.b"}},
	})
	robot, slim, cape := w.robot.Hash.String(), w.slim.Hash.String(), w.cape.Hash.String()

	f := func(path, want, tags string) {
		t.Helper()
		got := w.get(t, path)
		if got.status != http.StatusOK || got.body != want || got.header.Get("Content-Type") != "application/json; charset=utf-8" {
			t.Fatalf("%s: %d %s %s; want 200 and %s", path, got.status, got.header.Get("Content-Type"), got.body, want)
		}
		got.expect(t, path, http.StatusOK, "Cache-Control", byName, "Surrogate-Key", tags)
		etag := got.header.Get("Etag")
		w.do(t, http.MethodGet, path, http.Header{"If-None-Match": {etag}}, "").expect(t, path, http.StatusNotModified,
			"body", "")
	}
	for _, root := range []string{"/", "/csl/"} {
		f(root+"Steve.json", `{"username":"Steve","skins":{"default":"`+robot+`"},"cape":"`+cape+`","textures":{"default":"`+robot+`","cape":"`+cape+`"}}`, "player-1 texture-11 texture-13")
		f(root+"aLEX.json", `{"username":"Alex","skins":{"slim":"`+slim+`","default":"`+slim+`-legacy"},"textures":{"slim":"`+slim+`","default":"`+slim+`-legacy"}}`, "player-2 texture-12")
		f(root+"Naked.json", `{"username":"Naked","skins":{},"textures":{}}`, "player-3")
		f(root+"%22%C3%89%5C.json", `{"username":"\"É\\","skins":{},"textures":{}}`, "player-6")
		f(root+"Caped.json", `{"username":"Caped","skins":{},"cape":"`+cape+`","textures":{"cape":"`+cape+`"}}`, "player-7 texture-13")
		f(root+"skins.JSON", `{"username":"skins","skins":{},"textures":{}}`, "player-8")
	}
	const uuid = "7d444840-9dc0-11d1-b245-5ffdce74fad2"
	steve := `{"player_name":"Steve","last_update":1772600767,"model_preference":["default"],"skins":{"default":"` + robot + `"},"cape":"` + cape + `"}`
	f("/usm/Steve.json", steve, "player-1 texture-11 texture-13")
	f("/usm/stEve."+uuid+".json", steve, "player-1 texture-11 texture-13")
	f("/usm/Steve."+strings.ToUpper(strings.ReplaceAll(uuid, "-", ""))+".JSON", steve, "player-1 texture-11 texture-13")
	f("/usm/St%65ve%2E"+uuid+".json", steve, "player-1 texture-11 texture-13")
	f("/usm/Alex.json", `{"player_name":"Alex","last_update":0,"model_preference":["slim","default"],"skins":{"slim":"`+slim+`","default":"`+slim+`-legacy"}}`, "player-2 texture-12")
	f("/usm/Naked.json", `{"player_name":"Naked","last_update":0,"model_preference":[],"skins":{}}`, "player-3")
	f("/usm/a.b.json", `{"player_name":"a.b","last_update":0,"model_preference":[],"skins":{}}`, "player-9")
	f("/csl/a.b.json", `{"username":"a.b","skins":{},"textures":{}}`, "player-9")

	before := w.get(t, "/csl/Alex.json").header.Get("Etag")
	w.set(t, map[edgeproto.Key]edgeproto.Mapping{"name:alex": {Player: &edgeproto.Player{PID: 2, Name: "Alex", Skin: w.robot}}})
	got := w.do(t, http.MethodGet, "/csl/Alex.json", http.Header{"If-None-Match": {before}}, "")
	testenv.Check(t, got.status == http.StatusOK && strings.Contains(got.body, robot),
		"after a change of skin: %d %s; want 200 with the other hash", got.status, got.body)
}

// The file and the card of a private texture have no address by its number. Its other pictures do, and the files that a
// player wears.
func TestPrivateFiles(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	private := *w.robot
	private.Private = true
	w.set(t, map[edgeproto.Key]edgeproto.Mapping{"tid:11": {Texture: &private}})
	for _, path := range []string{"/raw/11", "/raw/11.png", "/skin/11", "/skins/11", "/download/11", "/texture/11", "/card/texture/11", "/card/texture/11.png?background=1f6b3a"} {
		testenv.Equal(t, w.get(t, path).status, http.StatusNotFound, "%s", path)
	}
	for _, path := range []string{"/avatar/11", "/preview/11", "/face/11", "/helm/11/64", "/skin/Steve.png", "/textures/" + private.Hash.String(), "/card/player/Steve"} {
		testenv.Equal(t, w.get(t, path).status, http.StatusOK, "%s", path)
	}
}
