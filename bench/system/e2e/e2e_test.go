// Package e2e tests the real programs together, end to end.
package e2e

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/httpserver/httpservertest"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// upload uploads a drawn sheet of classic arms.
func upload(tb testing.TB, c *site.Client, name string, sheet *image.NRGBA) site.Texture {
	tb.Helper()
	size := sheet.Rect.Size()
	return c.Upload(tb, name, skin.Classic, skin.Sheet{Width: size.X, Height: size.Y, Pix: sheet.Pix})
}

// password is the password of all users.
const password = "correct horse"

// signUp registers Ann and logs in.
func signUp(tb testing.TB, base string) *site.Client {
	tb.Helper()
	return signUpAs(tb, base, "ann@example.com")
}

// signUpAs registers and logs in.
func signUpAs(tb testing.TB, base, email string) *site.Client {
	tb.Helper()
	c := &site.Client{Base: base}
	c.Call(tb, http.MethodPost, "/api/auth/register", map[string]any{"email": email, "password": password, "nickname": "Ann"})
	c.LogIn(tb, strings.ToUpper(email), password)
	return c
}

func startEdge(tb testing.TB, files blobstore.Config, core *stack.Process) *stack.Process {
	tb.Helper()
	edge := site.NewEdge(tb, files, core)
	edge.StartReady(tb)
	return edge
}

func metricsOf(tb testing.TB, p *stack.Process) string {
	tb.Helper()
	return httpservertest.Get(tb, p.BaseURL(tb, "operators")+"/metrics").Body
}

// drawSheet draws a 64×64 sheet. Its face and hat have a different color in every texel. The hat
// has opaque, half transparent and transparent texels.
func drawSheet(seed uint8) *image.NRGBA {
	sheet := image.NewNRGBA(image.Rect(0, 0, 64, 64))
	for y := range 64 {
		for x := range 64 {
			alpha := uint8(255)
			if x >= 32 && y < 16 {
				alpha = [...]uint8{0, 128, 255}[(x+y)%3]
			}
			sheet.SetNRGBA(x, y, color.NRGBA{R: uint8(4 * x), G: uint8(4 * y), B: seed, A: alpha})
		}
	}
	return sheet
}

// avatarTexel returns what an avatar must show where the face has texel (x, y):
// the hat's texel over the face's, which is opaque.
func avatarTexel(sheet *image.NRGBA, x, y int) color.NRGBA {
	face, hat := sheet.NRGBAAt(8+x, 8+y), sheet.NRGBAAt(40+x, 8+y)
	blend := func(top, bottom uint8) uint8 {
		a := int(hat.A)
		return uint8((int(top)*a + int(bottom)*(255-a) + 127) / 255)
	}
	return color.NRGBA{R: blend(hat.R, face.R), G: blend(hat.G, face.G), B: blend(hat.B, face.B), A: 255}
}

// fetch returns the picture at a URL, nil unless the status is 200.
func fetch(t *testing.T, address string) (image.Image, int) {
	t.Helper()
	response := httpservertest.Get(t, address)
	if response.Status != http.StatusOK {
		return nil, response.Status
	}
	if kind := response.Header.Get("Content-Type"); kind != "image/png" {
		t.Fatalf("%s is %s; want image/png", address, kind)
	}
	picture := testenv.Must(png.Decode(strings.NewReader(response.Body)))(t)
	return picture, response.Status
}

// difference describes where a picture differs from the avatar of a sheet, at the default size of
// 96 × 96, with 12 × 12 pixels a texel.
func difference(picture image.Image, sheet *image.NRGBA) string {
	if size := picture.Bounds().Size(); size != image.Pt(96, 96) {
		return fmt.Sprintf("it is %v large; want 96 × 96", size)
	}
	for y := range 96 {
		for x := range 96 {
			got, want := color.NRGBAModel.Convert(picture.At(x, y)), avatarTexel(sheet, x/12, y/12)
			if got != want {
				return fmt.Sprintf("pixel (%d, %d) is %v; want %v", x, y, got, want)
			}
		}
	}
	return ""
}

// An uploaded skin is rendered, and after a change the new one within a second.
func TestUploadedSkinIsRendered(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, api, images string) {
		t.Helper()
		ann := signUp(t, api)
		first := drawSheet(10)
		tid := upload(t, ann, "first", first).TID
		pid := ann.AddPlayer(t, "Ann_1")
		address := images + "/avatar/player/ann_1?png"

		// The edge caches that the player has no skin, and must drop that.
		if _, status := fetch(t, address); status != http.StatusNotFound {
			t.Fatalf("avatar of a player without a skin: %d; want 404", status)
		}

		applied := time.Now()
		if got := ann.SetSkin(t, pid, tid); got != tid {
			t.Fatalf("the player's skin is %d; want %d", got, tid)
		}
		awaitAvatar(t, address, first, applied)

		second := drawSheet(200)
		tid = upload(t, ann, "second", second).TID
		applied = time.Now()
		ann.SetSkin(t, pid, tid)
		awaitAvatar(t, address, second, applied)
	}

	t.Run("on separate ports, in a directory", func(t *testing.T) {
		t.Parallel()
		s := site.Start(t, blobstoretest.Directory(t).Config)
		check(t, s.CoreURL, s.EdgeURL)
	})
	t.Run("through the one base URL, in a bucket", func(t *testing.T) {
		t.Parallel()
		s := site.Start(t, blobstoretest.Bucket(t).Config)
		check(t, s.EdgeURL, s.EdgeURL)
	})
}

// awaitAvatar polls until the avatar shows a sheet, for at most a second after the change.
func awaitAvatar(t *testing.T, address string, sheet *image.NRGBA, changed time.Time) {
	t.Helper()
	for {
		sent := time.Now()
		picture, status := fetch(t, address)
		problem := fmt.Sprintf("status %d", status)
		if picture != nil {
			problem = difference(picture, sheet)
		}
		switch {
		case problem == "":
			t.Logf("the new picture is served %s after the start of the change", time.Since(changed).Round(time.Millisecond))
			return
		case sent.Sub(changed) > time.Second:
			t.Fatalf("a second after the change, the avatar is not the new skin's: %s", problem)
		}
	}
}

// An edge that is configured with the wrong listener reports which one it is, and exits before it
// listens.
func TestEdgeReportsWrongListener(t *testing.T) {
	t.Parallel()
	files := blobstoretest.Directory(t).Config
	core := site.NewCore(t, files)
	core.Start(t)
	public, edges, operators := core.BaseURL(t, "public"), core.BaseURL(t, "edges"), core.BaseURL(t, "operators")
	edge := startEdge(t, files, core)

	const mentionsEdges, mentionsPublic = "CORE_EDGES_LISTEN names there, whose port is 9090", "CORE_LISTEN names there, whose port is 8080"
	for _, test := range []struct{ setting, value, what, want string }{
		{"EDGE_CORE_URL", public, "core's public listener", mentionsEdges},
		{"EDGE_CORE_URL", operators, "a listener for operators", mentionsEdges},
		{"EDGE_CORE_URL", edge.BaseURL(t, "public"), "an edge's public listener", mentionsEdges},
		{"EDGE_API_UPSTREAM", edges, "a listener for edges", mentionsPublic},
		{"EDGE_API_UPSTREAM", operators, "a listener for operators", mentionsPublic},
		{"EDGE_CORE_SECRETS", "not-the-secret-of-core", "", "CORE_EDGE_SECRETS"},
	} {
		t.Run(test.setting+" is "+test.what, func(t *testing.T) {
			t.Parallel()
			other := site.NewEdge(t, files, core)
			if test.setting == "EDGE_CORE_URL" { // so that nothing is passed on to core
				other.Set("EDGE_API_UPSTREAM=")
			}
			other.Set(test.setting + "=" + test.value)
			output, err := other.Try(t, "serve")
			last := output[strings.LastIndexByte(strings.TrimSpace(output), '\n')+1:]
			if err == nil || !strings.HasPrefix(last, "edge: "+test.setting+" ") || !strings.Contains(last, test.what) || !strings.Contains(last, test.want) ||
				!strings.Contains(last, "; for example "+test.setting+"=") || strings.Contains(output, `"msg":"listening"`) {
				t.Errorf("it ends with %v and says %s; want what names %s, %s and %s", err, output, test.setting, test.what, test.want)
			}
		})
	}
}

// The most liked textures are cached before they are requested.
func TestWarmTheMostLiked(t *testing.T) {
	t.Parallel()
	s := site.Start(t, blobstoretest.Directory(t).Config)
	ann := signUp(t, s.CoreURL)
	bob := signUpAs(t, s.CoreURL, "bob@example.com")

	liked := upload(t, ann, "liked", drawSheet(1))
	for seed := range uint8(3) {
		upload(t, ann, fmt.Sprintf("skin %d", seed), drawSheet(100+seed))
	}
	bob.Call(t, http.MethodPost, "/api/closet", map[string]any{"tid": liked.TID, "name": "it"})
	ann.SetSkin(t, ann.AddPlayer(t, "Ann_1"), liked.TID)

	warm := func(n int, want string) {
		t.Helper()
		out := s.Edge.Run(t, "warm", "-to", s.EdgeURL, "-liked", fmt.Sprint(n))
		if want := s.EdgeURL + ": " + want; !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 1 {
			t.Errorf("edge warm printed %q; want one line beginning with %q", out, want)
		}
	}
	warm(1, "of 5 pictures of 1 textures, 5 were loaded, 0 were cached, ")
	// The picture is cached under any key, once core has resolved that.
	for range 2 {
		if _, status := fetch(t, s.EdgeURL+"/avatar/player/Ann_1?png"); status != http.StatusOK {
			t.Fatalf("the picture: %d", status)
		}
	}
	drawn := metricstest.Value(t, metricsOf(t, s.Edge), `veneer_edge_render_seconds_count{stage="draw",view="flat"}`)
	testenv.Equal(t, drawn, 2, "flat pictures that the edge drew, all of them for edge warm")
	warm(10, "of 20 pictures of 4 textures, 15 were loaded, 5 were cached, ")
}
