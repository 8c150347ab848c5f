//go:build !race

package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Every adjustable view is there for every subject, by default and adjusted.
func TestAdjustableViews(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	robot, slim, defaultSkin := artwork.Robot(), artwork.Ranger(), artwork.Default()
	hash := w.robot.Hash.String()
	classicView := func(mode render.Mode, size int) render.View {
		return render.View{Mode: mode, Type: skin.Classic, Size: size, Format: render.WebP}
	}
	f := func(path string, sheet skin.Sheet, view render.View, cache, tags string) {
		t.Helper()
		cape := skin.Sheet{}
		if view.Wear != render.WearNothing {
			cape = artwork.Sunrise()
		}
		tags = strings.TrimSpace(tags + " render-" + renderer.Revision())
		w.get(t, path).expect(t, path, http.StatusOK, "body", drawnWearing(t, sheet, cape, view),
			"Cache-Control", cache, "Surrogate-Key", tags, "Content-Type", "image/"+view.Format.String())
	}

	for name, view := range map[string]render.View{
		"face": classicView(render.Flat, 96), "head": classicView(render.Isometric, 96), "bust": classicView(render.Bust, 96),
		"body": classicView(render.Body, 400), "front": classicView(render.Front, 400), "back": classicView(render.Back, 400),
		"left": classicView(render.Left, 400), "right": classicView(render.Right, 400),
	} {
		worn, tags := view, "player-1 texture-11"
		if view.Mode.ShowsWorn() {
			worn.Wear, tags = render.WearCape, tags+" texture-13"
		}
		f("/"+name+"/player/sTEVE", robot, worn, byName, tags)
		f("/"+name+"/player/Steve?wear=none", robot, view, byName, "player-1 texture-11")
		f("/"+name+"/user/777", defaultSkin, view, byName, "user-777")
		f("/"+name+"/user/0", defaultSkin, view, byName, "")
		f("/"+name+"/11", robot, view, byTexture, "texture-11")
		f("/"+name+"/hash/"+hash+".webp?png", robot, view, byTexture, "texture-11")
		view.Format = render.PNG
		f("/"+name+"/11?png=0", robot, view, byTexture, "texture-11")
		view.Type = skin.Slim
		f("/"+name+"/player/Alex.PNG", slim, view, byName, "player-2 texture-12")
		f("/"+name+"/user/1.png", slim, view, byName, "user-1 texture-12")

		parameter, size := "size", 72
		if view.Size == render.DefaultHeight {
			parameter, size = "height", 80
		}
		view.Size, view.Omit = size, render.OmitHat
		f(fmt.Sprintf("/%s/12.png?%s=66&no=hat", name, parameter), slim, view, byTexture, "texture-12")
		if !view.Mode.HasAttitudes() {
			f(fmt.Sprintf("/%s/12.png?%s=66&no=hat&turn=x&tilt=y", name, parameter), slim, view, byTexture, "texture-12")
			continue
		}
		view.Omit = view.Mode.Omissible()
		for turn := range render.TurnCount {
			for tilt, text := range []string{render.TiltIso: "iso", render.Tilt25: "25", render.TiltLevel: "0"} {
				view.Attitude = view.Mode.Attitude(turn, render.Tilt(tilt))
				f(fmt.Sprintf("/%s/12.png?turn=%d&tilt=%s&no=hat,layers,light&%s=66", name, turn, text, parameter), slim, view, byTexture, "texture-12")
			}
		}
	}
}

// A card shows a player as it is dressed, or a texture of any type.
func TestCards(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	f := func(path string, sheet, worn skin.Sheet, view render.View, cache, tags string) {
		t.Helper()
		view.Mode, view.Size = render.Card, 630
		w.get(t, path).expect(t, path, http.StatusOK, "body", drawnWearing(t, sheet, worn, view),
			"Cache-Control", cache, "Surrogate-Key", tags+" render-"+renderer.Revision(), "Content-Type", "image/"+view.Format.String())
	}
	none, robot, ranger, sunrise := skin.Sheet{}, artwork.Robot(), artwork.Ranger(), artwork.Sunrise()
	green := render.HasBackground | 0x1f6b3a
	f("/card/player/sTEVE", robot, sunrise, render.View{Type: skin.Classic, Wear: render.WearCape, Format: render.WebP}, byName, "player-1 texture-11 texture-13")
	f("/card/player/Steve.PNG?background=1F6b3a&wear=none", robot, none, render.View{Type: skin.Classic, Background: green}, byName, "player-1 texture-11")
	f("/card/player/Alex.png", ranger, none, render.View{Type: skin.Slim}, byName, "player-2 texture-12")
	f("/card/texture/12?no=hat,layers,light", ranger, none, render.View{Type: skin.Slim, Omit: render.Card.Omissible(), Format: render.WebP}, byTexture, "texture-12")
	f("/card/texture/13.png?background=1f6b3a", sunrise, none, render.View{Type: skin.Cape, Background: green}, byTexture, "texture-13")
	for _, path := range []string{"/card", "/card/11", "/card/player/Naked", "/card/player/Nobody", "/card/texture/999", "/card/texture/Steve", "/card/user/1"} {
		testenv.Equal(t, w.get(t, path).status, http.StatusNotFound, "%s", path)
	}
}

// Equal pictures are one, whatever the request: they have one entity tag and one place in the cache.
func TestEqualPicturesAreOne(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	hash := w.robot.Hash.String()
	for _, same := range [][]string{
		{"/avatar/11?size=40", "/face/11?size=40", "/face/player/Steve?size=33", "/face/hash/" + hash + "?size=40&no=light,layers&turn=5&tilt=0", "/face/11?SIZE=40&no=&turn=9", "/face/11?size=&size=40"},
		{"/avatar/11?3d", "/head/11", "/head/player/steve?3d&turn=1", "/head/11?tilt=iso", "/head/11?TURN=01&Tilt=ISO&size=96", "/head/11?no=layers", "/head/11?turn=&tilt=&no=&size="},
		{"/avatar/11?3d&png&size=64", "/head/11.png?size=64", "/head/11?size=57&png"},
		{"/body/11", "/body/11?turn=1&tilt=25&height=400", "/body/player/STEVE?no=,cape,", "/body/11?size=banana", "/body/11?width=200", "/body/11?width="},
		{"/body/11?width=100", "/body/11?width=-7"},
		{"/body/11?width=300", "/body/11?width=9999"},
		{"/body/11?no=hat,light", "/body/11?no=light,hat,HAT", "/body/11?no=hat%2Clight", "/body/11?no=light,hat&no=layers"},
		{"/bust/11?turn=0", "/bust/11?turn=0&turn=3", "/bust/11?turn=&turn=0", "/bust/11?turn=-0"},
		{"/card/texture/11", "/card/player/Steve?wear=none", "/card/texture/11?height=9&background=&exact&size=x&=3&turn=9&no=cape"},
		{"/card/texture/11?background=1f6b3a", "/card/texture/11?BACKGROUND=1F6B3A&background=000000", "/card/player/Steve?no=cape&background=1f6b3a"},
		{"/left/11?height=1", "/left/11?height=64", "/left/11?no=light&turn=3&height=-5"},
	} {
		first := w.get(t, same[0])
		for _, path := range same[1:] {
			w.get(t, path).expect(t, path, http.StatusOK, "body", first.body, "Etag", first.header.Get("Etag"))
			testenv.Equal(t, w.get(t, path).header.Get("Cache-Status"), "veneer; hit",
				"%s, whose picture is cached: Cache-Status", path)
		}
	}

	seen := map[string]string{}
	for _, path := range []string{
		"/head/11", "/head/11?turn=0", "/head/11?tilt=25", "/head/11?tilt=0", "/head/11?turn=0&tilt=25", "/head/11?no=hat", "/head/11?no=light", "/bust/11", "/bust/11?no=hat", "/bust/11?no=layers",
		"/body/11", "/body/11?width=199", "/body/11?width=202", "/body/11?width=199&exact&height=399", "/front/11", "/back/11", "/left/11", "/right/11", "/front/11?no=layers", "/face/11", "/preview/11",
		"/card/texture/11", "/card/texture/11?background=000000", "/card/texture/11?background=000001", "/card/player/Steve", "/card/player/Steve?background=000000", "/card/texture/13",
	} {
		tag := w.get(t, path).header.Get("Etag")
		other, ok := seen[tag]
		testenv.Check(t, !ok, "%s and %s have the ETag %s", path, other, tag)
		seen[tag] = path
	}
}

// Every value of a parameter that the view uses is checked.
func TestAdjustableViewsRejectValues(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	f := func(path, field, message string) {
		t.Helper()
		want := fmt.Sprintf(`{"code":4,"message":%q}`, message)
		if field != "" {
			want = fmt.Sprintf(`{"code":4,"message":%q,"errors":{%q:[%q]}}`, message, field, message)
		}
		w.get(t, path).expect(t, path, http.StatusUnprocessableEntity, "body", want, "Cache-Control", "no-store")
	}

	const turn, tilt = "The turn must be an integer from 0 to 7: it counts eighths of a full turn.", "The tilt must be iso, 25 or 0."
	const no = "The parameter no must be a list of hat, layers, light and cape, with commas between them."
	for _, value := range []string{"8", "-1", "1.5", "x", "45deg", "99999999999999999999", "%20", "1,2"} {
		f("/head/11?turn="+value, "turn", turn)
		f("/body/player/Steve.png?size=64&turn="+value+"&turn=1", "turn", turn)
	}
	for _, value := range []string{"1", "-25", "25.0", "35.264", "isometric", "+0"} {
		f("/bust/11?tilt="+value, "tilt", tilt)
	}
	for _, value := range []string{"hats", "hat;light", "hat,+light", "0", "elytra", "hat,layers,shadow"} {
		for _, view := range []string{"face", "head", "bust", "body", "front", "back", "left", "right"} {
			f("/"+view+"/11?no="+value, "no", no)
		}
	}
	for _, value := range []string{"fff", "1f6b3a0", "0x1f6b", "+1f6b3", "%231f6b3a", "1f_b3a", "green"} {
		f("/card/texture/11?background="+value, "background", "The background must be six hexadecimal digits, as 1f6b3a.")
	}
	f("/face/11?size=big", "size", "The size must be an integer.")
	f("/body/11?width=wide", "width", "The width must be an integer.")
	f("/right/11?height=1e3", "height", "The height must be an integer.")
	f("/face/13", "", "A cape has no face, so there is no avatar of it.")
	f("/head/13", "", "A cape has no face, so there is no avatar of it.")
	for _, view := range []string{"bust", "body", "front", "back", "left", "right"} {
		f("/"+view+"/13", "", "This texture is a cape, which has no figure.")
	}

	for _, path := range []string{"/body", "/body/", "/body/player/", "/Body/11", "/body/11/12/13", "/bodies/11"} {
		testenv.Equal(t, w.get(t, path).status, http.StatusNotFound, "%s", path)
	}
	for _, path := range []string{"/bust/player/Nobody_1", "/front/99", "/left/uuid/00000000-0000-0000-0000-000000000000", "/back/hash/" + strings.Repeat("0", 64), "/right/eleven"} {
		w.get(t, path).expect(t, path, http.StatusNotFound, "Cache-Control", "public, max-age=15")
	}
}
