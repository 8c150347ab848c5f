package api_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// userJSON returns the client's user as the API writes it.
func (c client) userJSON(email, nickname, score string, permission core.Permission, verified bool) string {
	return fmt.Sprintf(`{"uid":%d,"email":%q,"nickname":%q,"avatar":0,"score":%s,"permission":%d,"last_sign_at":"<time>","next_sign_at":"<time>","register_at":"<time>","verified":%t}`,
		c.UID, email, nickname, score, permission, verified)
}

// A granted change takes effect and adds one entry to the audit log; a rejected one does neither.
func TestAdminChangesUser(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin, root := c.signUpAs(t, core.Administrator), c.signUpAs(t, core.SuperAdministrator)
	user, peer := c.signUp(t), c.signUpAs(t, core.Administrator)
	user.withPassword(t, "first horse")
	user = user.as(user.logIn(t, "user3@example.com", "first horse").Field(t, "token"))
	for _, test := range []struct {
		act         string
		object      string
		want        string // user
		details     string // details
		invalid     []string
		field       string
		keepsTokens bool
	}{
		{
			"nickname", `{"nickname":" Zoë <b> "}`, user.userJSON("user3@example.com", "Zoë <b>", "0", 0, false),
			`{"to": "Zoë <b>", "from": "Somebody", "email": "user3@example.com", "nickname": "Somebody"}`,
			[]string{`{}`, `{"nickname":""}`, `{"nickname":5}`, `{"nickname":"a\nb"}`, `{"nickname":"` + strings.Repeat("x", 65) + `"}`},
			"nickname", true,
		},
		{
			"verified", `{"verified":true}`, user.userJSON("user3@example.com", "Zoë <b>", "0", 0, true),
			`{"to": true, "from": false, "email": "user3@example.com", "nickname": "Zoë <b>"}`,
			[]string{`{}`, `{"verified":null}`, `{"verified":5}`, `{"verified":"x"}`},
			"verified", true,
		},
		{
			"email", `{"email":" Zoe@Example.com "}`, user.userJSON("Zoe@Example.com", "Zoë <b>", "0", 0, false),
			`{"to": "Zoe@Example.com", "from": "user3@example.com", "email": "user3@example.com", "nickname": "Zoë <b>"}`,
			[]string{`{}`, `{"email":""}`, `{"email":"nobody"}`, `{"email":5}`},
			"email", true,
		},
		{
			"score", `{"score":` + "1000000000000" + `}`, user.userJSON("Zoe@Example.com", "Zoë <b>", "1000000000000", 0, false),
			`{"to": 1000000000000, "from": 0, "email": "Zoe@Example.com", "nickname": "Zoë <b>"}`,
			[]string{`{}`, `{"score":-1}`, `{"score":1.5}`, `{"score":9223372036854775808}`, `{"score":"x"}`},
			"score", true,
		},
		{
			"password", `{"password":" second horse "}`, user.userJSON("Zoe@Example.com", "Zoë <b>", "1000000000000", 0, false),
			`{"email": "Zoe@Example.com", "nickname": "Zoë <b>"}`,
			[]string{`{}`, `{"password":"1234567"}`, `{"password":"` + strings.Repeat("x", 129) + `"}`, `{"password":5}`},
			"password", false,
		},
	} {
		path := user.user() + "/" + test.act
		before := len(c.site.acts(t))
		for _, object := range test.invalid {
			root.Put(t, path, object).IsError(t, 422, 4, test.field)
		}
		root.Put(t, "/api/admin/users/999999/"+test.act, test.object).IsError(t, 404, 3)
		for _, of := range []client{admin, peer, root} {
			admin.Put(t, of.user()+"/"+test.act, test.object).IsError(t, 403, 6)
		}
		root.Put(t, root.user()+"/"+test.act, test.object).IsError(t, 403, 6)
		root.logs(t, before)
		user.works(t, true)

		admin.Put(t, path, test.object).Is(t, 200, done(test.want))
		admin.logs(t, before, fmt.Sprintf("user.%s user:%d %s", test.act, user.UID, test.details))
		user.works(t, test.keepsTokens)
	}

	// A change to the same value is logged as well.
	before := len(c.site.acts(t))
	admin.Put(t, user.user()+"/nickname", `{"nickname":"Zoë <b>"}`)
	root.Put(t, peer.user()+"/verified", `{"verified":false}`)
	testenv.Equal(t, len(c.site.acts(t))-before, 2, "entries for two changes to the same value")

	// The new address and the new password sign in, and no password is in the log.
	user.logIn(t, "zoe@example.com", "first horse").IsError(t, 401, 5)
	user.logIn(t, "zoe@example.com", " second horse ").HasStatus(t, 200)
	log := strings.Join(c.site.acts(t), "\n")
	testenv.Equal(t, regexp.MustCompile(`horse|argon2`).FindString(log), "", "the password in the log\n%s\n", log)
	admin.Put(t, user.user()+"/email", `{"email":"USER1@example.com"}`).IsError(t, 409, 2, "email")
	admin.Put(t, user.user()+"/verified", `{"verified":true}`)
	for _, email := range []string{"Zoe@Example.com", "zoe@example.COM"} {
		admin.Put(t, user.user()+"/email", `{"email":"`+email+`"}`).HasField(t, "true", "data", "verified")
	}
}

func TestDeleteUserAsAdministrator(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin, root := c.signUpAs(t, core.Administrator), c.signUpAs(t, core.SuperAdministrator)
	user, peer := c.signUp(t), c.signUpAs(t, core.Administrator)
	user.player(t, "Steve")
	user.texture(t, "name=Private&type=steve&public=false", skinFile(t, 1))
	user.texture(t, "name=Public&type=steve", skinFile(t, 2))

	for _, of := range []client{admin, peer, root} {
		admin.Delete(t, of.user()).IsError(t, 403, 6)
	}
	root.Delete(t, root.user()).IsError(t, 403, 6)
	root.Delete(t, "/api/admin/users/999999").IsError(t, 404, 3)
	admin.logs(t, 0)

	admin.Delete(t, user.user()).Is(t, 200, `{"code":0,"message":"<text>"}`)
	admin.logs(t, 0, fmt.Sprintf(`user.delete user:%d {"email": "user3@example.com", "nickname": "Somebody"}`, user.UID))
	user.works(t, false)
	admin.Delete(t, user.user()).IsError(t, 404, 3)
	c.site.HasCount(t, 0, "SELECT count(*) FROM players")
	c.site.HasCount(t, 1, "SELECT count(*) FROM textures WHERE uploader IS NULL AND name = 'Public'")
	c.site.HasCount(t, 1, "SELECT count(*) FROM textures")
	root.Delete(t, admin.user()).Is(t, 200, `{"code":0,"message":"<text>"}`)
	root.Get(t, "/api/admin/audit").Is(t, 200, fmt.Sprintf(`{"per_page":50,"next":0,"data":[
		{"id":"<integer>","time":"<time>","actor":%d,"actor_email":"user2@example.com","address":"0.0.0.0","action":"user.delete","subject":"user:%d",
			"details":{"email":"user1@example.com","nickname":"Somebody"}},
		{"id":"<integer>","time":"<time>","actor":%d,"actor_email":"user1@example.com","address":"0.0.0.0","action":"user.delete","subject":"user:%d",
			"details":{"email":"user3@example.com","nickname":"Somebody"}}]}`, root.UID, admin.UID, admin.UID, user.UID))
}

func TestFindUsers(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin := c.signUpAs(t, core.Administrator)
	c.site.Exec(t, "UPDATE users SET nickname = 'Zoë'")
	c.site.Exec(t, `
		INSERT INTO users (email, email_key, nickname, password_hash)
		SELECT 'Name' || n || '@' || d, 'name' || n || '@' || d, CASE WHEN n % 2 = 0 THEN 'STRASSE ' ELSE '100%_' END || n, 'x'
		FROM generate_series(1, 20) n, (VALUES ('example.com')) domain (d)`)
	find := func(query string) response { return admin.Get(t, "/api/admin/users?"+query) }
	// finds checks the users on a page, by the numbers in their addresses.
	finds := func(query string, total int, want ...int) {
		t.Helper()
		a := find(query)
		var page struct {
			Total int
			Data  []struct{ Email string }
		}
		a.Decode(t, &page)
		var got []string
		for _, user := range page.Data {
			got = append(got, user.Email)
		}
		var wanted []string
		for _, n := range want {
			wanted = append(wanted, fmt.Sprintf("Name%d@example.com", n))
		}
		cmptest.Same(t, got, wanted, "%s: the users", query)
		testenv.Equal(t, page.Total, total, "%s: their number", query)
	}

	me := admin.userJSON("user1@example.com", "Zoë", "0", 1, false)
	find(fmt.Sprintf("uid=%d", admin.UID)).Is(t, 200,
		`{"per_page":20,"from":1,"to":1,"total":1,"total_is_lower_bound":false,"current_page":1,"last_page":1,"data":[`+me+`]}`)
	find("uid=999999").Is(t, 200, `{"per_page":20,"from":0,"to":0,"total":0,"total_is_lower_bound":false,"current_page":1,"last_page":1,"data":[]}`)
	find("page=2").Is(t, 200, `{"per_page":20,"from":21,"to":21,"total":21,"total_is_lower_bound":false,"current_page":2,"last_page":2,"data":[`+me+`]}`)
	find("page=3").Is(t, 200, `{"per_page":20,"from":0,"to":0,"total":21,"total_is_lower_bound":false,"current_page":3,"last_page":2,"data":[]}`)
	finds("perPage=2", 21, 20, 19)
	finds("perPage=2&page=10", 21, 2, 1)
	finds("email=AME1", 11, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 1)
	finds("email=+name20%40&perPage=1", 1, 20)
	finds("email=%25", 0)
	finds("nickname=strasse&perPage=3", 10, 20, 18, 16)
	finds("nickname=100%25_1&perPage=3", 6, 19, 17, 15)
	finds("nickname=strasse&email=name1", 5, 18, 16, 14, 12, 10)
	finds("email=&nickname=&perPage=1", 21, 20)
	find("nickname=ZOË").HasField(t, "1", "total")

	// A user is named by the whole e-mail address, nickname or player.
	admin.player(t, "Herobrine")
	for _, name := range []string{"user1%40Example.com", "+zOË+", "heroBRINE"} {
		find("uid="+name).Is(t, 200,
			`{"per_page":20,"from":1,"to":1,"total":1,"total_is_lower_bound":false,"current_page":1,"last_page":1,"data":[`+me+`]}`)
	}
	finds("uid=strasse+2", 1, 2)
	c.site.Exec(t, "INSERT INTO players (uid, name, name_key) SELECT uid, 'Zoë', 'zoë' FROM users WHERE email_key = 'name1@example.com'")
	find("uid=zoë").IsError(t, 422, 4, "uid")

	for query, field := range map[string]string{
		"page=0": "page", "page=1001": "page", "page=x": "page", "perPage=0": "perPage", "perPage=101": "perPage", "uid=0": "uid", "uid=x": "uid", "uid=%00": "uid",
		"nickname=" + strings.Repeat("x", 65): "nickname", "email=" + strings.Repeat("x", 255): "email", "email=%00": "email", "nickname=%ff": "nickname",
	} {
		find(query).IsError(t, 422, 4, field)
	}
	testenv.Equal(t, strings.Join(c.site.acts(t), "\n"), "", "the audit log after searches")
}

// At most 10,000 users are counted and can be paged through.
func TestFindManyUsers(t *testing.T) {
	t.Parallel()
	c := start(t)
	admin := c.signUpAs(t, core.Administrator)
	c.site.Exec(t, `
		INSERT INTO users (email, email_key, nickname, nickname_key, password_hash)
		SELECT n || '@example.com', n || '@example.com', 'N', 'n', 'x' FROM generate_series(1, $1) n`, core.MaxCounted-1)
	f := func(query, from, to, total, more, last string) {
		t.Helper()
		a := admin.Get(t, "/api/admin/users?"+query)
		for field, want := range map[string]string{"from": from, "to": to, "total": total, "total_is_lower_bound": more, "last_page": last} {
			a.HasField(t, want, field)
		}
	}
	f("perPage=100", "1", "100", "10000", "false", "100")
	c.site.Exec(t, "INSERT INTO users (email, email_key, nickname, password_hash) VALUES ('x@example.com', 'x@example.com', 'x', 'x')")
	f("perPage=100", "1", "100", "10000", "true", "100")
	f("perPage=100&page=100", "9901", "10000", "10000", "true", "100")
	f("perPage=100&page=101", "0", "0", "10000", "true", "100")
	f("perPage=3&page=1000", "2998", "3000", "10000", "true", "1000")
	f("perPage=99&page=102", "10000", "10000", "10000", "true", "102")
	f("nickname=n", "1", "20", "9999", "false", "500")
}
