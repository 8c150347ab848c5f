package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// fillCloset adds textures of a type, one for each name, to the client's closet. They have no
// uploader.
func (c client) fillCloset(t *testing.T, kind string, names ...string) {
	t.Helper()
	for _, name := range names {
		c.site.Exec(t, `
			WITH t AS (
				INSERT INTO textures (bytes, public, type, hash, pixels, name, likes)
				SELECT 100, true, $2, sha256(n::text::bytea), sha256(n::text::bytea), 'Texture', 1 FROM (SELECT count(*) AS n FROM textures) counted
				RETURNING tid
			)
			INSERT INTO closet_items (uid, tid, cape, item_name, added_at) SELECT $1, tid, $2 = 'cape', $3, '2024-05-06'::timestamptz + tid * interval '1 s' FROM t`,
			c.UID, kind, name)
	}
}

// numbered returns n names of items, in the order of their additions.
func numbered(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("Item %d", i+1)
	}
	return names
}

// lists checks the fields of a closet's page and the names of its items.
func lists(t *testing.T, r response, perPage, from, to, total, page, lastPage int, names ...string) {
	t.Helper()
	var items []string
	for _, name := range names {
		items = append(items, fmt.Sprintf(`{"tid":"<integer>","name":"<text>","type":"<text>","hash":"<hash>","size":"<integer>","uploader":0,
			"public":true,"upload_at":"<time>","likes":"<integer>","pivot":{"item_name":%q}}`, name))
	}
	r.Is(t, 200, pageOf(perPage, from, to, total, page, lastPage, items...))
}

func TestCloset(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	otherUser := c.signUp(t)
	c.Get(t, "/api/closet").Is(t, 200, `{"per_page":6,"from":0,"to":0,"total":0,"current_page":1,"last_page":1,"data":[]}`)

	slim := c.texture(t, "name=Slim&type=alex&public=false", skinFile(t, 1))
	otherUser.texture(t, "name=Theirs&type=steve", skinFile(t, 2))
	cape := otherUser.texture(t, "name=Dawn&type=cape", capeFile(t))
	c.Post(t, "/api/closet", `{"tid":`+cape+`,"name":"My <cape>"}`).Is(t, 200, `{"code":0,"message":"<text>"}`)

	const page = `{"per_page":6,"from":1,"to":1,"total":1,"current_page":1,"last_page":1,"data":[{"tid":%s,"name":"%s","type":"%s","hash":"<hash>",
		"size":"<integer>","uploader":%d,"uploader_nickname":"Somebody","public":%t,"upload_at":"<time>","likes":%d,"pivot":{"item_name":"%s"}}]}`
	for _, query := range []string{"", "?category=skin", "?category=+skin+&page=1&perPage=6&q="} {
		c.Get(t, "/api/closet"+query).Is(t, 200, fmt.Sprintf(page, slim, "Slim", "alex", c.UID, false, 1, "Slim"))
	}
	c.Get(t, "/api/closet?category=cape").Is(t, 200, fmt.Sprintf(page, cape, "Dawn", "cape", otherUser.UID, true, 2, "My <cape>"))
}

func TestClosetPages(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	c.fillCloset(t, "steve", numbered(7)...)
	c.fillCloset(t, "cape", "Cape")
	f := func(query string, perPage, from, to, page, lastPage int, names ...string) {
		t.Helper()
		lists(t, c.Get(t, "/api/closet?"+query), perPage, from, to, 7, page, lastPage, names...)
	}

	f("", 6, 1, 6, 1, 2, "Item 7", "Item 6", "Item 5", "Item 4", "Item 3", "Item 2")
	f("page=2", 6, 7, 7, 2, 2, "Item 1")
	f("page=3", 6, 0, 0, 3, 2)
	f("page=2147483648", 6, 0, 0, 2147483648, 2)
	f("perPage=100&page=2147483648", 100, 0, 0, 2147483648, 1)
	f("perPage=1&page=7", 1, 7, 7, 7, 7, "Item 1")
	f("perPage=7", 7, 1, 7, 1, 1, "Item 7", "Item 6", "Item 5", "Item 4", "Item 3", "Item 2", "Item 1")
	f("perPage=100", 100, 1, 7, 1, 1, "Item 7", "Item 6", "Item 5", "Item 4", "Item 3", "Item 2", "Item 1")
	f("perPage=3&page=2&perPage=1&other=1", 3, 4, 6, 2, 3, "Item 4", "Item 3", "Item 2")

	f("sort=name", 6, 1, 6, 1, 2, "Item 1", "Item 2", "Item 3", "Item 4", "Item 5", "Item 6")
	f("sort=name&page=2&q=item", 6, 7, 7, 2, 2, "Item 7")
	c.site.Exec(t, "UPDATE closet_items SET item_key = NULL") // as a core of a former release leaves it
	f("sort=name&perPage=2", 2, 1, 2, 1, 4, "Item 1", "Item 2")

	// Items added at the same time have a stable order, so that no item is on two pages.
	c.site.Exec(t, "UPDATE closet_items SET added_at = now()")
	f("perPage=4", 4, 1, 4, 1, 2, "Item 7", "Item 6", "Item 5", "Item 4")
	f("perPage=4&page=2", 4, 5, 7, 2, 2, "Item 3", "Item 2", "Item 1")

	// Other users have closets of their own.
	lists(t, c.signUp(t).Get(t, "/api/closet"), 6, 0, 0, 0, 1, 1)
}

func TestClosetSearch(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	c.fillCloset(t, "steve", "Red Fox", "100% wool", "a_b", `back\slash`, "Zoë", "ÉCLAIR", "ΣΟΦΙΑΣΜΑ", "ЁЖИК", "straße", "aXb")
	c.fillCloset(t, "cape", "Red cape")
	f := func(q string, names ...string) {
		t.Helper()
		lists(t, c.Get(t, "/api/closet?q="+url.QueryEscape(q)), 6, min(1, len(names)), len(names), len(names), 1, 1, names...)
	}

	for q, name := range map[string]string{
		"fox": "Red Fox", "D F": "Red Fox", "  red\t": "Red Fox", "%": "100% wool", "_": "a_b", "a_b": "a_b",
		`\`: `back\slash`, `\s`: `back\slash`, "zoË": "Zoë", "éclair": "ÉCLAIR", "ёжик": "ЁЖИК",
		"σοφιας": "ΣΟΦΙΑΣΜΑ", // σ and ς are the same letter
		"STRAẞE": "straße", "strasse": "straße",
	} {
		f(q, name)
	}
	for _, q := range []string{"fox red", ".*", "'", strings.Repeat("x", 64)} {
		f(q)
	}

	// A search has pages of its own.
	lists(t, c.Get(t, "/api/closet?q=a&perPage=2&page=2&category=skin"), 2, 3, 4, 5, 2, 3, "ÉCLAIR", `back\slash`)
	lists(t, c.Get(t, "/api/closet?q=red&category=cape"), 6, 1, 1, 1, 1, 1, "Red cape")
}

func TestClosetRefuses(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	f := func(query string, fields ...string) {
		t.Helper()
		c.Get(t, "/api/closet?"+query).IsError(t, 422, 4, fields...)
	}

	for _, category := range []string{"", "hat", "steve", "Skin", "skin,cape", "%00"} {
		f("category="+category, "category")
	}
	for _, sort := range []string{"", "likes", "Name"} {
		f("sort="+sort, "sort")
	}
	for _, page := range []string{"0", "-1", "one", "1.5", "1e3", "0x1", "2147483649", "9223372036854775807", "99999999999999999999"} {
		f("page="+page, "page")
	}
	for _, perPage := range []string{"0", "-1", "101", "six", "99999999999999999999"} {
		f("perPage="+perPage, "perPage")
	}
	c.Get(t, "/api/closet?page=&perPage=+").Has(t, "current_page", "1", "per_page", "6") // empty numbers are as absent
	for _, q := range []string{"a%00b", "a%0Ab", "%FF", strings.Repeat("x", 65)} {
		f("q="+q, "q")
	}
	f("page=0&perPage=0&q=a%00b", "page", "perPage", "q")
	f("category=hat&page=one&perPage=six&q=%FF", "category", "page", "perPage", "q")
}

func TestAddClosetItem(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	public := c.texture(t, "name=Public&type=steve", skinFile(t, 1))
	private := c.texture(t, "name=Private&type=steve&public=false", skinFile(t, 2))
	likes := func(tid string) int { return c.site.Count(t, "SELECT likes FROM textures WHERE tid = "+tid) }

	added := 1 // by the uploader
	for _, body := range []body{
		encodeJSON(`{"tid":` + public + `,"name":" Mine ","unknown":1}`),
		encodeForm("tid=+" + public + "+&name=Mine"),
		encodeMultipart(t, "name=Mine&tid="+public, nil),
	} {
		fan := c.signUp(t)
		fan.Send(t, "POST", "/api/closet", body).Is(t, 200, `{"code":0,"message":"<text>"}`)
		testenv.Contains(t, string(fan.Get(t, "/api/closet").Body), `"item_name":"Mine"`, "the closet after %s", body.Content)
		added++
		testenv.Equal(t, likes(public), added, "likes of the texture, one for each closet")
	}

	// A private texture is for its uploader and for administrators.
	fan := c.signUp(t)
	fan.Post(t, "/api/closet", `{"tid":`+private+`,"name":"N"}`).IsError(t, 403, 6)
	for _, permission := range []int{1, 2} {
		admin := c.signUp(t)
		c.site.Exec(t, "UPDATE users SET permission = $2 WHERE uid = $1", admin.UID, permission)
		admin.Post(t, "/api/closet", `{"tid":`+private+`,"name":"N"}`).Is(t, 200, `{"code":0,"message":"<text>"}`)
	}
	c.Delete(t, "/api/closet/"+private)
	c.Post(t, "/api/closet", `{"tid":`+private+`,"name":"Again"}`).Is(t, 200, `{"code":0,"message":"<text>"}`)
	testenv.Equal(t, likes(private), 3, "likes of the private texture, one for each closet")
}

func TestAddClosetItemRefuses(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	tid := c.texture(t, "name=N&type=steve", skinFile(t, 1))
	fan := c.signUp(t)
	f := func(object string, fields ...string) {
		t.Helper()
		fan.Post(t, "/api/closet", object).IsError(t, 422, 4, fields...)
	}

	f(`{}`, "name", "tid")
	fan.Send(t, "POST", "/api/closet", body{}).IsError(t, 422, 4, "name", "tid")
	f(`{"tid":null,"name":null}`, "name", "tid")
	f(`{"tid":0,"name":" "}`, "name", "tid")
	f(`{"tid":-1,"name":"N"}`, "tid")
	f(`{"tid":"one","name":5}`, "name", "tid")
	f(`{"tid":1.5,"name":"N"}`, "tid")
	f(`{"tid":99999999999999999999,"name":"N"}`, "tid")
	f(`{"tid":`+tid+`}`, "name")
	f(`{"tid":`+tid+`,"name":""}`, "name")
	f(`{"tid":`+tid+`,"name":"`+strings.Repeat("ä", 65)+`"}`, "name")
	f(`{"tid":`+tid+`,"name":"a\nb"}`, "name")
	f(`{"tid":`+tid+`,"name":"a\u0000b"}`, "name")
	fan.Send(t, "POST", "/api/closet", encodeForm("tid="+tid+"&name=a%FFb")).IsError(t, 422, 4, "name")
	fan.Post(t, "/api/closet", `{"tid":999999,"name":"N"}`).IsError(t, 404, 3)
	fan.Post(t, "/api/closet", `{"tid":9223372036854775807,"name":"N"}`).IsError(t, 404, 3)

	fan.Post(t, "/api/closet", `{"tid":`+tid+`,"name":"`+strings.Repeat("ä", 64)+`"}`).HasStatus(t, 200)
	fan.Post(t, "/api/closet", `{"tid":`+tid+`,"name":"Again"}`).IsError(t, 409, 2, "tid")
	c.Post(t, "/api/closet", `{"tid":`+tid+`,"name":"Again"}`).IsError(t, 409, 2, "tid") // the upload has added it
	c.site.HasCount(t, 2, "SELECT likes FROM textures")
}

func TestRenameClosetItem(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	otherUser := c.signUp(t)
	tid := c.texture(t, "name=N&type=steve", skinFile(t, 1))
	otherUser.Post(t, "/api/closet", `{"tid":`+tid+`,"name":"Theirs"}`)
	name := func(c client) string {
		return c.site.Text(t, "SELECT item_name FROM closet_items WHERE uid = $1", c.UID)
	}

	for i, body := range []body{encodeJSON(`{"name":" Name 0 "}`), encodeForm("name=Name+1"), encodeMultipart(t, "name=Name+2", nil)} {
		c.Send(t, "PUT", "/api/closet/"+tid, body).Is(t, 200, `{"code":0,"message":"<text>"}`)
		testenv.Equal(t, name(c), fmt.Sprintf("Name %d", i), "after %s the item", body.Content)
	}
	for _, object := range []string{`{}`, `{"name":null}`, `{"name":" "}`, `{"name":5}`, `{"name":"` + strings.Repeat("x", 65) + `"}`, `{"name":"a\tb"}`} {
		c.Put(t, "/api/closet/"+tid, object).IsError(t, 422, 4, "name")
	}
	testenv.Equal(t, name(c), "Name 2", "after refusals the item")
	testenv.Equal(t, name(otherUser), "Theirs", "an item of another user")

	hers := otherUser.texture(t, "name=N&type=steve", skinFile(t, 2))
	for _, tid := range []string{hers, "999999", "0", "-1", "steve", "99999999999999999999"} {
		c.Put(t, "/api/closet/"+tid, `{"name":"N"}`).IsError(t, 404, 3)
	}
}

func TestRemoveClosetItem(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	otherUser := c.signUp(t)
	tid := c.texture(t, "name=N&type=steve", skinFile(t, 1))
	otherUser.Post(t, "/api/closet", `{"tid":`+tid+`,"name":"Theirs"}`)

	c.Delete(t, "/api/closet/"+tid).Is(t, 200, `{"code":0,"message":"<text>"}`)
	lists(t, c.Get(t, "/api/closet"), 6, 0, 0, 0, 1, 1)
	c.site.HasCount(t, 1, "SELECT likes FROM textures")
	for _, tid := range []string{tid, "999999", "0", "-1", "steve", "99999999999999999999"} {
		c.Delete(t, "/api/closet/"+tid).IsError(t, 404, 3)
	}
	c.site.HasCount(t, 1, "SELECT likes FROM textures")
}

// A player keeps a texture that its owner may use without the closet, and loses others.
func TestRemoveClosetItemRemovesTextures(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	uploader, other := c.signUp(t), c.signUp(t)
	c.site.Exec(t, "UPDATE users SET permission = 1 WHERE uid IN ($1, $2)", c.UID, other.UID)
	public := uploader.texture(t, "name=Public&type=steve", skinFile(t, 1))
	private := uploader.texture(t, "name=Private&type=steve&public=false", skinFile(t, 2))
	cape := uploader.texture(t, "name=Cape&type=cape&public=false", capeFile(t))
	own := c.texture(t, "name=Own&type=steve&public=false", skinFile(t, 3))
	wear := func(c client, path, skin string) {
		t.Helper()
		c.Put(t, path+"/textures", `{"skin":`+skin+`,"cape":`+cape+`}`).HasStatus(t, 200)
	}
	for _, admin := range []client{c, other} {
		for _, tid := range []string{public, private, cape} {
			admin.Post(t, "/api/closet", `{"tid":`+tid+`,"name":"N"}`)
		}
	}
	steve, alex, zombie := c.player(t, "Steve"), c.player(t, "Alex"), other.player(t, "Zombie")
	wears := func(c client, name, skin, cape string) {
		t.Helper()
		testenv.Equal(t, c.outfit(t, name), outfit{skin, cape}, "what %s wears", name)
	}

	// Public textures and the owner's own stay on.
	wear(c, steve, public)
	wear(c, alex, own)
	c.Delete(t, "/api/closet/"+public)
	c.Delete(t, "/api/closet/"+own)
	wears(c, "Steve", public, cape)
	wears(c, "Alex", own, cape)

	// A private texture of another user is taken off all players of the user. Other textures stay
	// on, and so does this one on players of other users and of its uploader.
	wear(c, steve, private)
	wear(other, zombie, private)
	uploaders := uploader.player(t, "Painter")
	wear(uploader, uploaders, private)
	c.site.Exec(t, "UPDATE players SET last_modified = '2024-05-06 07:08:09+00'")
	c.Delete(t, "/api/closet/"+private).Is(t, 200, `{"code":0,"message":"<text>"}`)
	wears(c, "Steve", "0", cape)
	c.site.HasCount(t, 0, "SELECT count(*) FROM players WHERE (last_modified > '2024-05-07') <> (name = 'Steve')")
	c.Delete(t, "/api/closet/"+cape)
	wears(c, "Steve", "0", "0")
	wears(c, "Alex", own, "0")
	wears(other, "Zombie", private, cape)
	wears(uploader, "Painter", private, cape)
	c.Put(t, steve+"/textures", `{"skin":`+private+`}`).IsError(t, 403, 6)

	// The uploader's players keep the texture when the uploader removes it.
	uploader.Delete(t, "/api/closet/"+private)
	wears(uploader, "Painter", private, cape)
}
