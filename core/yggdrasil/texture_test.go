package yggdrasil_test

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/draw"
	"image/png"
	"maps"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// uploadBody returns a multipart form as launchers send it.
func uploadBody(t *testing.T, model, name, contentType string, file []byte) body {
	t.Helper()
	var content bytes.Buffer
	w := multipart.NewWriter(&content)
	testenv.Do(t, w.WriteField("model", model))
	if file != nil {
		part := testenv.Must(w.CreatePart(textproto.MIMEHeader{
			"Content-Disposition": {`form-data; name="file"; filename="` + strings.ReplaceAll(name, `\`, `\\`) + `"`}, "Content-Type": {contentType},
		}))(t)
		testenv.Must(part.Write(file))(t)
	}
	testenv.Do(t, w.Close())
	return raw(w.FormDataContentType(), content.String())
}

// upload sends a texture for a player.
func (c client) upload(t *testing.T, p core.Player, slot, model string, file []byte) response {
	t.Helper()
	return c.Send(t, "PUT", "/api/user/profile/"+hexID(p.UUID)+"/"+slot, uploadBody(t, model, "my skin.png", "image/png", file))
}

// worn returns what the player wears.
func (c client) worn(t *testing.T, p core.Player) textures {
	t.Helper()
	return c.profile(t, p).payload(t)
}

// wears checks for the kinds of textures that the player wears, in the order of the alphabet.
func (c client) wears(t *testing.T, p core.Player, kinds ...string) {
	t.Helper()
	cmptest.Same(t, slices.Sorted(maps.Keys(c.worn(t, p).Textures)), kinds, "%s wears", p.Name)
}

// An upload is a private texture in the closet, under the name of the file, and the player wears it.
func TestUpload(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t)
	player := u.players[0]
	c = c.as(c.issue(t, u).AccessToken)
	c.upload(t, player, "skin", "", skinFile(t, 1)).IsEmpty(t)
	got := c.worn(t, player).Textures["SKIN"]
	testenv.Check(t, got.URL != "" && got.Metadata == nil, "the skin is %+v", got)
	c.upload(t, player, "skin", "slim", skinFile(t, 2)).IsEmpty(t)
	testenv.Equal(t, c.worn(t, player).Textures["SKIN"].Metadata["model"], "slim", "the model")
	c.upload(t, player, "cape", "", capeFile(t)).IsEmpty(t)
	c.wears(t, player, "CAPE", "SKIN")
	c.site.HasCount(t, 3, "SELECT count(*) FROM textures JOIN closet_items USING (tid) WHERE NOT public AND uploader = $1 AND uid = $1 AND item_name = 'my skin'", u.ID)

	// Deleting takes off, also twice.
	for range 2 {
		c.Send(t, "DELETE", "/api/user/profile/"+player.UUID.String()+"/skin", body{}).IsEmpty(t)
	}
	c.wears(t, player, "CAPE")
	c.Send(t, "DELETE", "/api/user/profile/"+hexID(player.UUID)+"/cape", body{}).IsEmpty(t)
	c.wears(t, player)
}

// wornFile returns the stored file of what the player wears, SKIN or CAPE. Its hash ends the URL.
func (c client) wornFile(t *testing.T, p core.Player, kind string) []byte {
	t.Helper()
	url := c.worn(t, p).Textures[kind].URL
	hash := testenv.Must(skin.ParseHash(url[strings.LastIndexByte(url, '/')+1:]))(t)
	stored := testenv.Must(c.site.Files.Get(t.Context(), hash))(t)
	testenv.Equal(t, skin.HashOf(stored), hash, "the hash of the file, with which the URL ends,")
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
	c, u := startForOne(t)
	c = c.as(c.issue(t, u).AccessToken)
	clean := skinFile(t, 1)
	sent := slices.Concat(clean[:headerEnd], chunk("tEXt", "Comment\x00smuggled"), clean[headerEnd:], []byte("appended"))
	c.upload(t, u.players[0], "skin", "slim", sent).IsEmpty(t)
	stored := c.wornFile(t, u.players[0], "SKIN")
	for _, text := range []string{"tEXt", "smuggled", "appended"} {
		testenv.Check(t, !bytes.Contains(stored, []byte(text)), "the stored file has %q", text)
	}
	pixels := func(file []byte) []byte {
		t.Helper()
		decoded := testenv.Must(png.Decode(bytes.NewReader(file)))(t)
		flat := image.NewNRGBA(decoded.Bounds())
		draw.Draw(flat, flat.Rect, decoded, image.Point{}, draw.Src)
		return flat.Pix
	}
	testenv.Check(t, bytes.Equal(pixels(stored), pixels(clean)), "the stored skin has other pixels")
	testenv.Equal(t, c.worn(t, u.players[0]).Textures["SKIN"].Metadata["model"], "slim", "the model")

	small := image.NewNRGBA(image.Rect(0, 0, 22, 17))
	for i := range small.Pix {
		small.Pix[i] = 200
	}
	c.upload(t, u.players[0], "cape", "", coretest.EncodePNG(t, small)).IsEmpty(t)
	got := testenv.Must(png.DecodeConfig(bytes.NewReader(c.wornFile(t, u.players[0], "CAPE"))))(t)
	testenv.Equal(t, image.Pt(got.Width, got.Height), image.Pt(64, 32), "the size of the stored cape")
}

// The size of a picture is refused before its pixels are decoded, which would take 3.6 GB and find
// that there are none.
func TestHugePicturesAreRejected(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t)
	c = c.as(c.issue(t, u).AccessToken)
	const side = "\x00\x00\x75\x30" // 30000
	file := slices.Concat([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", side+side+"\x08\x06\x00\x00\x00"), chunk("IDAT", "\x78\x9c"), chunk("IEND", ""))
	for _, slot := range []string{"skin", "cape"} {
		got := c.upload(t, u.players[0], slot, "", file)
		isError(t, got, 400, "Bad Request", "")
		testenv.Contains(t, string(got.Body), "30000 × 30000 pixels", "%s", slot)
	}
}

// A user that cannot pay is told so, and the player wears what it wore.
func TestUploadCosts(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t, "SCORE_PRIVATE_TEXTURE_KIB=5")
	c = c.as(c.issue(t, u).AccessToken)
	isError(t, c.upload(t, u.players[0], "skin", "", skinFile(t, 1)), 403, forbidden, "")
	c.wears(t, u.players[0])
	c.site.Exec(t, "UPDATE users SET score = 1000 WHERE uid = $1", u.ID)
	c.upload(t, u.players[0], "skin", "", skinFile(t, 1)).IsEmpty(t)
	got := c.site.Count(t, "SELECT score FROM users WHERE uid = $1", u.ID)
	testenv.Check(t, got < 1000, "the score is %d", got)
}

// The same pixels are the same texture: the user's own, or another user's public one.
func TestUploadOfKnownPixels(t *testing.T) {
	t.Parallel()
	c := start(t)
	u, other := c.signUp(t, "Ann_1"), c.signUp(t, "Ben_1")
	public, _ := c.dress(t, other.players[0], skinFile(t, 1), nil, "steve")
	c = c.as(c.issue(t, u).AccessToken)
	hasItems := func(want int) {
		t.Helper()
		c.site.HasCount(t, want, "SELECT count(*) FROM closet_items WHERE uid = $1", u.ID)
	}
	for range 2 {
		c.upload(t, u.players[0], "skin", "", skinFile(t, 1)).IsEmpty(t)
		testenv.Equal(t, c.worn(t, u.players[0]).Textures["SKIN"].URL, texturesURL+"/textures/"+public.String(), "the skin")
		hasItems(1)
	}
	for range 2 {
		c.upload(t, u.players[0], "skin", "", skinFile(t, 2)).IsEmpty(t)
		hasItems(2)
	}
	c.site.HasCount(t, 2, "SELECT count(*) FROM textures")

	// Another user's private texture is not revealed.
	ben := c.as(c.issue(t, other).AccessToken)
	ben.upload(t, other.players[0], "skin", "", skinFile(t, 2)).IsEmpty(t)
	c.site.HasCount(t, 3, "SELECT count(*) FROM textures")
}

// A file name that is no name of an item gives way to that of the player.
func TestUploadNames(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t)
	c = c.as(c.issue(t, u).AccessToken)
	variant := byte(0)
	for name, want := range map[string]string{
		"a.png": "a", "": "Ann_1", `C:\skins\b.PNG`: "b", "../../c.tar.gz": "c.tar", strings.Repeat("x", 65) + ".png": "Ann_1", "\u202e.png": "Ann_1", "皮肤.png": "皮肤", ".png": "Ann_1",
	} {
		variant++
		c.Send(t, "PUT", "/api/user/profile/"+hexID(u.players[0].UUID)+"/skin", uploadBody(t, "", name, "image/png", skinFile(t, variant))).IsEmpty(t)
		c.site.HasCount(t, 1, "SELECT count(*) FROM closet_items WHERE item_name = $1 AND tid = (SELECT max(tid) FROM closet_items)", want)
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
		isError(t, c.upload(t, p, "skin", "", skinFile(t, 1)), status, name, "")
		isError(t, c.Send(t, "DELETE", "/api/user/profile/"+hexID(p.UUID)+"/skin", body{}), status, name, "")
	}
	f(c, u.players[0], 401, "Unauthorized")
	f(c.as("x"), u.players[0], 401, "Unauthorized")
	f(c.as(first.AccessToken), u.players[1], 403, forbidden)
	f(c.as(first.AccessToken), other.players[0], 403, forbidden)
	f(c.as(unbound.AccessToken), u.players[0], 403, forbidden)
	f(c.as(first.AccessToken), core.Player{}, 403, forbidden)
	isError(t, c.as(first.AccessToken).upload(t, u.players[0], "elytra", "", skinFile(t, 1)), 404, "Not Found", "")
	got, err := c.as(first.AccessToken).atRoot().Exchange("GET", "/api/user", body{})
	testenv.Check(t, err == nil && got.Status == 401,
		"the token of a launcher at the site's API: %d, %v; want 401", got.Status, err)
	c.site.HasCount(t, 0, "SELECT count(*) FROM textures")
}

// What is no skin or cape is answered with 400, and too large a file with 413.
func TestUploadIsRejected(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t, "QUOTA_TEXTURES=1")
	player := u.players[0]
	c = c.as(c.issue(t, u).AccessToken)
	blank := func(w, h int) []byte { return coretest.EncodePNG(t, image.NewNRGBA(image.Rect(0, 0, w, h))) }
	for slot, files := range map[string][][]byte{
		"skin": {{}, []byte("GIF89a"), blank(64, 16), blank(63, 64), blank(1, 1), blank(1024, 1024), capeFile(t)[:100]},
		"cape": {{}, []byte("x"), blank(64, 64), blank(63, 32)},
	} {
		for _, file := range files {
			isError(t, c.upload(t, player, slot, "", file), 400, "Bad Request", "")
		}
	}
	isError(t, c.upload(t, player, "skin", "slim", blank(64, 32)), 400, "Bad Request", "")
	isError(t, c.upload(t, player, "skin", "", bytes.Repeat([]byte("x"), 1<<20+1)), 413, "Request Entity Too Large", "")
	isError(t, c.sendHead(t, "PUT", "/api/user/profile/"+hexID(player.UUID)+"/skin", "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 2000000\r\n"),
		413, "Request Entity Too Large", "")

	path := "/api/user/profile/" + hexID(player.UUID) + "/skin"
	isError(t, c.Send(t, "PUT", path, uploadBody(t, "slim", "", "", nil)), 400, "Bad Request", "")
	isError(t, c.Send(t, "PUT", path, body{}), 400, "Bad Request", "")
	isError(t, c.Send(t, "PUT", path, raw("image/png", string(skinFile(t, 1)))), 415, "Unsupported Media Type", "")
	isError(t, c.Send(t, "PUT", path, raw("multipart/form-data; boundary=x", "--y")), 400, "Bad Request", "")

	c.Send(t, "PUT", path, uploadBody(t, "", "a.jpg", "image/jpeg", skinFile(t, 1))).IsEmpty(t) // the content counts
	isError(t, c.upload(t, player, "skin", "", skinFile(t, 2)), 403, forbidden, "")
}

// Uploads and changes have the limits that they have at the site's API, and share them.
func TestUploadsAreLimited(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t, "LIMIT_UPLOADS=2", "LIMIT_CHANGES=3")
	c = c.as(c.issue(t, u).AccessToken)
	for range 2 {
		c.upload(t, u.players[0], "skin", "", skinFile(t, 1)).IsEmpty(t)
	}
	isError(t, c.upload(t, u.players[0], "skin", "", skinFile(t, 1)), 429, "Too Many Requests", "")
	path := "/api/user/profile/" + hexID(u.players[0].UUID) + "/skin"
	c.Send(t, "DELETE", path, body{}).IsEmpty(t)
	isError(t, c.Send(t, "DELETE", path, body{}), 429, "Too Many Requests", "")
}

// ownProfile is the token's player with what it wears and may wear.
type ownProfile struct {
	named
	Skins, Capes []struct{ ID, State, URL, Variant, Alias string }
}

const ownPath = "/minecraftservices/minecraft/profile"

// Prism Launcher and MultiMC send a skin with its variant, list the capes, wear one of them by its id,
// and take both off. Each answer is the profile.
func TestOwnTextures(t *testing.T) {
	t.Parallel()
	c, u := startForOne(t)
	player, unbound := u.players[0], c.signUp(t, "First", "Second")
	c = c.as(c.issue(t, u, player.Name).AccessToken)
	got := decode[ownProfile](t, c.Get(t, ownPath))
	testenv.Check(t, got.named == toNamed(player) && len(got.Skins)+len(got.Capes) == 0, "%+v", got)
	form := func(variant string) body {
		form := uploadBody(t, "", "skin.png", "image/png", skinFile(t, 1))
		form.Content = bytes.Replace(form.Content, []byte(`name="model"`+"\r\n\r\n"), []byte(`name="variant"`+"\r\n\r\n"+variant), 1)
		return form
	}
	for _, variant := range []string{"CLASSIC", "SLIM", "slim"} {
		got = decode[ownProfile](t, c.Send(t, "POST", ownPath+"/skins", form(variant)))
		testenv.Check(t, len(got.Skins) == 1 && got.Skins[0].Variant == strings.ToUpper(variant) &&
			got.Skins[0].URL == c.worn(t, player).Textures["SKIN"].URL, "%s: %+v", variant, got)
	}
	c.upload(t, player, "cape", "", capeFile(t)).IsEmpty(t)
	worn := decode[ownProfile](t, c.Get(t, ownPath)).Capes
	testenv.Check(t, len(worn) == 1 && worn[0].State == "ACTIVE", "%+v", worn)
	got = decode[ownProfile](t, c.Send(t, "DELETE", ownPath+"/capes/active", body{}))
	testenv.Check(t, len(got.Capes) == 1 && got.Capes[0].State == "INACTIVE" && got.Capes[0].Alias == "my skin", "%+v", got.Capes)
	wear := func(id string) response {
		return c.Send(t, "PUT", ownPath+"/capes/active", coretest.JSON(map[string]string{"capeId": id}))
	}
	got = decode[ownProfile](t, wear(worn[0].ID))
	testenv.Check(t, len(got.Capes) == 1 && got.Capes[0].State == "ACTIVE", "%+v", got.Capes)
	for _, id := range []string{"", "x", hexID(player.UUID)} {
		isError(t, wear(id), 400, "Bad Request", "The profile has no such cape.")
	}
	got = decode[ownProfile](t, c.Send(t, "DELETE", ownPath+"/skins/active", body{}))
	testenv.Check(t, len(got.Skins) == 0, "%+v", got.Skins)
	c.wears(t, player, "CAPE")
	isError(t, c.Send(t, "POST", ownPath+"/skins", coretest.JSON(map[string]string{"variant": "slim", "url": "http://127.0.0.1/"})), 415, "Unsupported Media Type", "")

	c = c.as(c.issue(t, unbound).AccessToken)
	for _, request := range []struct {
		method, path string
		body         body
	}{
		{"GET", "", body{}},
		{"POST", "/skins", form("slim")},
		{"DELETE", "/skins/active", body{}},
		{"PUT", "/capes/active", coretest.JSON(map[string]string{"capeId": worn[0].ID})},
		{"DELETE", "/capes/active", body{}},
	} {
		isError(t, c.Send(t, request.method, ownPath+request.path, request.body), 404, "Not Found", "")
	}
}
