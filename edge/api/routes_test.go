package api_test

import (
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
)

// No part of a requested path becomes the name of a route.
func TestRoutes(t *testing.T) {
	t.Parallel()
	s := open(t, func(s *setup) { s.sample = 1 })
	f := func(path, route string) {
		t.Helper()
		before := len(s.log.String())
		s.get(t, path)
		if line := s.log.String()[before:]; !strings.Contains(line, " listener=public ") || !strings.Contains(line, " route="+route+" ") {
			t.Errorf("%s is logged as %q; want it to be of the route %s", path, line, route)
		}
	}

	hash := skin.HashOf([]byte("nothing")).String()
	f("/avatar/player/Steve", "/avatar/player/{name}")
	f("/avatar/player/Steve.png", "/avatar/player/{name}")
	f("/avatar/user/1", "/avatar/user/{uid}")
	f("/avatar/1?size=64", "/avatar/{tid}")
	f("/avatar/steve", "compat")
	f("/renders/head/7d444840-9dc0-11d1-b245-5ffdce74fad2", "compat")
	f("/helm/steve/64", "compat")
	f("/heads.json?players=Steve", "/heads.json")
	f("/heads.json", "/heads.json")
	f("/sprite/face.png?players=Steve", "/sprite/{view}")
	f("/skin/user/1", "/{view}/user/{uid}")
	f("/avatar/hash/"+hash, "/avatar/hash/{hash}")
	f("/preview/1.webp", "/preview/{tid}")
	f("/preview/hash/"+hash, "/preview/hash/{hash}")
	f("/bust/player/Steve.png?turn=3", "/{view}/player/{name}")
	f("/left/uuid/7d444840-9dc0-11d1-b245-5ffdce74fad2", "/{view}/uuid/{uuid}")
	f("/face/user/1", "/{view}/user/{uid}")
	f("/body/1?turn=9", "/{view}/{tid}")
	f("/back/hash/"+hash, "/{view}/hash/{hash}")
	f("/api/players", "/api")
	f("/Steve.json", "/{name}.json")
	f("/usm/Steve.7d444840-9dc0-11d1-b245-5ffdce74fad2.json", "/usm/{name}.json")
	f("/skins/Steve", "/skins/{name}")
	f("/skins?name=Steve.png", "\"/skins?name={name}\"")
	f("/skins", "\"/skins?name={name}\"")
	f("/textures/"+hash+"-legacy.png", "/textures/{hash}-legacy")
	f("/textures/"+hash+".png", "/textures/{hash}")
	f("/api/yggdrasil/skins/MinecraftSkins/Steve.png", "/api/yggdrasil/skins/MinecraftSkins/{name}.png")
	f("/api/yggdrasil/skins/MinecraftSkins", "/api")
	f("/preview/user/1", "other")
	f("/avatar/", "other")
	f("/", "/pictures")
	f("/pictures", "/pictures")
	f("/robots.txt", "/robots.txt")
	f("/nothing", "other")
}
