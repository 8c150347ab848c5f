package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// addPublicTextures inserts public textures of a type, one for each name, without an uploader.
func (c client) addPublicTextures(t *testing.T, kind string, names ...string) {
	t.Helper()
	for _, name := range names {
		c.site.Exec(t, `
			INSERT INTO textures (bytes, public, type, hash, pixels, name)
			SELECT 100, true, $1, sha256(n::text::bytea), sha256(n::text::bytea), $2 FROM (SELECT coalesce(max(tid), 0) AS n FROM textures) counted`, kind, name)
	}
}

// finds checks the names of the textures on a page, and the total.
func finds(t *testing.T, r response, total int, names ...string) {
	t.Helper()
	var page struct {
		From, Total int
		Data        []struct{ Name string }
	}
	testenv.Do(t, json.Unmarshal(r.Body, &page))
	got := []string{}
	for _, texture := range page.Data {
		got = append(got, texture.Name)
	}
	r.HasStatus(t, 200)
	testenv.Check(t, page.Total == total && slices.Equal(got, names) && (page.From == 0) == (len(names) == 0),
		"%s is answered with %q of %d; want %q of %d", r.Request(), got, page.Total, names, total)
}

func TestLibrary(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.Get(t, "/api/textures").Is(t, 200,
		`{"per_page":6,"from":0,"to":0,"total":0,"total_is_lower_bound":false,"current_page":1,"last_page":1,"data":[]}`)
	ann, bob := c.signUp(t), c.signUp(t)
	tid := ann.texture(t, "name=Steve&type=steve", skinFile(t, 1))
	c.Get(t, "/api/textures").Is(t, 200, fmt.Sprintf(`{"per_page":6,"from":1,"to":1,"total":1,"total_is_lower_bound":false,"current_page":1,"last_page":1,
		"data":[{"tid":%s,"name":"Steve","type":"steve","hash":"<hash>","size":"<integer>","uploader":%d,"uploader_nickname":"Somebody","public":true,"upload_at":"<time>","likes":1}]}`, tid, ann.UID))

	// Every core lists a change at once, also one made by another core.
	other := c.site.serve(t)
	finds(t, other.Get(t, "/api/textures"), 1, "Steve")
	bobs := bob.texture(t, "name=Bobs+cape&type=cape", capeFile(t))
	ann.texture(t, "name=Ann+alone&type=alex&public=false", skinFile(t, 2))
	bob.texture(t, "name=Bob+alone&type=steve&public=false", skinFile(t, 3))
	bob.Post(t, "/api/closet", `{"tid":`+tid+`,"name":"N"}`)
	f := func(query string, names ...string) {
		t.Helper()
		for _, reader := range []client{c, other} {
			finds(t, reader.Get(t, "/api/textures?"+query), len(names), names...)
		}
	}
	f("", "Bobs cape", "Steve")
	f("sort=newest", "Bobs cape", "Steve")
	f("sort=likes", "Steve", "Bobs cape")
	f("type=cape", "Bobs cape")
	f("type=skin", "Steve")
	f("type=alex")
	f("q=BOB", "Bobs cape")
	f("q=steve&type=steve", "Steve")
	f("q=steve&type=cape")
	f("q=alone")
	f("uploader="+fmt.Sprint(ann.UID), "Steve")
	f("uploader=0")
	f("uploader=999999")

	// A user also sees their own private textures, and an administrator all of them.
	finds(t, ann.Get(t, "/api/textures"), 3, "Ann alone", "Bobs cape", "Steve")
	finds(t, ann.Get(t, "/api/textures?uploader="+fmt.Sprint(bob.UID)), 1, "Bobs cape")
	finds(t, ann.Get(t, "/api/textures?type=alex&q=alone"), 1, "Ann alone")
	c.site.Exec(t, "UPDATE users SET permission = 1 WHERE uid = $1", bob.UID)
	finds(t, bob.Get(t, "/api/textures?q=alone&sort=likes"), 2, "Bob alone", "Ann alone")
	c.as("none that works").Get(t, "/api/textures").IsError(t, 401, 5)
	c.site.Exec(t, "UPDATE users SET permission = -1 WHERE uid = $1", bob.UID)
	bob.Get(t, "/api/textures").IsError(t, 403, -1)

	c.site.Exec(t, "UPDATE users SET permission = 0 WHERE uid = $1", bob.UID)
	bob.Put(t, "/api/textures/"+bobs, `{"name":"Dusk"}`)
	f("q=dus", "Dusk")
	f("q=bob")
	ann.Put(t, "/api/textures/"+tid, `{"public":false}`)
	f("", "Dusk")
	bob.Delete(t, "/api/textures/"+bobs)
	f("")
	ann.Put(t, "/api/textures/"+tid, `{"public":true}`)
	c.site.Exec(t, "DELETE FROM users WHERE uid = $1", ann.UID)
	f("uploader=0", "Steve")
}

func TestLibraryPages(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.addPublicTextures(t, "steve", numbered(7)...)
	f := func(query string, perPage, from, to, page, lastPage int) {
		t.Helper()
		a := c.Get(t, "/api/textures?"+query)
		for field, want := range map[string]int{"per_page": perPage, "from": from, "to": to, "total": 7, "current_page": page, "last_page": lastPage} {
			a.HasField(t, fmt.Sprint(want), field)
		}
	}

	f("", 6, 1, 6, 1, 2)
	f("page=2", 6, 7, 7, 2, 2)
	f("page=3", 6, 0, 0, 3, 2)
	f("page=100&perPage=100", 100, 0, 0, 100, 1)
	f("page=10000&perPage=1", 1, 0, 0, 10000, 7)
	f("perPage=1&page=7&sort=likes", 1, 7, 7, 7, 7)
	f("perPage=7", 7, 1, 7, 1, 1)
	finds(t, c.Get(t, "/api/textures?perPage=2&page=2"), 7, "Item 5", "Item 4")
	finds(t, c.Get(t, "/api/textures?perPage=2&page=2&sort=likes"), 7, "Item 5", "Item 4") // equal likes: newest first

	for _, query := range []string{"page=0", "page=1667", "page=101&perPage=100", "page=10001&perPage=1", "page=x", "perPage=0", "perPage=101", "type=hat", "type=", "sort=oldest", "uploader=-1", "uploader=me", "q=ab", "q=%00abc"} {
		field, _, _ := strings.Cut(query, "=")
		c.Get(t, "/api/textures?"+query).IsError(t, 422, 4, field)
	}

	// More textures than are counted.
	c.site.Exec(t, `
		INSERT INTO textures (bytes, public, type, hash, pixels, name)
		SELECT 100, true, 'cape', sha256(n::text::bytea), sha256(n::text::bytea), 'Many' FROM generate_series(1, 10000) n`)
	counts := func(query, want string) {
		t.Helper()
		a := c.Get(t, "/api/textures?"+query)
		for i, name := range []string{"total_is_lower_bound", "total", "to", "last_page"} {
			a.HasField(t, strings.Fields(want)[i], name)
		}
	}
	for _, sort := range []string{"newest", "likes"} {
		counts("type=cape&perPage=100&page=100&sort="+sort, "false 10000 10000 100")
		counts("perPage=100&page=100&sort="+sort, "true 10000 10000 100")
		counts("perPage=100&page=99&sort="+sort, "true 9900 9900 100")
		counts("perPage=100&sort="+sort, "true 1000 100 100")
		counts("sort="+sort, "true 1000 6 1666")
	}
}

func TestLibrarySearch(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.addPublicTextures(t, "steve", "Red Fox", "100% wool", "a_b_c", `back\slash`, "Zoë", "ÉCLAIR", "ΣΟΦΙΑΣΜΑ", "ЁЖИК", "红狐狸", "キツネ", "여우비", "no")
	f := func(q string, names ...string) {
		t.Helper()
		finds(t, c.Get(t, "/api/textures?q="+url.QueryEscape(q)), len(names), names...)
	}

	for q, name := range map[string]string{
		"fox": "Red Fox", "00%": "100% wool", "a_b": "a_b_c", `k\s`: `back\slash`,
		"zoË": "Zoë", "zoe\u0308": "Zoë", "écl": "ÉCLAIR", "σοφιασ": "ΣΟΦΙΑΣΜΑ", "ёжи": "ЁЖИК",
		"狐狸": "红狐狸", "キツ": "キツネ", "여우": "여우비",
	} {
		f(q, name)
	}
	f("  D F ", "Red Fox")
	for _, q := range []string{"%%%", "a_c", "___", `\\\`, "スー", "ｽｰ", "か\u3099く", "ㄅㄆ"} {
		f(q)
	}
	finds(t, c.Get(t, "/api/textures?q=+"), 12, "no", "여우비", "キツネ", "红狐狸", "ЁЖИК", "ΣΟΦΙΑΣΜΑ")
	for _, short := range []string{"狐", "a狐", "no", "ae\u0301"} { // the last are two characters of three code points
		c.Get(t, "/api/textures?q="+url.QueryEscape(short)).IsError(t, 422, 4, "q")
	}
}

func TestTexture(t *testing.T) {
	t.Parallel()
	c := start(t)
	ann, bob, admin := c.signUp(t), c.signUp(t), c.signUp(t)
	c.site.Exec(t, "UPDATE users SET permission = 1 WHERE uid = $1", admin.UID)
	public := ann.texture(t, "name=A&type=steve", skinFile(t, 1))
	private := ann.texture(t, "name=B&type=cape&public=false", capeFile(t))
	want := func(tid, name, kind string, public bool) string {
		return fmt.Sprintf(`{"tid":%s,"name":%q,"type":%q,"hash":"<hash>","size":"<integer>","uploader":%d,"uploader_nickname":"Somebody","public":%t,"upload_at":"<time>","likes":1}`,
			tid, name, kind, ann.UID, public)
	}

	seen := func(reader client, tid, name, kind string, public bool) string {
		texture := want(tid, name, kind, public)
		if reader.Token != "" {
			inCloset := `"in_closet":false`
			if reader.UID == ann.UID {
				inCloset = fmt.Sprintf(`"in_closet":true,"item_name":%q`, name)
			}
			texture = strings.TrimSuffix(texture, "}") + "," + inCloset + "}"
		}
		return texture
	}
	for _, reader := range []client{c, ann, bob, admin} {
		reader.Get(t, "/api/textures/"+public).Is(t, 200, seen(reader, public, "A", "steve", true))
		reader.Get(t, "/api/textures/999999").IsError(t, 404, 3)
		reader.Get(t, "/api/textures/x").IsError(t, 404, 3)
	}
	for _, reader := range []client{ann, admin} {
		reader.Get(t, "/api/textures/"+private).Is(t, 200, seen(reader, private, "B", "cape", false))
	}
	for _, reader := range []client{c, bob} {
		reader.Get(t, "/api/textures/"+private).IsError(t, 403, 6)
	}

	bob.Put(t, "/api/textures/"+public, `{"name":"C"}`).IsError(t, 403, 6)
	bob.Delete(t, "/api/textures/"+public).IsError(t, 403, 6)
	c.Put(t, "/api/textures/"+public, `{"name":"C"}`).IsError(t, 401, 5)
	c.Delete(t, "/api/textures/"+public).IsError(t, 401, 5)
	ann.Put(t, "/api/textures/"+public, `{"name":" C "}`).Is(t, 200, done(want(public, "C", "steve", true)))
	admin.Put(t, "/api/textures/"+public, `{"name":"D","type":"alex"}`).Is(t, 200, done(want(public, "D", "alex", true)))
	ann.Send(t, "PUT", "/api/textures/"+public, encodeForm("type=steve&public=0")).Is(t, 200, done(want(public, "D", "steve", false)))

	f := func(tid, change, field string) {
		t.Helper()
		ann.Put(t, "/api/textures/"+tid, change).IsError(t, 422, 4, field)
	}
	f(public, `{}`, "name")
	f(public, `{"name":null}`, "name")
	f(public, `{"name":""}`, "name")
	f(public, `{"type":"cape"}`, "type")
	f(public, `{"type":"skin"}`, "type")
	f(public, `{"public":"maybe"}`, "public")
	f(private, `{"type":"steve"}`, "type")
	flat := ann.texture(t, "name=Flat&type=steve", capeFile(t))
	f(flat, `{"type":"alex"}`, "type")
	ann.Put(t, "/api/textures/"+flat, `{"type":"steve","name":"Even"}`).Is(t, 200, done(want(flat, "Even", "steve", true)))

	twin := ann.texture(t, "name=Twin&type=alex", skinFile(t, 1))
	ann.Put(t, "/api/textures/"+public, `{"type":"alex"}`).Is(t, 409,
		`{"code":2,"message":"<text>","errors":{"type":["<text>"]},"data":{"tid":`+twin+`}}`)
	theirs := bob.texture(t, "name=Theirs&type=steve", skinFile(t, 1))
	ann.Put(t, "/api/textures/"+public, `{"public":true}`).Is(t, 409,
		`{"code":2,"message":"<text>","errors":{"public":["<text>"]},"data":{"tid":`+theirs+`}}`)

	admin.Delete(t, "/api/textures/"+public).Is(t, 200, `{"code":0,"message":"<text>"}`)
	ann.Delete(t, "/api/textures/"+public).IsError(t, 404, 3)
	ann.Delete(t, "/api/textures/"+private).Is(t, 200, `{"code":0,"message":"<text>"}`)
	ann.Get(t, "/api/textures/"+private).IsError(t, 404, 3)
}

// Textures say whether they are in the closet of the request's user, and nothing without one.
func TestInCloset(t *testing.T) {
	t.Parallel()
	c := start(t)
	ann, bob := c.signUp(t), c.signUpAs(t, core.Administrator)
	first, second := ann.texture(t, "name=A&type=steve", skinFile(t, 1)), ann.texture(t, "name=B&type=steve", skinFile(t, 2))
	bob.Post(t, "/api/closet", `{"tid":`+second+`,"name":"N"}`)
	ann.Delete(t, "/api/closet/"+second)
	f := func(reader client, path string, inFirst, inSecond any) {
		t.Helper()
		var page struct{ Data []map[string]any }
		reader.Get(t, path).Decode(t, &page)
		testenv.Check(t, len(page.Data) == 2 && page.Data[0]["in_closet"] == inSecond && page.Data[1]["in_closet"] == inFirst,
			"%s lists %v; want in_closet %v and %v", path, page.Data, inSecond, inFirst)
		for tid, want := range map[string]any{first: inFirst, second: inSecond} {
			var texture map[string]any
			reader.Get(t, "/api/textures/"+tid).Decode(t, &texture)
			testenv.Equal(t, texture["in_closet"], want, "texture %s has in_closet", tid)
		}
	}

	for _, query := range []string{"", "?sort=likes&perPage=100&page=1", fmt.Sprintf("?uploader=%d", ann.UID)} {
		f(c, "/api/textures"+query, nil, nil)
	}
	f(ann, "/api/textures", true, false)
	f(bob, "/api/textures", false, true)
	bob.Get(t, "/api/textures/"+second).HasField(t, "N", "item_name")
	f(bob, "/api/admin/textures", false, true)
	bob.Delete(t, "/api/closet/"+second)
	f(bob, "/api/textures", false, false)
}

// Textures have the current nickname of their uploader, and none once the account is deleted.
func TestUploaderNickname(t *testing.T) {
	t.Parallel()
	c := start(t)
	ann, admin := c.signUp(t), c.signUpAs(t, core.Administrator)
	tid := ann.texture(t, "name=A&type=steve", skinFile(t, 1))
	admin.Post(t, "/api/closet", `{"tid":`+tid+`,"name":"N"}`)
	f := func(want any) {
		t.Helper()
		var texture map[string]any
		admin.Get(t, "/api/textures/"+tid).Decode(t, &texture)
		testenv.Equal(t, texture["uploader_nickname"], want, "the uploader's nickname")
		for _, path := range []string{"/api/textures", "/api/admin/textures", "/api/closet", admin.user() + "/closet"} {
			var page struct{ Data []map[string]any }
			admin.Get(t, path).Decode(t, &page)
			testenv.Check(t, len(page.Data) == 1 && page.Data[0]["uploader_nickname"] == want,
				"%s lists %v; want the nickname %v", path, page.Data, want)
		}
	}

	f("Somebody")
	ann.Put(t, "/api/user", `{"nickname":"Änn <b>"}`)
	f("Änn <b>")
	ann.Put(t, "/api/textures/"+tid, `{"name":"B"}`).HasField(t, "Änn <b>", "data", "uploader_nickname")
	c.site.Exec(t, "DELETE FROM users WHERE uid = $1", ann.UID)
	f(nil)
}

// The deletion of a texture leaves its file, which the sweep deletes later.
func TestDeleteTextureKeepsFile(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	tid := c.texture(t, "name=A&type=steve", skinFile(t, 1))
	hash := testenv.Must(skin.ParseHash(c.Get(t, "/api/textures/"+tid).Field(t, "hash")))(t)
	c.Delete(t, "/api/textures/"+tid)
	testenv.Must(c.site.Files.Get(t.Context(), hash))(t)
}

// Whether a skin is square is known from its file only.
func TestChangeTypeNeedsFile(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	empty := testenv.Must(blobstore.New(blobstore.Config{URL: "file://" + t.TempDir(), Timeout: time.Minute}))(t)
	c := s.serve(t).signUp(t)
	slim, classic := c.texture(t, "name=A&type=alex", skinFile(t, 1)), c.texture(t, "name=B&type=steve", skinFile(t, 2))
	d := s.NewDomain(t)
	d.Textures = core.NewTextures(d.DB, empty, s.Setup.Textures, s.Setup.Quotas, s.Setup.Scores)
	emptyStore := s.clientOf(t, d).from(t, "0.0.0.0").as(c.Token)
	emptyStore.Put(t, "/api/textures/"+slim, `{"type":"steve"}`).Is(t, 200, done(`{"tid":"<integer>","name":"A","type":"steve","hash":"<hash>","size":"<integer>",
		"uploader":"<integer>","uploader_nickname":"Somebody","public":true,"upload_at":"<time>","likes":1}`)) // a slim skin is always square
	emptyStore.Put(t, "/api/textures/"+classic, `{"type":"alex"}`).IsError(t, 503, 9)
}
