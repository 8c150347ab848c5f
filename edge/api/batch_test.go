package api_test

import (
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// The heads of many subjects are hashes and types, by what was asked.
func TestHeads(t *testing.T) {
	t.Parallel()
	w := openCompat(t)
	slim, robot := fmt.Sprintf(`{"hash":"%s","type":"alex"}`, w.slim.Hash), fmt.Sprintf(`{"hash":"%s","type":"steve"}`, w.robot.Hash)
	f := func(query, want, tags string) {
		t.Helper()
		got := w.get(t, "/heads.json?"+query)
		got.expect(t, query, http.StatusOK, "body", want, "Content-Type", "application/json; charset=utf-8",
			"Cache-Control", "public, max-age=5, stale-while-revalidate=60", "Surrogate-Key", tags)
		etag := got.header.Get("Etag")
		again := w.do(t, http.MethodGet, "/heads.json?"+query, http.Header{"If-None-Match": {etag}}, "")
		again.expect(t, query, http.StatusNotModified, "body", "", "Etag", etag)
		other := w.do(t, http.MethodGet, "/heads.json?"+query, http.Header{"If-Match": {`"other"`}}, "")
		testenv.Equal(t, other.status, http.StatusPreconditionFailed, "%s, If-Match", query)
		w.do(t, http.MethodHead, "/heads.json?"+query, nil, "").expect(t, "HEAD "+query, http.StatusOK, "Etag", etag)
	}
	f("players=Steve,aLEX,Nobody_1", `{"Steve":`+robot+`,"aLEX":`+slim+`,"Nobody_1":null}`, "player-1 player-2 name-nobody_1")
	f("players=Steve%2CAlex", `{"Steve":`+robot+`,"Alex":`+slim+`}`, "player-1 player-2")
	f("players=Alex,Alex,Naked", `{"Alex":`+slim+`,"Naked":null}`, "player-2 player-2 player-3")
	f("uuids="+steveUUID+"&users=1,2,3,777&PLAYERS=%C3%89lan", `{"`+steveUUID+`":`+robot+`,"1":`+slim+`,"2":null,"3":null,"777":null,"Élan":`+slim+`}`,
		"player-1 user-1 user-2 user-3 user-777 player-4")
	f("users=0&players=a%22b", `{"0":null,"a\"b":null}`, "user-0 name-a%22b")
	// Made-up names do not make the header long.
	long := strings.Repeat("%C3%A9", edgeproto.MaxNameChars)
	list := "players=Steve," + strings.Repeat(long[6:]+"1,", 20) + "Alex," + strings.Repeat("Nobody_1,", 70) + "Naked"
	testenv.Equal(t, w.get(t, "/heads.json?"+list).header.Get("Surrogate-Key"), "player-1 player-2 player-3", "the tags")
	var users []string
	for i := range edge.MaxBatch {
		users = append(users, fmt.Sprint(math.MaxInt64-1-i))
	}
	for path, tags := range map[string]string{
		"/heads.json?users=" + strings.Join(users, ","):       "lists",
		"/sprite/face?users=" + strings.Join(users, ","):      "lists render-" + renderer.Revision(),
		"/sprite/head?users=" + strings.Join(users[:50], ","): "",
		"/face/player/" + long + "?default=slim&download":     "",
		"/skin/player/" + long + "?default=slim&download":     "",
		"/avatar/player/" + long:                              "",
	} {
		got, bytes := w.get(t, path), 0
		for name, values := range got.header {
			for _, value := range values {
				bytes += len(name) + len(": ") + len(value) + len("\r\n")
			}
		}
		if bytes > 3900 || tags != "" && got.header.Get("Surrogate-Key") != tags { // without the status line
			t.Errorf("%.50s: a header block of %d bytes, tags %.200s; want less than 4,000, and %s", path, bytes, got.header.Get("Surrogate-Key"), tags)
		}
	}
	var decoded map[string]any
	err := json.Unmarshal([]byte(w.get(t, "/heads.json?players=%3Cb%3E,x%5Cy,Steve").body), &decoded)
	testenv.Check(t, err == nil && len(decoded) == 3, "%v, %v", decoded, err)
}

// A sprite has the pictures of its subjects in the asked order, and a default for those without a skin.
func TestSprite(t *testing.T) {
	t.Parallel()
	w := openCompat(t)
	robot, slim, doll := artwork.Robot(), artwork.Ranger(), artwork.Default()
	check := func(path string, mode render.Mode, size, columns int, sheets ...skin.Sheet) reply {
		t.Helper()
		got := w.get(t, path)
		picture, err := png.Decode(strings.NewReader(got.body))
		if err != nil || got.status != http.StatusOK {
			t.Fatalf("%s: %d %s: %v", path, got.status, got.body[:min(200, len(got.body))], err)
		}
		rows := (len(sheets) + columns - 1) / columns
		if picture.Bounds() != image.Rect(0, 0, columns*size, rows*size) {
			t.Fatalf("%s: %v; want %d columns and %d rows of %d pixels", path, picture.Bounds(), columns, rows, size)
		}
		for i := range columns * rows {
			var want image.Image = image.NewNRGBA(image.Rect(0, 0, size, size))
			if i < len(sheets) {
				file := drawn(t, sheets[i], render.View{Mode: mode, Type: skin.Classic, Size: size, Format: render.PNG})
				want = testenv.Must(png.Decode(strings.NewReader(file)))(t)
			}
			for y := range size {
				for x := range size {
					if r, g, b, a := picture.At(i%columns*size+x, i/columns*size+y).RGBA(); [4]uint32{r, g, b, a} != rgba(want, x, y) {
						t.Fatalf("%s: picture %d differs at %d, %d", path, i, x, y)
					}
				}
			}
		}
		return got
	}
	got := check("/sprite/face.png?players=Steve,Alex,Nobody_1,Steve,Naked&size=24&columns=2", render.Flat, 24, 2, robot, slim, doll, robot, doll)
	got.expect(t, "a sprite", http.StatusOK, "Cache-Control", "public, max-age=5",
		"Surrogate-Key", "player-1 player-2 name-nobody_1 player-1 player-3 render-"+renderer.Revision())
	check("/sprite/head.png?users=1,2,777&uuids="+steveUUID+"&size=61", render.Isometric, 64, 2, slim, doll, doll, robot)
	check("/sprite/face?png&hashes="+w.robot.Hash.String()+","+strings.Repeat("0", 64)+","+w.cape.Hash.String(), render.Flat, 32, 2, robot, doll, doll)
	exact := testenv.Must(png.Decode(strings.NewReader(w.get(t, "/sprite/face.png?players=Steve,Alex,Nobody_1&size=20&exact&columns=3").body)))(t)
	alone := testenv.Must(png.Decode(strings.NewReader(w.get(t, "/face/player/Alex.png?size=20&exact").body)))(t)
	testenv.Equal(t, exact.Bounds().Size(), image.Pt(60, 20), "an exact sprite")
	for i := range 20 * 20 {
		testenv.Equal(t, rgba(exact, 20+i%20, i/20), rgba(alone, i%20, i/20), "pixel %d", i)
	}
	check("/sprite/face.PNG?players=Steve&columns=4", render.Flat, 32, 4, robot)
	check("/sprite/face.png?players=,Steve,,Alex,&size=&columns=", render.Flat, 32, 2, robot, slim)
	names := slices.Repeat([]string{"Steve"}, edge.MaxBatch)
	check("/sprite/face.png?size=8&players="+strings.Join(names, ","), render.Flat, 8, 10, slices.Repeat([]skin.Sheet{robot}, edge.MaxBatch)...)

	none := strings.Repeat("0", 64)
	for _, path := range []string{"/sprite/face?hashes=" + none, "/sprite/face?hashes=" + w.robot.Hash.String() + "," + w.cape.Hash.String()} {
		testenv.Equal(t, w.get(t, path).header.Get("Cache-Control"), "public, max-age=5",
			"Cache-Control of %s, as a skin may come to be", path)
	}
	w.get(t, "/sprite/face?hashes="+w.robot.Hash.String()).expect(t, "by hash", http.StatusOK,
		"Cache-Control", byTexture, "Content-Type", "image/webp")
}

func rgba(of image.Image, x, y int) [4]uint32 {
	r, g, b, a := of.At(x, y).RGBA()
	return [4]uint32{r, g, b, a}
}

// A sprite's entity tag is that of its pictures: it is known before they are drawn, and a sprite is
// cached on its second request.
func TestSpriteCaching(t *testing.T) {
	t.Parallel()
	w := openCompat(t)
	w.set(t, map[edgeproto.Key]edgeproto.Mapping{edgeproto.HashKey(w.slim.Hash): {Texture: w.slim}})
	const path = "/sprite/face.webp?players=Steve,Alex"
	first := w.get(t, path)
	etag, drawn := first.header.Get("Etag"), w.backend.drawn.Load()
	for _, same := range []string{path, "/sprite/face?players=STEVE,alex&columns=2", "/sprite/face.webp?uuids=" + steveUUID + "&users=1", "/sprite/face?hashes=" + w.robot.Hash.String() + "," + w.slim.Hash.String() + "&size=25"} {
		got := w.do(t, http.MethodGet, same, http.Header{"If-None-Match": {etag}}, "")
		if got.status != http.StatusNotModified || got.header.Get("Etag") != etag || w.backend.drawn.Load() != drawn {
			t.Errorf("%s: %d, ETag %s, %d drawn; want 304 for %s without drawing", same, got.status, got.header.Get("Etag"), w.backend.drawn.Load()-drawn, etag)
		}
	}
	for i, want := range []string{"veneer; fwd=miss; stored", "veneer; hit", "veneer; hit"} {
		if i == 1 {
			testenv.Eventually(t, "the sprite is in its place", func() bool { return w.get(t, path).header.Get("Cache-Status") == want })
		}
		w.get(t, path).expect(t, fmt.Sprint("request ", i+2), http.StatusOK, "Cache-Status", want, "body", first.body)
	}
	testenv.Equal(t, first.header.Get("Cache-Status"), "veneer; fwd=miss",
		"the first request, which is not stored: Cache-Status")
	tags := map[string]string{etag: path}
	for _, other := range []string{
		"/sprite/head.webp?players=Steve,Alex", "/sprite/face.webp?players=Alex,Steve", "/sprite/face.webp?players=Steve,Alex&columns=1",
		"/sprite/face.webp?players=Steve,Alex&size=40", "/sprite/face.png?players=Steve,Alex", "/sprite/face.webp?players=Steve", "/sprite/face.webp?players=Steve,Naked",
	} {
		tag := w.get(t, other).header.Get("Etag")
		testenv.Check(t, tags[tag] == "", "%s and %s have the ETag %s", other, tags[tag], tag)
		tags[tag] = other
	}

	w.set(t, map[edgeproto.Key]edgeproto.Mapping{"name:alex": {Player: &edgeproto.Player{PID: 2, Name: "Alex", Skin: w.robot}}})
	if got := w.do(t, http.MethodGet, path, http.Header{"If-None-Match": {etag}}, ""); got.status != http.StatusOK || got.header.Get("Etag") == etag {
		t.Errorf("after a change: %d, ETag %s; want another picture", got.status, got.header.Get("Etag"))
	}
}

// All keys that are not cached go to core in one request.
func TestBatchIsOneLookup(t *testing.T) {
	t.Parallel()
	w := open(t)
	changes, names := map[edgeproto.Key]edgeproto.Mapping{}, make([]string, edge.MaxBatch)
	texture := w.put(t, 1, artwork.Fox(), skin.Classic)
	for i := range names {
		names[i] = fmt.Sprintf("Player_%d", i)
		if i%2 == 0 {
			changes[edgeproto.NameKey(names[i])] = edgeproto.Mapping{Player: &edgeproto.Player{PID: int64(i), Name: names[i], Skin: texture}}
		}
	}
	w.set(t, changes)
	list := strings.Join(names, ",")
	lookUp := func(path string) [2]int64 {
		lookups, keys := w.core.Lookups.Load(), w.core.Keys.Load()
		w.get(t, path).expect(t, path, http.StatusOK)
		return [2]int64{w.core.Lookups.Load() - lookups, w.core.Keys.Load() - keys}
	}
	testenv.Equal(t, lookUp("/heads.json?players="+list), [2]int64{1, edge.MaxBatch}, "look-ups and their keys")
	for _, path := range []string{"/heads.json?players=" + list, "/sprite/face?players=" + list, "/sprite/head?players=" + list + "&size=16"} {
		// Unless no heartbeat has confirmed the mappings for a second, as on a busy machine.
		testenv.Eventually(t, fmt.Sprintf("%.20s is made of cached mappings", path), func() bool { return lookUp(path) == [2]int64{} })
	}
	testenv.Equal(t, w.backend.fetched.Load(), 1, "how often the one texture was fetched")
}

// Lists may be arrays, with blanks around their members, and a member that cannot exist is an unknown one.
func TestListForms(t *testing.T) {
	t.Parallel()
	w := openCompat(t)
	texture := func(of *edgeproto.Texture) string { return fmt.Sprintf(`{"hash":%q,"type":%q}`, of.Hash, of.Type) }
	steve, alex := texture(w.robot), texture(w.slim)
	for query, want := range map[string]string{
		"players=.Name,Steve":                         `{".Name":null,"Steve":` + steve + `}`,
		"players=Steve,%25,a%0Ab":                     `{"Steve":` + steve + `,"%":null,"a\nb":null}`,
		"players=Steve&uuids=7&users=1,me":            `{"Steve":` + steve + `,"7":null,"1":` + alex + `,"me":null}`,
		"players=Steve,%20Alex%20":                    `{"Steve":` + steve + `,"Alex":` + alex + `}`,
		"players[]=Steve&players%5B%5D=Alex":          `{"Steve":` + steve + `,"Alex":` + alex + `}`,
		"players[7]=Steve&players[2]=Alex":            `{"Alex":` + alex + `,"Steve":` + steve + `}`,
		"players=Steve&amp;users=1":                   `{"Steve":` + steve + `,"1":` + alex + `}`,
		"Players=Steve&players[x]=Alex&players[1=Bob": `{"Steve":` + steve + `}`,
	} {
		w.get(t, "/heads.json?"+query).expect(t, query, http.StatusOK, "body", want)
	}
	for path, want := range map[string]string{"/heads.json/?players=Steve": "/heads.json?players=Steve", "/sprite/face.png/?players=Steve": "/sprite/face.png?players=Steve"} {
		testenv.Equal(t, w.get(t, path).body == w.get(t, want).body, true, "%s is answered as %s", path, want)
	}
	for _, query := range []string{"players=Steve,.Name", "players[1]=.Name&players[0]=Steve", "hashes=" + w.robot.Hash.String() + ",short"} {
		got, want := w.get(t, "/sprite/face.png?"+query), w.get(t, "/sprite/face.png?players=Steve,Nobody_1")
		testenv.Equal(t, got.body == want.body, true, "a sprite of %s shows an unknown player", query)
	}
}

// Invalid lists and bounds have a sentence.
func TestBatchErrors(t *testing.T) {
	t.Parallel()
	w := openCompat(t)
	f := func(path string, status int, field, message string) {
		t.Helper()
		want := fmt.Sprintf(`{"code":4,"message":%q,"errors":{%q:[%q]}}`, message, field, message)
		w.get(t, path).expect(t, path, status, "body", want, "Cache-Control", "no-store")
	}
	many := strings.Repeat("a,", edge.MaxBatch) + "a"
	const none = "The parameter players must list the names of players, with commas between them."
	for _, root := range []string{"/heads.json", "/sprite/face.png"} {
		f(root, 422, "players", none)
		f(root+"?players=", 422, "players", none)
		f(root+"?players="+many, 422, "players", "At most 100 subjects can be listed.")
		f(root+"?players="+many[:len(many)-2]+"&users=1", 422, "users", "At most 100 subjects can be listed.")
		f(root+"?players=,,", 422, "players", none)
	}
	f("/heads.json?players=1,2&users=2", 422, "users", "The same text cannot be in the lists players and users.")
	f("/heads.json?hashes="+w.robot.Hash.String(), 422, "players", none)
	f("/sprite/head?players=Steve&size=65", 422, "size", "The size of a picture in a sprite is at most 64 pixels.")
	f("/sprite/head?players=Steve&size=big", 422, "size", "The size must be an integer.")
	for _, columns := range []string{"0", "101", "-1"} {
		f("/sprite/head?players=Steve&columns="+columns, 422, "columns", "The columns of a sprite are 1 to 100.")
	}
	f("/sprite/head?players=Steve&columns=x", 422, "columns", "The columns must be an integer.")
	for _, path := range []string{"/sprite/", "/sprite/body.png?players=Steve", "/sprite/face.gif?players=Steve", "/sprite/face/x?players=Steve"} {
		testenv.Equal(t, w.get(t, path).status, http.StatusNotFound, "%s", path)
	}
	w.checkMethods(t, "/heads.json?players=Steve", "/sprite/face?players=Steve")
}

// A skin that is missing from the object store has the default avatar, and the sprite is not kept. An
// unreachable core is 503, unless the mappings are cached.
func TestBatchFailures(t *testing.T) {
	t.Parallel()
	w := openCompat(t, aging)
	const path = "/sprite/face.png?players=Steve,Alex"
	whole := w.get(t, path)
	w.remove(t, w.slim.Hash)
	other := openCompat(t)
	other.remove(t, other.slim.Hash)
	broken := other.get(t, path)
	want := other.get(t, "/sprite/face.png?players=Steve,Nobody_1")
	if broken.status != http.StatusOK || broken.body != want.body || broken.header.Get("Cache-Control") != "public, max-age=1" || broken.header.Get("Etag") == whole.header.Get("Etag") {
		t.Errorf("with a missing file: %d, %d bytes, %v; want the default avatar for a second", broken.status, len(broken.body), broken.header)
	}
	w.core.SetUnavailable(true)
	w.get(t, path).expect(t, "while core is unreachable", http.StatusOK, "body", whole.body)
	testenv.Eventually(t, "unknown names are refused", func() bool {
		return w.get(t, "/heads.json?players=Steve,Herobrine").status == http.StatusServiceUnavailable
	})
	testenv.Eventually(t, "cached mappings are stale", func() bool {
		got := w.get(t, "/heads.json?players=Steve,Alex")
		return got.status == http.StatusOK && got.header.Get("Cache-Control") == "public, max-age=1" && strings.HasSuffix(got.header.Get("Cache-Status"), "detail=stale")
	})
}

// What a picture shows without a skin, by the parameter default.
func TestDefaults(t *testing.T) {
	t.Parallel()
	w := openCompat(t)
	const slimUUID, classicUUID = "00000000-0000-0000-0000-000000000008", "00000000-0000-0000-0000-000000000009"
	classic, slim := artwork.Default(), artwork.Default().WithSlimArms()
	f := func(path string, sheet skin.Sheet, model skin.Type, cache, tags string) {
		t.Helper()
		want := drawn(t, sheet, render.View{Mode: render.Front, Type: model, Size: 64, Format: render.PNG})
		wantTags := strings.TrimSpace(tags + " render-" + renderer.Revision())
		w.get(t, path).expect(t, path, http.StatusOK, "body", want, "Cache-Control", cache, "Surrogate-Key", wantTags)
	}
	const aMinute = "public, max-age=60"
	for _, value := range []string{"avatar", "classic", "AVATAR"} {
		f("/front/player/Nobody_1.png?height=64&default="+value, classic, skin.Classic, aMinute, "name-nobody_1")
		f("/front/player/Naked.png?height=64&default=classic", classic, skin.Classic, aMinute, "player-3 name-naked")
	}
	f("/front/player/Nobody_1.png?height=64&default=slim", slim, skin.Slim, aMinute, "name-nobody_1")
	f("/front/uuid/"+slimUUID+".png?height=64&default=avatar", slim, skin.Slim, aMinute, "")
	f("/front/uuid/"+classicUUID+".png?height=64&default=avatar", classic, skin.Classic, aMinute, "")
	f("/front/uuid/"+slimUUID+".png?height=64&default=classic", classic, skin.Classic, aMinute, "")
	f("/front/user/777.png?height=64", classic, skin.Classic, byName, "user-777")
	f("/front/user/3.png?height=64&default=slim", slim, skin.Slim, aMinute, "user-3 texture-99")
	f("/front/64/"+slimUUID, slim, skin.Slim, aMinute, "")
	f("/front/64/"+slimUUID+"?model=classic", classic, skin.Classic, aMinute, "")
	for _, path := range []string{
		"/front/player/Nobody_1", "/front/player/Nobody_1?default=404", "/front/player/Nobody_1?default=", "/front/uuid/" + slimUUID, "/front/user/777?default=404", "/front/user/3",
		"/front/99?default=avatar", "/front/hash/" + strings.Repeat("0", 64) + "?default=slim", "/helm/Nobody_1?default=404",
	} {
		testenv.Equal(t, w.get(t, path).status, http.StatusNotFound, "%s", path)
	}
	if got := w.get(t, "/face/player/Steve?default=steve"); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "The default must be 404, avatar, classic or slim.") {
		t.Errorf("%d %s; want 422", got.status, got.body)
	}
}

// The parameter download names the file that a browser saves.
func TestDownload(t *testing.T) {
	t.Parallel()
	w := openCompat(t)
	for path, want := range map[string]string{
		"/face/player/Steve?download":           "attachment; filename=Steve.webp",
		"/face/player/Steve.png?Download=1":     "attachment; filename=Steve.png",
		"/body/12.png?download=":                "attachment; filename=12.png",
		"/skin/player/Steve?download":           "attachment; filename=Steve.png",
		"/cape/uuid/" + steveUUID + "?download": "attachment; filename=" + steveUUID + ".png",
		"/head/player/%C3%89lan?download&png":   "attachment; filename*=UTF-8''%C3%89lan.png",
		"/download/Steve":                       "attachment; filename=Steve.png",
		"/helm/Steve/64?download":               "attachment; filename=Steve.png",
		"/face/player/Steve":                    "",
		"/avatar/player/Steve?download":         "",
		"/preview/12?download":                  "",
		"/skin/Steve.png?download":              "",
	} {
		w.get(t, path).expect(t, path, http.StatusOK, "Content-Disposition", want)
	}
}
