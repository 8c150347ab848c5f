package api_test

import (
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestMalformedBodies(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0").signUp(t)
	steve := c.player(t, "Steve")
	f := func(kind, content string, status int) {
		t.Helper()
		for _, route := range []struct{ method, path string }{
			{"POST", "/api/auth/login"},
			{"POST", "/api/auth/register"},
			{"POST", "/api/players"},
			{"PUT", steve + "/name"},
			{"PUT", steve + "/textures"},
			{"DELETE", steve + "/textures"},
		} {
			c.Send(t, route.method, route.path, raw(kind, content)).IsError(t, status, 4)
		}
		// An upload accepts multipart only.
		if !strings.HasPrefix(kind, "multipart/form-data") {
			status = 415
		}
		c.Send(t, "POST", "/api/textures", raw(kind, content)).IsError(t, status, 4)
	}

	const multipart = "multipart/form-data; boundary=x"
	for _, content := range []string{`{`, `[]`, `"name"`, `null`, `1`, `{"name":"Alex"} {}`, `{"name":"Alex",}`, `name=Alex`, "{\"name\":\"Al\xffex\"}"} {
		f("application/json", content, 400)
	}
	f(multipart, "--x\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nAlex", 400)
	f(multipart, "no multipart at all", 400)
	f(multipart, "--y--\r\n", 400)
	f("multipart/form-data", "--x--\r\n", 400)

	f("", `{"name":"Alex"}`, 415)
	f("text/plain", `{"name":"Alex"}`, 415)
	f("application/xml", `<name>Alex</name>`, 415)
	f("image/png", "\x89PNG\r\n\x1a\n", 415)
	f("multipart/mixed; boundary=x", "--x--\r\n", 415)
}

// The number of form fields is limited, since many fields take many times the memory of the body.
func TestFormFieldLimit(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	fields := func(n int) string { return "name=Alex" + strings.Repeat("&a=1", n-1) }
	c.Send(t, "POST", "/api/players", encodeForm(fields(65))).IsError(t, 400, 4)
	c.Send(t, "POST", "/api/players", encodeMultipart(t, fields(65), nil)).IsError(t, 400, 4)
	c.Send(t, "POST", "/api/textures", encodeMultipart(t, fields(65), nil)).IsError(t, 400, 4)
	for _, body := range []body{encodeForm(fields(64)), encodeMultipart(t, fields(64), nil)} {
		a := c.Send(t, "POST", "/api/players", body)
		a.HasStatus(t, 200)
		c.Delete(t, "/api/players/"+a.Field(t, "data", "pid"))
	}
}

// Fields of the body take precedence over the query.
func TestBodyWinsOverQuery(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	steve := c.player(t, "Steve")
	skin, cape := c.texture(t, "name=N&type=steve", skinFile(t, 1)), c.texture(t, "name=N&type=cape", capeFile(t))
	for _, body := range []body{encodeForm("type[]=cape"), encodeForm("type=cape"), encodeJSON(`{"type":["cape"]}`)} {
		c.Put(t, steve+"/textures", `{"skin":`+skin+`,"cape":`+cape+`}`)
		a := c.Send(t, "DELETE", steve+"/textures?type[]=skin", body)
		testenv.Equal(t, outfitOf(t, a), outfit{skin, "0"}, "what %s in the body leaves", body.Content)
	}

	c.withPassword(t, "correct horse")
	f := func(query string, body body, fields ...string) {
		t.Helper()
		c.Send(t, "DELETE", "/api/user?"+query, body).IsError(t, 422, 4, fields...)
	}
	f("password=correct+horse", encodeForm("password=wrong"), "password")
	f("password=correct+horse", encodeMultipart(t, "password=wrong", nil), "password")
	f("password=correct+horse", encodeJSON(`{"password":"wrong"}`), "password")
	c.Send(t, "DELETE", "/api/user?password=correct+horse", encodeJSON(`{}`)).HasStatus(t, 200)
}

// An empty body may have any content type, and so may one that the route does not read.
func TestIgnoredBodies(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	c.Send(t, "POST", "/api/players", body{ContentType: "text/plain"}).IsError(t, 422, 4, "name")
	c.Send(t, "DELETE", c.player(t, "Alex"), raw("text/plain", "x")).Is(t, 200, `{"code":0,"message":"<text>"}`)
	c.Send(t, "POST", "/api/auth/refresh", raw("text/plain", "x")).HasStatus(t, 200)
	c.Send(t, "POST", "/api/auth/logout", raw("text/plain", "x")).HasStatus(t, 204)
}

func TestFormText(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	f := func(body body, fields ...string) {
		t.Helper()
		a := c.Send(t, "POST", "/api/players", body)
		if len(fields) > 0 {
			a.IsError(t, 422, 4, fields...)
		} else if a.Status != 200 {
			t.Errorf("%s is answered with %d %s", body.Content, a.Status, a.Body)
		}
	}

	f(encodeForm("name=%ff%fe%fd"), "name")
	f(encodeForm("name=Ste%00ve"), "name")
	f(encodeForm("name="), "name")
	f(encodeForm("Name=Steve"), "name")
	f(encodeMultipart(t, "name=%ff%fe%fd", nil), "name")
	f(encodeForm("name=Steve&name=Alex")) // the first value counts
	f(encodeForm("name=Alex"))
	f(raw("APPLICATION/JSON", "\n {\"name\": \"\\u0045nder\"} \n"))
	f(raw("multipart/form-data; boundary=x", strings.ReplaceAll("--x\nContent-Disposition: form-data; name=\"name\"\n"+
		"Content-Type: text/plain; charset=utf-8\n\nZombie\n--x--\n", "\n", "\r\n")))
}

// Only DELETE reads fields from the query.
func TestIgnoredQueries(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	c.Send(t, "POST", "/api/players?name=Steve", body{}).IsError(t, 422, 4, "name")
	c.Send(t, "PUT", c.player(t, "Alex")+"/name?name=Steve", body{}).IsError(t, 422, 4, "name")
}
