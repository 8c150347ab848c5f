package api_test

import (
	"strings"
	"testing"
)

func TestBodiesThatCannotBeRead(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
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
			{"POST", "/api/textures"},
		} {
			c.send(t, route.method, route.path, body{kind, []byte(content)}).refuses(t, status, 4)
		}
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
	f("application/json;;", `{"name":"Alex"}`, 415)
	f("application/xml", `<name>Alex</name>`, 415)
	f("image/png", "\x89PNG\r\n\x1a\n", 415)
	f("multipart/mixed; boundary=x", "--x--\r\n", 415)
}

// A body that is empty has no form, and one that is not read may have any.
func TestBodiesThatAreNotRead(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	c.send(t, "POST", "/api/players", body{"text/plain", nil}).refuses(t, 422, 4, "name")
	c.send(t, "DELETE", c.player(t, "Alex"), body{"text/plain", []byte("x")}).is(t, 200, `{"code":0,"message":"<text>"}`)
	if a := c.send(t, "POST", "/api/auth/refresh", body{"text/plain", []byte("x")}); a.status != 200 {
		t.Errorf("a refresh with a body is answered with %d %s", a.status, a.body)
	}
	if a := c.send(t, "POST", "/api/auth/logout", body{"text/plain", []byte("x")}); a.status != 204 {
		t.Errorf("a log-out with a body is answered with %d %s", a.status, a.body)
	}
}

func TestTextOfForms(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	f := func(body body, fields ...string) {
		t.Helper()
		a := c.send(t, "POST", "/api/players", body)
		if len(fields) > 0 {
			a.refuses(t, 422, 4, fields...)
		} else if a.status != 200 {
			t.Errorf("%s is answered with %d %s", body.content, a.status, a.body)
		}
	}

	f(encodeForm("name=%ff%fe%fd"), "name")
	f(encodeForm("name=Ste%00ve"), "name")
	f(encodeForm("name="), "name")
	f(encodeForm("Name=Steve"), "name")
	f(encodeMultipart(t, "name=%ff%fe%fd", nil), "name")
	f(encodeForm("name=Steve&name=Alex")) // the first counts
	f(encodeForm("name=Alex"))
	f(body{"APPLICATION/JSON", []byte("\n {\"name\": \"\\u0045nder\"} \n")})
	f(body{"multipart/form-data; boundary=x", []byte(strings.ReplaceAll("--x\nContent-Disposition: form-data; name=\"name\"\n"+
		"Content-Type: text/plain; charset=utf-8\n\nZombie\n--x--\n", "\n", "\r\n"))})
}

// In a query there is nothing to read, but for DELETE.
func TestQueriesAreNotRead(t *testing.T) {
	t.Parallel()

	c := start(t).signUp(t)
	c.send(t, "POST", "/api/players?name=Steve", body{}).refuses(t, 422, 4, "name")
	c.send(t, "PUT", c.player(t, "Alex")+"/name?name=Steve", body{}).refuses(t, 422, 4, "name")
}
