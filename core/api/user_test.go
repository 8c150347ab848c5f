package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestRegister(t *testing.T) {
	t.Parallel()
	c := start(t)
	a := c.Post(t, "/api/auth/register", `{"email":" Steve@Example.com ","password":" correct horse ","nickname":"\tZoë 🦊 ","player_name":" Steve_99 "}`)
	a.Is(t, 200, `{"code":0,"message":"<text>","data":{"token":"<jwt>","token_type":"Bearer","expires_in":3600,"user":{
		"uid":"<integer>","email":"Steve@Example.com","nickname":"Zoë 🦊","avatar":0,"score":0,"permission":0,
		"last_sign_at":"<time>","next_sign_at":"<time>","register_at":"<time>","verified":false}}}`)
	uid := a.Field(t, "data", "user", "uid")

	c = c.as(a.Field(t, "data", "token"))
	c.Get(t, "/api/user").HasField(t, uid, "uid")
	c.Get(t, "/api/players").Is(t, 200, `[{"pid":"<integer>","uid":`+uid+`,"uuid":"<uuid>","name":"Steve_99",
		"tid_skin":0,"tid_cape":0,"last_modified":"<time>"}]`)

	// The password is not trimmed, the e-mail is, and its case does not matter.
	c = c.as("")
	c.Post(t, "/api/auth/login", `{"email":"steve@example.com","password":"correct horse"}`).IsError(t, 401, 5)
	isToken(t, c.Post(t, "/api/auth/login", `{"email":" STEVE@example.COM\n","password":" correct horse "}`))
}

func TestRegisterWithoutPlayer(t *testing.T) {
	t.Parallel()
	c := start(t)
	for i, player := range []string{``, `,"player_name":null`, `,"player_name":" "`} {
		object := fmt.Sprintf(`{"email":"a%d@example.com","password":"correct horse","nickname":"A"%s}`, i, player)
		c.Post(t, "/api/auth/register", object).HasStatus(t, 200)
	}
	c.site.HasCount(t, 0, "SELECT count(*) FROM players")
}

// All errors are reported at once, and no user is added.
func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	c := start(t)
	f := func(object string, fields ...string) {
		t.Helper()
		c.Post(t, "/api/auth/register", object).IsError(t, 422, 4, fields...)
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

	c.site.HasCount(t, 0, "SELECT count(*) FROM users")
}

func TestRegisterDuplicate(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	c.player(t, "Steve")
	c.Post(t, "/api/auth/register", `{"email":"USER1@example.com","password":"correct horse","nickname":"A"}`).IsError(t, 409, 2, "email")
	c.Post(t, "/api/auth/register", `{"email":"a@example.com","password":"correct horse","nickname":"A","player_name":"STEVE"}`).
		IsError(t, 409, 2, "player_name")
	// No user and no player was added.
	c.site.HasCount(t, 1, "SELECT count(*) FROM users")
	c.site.HasCount(t, 1, "SELECT count(*) FROM players")
	c.Post(t, "/api/auth/login", `{"email":"a@example.com","password":"correct horse"}`).IsError(t, 401, 5)
}

func TestRegisterClosed(t *testing.T) {
	t.Parallel()
	c := start(t, "REGISTRATION=closed")
	c.Post(t, "/api/auth/register", `{"email":"a@example.com","password":"correct horse","nickname":"A"}`).IsError(t, 403, 1)
	c.site.HasCount(t, 0, "SELECT count(*) FROM users")
}

func TestUser(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	f := func(want string) {
		t.Helper()
		c.Get(t, "/api/user").Is(t, 200, fmt.Sprintf(want, c.UID))
	}

	f(`{"uid":%d,"email":"user1@example.com","nickname":"Somebody","avatar":0,"score":0,"permission":0,` +
		`"last_sign_at":"2031-02-03 04:05:06","next_sign_at":"<time>","register_at":"<time>","verified":false,"unread":0}`)
	c.site.Exec(t, `
		UPDATE users SET avatar = 7, score = 12345678901, permission = 2, verified = true, nickname = 'Zoë <&>',
			register_at = '2024-05-06 23:59:59.999+02'`)
	f(`{"uid":%d,"email":"user1@example.com","nickname":"Zoë <&>","avatar":7,"score":12345678901,"permission":2,` +
		`"last_sign_at":"2031-02-03 04:05:06","next_sign_at":"<time>","register_at":"2024-05-06 21:59:59","verified":true,"unread":0}`)
}

// isUser checks that the response is an envelope with the client's user, and that a read returns
// the same.
func (c client) isUser(t *testing.T, a response, email, nickname, avatar string, verified bool) {
	t.Helper()
	user := strings.Replace(c.userJSON(email, nickname, "0", core.Normal, verified), `"avatar":0`, `"avatar":`+avatar, 1)
	a.Is(t, 200, done(user))
	c.Get(t, "/api/user").Is(t, 200, strings.TrimSuffix(user, "}")+`,"unread":0}`)
}

func TestRenameUser(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	f := func(body body, want string) {
		t.Helper()
		c.isUser(t, c.Send(t, "PUT", "/api/user", body), "user1@example.com", want, "0", false)
	}

	f(encodeJSON(`{"nickname":" Zoë <b> ","email":"other@example.com","score":5,"permission":2}`), "Zoë <b>")
	f(encodeForm("nickname=Form"), "Form")
	f(encodeMultipart(t, "nickname=Multipart", nil), "Multipart")
	f(encodeJSON(`{"nickname":"`+strings.Repeat("ä", 64)+`"}`), strings.Repeat("ä", 64))
	for _, object := range []string{
		`{}`, `{"nickname":null}`, `{"nickname":""}`, `{"nickname":" "}`, `{"nickname":5}`, `{"nickname":"a\nb"}`, `{"nickname":"` + strings.Repeat("x", 65) + `"}`,
	} {
		c.Put(t, "/api/user", object).IsError(t, 422, 4, "nickname")
	}
	c.Get(t, "/api/user").HasField(t, strings.Repeat("ä", 64), "nickname")
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
		c.isUser(t, c.Send(t, "PUT", "/api/user/avatar", body), "user1@example.com", "Somebody", avatar, false)
	}

	f(encodeJSON(`{"tid":`+classic+`}`), classic)
	f(encodeJSON(`{"tid":`+classic+`}`), classic)
	f(encodeForm("tid="+own), own)
	f(encodeMultipart(t, "tid="+classic, nil), classic)
	f(encodeJSON(`{"tid":0}`), "0")
	f(encodeJSON(`{"tid":0}`), "0")
	f(encodeJSON(`{"tid":`+own+`}`), own)

	for _, object := range []string{`{}`, `{"tid":null}`, `{"tid":-1}`, `{"tid":"one"}`, `{"tid":1.5}`, `{"tid":true}`, `{"tid":` + cape + `}`} {
		c.Put(t, "/api/user/avatar", object).IsError(t, 422, 4, "tid")
	}
	c.Put(t, "/api/user/avatar", `{"tid":999999}`).IsError(t, 404, 3)
	c.Put(t, "/api/user/avatar", `{"tid":`+private+`}`).IsError(t, 403, 6)
	c.Get(t, "/api/user").HasField(t, own, "avatar")

	// A private texture in the closet may be the avatar.
	c.site.Exec(t, "INSERT INTO closet_items (uid, tid, cape, item_name) VALUES ($1, $2, false, 'Gift')", c.UID, private)
	f(encodeJSON(`{"tid":`+private+`}`), private)
}

func TestChangeEmail(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REGISTRATIONS=0").signUp(t)
	c.signUp(t) // user2@example.com
	c.withPassword(t, "correct horse")
	verify := func() {
		t.Helper()
		c.site.Exec(t, "UPDATE users SET verified = true WHERE uid = $1", c.UID)
	}
	f := func(body body, email string, verified bool) {
		t.Helper()
		c.isUser(t, c.Send(t, "PUT", "/api/user/email", body), email, "Somebody", "0", verified)
	}

	verify()
	f(encodeJSON(`{"email":"user1@example.com","password":"correct horse"}`), "user1@example.com", true) // the same address
	f(encodeJSON(`{"email":"USER1@example.com","password":"correct horse"}`), "USER1@example.com", true)
	f(encodeForm("email=+Steve%2BSkins%40Example.com+&password=correct+horse"), "Steve+Skins@Example.com", false)
	c.as("").Post(t, "/api/auth/login", `{"email":"user1@example.com","password":"correct horse"}`).IsError(t, 401, 5)
	c.as("").Post(t, "/api/auth/login", `{"email":"steve+skins@example.com","password":"correct horse"}`).HasStatus(t, 200)
	f(encodeMultipart(t, "email=steve@example.com&password=correct horse", nil), "steve@example.com", false)
	verify()

	c.Put(t, "/api/user/email", `{}`).IsError(t, 422, 4, "email", "password")
	c.Put(t, "/api/user/email", `{"email":"a@example.com"}`).IsError(t, 422, 4, "password")
	c.Put(t, "/api/user/email", `{"password":"correct horse"}`).IsError(t, 422, 4, "email")
	c.Put(t, "/api/user/email", `{"email":"nobody","password":"correct horse"}`).IsError(t, 422, 4, "email")
	c.Put(t, "/api/user/email", `{"email":"a@example.com","password":"Correct horse"}`).IsError(t, 422, 4, "password")
	c.Put(t, "/api/user/email", `{"email":"a@example.com","password":" correct horse"}`).IsError(t, 422, 4, "password")
	c.Put(t, "/api/user/email", `{"email":"user2@example.com","password":"wrong horse"}`).IsError(t, 422, 4, "password") // does not reveal whether the address is registered
	c.Put(t, "/api/user/email", `{"email":"USER2@example.com","password":"correct horse"}`).IsError(t, 409, 2, "email")
	c.Get(t, "/api/user").Is(t, 200, strings.TrimSuffix(c.userJSON("steve@example.com", "Somebody", "0", core.Normal, true), "}")+`,"unread":0}`)

	// Only wrong passwords count as failures, with the failed log-in above.
	c.site.HasCount(t, 4, "SELECT count(*) FROM login_failures")
}

func TestChangePassword(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	other := c.site.serve(t).as(c.signIn(t).Token)
	otherUser := c.signUp(t)
	c.withPassword(t, "first horse")
	change := func(c client, object string) response { return c.Put(t, "/api/user/password", object) }

	change(c, `{}`).IsError(t, 422, 4, "current_password", "new_password")
	change(c, `{"current_password":"first horse"}`).IsError(t, 422, 4, "new_password")
	change(c, `{"current_password":"first horse","new_password":"short"}`).IsError(t, 422, 4, "new_password")
	change(c, `{"current_password":"first horse","new_password":"`+strings.Repeat("x", 129)+`"}`).IsError(t, 422, 4, "new_password")
	change(c, `{"current_password":"wrong horse","new_password":"another horse"}`).IsError(t, 422, 4, "current_password")
	change(c, `{"current_password":"","new_password":"another horse"}`).IsError(t, 422, 4, "current_password")
	other.works(t, true)

	// This session goes on; all other sessions of the user end, on every core.
	change(c, `{"current_password":"first horse","new_password":" another horse "}`).Is(t, 200, `{"code":0,"message":"<text>"}`)
	c.works(t, true)
	c.site.serve(t).as(c.Token).works(t, true)
	other.works(t, false)
	other.Send(t, "POST", "/api/auth/refresh", body{}).IsError(t, 401, 5)
	otherUser.works(t, true)
	c = c.refresh(t)

	login := func(password string) response { return c.as("").logIn(t, knownEmail, password) }
	login("first horse").IsError(t, 401, 5)
	login("another horse").IsError(t, 401, 5)
	login(" another horse ").HasStatus(t, 200)
	change(c, `{"current_password":"first horse","new_password":"third horse"}`).IsError(t, 422, 4, "current_password")
	c.Send(t, "PUT", "/api/user/password", encodeForm("current_password=+another+horse+&new_password=third+horse")).HasStatus(t, 200)
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
		c.Send(t, "DELETE", "/api/user"+request.query, request.body).Is(t, 200, `{"code":0,"message":"<text>"}`)
		c.works(t, false)
		second.as(c.Token).works(t, false)
		c.Send(t, "POST", "/api/auth/refresh", body{}).IsError(t, 401, 5)
		c.as("").Post(t, "/api/auth/login", fmt.Sprintf(`{"email":"user%d@example.com","password":"correct horse"}`, i+1)).IsError(t, 401, 5)
		site.HasCount(t, 0, "SELECT count(*) FROM users")
	}
}

func TestDeleteUserRefuses(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	c.withPassword(t, "correct horse")
	c.Delete(t, "/api/user").IsError(t, 422, 4, "password")
	c.Send(t, "DELETE", "/api/user", encodeJSON(`{"password":null}`)).IsError(t, 422, 4, "password")
	c.Send(t, "DELETE", "/api/user", encodeJSON(`{"password":"wrong horse"}`)).IsError(t, 422, 4, "password")
	c.Delete(t, "/api/user?password=").IsError(t, 422, 4, "password")
	c.site.Exec(t, "UPDATE users SET permission = 2")
	c.Send(t, "DELETE", "/api/user", encodeJSON(`{"password":"correct horse"}`)).IsError(t, 403, 6)
	c.works(t, true)
	c.site.Exec(t, "UPDATE users SET permission = 1")
	c.Send(t, "DELETE", "/api/user", encodeJSON(`{"password":"correct horse"}`)).Is(t, 200, `{"code":0,"message":"<text>"}`)
}

// Deleting a user deletes their own data; public textures stay.
func TestDeleteUserConsequences(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	fan := c.signUp(t)
	c.withPassword(t, "correct horse")
	c.site.Exec(t, "UPDATE users SET permission = 1 WHERE uid = $1", fan.UID)
	public := c.texture(t, "name=Public&type=steve", skinFile(t, 1))
	unkept := c.texture(t, "name=Unkept&type=steve", skinFile(t, 2))
	private := c.texture(t, "name=Private&type=steve&public=false", skinFile(t, 3))
	cape := c.texture(t, "name=Cape&type=cape&public=false", capeFile(t))
	theirs := fan.texture(t, "name=Theirs&type=steve", skinFile(t, 4))
	hidden := fan.texture(t, "name=Hidden&type=steve&public=false", skinFile(t, 5))
	c.Delete(t, "/api/closet/"+unkept)
	c.Post(t, "/api/closet", `{"tid":`+theirs+`,"name":"N"}`)
	for _, tid := range []string{public, private, cape} {
		fan.Post(t, "/api/closet", `{"tid":`+tid+`,"name":"Fan"}`)
	}
	c.Put(t, c.player(t, "Steve")+"/textures", `{"skin":`+private+`,"cape":`+cape+`}`)
	alex, zombie, bare := fan.player(t, "Alex"), fan.player(t, "Zombie"), fan.player(t, "Bare")
	fan.Put(t, alex+"/textures", `{"skin":`+private+`,"cape":`+cape+`}`)
	fan.Put(t, zombie+"/textures", `{"skin":`+public+`,"cape":`+cape+`}`)
	fan.Put(t, bare+"/textures", `{"skin":`+hidden+`}`)
	fan.Put(t, "/api/user/avatar", `{"tid":`+private+`}`)
	c.notify(t, "Yours", "Only for you")
	testenv.Must(c.Domain.Notifications.Announce(t.Context(), core.CLIActor, "all", "All", "X"))(t)
	c.read(t, c.unread(t)[0])
	c.site.Exec(t, "UPDATE players SET last_modified = '2024-05-06 07:08:09+00'")

	c.Send(t, "DELETE", "/api/user", encodeJSON(`{"password":"correct horse"}`)).Is(t, 200, `{"code":0,"message":"<text>"}`)

	// No row of the user is left.
	for _, table := range []string{"users", "sessions", "players", "closet_items", "notifications", "broadcast_reads", "login_addresses"} {
		c.site.HasCount(t, 0, "SELECT count(*) FROM "+table+" WHERE uid = $1", c.UID)
	}
	c.site.HasCount(t, 0, "SELECT count(*) FROM session_tokens WHERE sid NOT IN (SELECT sid FROM sessions)")
	c.site.HasCount(t, 0, "SELECT count(*) FROM messages WHERE title = 'Yours'")

	// Other users' players lose the private textures, and keep the public one, which has no
	// uploader any more.
	fan.Get(t, "/api/players").Is(t, 200, "["+fan.playerJSON(alex, "Alex", "0", "0")+","+fan.playerJSON(zombie, "Zombie", public, "0")+","+
		fan.playerJSON(bare, "Bare", hidden, "0")+"]")
	c.site.HasCount(t, 0, "SELECT count(*) FROM players WHERE (last_modified > '2024-05-07') <> (name <> 'Bare')")
	lists(t, fan.Get(t, "/api/closet?category=cape"), 6, 0, 0, 0, 1, 1)
	c.site.HasCount(t, 0, "SELECT count(*) FROM textures WHERE name IN ('Private', 'Cape')")
	const nickname = `"uploader_nickname":"Somebody",`
	const item = `{"tid":%s,"name":"%s","type":"steve","hash":"<hash>","size":"<integer>","uploader":%d,%s"public":%t,"upload_at":"<time>",` +
		`"likes":1,"pivot":{"item_name":"%s"}}`
	fan.Get(t, "/api/closet").Is(t, 200, `{"per_page":6,"from":1,"to":3,"total":3,"current_page":1,"last_page":1,"data":[`+
		fmt.Sprintf(item, public, "Public", 0, "", true, "Fan")+`,`+fmt.Sprintf(item, hidden, "Hidden", fan.UID, nickname, false, "Hidden")+`,`+
		fmt.Sprintf(item, theirs, "Theirs", fan.UID, nickname, true, "Theirs")+`]}`)
	c.site.HasCount(t, 1, "SELECT count(*) FROM textures WHERE name = 'Unkept' AND uploader IS NULL AND likes = 0")

	// The avatar keeps its tid, which is not found.
	fan.Get(t, "/api/user").HasField(t, private, "avatar")
	fan.Put(t, "/api/user/avatar", `{"tid":`+private+`}`).IsError(t, 404, 3)

	// The names of the player and the address are free again.
	fan.player(t, "Steve")
	c.as("").Post(t, "/api/auth/register", `{"email":"user1@example.com","password":"correct horse","nickname":"A"}`).HasStatus(t, 200)
}
