package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core"
)

func TestRegister(t *testing.T) {
	t.Parallel()

	c := start(t)
	a := c.post(t, "/api/auth/register", `{"email":" Steve@Example.com ","password":" correct horse ","nickname":"\tZoë 🦊 ","player_name":" Steve_99 "}`)
	a.is(t, 200, `{"code":0,"message":"<text>","data":{"token":"<jwt>","token_type":"Bearer","expires_in":3600,"user":{
		"uid":"<integer>","email":"Steve@Example.com","nickname":"Zoë 🦊","avatar":0,"score":0,"permission":0,
		"last_sign_at":"<time>","next_sign_at":"<time>","register_at":"<time>","verified":false}}}`)
	uid := a.field(t, "data", "user", "uid")

	c = c.as(a.field(t, "data", "token"))
	if got := c.get(t, "/api/user").field(t, "uid"); got != uid {
		t.Errorf("the token is of user %s; want %s", got, uid)
	}
	c.get(t, "/api/players").is(t, 200, `[{"pid":"<integer>","uid":`+uid+`,"uuid":"<uuid>","name":"Steve_99",
		"tid_skin":0,"tid_cape":0,"last_modified":"<time>"}]`)

	// The password is not trimmed, the e-mail is, and its case does not matter.
	c = c.as("")
	c.post(t, "/api/auth/login", `{"email":"steve@example.com","password":"correct horse"}`).isError(t, 401, 5)
	c.post(t, "/api/auth/login", `{"email":" STEVE@example.COM\n","password":" correct horse "}`).
		is(t, 200, `{"token":"<jwt>","token_type":"Bearer","expires_in":3600}`)
}

func TestRegisterWithoutPlayer(t *testing.T) {
	t.Parallel()

	c := start(t)
	for i, player := range []string{``, `,"player_name":null`, `,"player_name":" "`} {
		object := fmt.Sprintf(`{"email":"a%d@example.com","password":"correct horse","nickname":"A"%s}`, i, player)
		if a := c.post(t, "/api/auth/register", object); a.status != 200 {
			t.Errorf("%s is answered with %d %s", object, a.status, a.body)
		}
	}
	if n := c.site.count(t, "SELECT count(*) FROM players"); n != 0 {
		t.Errorf("there are %d players", n)
	}
}

// All errors are reported at once, and no user is added.
func TestRegisterRefuses(t *testing.T) {
	t.Parallel()

	c := start(t)
	f := func(object string, fields ...string) {
		t.Helper()
		c.post(t, "/api/auth/register", object).isError(t, 422, 4, fields...)
	}

	f(`{}`, "email", "nickname", "password")
	f(`{"email":null,"password":null,"nickname":null}`, "email", "nickname", "password")
	f(`{"email":"","password":"","nickname":""}`, "email", "nickname", "password")
	f(`{"email":"steve","password":"1234567","nickname":" ","player_name":"a b c"}`, "email", "nickname", "password", "player_name")
	f(`{"email":1,"password":12345678,"nickname":true,"player_name":["Steve"]}`, "email", "nickname", "password", "player_name")
	f(`{"email":"a@example.com","password":"correct horse","nickname":"`+strings.Repeat("x", 65)+`"}`, "nickname")
	f(`{"email":"a@example.com","password":"`+strings.Repeat("x", 129)+`","nickname":"A"}`, "password")
	f(`{"email":"a@example.com","password":"correct horse","nickname":"A","player_name":"ab"}`, "player_name")
	f(`{"email":"a@example.com","password":"correct horse","nickname":"A","player_name":"abcdefghijklmnopq"}`, "player_name")
	// Control characters.
	f(`{"email":"a\u0000@example.com","password":"correct horse","nickname":"A\u0000"}`, "email", "nickname")
	f(`{"email":"a@example.com","password":"correct horse","nickname":"A\nB","player_name":"Ste\u0007ve"}`, "nickname", "player_name")

	if n := c.site.count(t, "SELECT count(*) FROM users"); n != 0 {
		t.Errorf("there are %d users", n)
	}
}

func TestRegisterDuplicate(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	c.player(t, "Steve")
	c.post(t, "/api/auth/register", `{"email":"USER1@example.com","password":"correct horse","nickname":"A"}`).isError(t, 409, 2, "email")
	c.post(t, "/api/auth/register", `{"email":"a@example.com","password":"correct horse","nickname":"A","player_name":"STEVE"}`).
		isError(t, 409, 2, "player_name")
	// No user and no player was added.
	if n := c.site.count(t, "SELECT count(*) FROM users"); n != 1 {
		t.Errorf("there are %d users; want 1", n)
	}
	if n := c.site.count(t, "SELECT count(*) FROM players"); n != 1 {
		t.Errorf("there are %d players; want 1", n)
	}
	c.post(t, "/api/auth/login", `{"email":"a@example.com","password":"correct horse"}`).isError(t, 401, 5)
}

func TestRegisterClosed(t *testing.T) {
	t.Parallel()

	c := start(t, "REGISTRATION=closed")
	c.post(t, "/api/auth/register", `{"email":"a@example.com","password":"correct horse","nickname":"A"}`).isError(t, 403, 1)
	if n := c.site.count(t, "SELECT count(*) FROM users"); n != 0 {
		t.Errorf("there are %d users", n)
	}
}

func TestUser(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	f := func(want string) {
		t.Helper()
		c.get(t, "/api/user").is(t, 200, fmt.Sprintf(want, c.uid))
	}

	f(`{"uid":%d,"email":"user1@example.com","nickname":"Somebody","avatar":0,"score":0,"permission":0,` +
		`"last_sign_at":"2031-02-03 04:05:06","next_sign_at":"<time>","register_at":"<time>","verified":false}`)
	c.site.exec(t, `
		UPDATE users SET avatar = 7, score = 12345678901, permission = 2, verified = true, nickname = 'Zoë <&>',
			register_at = '2024-05-06 23:59:59.999+02'`)
	f(`{"uid":%d,"email":"user1@example.com","nickname":"Zoë <&>","avatar":7,"score":12345678901,"permission":2,` +
		`"last_sign_at":"2031-02-03 04:05:06","next_sign_at":"<time>","register_at":"2024-05-06 21:59:59","verified":true}`)
}

// isUser checks that the response is an envelope with the client's user, and that a read returns
// the same.
func (c client) isUser(t *testing.T, a response, email, nickname, avatar string, verified bool) {
	t.Helper()
	user := fmt.Sprintf(`{"uid":%d,"email":%q,"nickname":%q,"avatar":%s,"score":0,"permission":0,"last_sign_at":"<time>","next_sign_at":"<time>","register_at":"<time>","verified":%t}`,
		c.uid, email, nickname, avatar, verified)
	a.is(t, 200, done(user))
	c.get(t, "/api/user").is(t, 200, user)
}

func TestRenameUser(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	f := func(body body, want string) {
		t.Helper()
		c.isUser(t, c.send(t, "PUT", "/api/user", body), "user1@example.com", want, "0", false)
	}

	f(encodeJSON(`{"nickname":" Zoë <b> ","email":"other@example.com","score":5,"permission":2}`), "Zoë <b>")
	f(encodeForm("nickname=Form"), "Form")
	f(encodeMultipart(t, "nickname=Multipart", nil), "Multipart")
	f(encodeJSON(`{"nickname":"`+strings.Repeat("ä", 64)+`"}`), strings.Repeat("ä", 64))
	for _, object := range []string{
		`{}`, `{"nickname":null}`, `{"nickname":""}`, `{"nickname":" "}`, `{"nickname":5}`, `{"nickname":"a\nb"}`, `{"nickname":"` + strings.Repeat("x", 65) + `"}`,
	} {
		c.put(t, "/api/user", object).isError(t, 422, 4, "nickname")
	}
	if got := c.get(t, "/api/user").field(t, "nickname"); got != strings.Repeat("ä", 64) {
		t.Errorf("after refusals the nickname is %q", got)
	}
}

func TestSetAvatar(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	otherUser := c.signUp(t)
	classic := otherUser.texture(t, "name=N&type=steve", skinFile(t, 1))
	private := otherUser.texture(t, "name=N&type=steve&public=false", skinFile(t, 2))
	own := c.texture(t, "name=N&type=alex&public=false", skinFile(t, 3))
	cape := c.texture(t, "name=N&type=cape", capeFile(t))
	f := func(body body, avatar string) {
		t.Helper()
		c.isUser(t, c.send(t, "PUT", "/api/user/avatar", body), "user1@example.com", "Somebody", avatar, false)
	}

	f(encodeJSON(`{"tid":`+classic+`}`), classic)
	f(encodeJSON(`{"tid":`+classic+`}`), classic)
	f(encodeForm("tid="+own), own)
	f(encodeMultipart(t, "tid="+classic, nil), classic)
	f(encodeJSON(`{"tid":0}`), "0")
	f(encodeJSON(`{"tid":0}`), "0")
	f(encodeJSON(`{"tid":`+own+`}`), own)

	for _, object := range []string{`{}`, `{"tid":null}`, `{"tid":-1}`, `{"tid":"one"}`, `{"tid":1.5}`, `{"tid":true}`, `{"tid":` + cape + `}`} {
		c.put(t, "/api/user/avatar", object).isError(t, 422, 4, "tid")
	}
	c.put(t, "/api/user/avatar", `{"tid":999999}`).isError(t, 404, 3)
	c.put(t, "/api/user/avatar", `{"tid":`+private+`}`).isError(t, 403, 6)
	if got := c.get(t, "/api/user").field(t, "avatar"); got != own {
		t.Errorf("after refusals the avatar is %s; want %s", got, own)
	}

	// A private texture in the closet may be the avatar.
	c.site.exec(t, "INSERT INTO closet_items (uid, tid, cape, item_name) VALUES ($1, $2, false, 'Gift')", c.uid, private)
	f(encodeJSON(`{"tid":`+private+`}`), private)
}

func TestChangeEmail(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_REGISTRATIONS=0").signUp(t)
	c.signUp(t) // user2@example.com
	c.withPassword(t, "correct horse")
	verify := func() {
		t.Helper()
		c.site.exec(t, "UPDATE users SET verified = true WHERE uid = $1", c.uid)
	}
	f := func(body body, email string, verified bool) {
		t.Helper()
		c.isUser(t, c.send(t, "PUT", "/api/user/email", body), email, "Somebody", "0", verified)
	}

	verify()
	f(encodeJSON(`{"email":"user1@example.com","password":"correct horse"}`), "user1@example.com", true) // the same address
	f(encodeJSON(`{"email":"USER1@example.com","password":"correct horse"}`), "USER1@example.com", true)
	f(encodeForm("email=+Steve%2BSkins%40Example.com+&password=correct+horse"), "Steve+Skins@Example.com", false)
	c.as("").post(t, "/api/auth/login", `{"email":"user1@example.com","password":"correct horse"}`).isError(t, 401, 5)
	if a := c.as("").post(t, "/api/auth/login", `{"email":"steve+skins@example.com","password":"correct horse"}`); a.status != 200 {
		t.Errorf("a log-in with the new address is answered with %d %s", a.status, a.body)
	}
	f(encodeMultipart(t, "email=steve@example.com&password=correct horse", nil), "steve@example.com", false)
	verify()

	c.put(t, "/api/user/email", `{}`).isError(t, 422, 4, "email", "password")
	c.put(t, "/api/user/email", `{"email":"a@example.com"}`).isError(t, 422, 4, "password")
	c.put(t, "/api/user/email", `{"password":"correct horse"}`).isError(t, 422, 4, "email")
	c.put(t, "/api/user/email", `{"email":"nobody","password":"correct horse"}`).isError(t, 422, 4, "email")
	c.put(t, "/api/user/email", `{"email":"a@example.com","password":"Correct horse"}`).isError(t, 422, 4, "password")
	c.put(t, "/api/user/email", `{"email":"a@example.com","password":" correct horse"}`).isError(t, 422, 4, "password")
	c.put(t, "/api/user/email", `{"email":"user2@example.com","password":"wrong horse"}`).isError(t, 422, 4, "password") // does not reveal whether the address is registered
	c.put(t, "/api/user/email", `{"email":"USER2@example.com","password":"correct horse"}`).isError(t, 409, 2, "email")
	c.get(t, "/api/user").is(t, 200, fmt.Sprintf(`{"uid":%d,"email":"steve@example.com","nickname":"Somebody","avatar":0,"score":0,"permission":0,`+
		`"last_sign_at":"<time>","next_sign_at":"<time>","register_at":"<time>","verified":true}`, c.uid))

	// Only wrong passwords count as failures, with the failed log-in above.
	if n := c.site.count(t, "SELECT count(*) FROM login_failures"); n != 4 {
		t.Errorf("%d attempts count as failed; want 4", n)
	}
}

// Wrong passwords of every route count with failed log-ins.
func TestPasswordGuessesAreLimited(t *testing.T) {
	t.Parallel()

	c := start(t, "LIMIT_LOGIN_FAILURES=3").signUp(t)
	c.withPassword(t, "correct horse")
	otherServer := c.site.serve(t).as(c.token)
	c.put(t, "/api/user/email", `{"email":"a@example.com","password":"wrong horse"}`).isError(t, 422, 4, "password")
	otherServer.put(t, "/api/user/password", `{"current_password":"wrong horse","new_password":"another horse"}`).isError(t, 422, 4, "current_password")
	c.send(t, "DELETE", "/api/user", encodeJSON(`{"password":"wrong horse"}`)).isError(t, 422, 4, "password")
	for _, a := range []response{
		c.put(t, "/api/user/email", `{"email":"a@example.com","password":"correct horse"}`),
		c.put(t, "/api/user/password", `{"current_password":"correct horse","new_password":"another horse"}`),
		otherServer.send(t, "DELETE", "/api/user", encodeJSON(`{"password":"correct horse"}`)),
		otherServer.post(t, "/api/auth/login", `{"email":"user1@example.com","password":"correct horse"}`),
	} {
		a.isError(t, 429, 8)
		if a.headerValue("Retry-After") == "" {
			t.Errorf("%s: there is no Retry-After", a.request)
		}
	}
}

func TestChangePassword(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	other := c.site.serve(t).as(c.signIn(t).token)
	otherUser := c.signUp(t)
	c.withPassword(t, "first horse")
	change := func(c client, object string) response {
		t.Helper()
		return c.put(t, "/api/user/password", object)
	}

	change(c, `{}`).isError(t, 422, 4, "current_password", "new_password")
	change(c, `{"current_password":"first horse"}`).isError(t, 422, 4, "new_password")
	change(c, `{"current_password":"first horse","new_password":"short"}`).isError(t, 422, 4, "new_password")
	change(c, `{"current_password":"first horse","new_password":"`+strings.Repeat("x", 129)+`"}`).isError(t, 422, 4, "new_password")
	change(c, `{"current_password":"wrong horse","new_password":"another horse"}`).isError(t, 422, 4, "current_password")
	change(c, `{"current_password":"","new_password":"another horse"}`).isError(t, 422, 4, "current_password")
	other.works(t, true)

	// This session goes on; all other sessions of the user end, on every core.
	change(c, `{"current_password":"first horse","new_password":" another horse "}`).is(t, 200, `{"code":0,"message":"<text>"}`)
	c.works(t, true)
	c.site.serve(t).as(c.token).works(t, true)
	other.works(t, false)
	other.send(t, "POST", "/api/auth/refresh", body{}).isError(t, 401, 5)
	otherUser.works(t, true)
	c = c.refresh(t)

	login := func(password string) response {
		t.Helper()
		return c.as("").post(t, "/api/auth/login", `{"email":"user1@example.com","password":"`+password+`"}`)
	}
	login("first horse").isError(t, 401, 5)
	login("another horse").isError(t, 401, 5)
	if a := login(" another horse "); a.status != 200 {
		t.Errorf("the new password is answered with %d %s", a.status, a.body)
	}
	change(c, `{"current_password":"first horse","new_password":"third horse"}`).isError(t, 422, 4, "current_password")
	if a := c.send(t, "PUT", "/api/user/password", encodeForm("current_password=+another+horse+&new_password=third+horse")); a.status != 200 {
		t.Errorf("a form is answered with %d %s", a.status, a.body)
	}
}

func TestDeleteUser(t *testing.T) {
	t.Parallel()

	site := newSite(t)
	first, second := site.serve(t), site.serve(t)
	for i, request := range []struct {
		query string
		body  body
	}{
		{"", encodeJSON(`{"password":"correct horse"}`)},
		{"", encodeForm("password=correct+horse")},
		{"", encodeMultipart(t, "password=correct horse", nil)},
		{"?password=correct+horse", body{}},
	} {
		c := first.signUp(t)
		c.withPassword(t, "correct horse")
		c.send(t, "DELETE", "/api/user"+request.query, request.body).is(t, 200, `{"code":0,"message":"<text>"}`)
		c.works(t, false)
		second.as(c.token).works(t, false)
		c.send(t, "POST", "/api/auth/refresh", body{}).isError(t, 401, 5)
		c.as("").post(t, "/api/auth/login", fmt.Sprintf(`{"email":"user%d@example.com","password":"correct horse"}`, i+1)).isError(t, 401, 5)
		if n := site.count(t, "SELECT count(*) FROM users"); n != 0 {
			t.Errorf("there are %d users", n)
		}
	}
}

func TestDeleteUserRefuses(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	c.withPassword(t, "correct horse")
	c.delete(t, "/api/user").isError(t, 422, 4, "password")
	c.send(t, "DELETE", "/api/user", encodeJSON(`{"password":null}`)).isError(t, 422, 4, "password")
	c.send(t, "DELETE", "/api/user", encodeJSON(`{"password":"wrong horse"}`)).isError(t, 422, 4, "password")
	c.delete(t, "/api/user?password=").isError(t, 422, 4, "password")
	c.site.exec(t, "UPDATE users SET permission = 2")
	c.send(t, "DELETE", "/api/user", encodeJSON(`{"password":"correct horse"}`)).isError(t, 403, 6)
	c.works(t, true)
	c.site.exec(t, "UPDATE users SET permission = 1")
	c.send(t, "DELETE", "/api/user", encodeJSON(`{"password":"correct horse"}`)).is(t, 200, `{"code":0,"message":"<text>"}`)
}

// Deleting a user deletes their own data; public textures stay.
func TestDeleteUserConsequences(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	fan := c.signUp(t)
	c.withPassword(t, "correct horse")
	c.site.exec(t, "UPDATE users SET permission = 1 WHERE uid = $1", fan.uid)
	public := c.texture(t, "name=Public&type=steve", skinFile(t, 1))
	unkept := c.texture(t, "name=Unkept&type=steve", skinFile(t, 2))
	private := c.texture(t, "name=Private&type=steve&public=false", skinFile(t, 3))
	cape := c.texture(t, "name=Cape&type=cape&public=false", capeFile(t))
	theirs := fan.texture(t, "name=Theirs&type=steve", skinFile(t, 4))
	hidden := fan.texture(t, "name=Hidden&type=steve&public=false", skinFile(t, 5))
	c.delete(t, "/api/closet/"+unkept)
	c.post(t, "/api/closet", `{"tid":`+theirs+`,"name":"N"}`)
	for _, tid := range []string{public, private, cape} {
		fan.post(t, "/api/closet", `{"tid":`+tid+`,"name":"Fan"}`)
	}
	c.put(t, c.player(t, "Steve")+"/textures", `{"skin":`+private+`,"cape":`+cape+`}`)
	alex, zombie, bare := fan.player(t, "Alex"), fan.player(t, "Zombie"), fan.player(t, "Bare")
	fan.put(t, alex+"/textures", `{"skin":`+private+`,"cape":`+cape+`}`)
	fan.put(t, zombie+"/textures", `{"skin":`+public+`,"cape":`+cape+`}`)
	fan.put(t, bare+"/textures", `{"skin":`+hidden+`}`)
	fan.put(t, "/api/user/avatar", `{"tid":`+private+`}`)
	c.notify(t, "Yours", "Only for you")
	if _, err := c.services.Notifications.Announce(t.Context(), core.CLIActor, "all", "All", "X"); err != nil {
		t.Fatal(err)
	}
	c.read(t, c.unread(t)[0])
	c.site.exec(t, "UPDATE players SET last_modified = '2024-05-06 07:08:09+00'")

	c.send(t, "DELETE", "/api/user", encodeJSON(`{"password":"correct horse"}`)).is(t, 200, `{"code":0,"message":"<text>"}`)

	// No row of the user is left.
	for _, table := range []string{"users", "sessions", "players", "closet_items", "notifications", "broadcast_reads", "login_addresses"} {
		if n := c.site.count(t, "SELECT count(*) FROM "+table+" WHERE uid = $1", c.uid); n != 0 {
			t.Errorf("%d rows of %s are the deleted user's", n, table)
		}
	}
	if n := c.site.count(t, "SELECT count(*) FROM session_tokens WHERE sid NOT IN (SELECT sid FROM sessions)"); n != 0 {
		t.Errorf("%d tokens have no session", n)
	}
	if n := c.site.count(t, "SELECT count(*) FROM messages WHERE title = 'Yours'"); n != 0 {
		t.Error("the notification to the deleted user alone is kept")
	}

	// Other users' players lose the private textures, and keep the public one, which has no
	// uploader any more.
	fan.get(t, "/api/players").is(t, 200, "["+fan.playerJSON(alex, "Alex", "0", "0")+","+fan.playerJSON(zombie, "Zombie", public, "0")+","+
		fan.playerJSON(bare, "Bare", hidden, "0")+"]")
	if n := c.site.count(t, "SELECT count(*) FROM players WHERE (last_modified > '2024-05-07') <> (name <> 'Bare')"); n != 0 {
		t.Errorf("for %d players last_modified is wrong; only Bare is not changed", n)
	}
	fan.get(t, "/api/closet?category=cape").lists(t, 6, 0, 0, 0, 1, 1)
	if n := c.site.count(t, "SELECT count(*) FROM textures WHERE name IN ('Private', 'Cape')"); n != 0 {
		t.Errorf("%d private textures of the deleted user are kept", n)
	}
	const nickname = `"uploader_nickname":"Somebody",`
	const item = `{"tid":%s,"name":"%s","type":"steve","hash":"<hash>","size":"<integer>","uploader":%d,%s"public":%t,"upload_at":"<time>",` +
		`"likes":1,"pivot":{"item_name":"%s"}}`
	fan.get(t, "/api/closet").is(t, 200, `{"per_page":6,"from":1,"to":3,"total":3,"current_page":1,"last_page":1,"data":[`+
		fmt.Sprintf(item, public, "Public", 0, "", true, "Fan")+`,`+fmt.Sprintf(item, hidden, "Hidden", fan.uid, nickname, false, "Hidden")+`,`+
		fmt.Sprintf(item, theirs, "Theirs", fan.uid, nickname, true, "Theirs")+`]}`)
	if n := c.site.count(t, "SELECT count(*) FROM textures WHERE name = 'Unkept' AND uploader IS NULL AND likes = 0"); n != 1 {
		t.Error("the public texture in no closet is gone")
	}

	// The avatar keeps its tid, which is not found.
	if got := fan.get(t, "/api/user").field(t, "avatar"); got != private {
		t.Errorf("the fan's avatar is %s; want %s", got, private)
	}
	fan.put(t, "/api/user/avatar", `{"tid":`+private+`}`).isError(t, 404, 3)

	// The names of the player and the address are free again.
	fan.player(t, "Steve")
	if a := c.as("").post(t, "/api/auth/register", `{"email":"user1@example.com","password":"correct horse","nickname":"A"}`); a.status != 200 {
		t.Errorf("a registration with the address is answered with %d %s", a.status, a.body)
	}
}
