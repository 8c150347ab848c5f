package api_test

import (
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core"
)

// Every route rejects names that are invisible or change the direction of text. A player's name
// must also be usable in a path of edge.
func TestNamesArePrintable(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0", "LIMIT_REGISTRATIONS=0", "LIMIT_UPLOADS=0", "PLAYER_NAME_PATTERN=.+").signUpAs(t, core.SuperAdministrator)
	c.withPassword(t, rightPassword)
	pid, tid := c.player(t, "Steve"), c.texture(t, "name=N&type=steve", skinFile(t, 1))
	other := c.signUp(t)
	theirs, public := other.player(t, "Alex"), other.texture(t, "name=N&type=steve", skinFile(t, 2))

	refused := func(field string, answers ...response) {
		t.Helper()
		for _, a := range answers {
			a.IsError(t, 422, 4, field)
		}
	}
	for _, name := range []string{`\u200b`, `abc\u202e`, `\u3164`, `a\ufe0fb`} {
		refused("nickname",
			c.Post(t, "/api/auth/register", `{"email":"a@example.com","password":"correct horse","nickname":"`+name+`"}`),
			c.Put(t, "/api/user", `{"nickname":"`+name+`"}`),
			c.Put(t, other.user()+"/nickname", `{"nickname":"`+name+`"}`),
		)
		refused("email",
			c.Post(t, "/api/auth/register", `{"email":"`+name+`@example.com","password":"correct horse","nickname":"A"}`),
			c.Put(t, "/api/user/email", `{"email":"`+name+`@example.com","password":"`+rightPassword+`"}`),
			c.Put(t, other.user()+"/email", `{"email":"`+name+`@example.com"}`),
		)
		refused("name",
			c.Post(t, "/api/closet", `{"tid":`+public+`,"name":"`+name+`"}`),
			c.Put(t, "/api/closet/"+tid, `{"name":"`+name+`"}`),
			c.Post(t, other.user()+"/closet", `{"tid":`+tid+`,"name":"`+name+`"}`),
			c.Put(t, "/api/textures/"+tid, `{"name":"`+name+`"}`),
			c.Put(t, "/api/admin/textures/"+public, `{"name":"`+name+`"}`),
		)
	}
	c.Send(t, "POST", "/api/textures", encodeMultipart(t, "name=%E2%80%8B&type=steve", skinFile(t, 3))).IsError(t, 422, 4, "name")
	for _, name := range []string{`\u200b`, `abc\u202e`, "a/b", "a?b", "a#b", "a%b", ".a", "a.png", "a.PNG", "a.webp", "a.json"} {
		refused("player_name", c.Post(t, "/api/auth/register", `{"email":"a@example.com","password":"correct horse","nickname":"A","player_name":"`+name+`"}`))
		refused("name",
			c.Post(t, "/api/players", `{"name":"`+name+`"}`),
			c.Put(t, pid+"/name", `{"name":"`+name+`"}`),
			c.Put(t, strings.Replace(theirs, "/api/", "/api/admin/", 1)+"/name", `{"name":"`+name+`"}`),
		)
	}
	c.site.HasCount(t, 0, "SELECT count(*) FROM users WHERE email = 'a@example.com'")
}
