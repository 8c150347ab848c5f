// Package e2e tests the real programs together, end to end.
package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/skin"
)

// client is an API client.
type client struct {
	http  *http.Client
	base  string // base URL of the API
	token string
}

// apiResponse is a response of the API, as far as these tests need it.
type apiResponse struct {
	status int
	Code   int    `json:"code"`
	Token  string `json:"token"`
	Data   struct {
		PID  int    `json:"pid"`
		TID  int    `json:"tid"`
		Hash string `json:"hash"`
		Skin int    `json:"tid_skin"`
		Name string `json:"name"`
	} `json:"data"`
}

// send sends a request and returns the response, which must be a success. The error is one of the
// connection.
func (c *client) send(tb testing.TB, method, path, contentType string, body io.Reader) (apiResponse, error) {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), method, c.base+path, body)
	if err != nil {
		tb.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return apiResponse{}, err
	}
	defer func() { _ = response.Body.Close() }()
	a := apiResponse{status: response.StatusCode}
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return apiResponse{}, err
	}
	if err := json.Unmarshal(content, &a); err != nil || a.status != http.StatusOK || a.Code != 0 {
		tb.Errorf("%s %s: %d %s", method, path, a.status, content)
	}
	return a, nil
}

// get decodes a JSON response.
func (c *client) get(tb testing.TB, path string, into any) {
	tb.Helper()
	request, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, c.base+path, nil)
	if err != nil {
		tb.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.http.Do(request)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		tb.Fatal(err)
	}
}

// call sends a JSON body and expects success.
func (c *client) call(tb testing.TB, method, path string, body map[string]any) apiResponse {
	tb.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		tb.Fatal(err)
	}
	a, err := c.send(tb, method, path, "application/json", bytes.NewReader(encoded))
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// uploadForm returns the form of an upload.
func uploadForm(name string, sheet *image.NRGBA) io.Reader {
	size := sheet.Rect.Size()
	return bytes.NewReader(stack.SheetForm(name, skin.Classic, skin.Sheet{Width: size.X, Height: size.Y, Pix: sheet.Pix}))
}

func (c *client) upload(tb testing.TB, name string, sheet *image.NRGBA) apiResponse {
	tb.Helper()
	a, err := c.send(tb, http.MethodPost, "/api/textures", stack.UploadType, uploadForm(name, sheet))
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// signUp registers and logs in.
func signUp(tb testing.TB, base string) *client {
	tb.Helper()
	c := &client{http: &http.Client{}, base: base}
	c.call(tb, http.MethodPost, "/api/auth/register", map[string]any{"email": "ann@example.com", "password": "correct horse", "nickname": "Ann"})
	c.token = c.call(tb, http.MethodPost, "/api/auth/login", map[string]any{"email": "Ann@Example.com", "password": "correct horse"}).Token
	return c
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
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, response.StatusCode
	}
	if kind := response.Header.Get("Content-Type"); kind != "image/png" {
		t.Fatalf("%s is %s; want image/png", address, kind)
	}
	picture, err := png.Decode(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return picture, response.StatusCode
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
		tid := ann.upload(t, "first", first).Data.TID
		pid := ann.call(t, http.MethodPost, "/api/players", map[string]any{"name": "Ann_1"}).Data.PID
		textures := fmt.Sprintf("/api/players/%d/textures", pid)
		address := images + "/avatar/player/ann_1?png"

		// The edge caches that the player has no skin, and must drop that.
		if _, status := fetch(t, address); status != http.StatusNotFound {
			t.Fatalf("avatar of a player without a skin: %d; want 404", status)
		}

		applied := time.Now()
		if got := ann.call(t, http.MethodPut, textures, map[string]any{"skin": tid}).Data.Skin; got != tid {
			t.Fatalf("the player's skin is %d; want %d", got, tid)
		}
		awaitAvatar(t, address, first, applied)

		second := drawSheet(200)
		tid = ann.upload(t, "second", second).Data.TID
		applied = time.Now()
		ann.call(t, http.MethodPut, textures, map[string]any{"skin": tid})
		awaitAvatar(t, address, second, applied)
	}

	t.Run("on separate ports, in a directory", func(t *testing.T) {
		t.Parallel()
		s := stack.Start(t, blobstoretest.Directory(t).Config)
		check(t, s.CoreURL, s.EdgeURL)
	})
	t.Run("through the one base URL, in a bucket", func(t *testing.T) {
		t.Parallel()
		s := stack.Start(t, blobstoretest.Bucket(t).Config)
		check(t, s.EdgeURL, s.EdgeURL)
	})
}

// awaitAvatar polls until the avatar is that of a sheet, for at most a second after the change.
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

// acknowledged is what core has acknowledged.
type acknowledged struct {
	hashes []string
	names  map[int]string // of players, by pid
	skins  map[int]int    // skins, by pid
}

// write uploads textures, adds players and sets their skins until core is gone. It records what was
// acknowledged, and sends on acks each time.
func (a *acknowledged) write(t *testing.T, c *client, round int, acks chan<- struct{}) {
	t.Helper()
	defer close(acks)
	json := "application/json"
	for i := 0; ; i++ {
		sheet := drawSheet(uint8(round))
		sheet.SetNRGBA(0, 0, color.NRGBA{R: uint8(i), G: uint8(i >> 8), A: 255})
		uploaded, err := c.send(t, http.MethodPost, "/api/textures", stack.UploadType, uploadForm(fmt.Sprintf("skin %d %d", round, i), sheet))
		if err != nil {
			return
		}
		a.hashes = append(a.hashes, uploaded.Data.Hash)
		acks <- struct{}{}

		added, err := c.send(t, http.MethodPost, "/api/players", json, strings.NewReader(fmt.Sprintf(`{"name":"p_%d_%d"}`, round, i)))
		if err != nil {
			return
		}
		pid := added.Data.PID
		a.names[pid] = added.Data.Name
		acks <- struct{}{}

		updated, err := c.send(t, http.MethodPut, fmt.Sprintf("/api/players/%d/textures", pid), json, strings.NewReader(fmt.Sprintf(`{"skin":%d}`, uploaded.Data.TID)))
		if err != nil {
			return
		}
		a.skins[pid] = updated.Data.Skin
		acks <- struct{}{}
	}
}

// What was acknowledged survives a crash, however often core is killed amid uploads and changes.
func TestAcknowledgedWritesSurviveCrashes(t *testing.T) {
	t.Parallel()
	files := blobstoretest.Directory(t).Config
	core := stack.NewCore(t, files)
	core.Set("CORE_QUOTA_PLAYERS", "0")
	core.Start(t)
	core.FixAddresses(t)
	base := "http://" + core.Address(t, "public")
	ann := signUp(t, base)

	all := acknowledged{names: map[int]string{}, skins: map[int]int{}}
	for round := range 6 {
		// A new connection, as those to the last process are dead.
		writer := &client{base: base, token: ann.token, http: &http.Client{Transport: &http.Transport{}}}
		acks := make(chan struct{})
		go all.write(t, writer, round, acks)
		// A different number each time, so that the kill meets every kind of write.
		for range 10 + round {
			<-acks
		}
		core.Kill(t)
		for range acks {
		}
		core.Start(t)
		core.AwaitReady(t)
	}
	if len(all.hashes) < 20 || len(all.skins) < 15 {
		t.Fatalf("only %d uploads and %d changes were acknowledged", len(all.hashes), len(all.skins))
	}

	store := blobstoretest.Open(t, files)
	for _, text := range all.hashes {
		hash, err := skin.ParseHash(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Get(t.Context(), hash); err != nil { // Get verifies the hash
			t.Errorf("texture file %s: %v", hash, err)
		}
	}
	var players []struct {
		PID  int    `json:"pid"`
		Name string `json:"name"`
		Skin int    `json:"tid_skin"`
	}
	ann.http = &http.Client{}
	ann.get(t, "/api/players", &players)
	names, skins := map[int]string{}, map[int]int{}
	for _, p := range players {
		names[p.PID], skins[p.PID] = p.Name, p.Skin
	}
	for pid, name := range all.names {
		if names[pid] != name {
			t.Errorf("player %d is called %q; %q was acknowledged", pid, names[pid], name)
		}
	}
	for pid, skin := range all.skins {
		if skins[pid] != skin {
			t.Errorf("player %d has skin %d; %d was acknowledged", pid, skins[pid], skin)
		}
	}
}

// On SIGTERM both programs exit with success.
func TestGracefulStop(t *testing.T) {
	t.Parallel()
	s := stack.Start(t, blobstoretest.Directory(t).Config)
	for name, program := range map[string]*stack.Process{"edge": s.Edge, "core": s.Core} {
		if err := program.Stop(t); err != nil {
			t.Errorf("%s ends with %v", name, err)
		}
	}
}
