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
)

// upload uploads a texture; form has the other fields as a query.
func (c client) upload(t *testing.T, form string, file []byte) response {
	t.Helper()
	return c.send(t, "POST", "/api/textures", encodeMultipart(t, form, file))
}

// price asks for the price of an upload.
func (c client) price(t *testing.T, form string, file []byte) response {
	t.Helper()
	return c.send(t, "POST", "/api/price", encodeMultipart(t, form, file))
}

func TestUpload(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	uploaded := skinFile(t, 1)
	a := c.upload(t, "name="+url.QueryEscape(" Zoë's <skin> ")+"&type=steve", append(bytes.Clone(uploaded), "trailing bytes"...))
	a.is(t, 200, done(fmt.Sprintf(`{"tid":"<integer>","name":"Zoë's <skin>","type":"steve","hash":"<hash>","size":"<integer>",
		"uploader":%d,"uploader_nickname":"Somebody","public":true,"upload_at":"<time>","likes":1}`, c.uid)))

	// The hash is that of the stored file, and the size its KiB.
	hash, err := skin.ParseHash(a.field(t, "data", "hash"))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := c.site.files.Get(t.Context(), hash)
	if err != nil {
		t.Fatal(err)
	}
	if got := skin.HashOf(stored); got != hash {
		t.Errorf("the hash is %s, but the file's is %s", hash, got)
	}
	if got, want := a.field(t, "data", "size"), fmt.Sprint((len(stored)+1023)/1024); got != want {
		t.Errorf("the size is %s for %d bytes; want %s", got, len(stored), want)
	}
	sheet, err := skin.Decode(stored)
	if err != nil {
		t.Fatal(err)
	}
	if want := artwork.Explorer(); !bytes.Equal(sheet.Pix[4:], want.Pix[4:]) || sheet.Pix[0] != 1 {
		t.Error("the pixels are not the ones uploaded")
	}
	if bytes.Contains(stored, []byte("trailing")) {
		t.Error("the stored file has more than pixels")
	}

	// The upload adds it to the uploader's closet.
	if n := c.site.count(t, "SELECT count(*) FROM closet_items WHERE uid = $1 AND tid = (SELECT max(tid) FROM textures) AND item_name = $2",
		c.uid, "Zoë's <skin>"); n != 1 {
		t.Error("the texture is not in its uploader's closet")
	}
}

func TestUploadTypes(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	f := func(kind string, file []byte, want string) {
		t.Helper()
		a := c.upload(t, "name=N&type="+url.QueryEscape(kind), file)
		if a.status != 200 || a.field(t, "data", "type") != want {
			t.Errorf("a %s is answered with %d %s; want type %s", kind, a.status, a.body, want)
		}
	}

	f("steve", skinFile(t, 1), "steve")
	f("alex", skinFile(t, 2), "alex")
	f("cape", capeFile(t), "cape")
	f("skin", skinFile(t, 3), "steve")
	f("skin", fileOf(t, artwork.Ranger(), 1), "alex")
	f(" skin ", skinFile(t, 4), "steve") // text is trimmed
	f("alex", skinFile(t, 1), "alex")    // the same pixels with another type are another texture
}

func TestUploadVisibility(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	variant := byte(0)
	f := func(field, want string) {
		t.Helper()
		variant++
		a := c.upload(t, "name=N&type=steve"+field, skinFile(t, variant))
		if want == "" {
			a.isError(t, 422, 4, "public")
		} else if a.status != 200 || a.field(t, "data", "public") != want {
			t.Errorf("an upload with %q is answered with %d %s; want public %s", field, a.status, a.body, want)
		}
	}

	f("", "true")
	f("&public=true", "true")
	f("&public=1", "true")
	f("&public=false", "false")
	f("&public=False", "false")
	f("&public=+0+", "false")
	f("&public=maybe", "")
	f("&public=", "")
	f("&public=2", "")
}

// exists returns the body of a response to an upload that exists as tid.
func exists(tid string) string {
	return `{"code":2,"message":"<text>","errors":{"file":["<text>"]},"data":{"tid":` + tid + `}}`
}

func TestUploadDuplicates(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	otherUser := c.signUp(t)
	f := func(c client, form string, file []byte, tid string) {
		t.Helper()
		c.upload(t, "name=Again&type=steve"+form, file).is(t, 409, exists(tid))
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
		c.upload(t, form, file).isError(t, 422, 4, fields...)
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
	c.post(t, "/api/textures", `{"name":"N","type":"steve","file":"data"}`).isError(t, 415, 4)
	c.send(t, "POST", "/api/textures", encodeForm("name=N&type=steve&file=data")).isError(t, 415, 4)

	// Files.
	f("name=N&type=steve", []byte{}, "file")
	f("name=N&type=steve", []byte("no PNG"), "file")
	f("name=N&type=steve", []byte("GIF89a"), "file")
	f("name=N&type=steve", file[:len(file)/2], "file")
	f("name=N&type=steve", blank(63, 64), "file")
	f("name=N&type=steve", blank(576, 576), "file") // k = 9
	f("name=N&type=alex", blank(64, 32), "file")
	f("name=N&type=cape", blank(64, 64), "file")
	f("name=N&type=skin", blank(22, 17), "file")
	f("name=N&type=steve", encodePNG(t, image.NewNRGBA64(image.Rect(0, 0, 64, 64))), "file")

	if n := c.site.count(t, "SELECT count(*) FROM textures"); n != 0 {
		t.Errorf("there are %d textures", n)
	}
	for object, err := range c.site.files.List(t.Context()) {
		t.Errorf("the store holds %v, %v", object, err)
	}
}

func TestUploadTooLarge(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	f := func(size, status int) {
		t.Helper()
		// Data after the end of the PNG is ignored, but counts for the limit.
		file := skinFile(t, 1)
		a := c.upload(t, "name=N&type=steve", append(file, make([]byte, size-len(file))...))
		if status == 413 {
			a.isError(t, 413, 4, "file")
			if sentence := a.field(t, "errors", "file"); !strings.Contains(sentence, "1048576 bytes") {
				t.Errorf("a file of %d bytes is answered with %s; want the limit", size, sentence)
			}
		} else if a.status != status {
			t.Errorf("a file of %d bytes is answered with %d %s", size, a.status, a.body)
		}
	}

	f(1<<20+1, 413)
	f(1<<20, 200)
}

// Without a limit of files there is none of upload bodies.
func TestNoUploadLimit(t *testing.T) {
	t.Parallel()

	c := start(t, "UPLOAD_MAX_BYTES=0").signUp(t)
	a := c.upload(t, "name=N&type=steve", append(skinFile(t, 1), make([]byte, 2<<20)...))
	if a.status != 200 {
		t.Errorf("a file of 2 MiB is answered with %d %s", a.status, a.body)
	}
}

// No texture is added when its file cannot be stored.
func TestUploadWhileStoreIsDown(t *testing.T) {
	t.Parallel()

	s := newSite(t)
	regular := filepath.Join(t.TempDir(), "regular")
	if err := os.WriteFile(regular, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.files, err = blobstore.New(blobstore.Config{URL: "file://" + regular + "/textures", Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	c := s.serve(t).signUp(t)
	a := c.upload(t, "name=N&type=steve", skinFile(t, 1))
	a.isError(t, 503, 9)
	if got := a.headerValue("Retry-After"); got != "1" {
		t.Errorf("Retry-After is %q; want 1", got)
	}
	if n := s.count(t, "SELECT count(*) FROM textures"); n != 0 {
		t.Errorf("there are %d textures", n)
	}
}

// The price of an upload is what the upload then costs, and asking for it stores nothing.
func TestUploadPrice(t *testing.T) {
	t.Parallel()

	c := start(t, "SCORE_TEXTURE_KIB=2", "SCORE_PRIVATE_TEXTURE_KIB=3", "SCORE_UPLOAD_REWARD=1").signUp(t)
	f := func(form string, file []byte, kind string, rate int) {
		t.Helper()
		c.site.exec(t, "UPDATE users SET score = 1000 WHERE uid = $1", c.uid)
		before := c.site.totals(t)
		a := c.price(t, form, file)
		if after := c.site.totals(t); after != before {
			t.Errorf("%s: players, textures, items, likes, score and files were %v, and are %v after the price", form, before, after)
		}
		uploaded := c.upload(t, form, file)
		size, err := strconv.Atoi(uploaded.field(t, "data", "size"))
		if err != nil {
			t.Fatal(err)
		}
		a.is(t, 200, fmt.Sprintf(`{"type":%q,"size":%d,"public_price":%d,"private_price":%d,"duplicate":0}`, kind, size, 2*size, 3*size))
		if got, want := c.score(t), 1000-rate*size+1; got != want || uploaded.field(t, "data", "type") != kind {
			t.Errorf("%s: after the upload of %s the score is %d; want %d", form, uploaded.body, got, want)
		}
		before = c.site.totals(t)
		c.price(t, form, file).is(t, 200, fmt.Sprintf(`{"type":%q,"size":%d,"public_price":0,"private_price":0,"duplicate":%s}`,
			kind, size, uploaded.field(t, "data", "tid")))
		if after := c.site.totals(t); after != before {
			t.Errorf("%s: the totals were %v, and are %v after the price of a duplicate", form, before, after)
		}
	}

	f("name=N&type=skin", skinFile(t, 1), "steve", 2)
	f("name=N&type=skin&public=false", fileOf(t, artwork.Ranger(), 1), "alex", 3)
	f("name=N&type=alex&public=false", skinFile(t, 1), "alex", 3) // the same pixels as another type
	f("name=N&type=cape", capeFile(t), "cape", 2)

	// Private textures of other users are no duplicates.
	other := c.signUp(t)
	c.site.exec(t, "UPDATE users SET score = 1000")
	if got := other.price(t, "name=N&type=alex", skinFile(t, 1)).field(t, "duplicate"); got != "0" {
		t.Errorf("the duplicate is %s; want none", got)
	}
}

// The price of an upload is refused as the upload is.
func TestUploadPriceRefuses(t *testing.T) {
	t.Parallel()

	s := newSite(t, "SCORE_TEXTURE_KIB=1", "SCORE_PRIVATE_TEXTURE_KIB=1000", "LIMIT_UPLOADS=0", "LIMIT_PRICES=0")
	c := s.serve(t).signUp(t)
	s.exec(t, "UPDATE users SET score = 999 WHERE uid = $1", c.uid)
	f := func(c client, form string, file []byte, status, code int, fields ...string) {
		t.Helper()
		before := s.totals(t)
		a := c.price(t, form, file)
		a.isError(t, status, code, fields...)
		if want := c.upload(t, form, file); string(want.body) != string(a.body) {
			t.Errorf("the price of %q is refused with %s, and the upload with %s", form, a.body, want.body)
		}
		if after := s.totals(t); after != before {
			t.Errorf("%q: the totals were %v, and are %v", form, before, after)
		}
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
	c.send(t, "POST", "/api/price", encodeJSON(`{"name":"N","type":"steve"}`)).isError(t, 415, 4)

	c.texture(t, "name=N&type=steve", file)
	s.setup.Quotas.Textures = 1
	f(s.serve(t).as(c.token), "name=N&type=steve", skinFile(t, 2), 403, 1)
	s.setup.Quotas.Textures, s.setup.Quotas.ClosetItems = 0, 1
	f(s.serve(t).as(c.token), "name=N&type=steve", skinFile(t, 2), 403, 1)
}
