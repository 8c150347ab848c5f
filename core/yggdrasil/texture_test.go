package yggdrasil_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/draw"
	"image/png"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/skin"
)

// uploadBody returns a multipart form as launchers send it.
func uploadBody(t *testing.T, model, name, contentType string, file []byte) body {
	t.Helper()
	var content bytes.Buffer
	w := multipart.NewWriter(&content)
	if err := w.WriteField("model", model); err != nil {
		t.Fatal(err)
	}
	if file != nil {
		part, err := w.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {`form-data; name="file"; filename="` + strings.ReplaceAll(name, `\`, `\\`) + `"`}, "Content-Type": {contentType},
		})
		if err == nil {
			_, err = part.Write(file)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return body{w.FormDataContentType(), content.Bytes()}
}

// upload sends a texture for a player.
func (c client) upload(t *testing.T, p core.Player, slot, model string, file []byte) response {
	t.Helper()
	return c.send(t, "PUT", "/api/user/profile/"+hexID(p.UUID)+"/"+slot, uploadBody(t, model, "my skin.png", "image/png", file))
}

// worn returns what the player wears.
func (c client) worn(t *testing.T, p core.Player) textures {
	t.Helper()
	return c.profile(t, p).payload(t)
}

// An upload is a private texture in the closet, under the name of the file, and the player wears it.
func TestUpload(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "Ann_1")
	player := u.players[0]
	c = c.as(c.issue(t, u).AccessToken)
	c.upload(t, player, "skin", "", skinFile(t, 1)).isEmpty(t)
	if got := c.worn(t, player).Textures["SKIN"]; got.URL == "" || got.Metadata != nil {
		t.Errorf("the skin is %+v", got)
	}
	c.upload(t, player, "skin", "slim", skinFile(t, 2)).isEmpty(t)
	if got := c.worn(t, player).Textures["SKIN"]; got.Metadata["model"] != "slim" {
		t.Errorf("the skin is %+v", got)
	}
	c.upload(t, player, "cape", "", capeFile(t)).isEmpty(t)
	if got := c.worn(t, player).Textures; len(got) != 2 {
		t.Errorf("the textures are %+v", got)
	}
	if n := c.site.count(t, "SELECT count(*) FROM textures JOIN closet_items USING (tid) WHERE NOT public AND uploader = $1 AND uid = $1 AND item_name = 'my skin'", u.ID); n != 3 {
		t.Errorf("the closet has %d private textures; want 3", n)
	}

	// Deleting takes off, also twice.
	for range 2 {
		c.send(t, "DELETE", "/api/user/profile/"+player.UUID.String()+"/skin", body{}).isEmpty(t)
	}
	if got := c.worn(t, player).Textures; len(got) != 1 || got["CAPE"].URL == "" {
		t.Errorf("without the skin the textures are %+v", got)
	}
	c.send(t, "DELETE", "/api/user/profile/"+hexID(player.UUID)+"/cape", body{}).isEmpty(t)
	if got := c.worn(t, player).Textures; len(got) != 0 {
		t.Errorf("without any the textures are %+v", got)
	}
}

// wornFile returns the stored file of what the player wears, SKIN or CAPE. Its hash ends the URL.
func (c client) wornFile(t *testing.T, p core.Player, kind string) []byte {
	t.Helper()
	url := c.worn(t, p).Textures[kind].URL
	hash, err := skin.ParseHash(url[strings.LastIndexByte(url, '/')+1:])
	if err != nil {
		t.Fatal(err)
	}
	stored, err := c.site.files.Get(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	if skin.HashOf(stored) != hash {
		t.Errorf("the URL ends in %s, which is not the hash of the file", hash)
	}
	return stored
}

// chunk returns a chunk of a PNG.
func chunk(kind, data string) []byte {
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	chunk = append(chunk, kind+data...)
	return binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:]))
}

// headerEnd is where the IHDR chunk of a PNG ends: after the signature and 13 bytes of data.
const headerEnd = 8 + 4 + 4 + 13 + 4

// The stored file is the site's own, without what else was in the sent one, and a cape has the size
// that games expect.
func TestUploadedFilesAreWrittenAnew(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "Ann_1")
	c = c.as(c.issue(t, u).AccessToken)
	clean := skinFile(t, 1)
	sent := slices.Concat(clean[:headerEnd], chunk("tEXt", "Comment\x00smuggled"), clean[headerEnd:], []byte("appended"))
	c.upload(t, u.players[0], "skin", "slim", sent).isEmpty(t)
	stored := c.wornFile(t, u.players[0], "SKIN")
	for _, text := range []string{"tEXt", "smuggled", "appended"} {
		if bytes.Contains(stored, []byte(text)) {
			t.Errorf("the stored file has %q", text)
		}
	}
	pixels := func(file []byte) []byte {
		t.Helper()
		decoded, err := png.Decode(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		flat := image.NewNRGBA(decoded.Bounds())
		draw.Draw(flat, flat.Rect, decoded, image.Point{}, draw.Src)
		return flat.Pix
	}
	if !bytes.Equal(pixels(stored), pixels(clean)) {
		t.Error("the stored skin has other pixels")
	}
	if got := c.worn(t, u.players[0]).Textures["SKIN"].Metadata["model"]; got != "slim" {
		t.Errorf("the model is %q", got)
	}

	small := image.NewNRGBA(image.Rect(0, 0, 22, 17))
	for i := range small.Pix {
		small.Pix[i] = 200
	}
	var file bytes.Buffer
	if err := png.Encode(&file, small); err != nil {
		t.Fatal(err)
	}
	c.upload(t, u.players[0], "cape", "", file.Bytes()).isEmpty(t)
	got, err := png.DecodeConfig(bytes.NewReader(c.wornFile(t, u.players[0], "CAPE")))
	if err != nil || got.Width != 64 || got.Height != 32 {
		t.Errorf("the stored cape has %d × %d pixels, %v; want 64 × 32", got.Width, got.Height, err)
	}
}

// The size of a picture is refused before its pixels are decoded, which would take 3.6 GB and find
// that there are none.
func TestHugePicturesAreRejected(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "Ann_1")
	c = c.as(c.issue(t, u).AccessToken)
	const side = "\x00\x00\x75\x30" // 30000
	file := slices.Concat([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", side+side+"\x08\x06\x00\x00\x00"), chunk("IDAT", "\x78\x9c"), chunk("IEND", ""))
	for _, slot := range []string{"skin", "cape"} {
		got := c.upload(t, u.players[0], slot, "", file)
		got.isError(t, 400, "Bad Request", "")
		if !strings.Contains(string(got.body), "30000 × 30000 pixels") {
			t.Errorf("%s: %s; want the size as the reason", slot, got.body)
		}
	}
}

// A user that cannot pay is told so, and the player wears what it wore.
func TestUploadCosts(t *testing.T) {
	t.Parallel()

	c := start(t, "SCORE_PRIVATE_TEXTURE_KIB=5")
	u := c.signUp(t, "Ann_1")
	c = c.as(c.issue(t, u).AccessToken)
	c.upload(t, u.players[0], "skin", "", skinFile(t, 1)).isError(t, 403, forbidden, "")
	if got := c.worn(t, u.players[0]).Textures; len(got) != 0 {
		t.Errorf("the textures are %+v", got)
	}
	c.site.exec(t, "UPDATE users SET score = 1000 WHERE uid = $1", u.ID)
	c.upload(t, u.players[0], "skin", "", skinFile(t, 1)).isEmpty(t)
	if got := c.site.count(t, "SELECT score FROM users WHERE uid = $1", u.ID); got >= 1000 {
		t.Errorf("the score is %d", got)
	}
}

// The same pixels are the same texture: the user's own, or another user's public one.
func TestUploadOfKnownPixels(t *testing.T) {
	t.Parallel()

	c := start(t)
	u, other := c.signUp(t, "Ann_1"), c.signUp(t, "Ben_1")
	public, _ := c.dress(t, other.players[0], skinFile(t, 1), nil, "steve")
	c = c.as(c.issue(t, u).AccessToken)
	items := func() int {
		t.Helper()
		return c.site.count(t, "SELECT count(*) FROM closet_items WHERE uid = $1", u.ID)
	}
	for range 2 {
		c.upload(t, u.players[0], "skin", "", skinFile(t, 1)).isEmpty(t)
		if got := c.worn(t, u.players[0]).Textures["SKIN"].URL; !strings.HasSuffix(got, public.String()) {
			t.Errorf("the skin is %s; want the public one, %s", got, public)
		}
		if n := items(); n != 1 {
			t.Errorf("the closet has %d items; want 1", n)
		}
	}
	for range 2 {
		c.upload(t, u.players[0], "skin", "", skinFile(t, 2)).isEmpty(t)
		if n := items(); n != 2 {
			t.Errorf("the closet has %d items; want 2", n)
		}
	}
	if n := c.site.count(t, "SELECT count(*) FROM textures"); n != 2 {
		t.Errorf("there are %d textures; want 2", n)
	}

	// Another user's private texture is not revealed.
	ben := c.as(c.issue(t, other).AccessToken)
	ben.upload(t, other.players[0], "skin", "", skinFile(t, 2)).isEmpty(t)
	if n := c.site.count(t, "SELECT count(*) FROM textures"); n != 3 {
		t.Errorf("there are %d textures; want 3", n)
	}
}

// A file name that is no name of an item gives way to that of the player.
func TestUploadNames(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "Ann_1")
	c = c.as(c.issue(t, u).AccessToken)
	variant := byte(0)
	for name, want := range map[string]string{
		"a.png": "a", "": "Ann_1", `C:\skins\b.PNG`: "b", "../../c.tar.gz": "c.tar", strings.Repeat("x", 65) + ".png": "Ann_1", "\u202e.png": "Ann_1", "皮肤.png": "皮肤", ".png": "Ann_1",
	} {
		variant++
		c.send(t, "PUT", "/api/user/profile/"+hexID(u.players[0].UUID)+"/skin", uploadBody(t, "", name, "image/png", skinFile(t, variant))).isEmpty(t)
		if n := c.site.count(t, "SELECT count(*) FROM closet_items WHERE item_name = $1 AND tid = (SELECT max(tid) FROM closet_items)", want); n != 1 {
			t.Errorf("the file %q is not named %q", name, want)
		}
	}
}

// Only the profile that the token is bound to can be changed, and only with a valid token.
func TestUploadIsForbidden(t *testing.T) {
	t.Parallel()

	c := start(t)
	u, other := c.signUp(t, "First", "Second"), c.signUp(t, "Foreign")
	first, unbound := c.issue(t, u, "First"), c.issue(t, u)
	f := func(c client, p core.Player, status int, name string) {
		t.Helper()
		c.upload(t, p, "skin", "", skinFile(t, 1)).isError(t, status, name, "")
		c.send(t, "DELETE", "/api/user/profile/"+hexID(p.UUID)+"/skin", body{}).isError(t, status, name, "")
	}
	f(c, u.players[0], 401, "Unauthorized")
	f(c.as("x"), u.players[0], 401, "Unauthorized")
	f(c.as(first.AccessToken), u.players[1], 403, forbidden)
	f(c.as(first.AccessToken), other.players[0], 403, forbidden)
	f(c.as(unbound.AccessToken), u.players[0], 403, forbidden)
	f(c.as(first.AccessToken), core.Player{}, 403, forbidden)
	c.as(first.AccessToken).upload(t, u.players[0], "elytra", "", skinFile(t, 1)).isError(t, 404, "Not Found", "")
	got, err := c.as(first.AccessToken).exchangeAt("GET", "/api/user", body{})
	if err != nil || got.status != 401 {
		t.Errorf("the token of a launcher at the site's API: %d, %v; want 401", got.status, err)
	}
	if n := c.site.count(t, "SELECT count(*) FROM textures"); n != 0 {
		t.Errorf("there are %d textures", n)
	}
}

// What is no skin or cape is answered with 400, and too large a file with 413.
func TestUploadIsRejected(t *testing.T) {
	t.Parallel()

	c := start(t, "QUOTA_TEXTURES=1")
	u := c.signUp(t, "Ann_1")
	player := u.players[0]
	c = c.as(c.issue(t, u).AccessToken)
	blank := func(width, height int) []byte {
		var file bytes.Buffer
		if err := png.Encode(&file, image.NewNRGBA(image.Rect(0, 0, width, height))); err != nil {
			t.Fatal(err)
		}
		return file.Bytes()
	}
	for slot, files := range map[string][][]byte{
		"skin": {{}, []byte("GIF89a"), blank(64, 16), blank(63, 64), blank(1, 1), blank(1024, 1024), capeFile(t)[:100]},
		"cape": {{}, []byte("x"), blank(64, 64), blank(63, 32)},
	} {
		for _, file := range files {
			c.upload(t, player, slot, "", file).isError(t, 400, "Bad Request", "")
		}
	}
	c.upload(t, player, "skin", "slim", blank(64, 32)).isError(t, 400, "Bad Request", "")
	c.upload(t, player, "skin", "", bytes.Repeat([]byte("x"), 1<<20+1)).isError(t, 413, "Request Entity Too Large", "")
	c.sendHead(t, "PUT", "/api/user/profile/"+hexID(player.UUID)+"/skin", "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 2000000\r\n").
		isError(t, 413, "Request Entity Too Large", "")

	path := "/api/user/profile/" + hexID(player.UUID) + "/skin"
	c.send(t, "PUT", path, uploadBody(t, "slim", "", "", nil)).isError(t, 400, "Bad Request", "")
	c.send(t, "PUT", path, body{}).isError(t, 400, "Bad Request", "")
	c.send(t, "PUT", path, body{"image/png", skinFile(t, 1)}).isError(t, 415, "Unsupported Media Type", "")
	c.send(t, "PUT", path, body{"multipart/form-data; boundary=x", []byte("--y")}).isError(t, 400, "Bad Request", "")

	c.send(t, "PUT", path, uploadBody(t, "", "a.jpg", "image/jpeg", skinFile(t, 1))).isEmpty(t) // the content counts
	c.upload(t, player, "skin", "", skinFile(t, 2)).isError(t, 403, forbidden, "")
}

// Uploads and changes have the limits that they have at the site's API, and share them.
func TestUploadsAreLimited(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_UPLOADS=2", "LIMIT_CHANGES=3")
	u := c.signUp(t, "Ann_1")
	c = c.as(c.issue(t, u).AccessToken)
	for range 2 {
		c.upload(t, u.players[0], "skin", "", skinFile(t, 1)).isEmpty(t)
	}
	c.upload(t, u.players[0], "skin", "", skinFile(t, 1)).isError(t, 429, "Too Many Requests", "")
	path := "/api/user/profile/" + hexID(u.players[0].UUID) + "/skin"
	c.send(t, "DELETE", path, body{}).isEmpty(t)
	c.send(t, "DELETE", path, body{}).isError(t, 429, "Too Many Requests", "")
}

// A launcher's own profile names what the player wears.
func TestOwnProfile(t *testing.T) {
	t.Parallel()

	c := start(t)
	u := c.signUp(t, "First", "Second")
	type own struct {
		named
		Skins, Capes []struct{ ID, State, URL, Variant, Alias string }
	}
	first := c.as(c.issue(t, u, "First").AccessToken)
	got := decode[own](t, first.get(t, "/minecraftservices/minecraft/profile"))
	if got.named != toNamed(u.players[0]) || len(got.Skins)+len(got.Capes) != 0 {
		t.Errorf("%+v", got)
	}
	c.dress(t, u.players[0], skinFile(t, 1), capeFile(t), "alex")
	got = decode[own](t, first.get(t, "/minecraftservices/minecraft/profile"))
	if len(got.Skins) != 1 || len(got.Capes) != 1 || got.Skins[0].Variant != "SLIM" || got.Skins[0].URL != c.worn(t, u.players[0]).Textures["SKIN"].URL {
		t.Errorf("%+v", got)
	}
	c.as(c.issue(t, u).AccessToken).get(t, "/minecraftservices/minecraft/profile").isError(t, 404, "Not Found", "")
}
