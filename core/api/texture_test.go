package api_test

import (
	"bytes"
	"fmt"
	"image"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// upload uploads a texture; form has the other fields as a query.
func (c client) upload(t *testing.T, form string, file []byte) response {
	t.Helper()
	return c.Send(t, "POST", "/api/textures", encodeMultipart(t, form, file))
}

// price asks for the price of an upload.
func (c client) price(t *testing.T, form string, file []byte) response {
	t.Helper()
	return c.Send(t, "POST", "/api/price", encodeMultipart(t, form, file))
}

func TestUpload(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	uploaded := skinFile(t, 1)
	a := c.upload(t, "name="+url.QueryEscape(" Zoë's <skin> ")+"&type=steve", append(bytes.Clone(uploaded), "trailing bytes"...))
	a.Is(t, 200, done(fmt.Sprintf(`{"tid":"<integer>","name":"Zoë's <skin>","type":"steve","hash":"<hash>","size":"<integer>",
		"uploader":%d,"uploader_nickname":"Somebody","public":true,"upload_at":"<time>","likes":1}`, c.UID)))

	// The hash is that of the stored file, and the size its KiB.
	hash := testenv.Must(skin.ParseHash(a.Field(t, "data", "hash")))(t)
	stored := testenv.Must(c.site.Files.Get(t.Context(), hash))(t)
	testenv.Equal(t, skin.HashOf(stored), hash, "the digest of the file")
	a.HasField(t, fmt.Sprint((len(stored)+1023)/1024), "data", "size")
	sheet := testenv.Must(skin.Decode(stored))(t)
	want := artwork.Explorer()
	testenv.Check(t, bytes.Equal(sheet.Pix[4:], want.Pix[4:]) && sheet.Pix[0] == 1, "the pixels are not the ones uploaded")
	testenv.Equal(t, bytes.Contains(stored, []byte("trailing")), false, "the stored file has more than pixels")

	// The upload adds it to the uploader's closet.
	c.site.HasCount(t, 1, "SELECT count(*) FROM closet_items JOIN textures USING (tid) WHERE uid = $1 AND item_name = $2",
		c.UID, "Zoë's <skin>")
}

func TestUploadVisibility(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	variant := byte(0)
	for field, want := range map[string]string{
		"": "true", "&public=true": "true", "&public=1": "true", "&public=false": "false", "&public=False": "false",
		"&public=+0+": "false", "&public=maybe": "", "&public=": "", "&public=2": "",
	} {
		variant++
		a := c.upload(t, "name=N&type=steve"+field, skinFile(t, variant))
		if want == "" {
			a.IsError(t, 422, 4, "public")
		} else {
			a.Has(t, "data.public", want)
		}
	}
}

func TestUploadDuplicates(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	otherUser := c.signUp(t)
	f := func(c client, form string, file []byte, tid string) {
		t.Helper()
		want := `{"code":2,"message":"<text>","errors":{"file":["<text>"]},"data":{"tid":` + tid + `}}`
		c.upload(t, "name=Again&type=steve"+form, file).Is(t, 409, want)
	}

	public := c.texture(t, "name=Public&type=steve", skinFile(t, 1))
	f(c, "", skinFile(t, 1), public)
	f(c, "&public=false", skinFile(t, 1), public)
	f(otherUser, "", skinFile(t, 1), public)
	f(otherUser, "&public=false", skinFile(t, 1), public)

	// The pixels are compared, not the files.
	sheet := artwork.Explorer()
	sheet.Pix[0] = 1
	var trick bytes.Buffer
	trick.Write(encodePNG(t, opaque{&image.NRGBA{Pix: sheet.Pix, Stride: 256, Rect: image.Rect(0, 0, 64, 64)}}))
	trick.WriteString("and more")
	f(c, "", trick.Bytes(), public)

	// Private textures of other users are not duplicates.
	private := c.texture(t, "name=Private&type=steve&public=false", skinFile(t, 2))
	f(c, "", skinFile(t, 2), private)
	f(c, "&public=false", skinFile(t, 2), private)
	theirs := otherUser.texture(t, "name=Theirs&type=steve&public=false", skinFile(t, 2))
	f(otherUser, "", skinFile(t, 2), theirs)
	third := c.signUp(t).texture(t, "name=Third&type=steve", skinFile(t, 2))
	f(c.signUp(t), "", skinFile(t, 2), third)
}

// opaque hides an image's type, so that it is encoded differently.
type opaque struct{ image.Image }

func TestUploadRefuses(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	file := skinFile(t, 1)
	f := func(form string, file []byte, fields ...string) {
		t.Helper()
		c.upload(t, form, file).IsError(t, 422, 4, fields...)
	}
	blank := func(w, h int) []byte { return encodePNG(t, image.NewNRGBA(image.Rect(0, 0, w, h))) }

	// Fields.
	f("", nil, "file", "name", "type")
	f("name=N&type=steve", nil, "file")
	f("type=steve", file, "name")
	f("name=N", file, "type")
	f("name=+&type=steve", file, "name")
	f("name="+strings.Repeat("x", 65)+"&type=steve", file, "name")
	f("name=a%0Ab&type=steve", file, "name")
	f("name=a%00b&type=steve", file, "name")
	f("name=a%FFb&type=steve", file, "name")
	f("name=N&type=hat", file, "type")
	f("name=N&type=Steve", file, "type")
	f("name=N&type=", file, "type")
	f("name="+strings.Repeat("x", 65)+"&type=steve", []byte("no PNG"), "file", "name")
	c.Post(t, "/api/textures", `{"name":"N","type":"steve","file":"data"}`).IsError(t, 415, 4)
	c.Send(t, "POST", "/api/textures", encodeForm("name=N&type=steve&file=data")).IsError(t, 415, 4)

	// Files.
	for _, file := range [][]byte{
		{}, []byte("no PNG"), []byte("GIF89a"), file[:len(file)/2], blank(63, 64), blank(576, 576), // k = 9
		encodePNG(t, image.NewNRGBA64(image.Rect(0, 0, 64, 64))),
	} {
		f("name=N&type=steve", file, "file")
	}
	f("name=N&type=alex", blank(64, 32), "file")
	f("name=N&type=cape", blank(64, 64), "file")
	f("name=N&type=skin", blank(22, 17), "file")

	c.site.HasCount(t, 0, "SELECT count(*) FROM textures")
	for object, err := range c.site.Files.List(t.Context()) {
		t.Errorf("the store holds %v, %v", object, err)
	}
}

func TestUploadTooLarge(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	file := make([]byte, 1<<20)
	copy(file, skinFile(t, 1)) // data after the end of the PNG is ignored, but counts for the limit
	a := c.upload(t, "name=N&type=steve", append(file, 0))
	a.IsError(t, 413, 4, "file")
	testenv.Contains(t, a.Field(t, "errors", "file"), "1048576 bytes", "the answer to a larger file")
	c.upload(t, "name=N&type=steve", file).HasStatus(t, 200)
}

// Without a limit of files there is none of upload bodies.
func TestNoUploadLimit(t *testing.T) {
	t.Parallel()
	c := start(t, "UPLOAD_MAX_BYTES=0").signUp(t)
	a := c.upload(t, "name=N&type=steve", append(skinFile(t, 1), make([]byte, 2<<20)...))
	a.HasStatus(t, 200)
}

// No texture is added when its file cannot be stored.
func TestUploadWhileStoreIsDown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	regular := filepath.Join(t.TempDir(), "regular")
	testenv.Do(t, os.WriteFile(regular, nil, 0o600))
	config := blobstore.Config{URL: "file://" + regular + "/textures", Timeout: time.Minute}
	s.Files = testenv.Must(blobstore.New(config))(t)
	c := s.serve(t).signUp(t)
	a := c.upload(t, "name=N&type=steve", skinFile(t, 1))
	a.IsError(t, 503, 9)
	testenv.Equal(t, a.Header.Get("Retry-After"), "1", "Retry-After")
	s.HasCount(t, 0, "SELECT count(*) FROM textures")
}

// The price of an upload is what the upload then costs, and asking for it stores nothing.
func TestUploadPrice(t *testing.T) {
	t.Parallel()
	c := start(t, "SCORE_TEXTURE_KIB=2", "SCORE_PRIVATE_TEXTURE_KIB=3", "SCORE_UPLOAD_REWARD=1").signUp(t)
	f := func(form string, file []byte, kind string, rate int) {
		t.Helper()
		c.site.Exec(t, "UPDATE users SET score = 1000 WHERE uid = $1", c.UID)
		before := c.site.totals(t)
		a := c.price(t, form, file)
		testenv.Equal(t, c.site.totals(t), before, "%s: the totals after the price", form)
		uploaded := c.upload(t, form, file)
		size := testenv.Must(strconv.Atoi(uploaded.Field(t, "data", "size")))(t)
		a.Is(t, 200, fmt.Sprintf(`{"type":%q,"size":%d,"public_price":%d,"private_price":%d,"duplicate":0}`, kind, size, 2*size, 3*size))
		testenv.Equal(t, c.score(t), 1000-rate*size+1, "%s: the score after the upload", form)
		uploaded.HasField(t, kind, "data", "type")
		before = c.site.totals(t)
		c.price(t, form, file).Is(t, 200, fmt.Sprintf(`{"type":%q,"size":%d,"public_price":0,"private_price":0,"duplicate":%s}`,
			kind, size, uploaded.Field(t, "data", "tid")))
		testenv.Equal(t, c.site.totals(t), before, "%s: the totals after the price of a duplicate", form)
	}

	f("name=N&type=+skin+", skinFile(t, 1), "steve", 2) // text is trimmed
	f("name=N&type=skin&public=false", fileOf(t, artwork.Ranger(), 1), "alex", 3)
	f("name=N&type=alex&public=false", skinFile(t, 1), "alex", 3) // the same pixels as another type
	f("name=N&type=cape", capeFile(t), "cape", 2)

	// Private textures of other users are no duplicates.
	other := c.signUp(t)
	c.site.Exec(t, "UPDATE users SET score = 1000")
	other.price(t, "name=N&type=alex", skinFile(t, 1)).HasField(t, "0", "duplicate")
}

// The price of an upload is refused as the upload is.
func TestUploadPriceRefuses(t *testing.T) {
	t.Parallel()
	s := newSite(t, "SCORE_TEXTURE_KIB=1", "SCORE_PRIVATE_TEXTURE_KIB=1000", "LIMIT_UPLOADS=0", "LIMIT_PRICES=0")
	c := s.serve(t).signUp(t)
	s.Exec(t, "UPDATE users SET score = 999 WHERE uid = $1", c.UID)
	f := func(c client, form string, file []byte, status, code int, fields ...string) {
		t.Helper()
		before := s.totals(t)
		a := c.price(t, form, file)
		a.IsError(t, status, code, fields...)
		want := c.upload(t, form, file)
		testenv.Equal(t, string(a.Body), string(want.Body), "the refusal of the price of %q, as of the upload", form)
		testenv.Equal(t, s.totals(t), before, "%q: the totals", form)
	}

	file := skinFile(t, 1)
	f(c, "", nil, 422, 4, "file", "name", "type")
	f(c, "name=+&type=steve", []byte("no PNG"), 422, 4, "file", "name")
	f(c, "name=N&type=hat", file, 422, 4, "type")
	f(c, "name=N&type=cape", file, 422, 4, "file")
	f(c, "name=N&type=steve&public=maybe", file, 422, 4, "public")
	f(c, "name=N&type=steve", append(file, make([]byte, 1<<20)...), 413, 4, "file")
	f(c, "name=N&type=steve&public=false", file, 403, 7)
	f(c.as(""), "name=N&type=steve", file, 401, 5)
	c.Send(t, "POST", "/api/price", encodeJSON(`{"name":"N","type":"steve"}`)).IsError(t, 415, 4)

	c.texture(t, "name=N&type=steve", file)
	s.Setup.Quotas.Textures = 1
	f(s.serve(t).as(c.Token), "name=N&type=steve", skinFile(t, 2), 403, 1)
	s.Setup.Quotas.Textures, s.Setup.Quotas.ClosetItems = 0, 1
	f(s.serve(t).as(c.Token), "name=N&type=steve", skinFile(t, 2), 403, 1)
}
