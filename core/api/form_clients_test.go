package api_test

import (
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// Bodies of common HTTP clients, byte for byte.
func TestBodiesOfClients(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0").signUp(t)
	steve := c.player(t, "Steve")
	skin, cape := c.texture(t, "name=N&type=steve", skinFile(t, 1)), c.texture(t, "name=N&type=cape", capeFile(t))
	fill := strings.NewReplacer("SKIN", skin, "CAPE", cape)

	// f sends a body with both textures of a player, and one with neither.
	f := func(client, method, kind, content, wantSkin, wantCape string) {
		t.Helper()
		c.Delete(t, steve+"/textures?skin&cape")
		if method == "DELETE" {
			c.Put(t, steve+"/textures", fill.Replace(`{"skin":SKIN,"cape":CAPE}`))
		}
		a := c.Send(t, method, steve+"/textures", raw(kind, fill.Replace(content)))
		if a.Status != 200 {
			t.Errorf("%s: %d %s", client, a.Status, a.Body)
			return
		}
		worn := outfit{fill.Replace(wantSkin), fill.Replace(wantCape)}
		testenv.Equal(t, outfitOf(t, a), worn, "%s: what the player wears", client)
	}
	lines := func(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n" }

	f("PHP, http_build_query of a list", "DELETE", "application/x-www-form-urlencoded", "type%5B0%5D=skin&type%5B1%5D=cape", "0", "0")
	f("PHP, http_build_query after array_filter", "DELETE", "application/x-www-form-urlencoded", "type%5B1%5D=cape", "SKIN", "0")
	f("PHP, http_build_query of true and null", "DELETE", "application/x-www-form-urlencoded", "skin=1", "0", "CAPE")
	f("PHP, json_encode of texts", "PUT", "application/json", `{"skin":"SKIN","cape":"CAPE"}`, "SKIN", "CAPE")
	f("PHP, json_encode of a float with serialize_precision", "PUT", "application/json", `{"skin":SKIN.0}`, "SKIN", "0")
	f("PHP, Guzzle's form_params with an empty value", "PUT", "application/x-www-form-urlencoded", "skin=SKIN&cape=", "SKIN", "0")
	f("PHP, Guzzle's multipart", "DELETE", "multipart/form-data; boundary=8ec5c5b4d0c6f4a7a2f8c6f2a6d3e1b0c9d8e7f6", lines(
		"--8ec5c5b4d0c6f4a7a2f8c6f2a6d3e1b0c9d8e7f6", `Content-Disposition: form-data; name="type[0]"`, "Content-Length: 4", "", "cape",
		"--8ec5c5b4d0c6f4a7a2f8c6f2a6d3e1b0c9d8e7f6--"), "SKIN", "0")
	f(".NET, FormUrlEncodedContent", "PUT", "application/x-www-form-urlencoded", "skin=SKIN&cape=CAPE", "SKIN", "CAPE")
	f(".NET, StringContent of JSON", "PUT", "application/json; charset=utf-8", `{"skin":SKIN,"cape":null}`, "SKIN", "0")
	f(".NET, JSON of a StreamWriter in Encoding.UTF8", "PUT", "application/json; charset=utf-8", "\xef\xbb\xbf{\"skin\":SKIN}", "SKIN", "0")
	f(".NET, MultipartFormDataContent", "PUT", `multipart/form-data; boundary="1f7f3f0e-6d3c-4c64-9a52-6f0a3a1f2b7c"`, lines(
		"--1f7f3f0e-6d3c-4c64-9a52-6f0a3a1f2b7c", "Content-Type: text/plain; charset=utf-8", "Content-Disposition: form-data; name=skin", "", "SKIN",
		"--1f7f3f0e-6d3c-4c64-9a52-6f0a3a1f2b7c", "Content-Type: text/plain; charset=utf-8", `Content-Disposition: form-data; name="cape"`, "", "CAPE",
		"--1f7f3f0e-6d3c-4c64-9a52-6f0a3a1f2b7c--"), "SKIN", "CAPE")
	f("Java, Gson of a Map, whose numbers are doubles", "PUT", "application/json; charset=UTF-8", `{"skin":SKIN.0,"cape":CAPE.0}`, "SKIN", "CAPE")
	f("Java, HttpURLConnection", "PUT", "application/x-www-form-urlencoded; charset=UTF-8", "skin=SKIN&cape=CAPE", "SKIN", "CAPE")
	f("Java, Apache HttpClient's StringBody", "PUT", "multipart/form-data; boundary=e1Wn0vX9ySgYIq3FdXoF5m3H7yC0Gfo; charset=UTF-8", lines(
		"--e1Wn0vX9ySgYIq3FdXoF5m3H7yC0Gfo", `Content-Disposition: form-data; name="cape"`, "Content-Type: text/plain; charset=ISO-8859-1", "Content-Transfer-Encoding: 8bit", "", "CAPE",
		"--e1Wn0vX9ySgYIq3FdXoF5m3H7yC0Gfo--"), "0", "CAPE")
	f("Go, url.Values.Encode", "DELETE", "application/x-www-form-urlencoded", "type=skin&type=cape", "0", "0")
	f("Go, json.Marshal of a map of any", "PUT", "application/json", `{"cape":CAPE,"skin":SKIN}`+"\n", "SKIN", "CAPE")
	f("curl -d", "DELETE", "application/x-www-form-urlencoded", "type[]=skin", "0", "CAPE")
	f("curl -F", "PUT", "multipart/form-data; boundary=------------------------d74496d66958873e", lines(
		"--------------------------d74496d66958873e", `Content-Disposition: form-data; name="skin"`, "", "SKIN",
		"--------------------------d74496d66958873e--"), "SKIN", "0")
	f("a browser's fetch of URLSearchParams", "DELETE", "application/x-www-form-urlencoded;charset=UTF-8", "type=cape", "SKIN", "0")
	f("a browser's fetch of FormData", "DELETE", "multipart/form-data; boundary=----WebKitFormBoundaryZpsWqv2mYDAfB1aT", lines(
		"------WebKitFormBoundaryZpsWqv2mYDAfB1aT", `Content-Disposition: form-data; name="type"`, "", "skin",
		"------WebKitFormBoundaryZpsWqv2mYDAfB1aT", `Content-Disposition: form-data; name="type"`, "", "cape",
		"------WebKitFormBoundaryZpsWqv2mYDAfB1aT--"), "0", "0")
	f("a browser, qs.stringify", "DELETE", "application/x-www-form-urlencoded; charset=UTF-8", "type%5B0%5D=cape", "SKIN", "0")
	f("JavaScript, JSON.stringify of what an input has", "PUT", "application/json", `{"skin":"SKIN","cape":""}`, "SKIN", "0")
	f("Python, requests' data", "DELETE", "application/x-www-form-urlencoded", "type=skin&type=cape", "0", "0")
	f("Lua, cjson of a float", "PUT", "application/json", `{"skin":SKIN.0}`, "SKIN", "0")

	upload := func(client, kind, content string) {
		t.Helper()
		c.Delete(t, "/api/textures/"+skin)
		a := c.Send(t, "POST", "/api/textures", raw(kind, strings.ReplaceAll(content, "PNG", string(skinFile(t, 2)))))
		if a.Status != 200 || a.Field(t, "data", "name") != "Zoë" || a.Field(t, "data", "public") != "false" {
			t.Errorf("%s: %d %s", client, a.Status, a.Body)
			return
		}
		skin = a.Field(t, "data", "tid")
	}
	upload(".NET, MultipartFormDataContent", `multipart/form-data; boundary="b"`, lines(
		"--b", "Content-Disposition: form-data; name=file; filename=steve.png; filename*=utf-8''steve.png", "", "PNG",
		"--b", "Content-Type: text/plain; charset=utf-8", "Content-Disposition: form-data; name=name", "", "Zoë",
		"--b", "Content-Type: text/plain; charset=utf-8", "Content-Disposition: form-data; name=type", "", "steve",
		"--b", "Content-Type: text/plain; charset=utf-8", "Content-Disposition: form-data; name=public", "", "False", "--b--"))
	upload("a browser's form with a box that is not ticked", "multipart/form-data; boundary=----WebKitFormBoundaryZpsWqv2mYDAfB1aT", lines(
		"------WebKitFormBoundaryZpsWqv2mYDAfB1aT", `Content-Disposition: form-data; name="file"; filename="Zoë &quot;1&quot;.png"`, "Content-Type: image/png", "", "PNG",
		"------WebKitFormBoundaryZpsWqv2mYDAfB1aT", `Content-Disposition: form-data; name="name"`, "", "Zoë",
		"------WebKitFormBoundaryZpsWqv2mYDAfB1aT", `Content-Disposition: form-data; name="type"`, "", "steve",
		"------WebKitFormBoundaryZpsWqv2mYDAfB1aT", `Content-Disposition: form-data; name="public"`, "", "off",
		"------WebKitFormBoundaryZpsWqv2mYDAfB1aT--"))
	upload("PHP, Guzzle's multipart", "multipart/form-data; boundary=b", lines(
		"--b", `Content-Disposition: form-data; name="file"; filename="steve.png"`, "Content-Length: 999", "Content-Type: image/png", "", "PNG",
		"--b", `Content-Disposition: form-data; name="name"`, "Content-Length: 4", "", "Zoë",
		"--b", `Content-Disposition: form-data; name="type"`, "Content-Length: 5", "", "steve",
		"--b", `Content-Disposition: form-data; name="public"`, "Content-Length: 1", "", "0", "--b--"))
}

// The accepted and rejected spellings of a value, in every content type.
func TestSpellingsOfValues(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0").signUp(t)
	c.site.Exec(t, "ALTER TABLE textures ALTER tid RESTART WITH 62")
	c.texture(t, "name=N&type=steve", skinFile(t, 1))
	f := func(path, field string, status int, bodies ...body) {
		t.Helper()
		for _, b := range bodies {
			a := c.Send(t, "PUT", path, b)
			if status == 422 {
				a.IsError(t, 422, 4, field)
			} else {
				a.HasStatus(t, status)
			}
		}
	}
	object := func(field string, values ...string) (bodies []body) {
		for _, value := range values {
			bodies = append(bodies, encodeJSON(`{"`+field+`":`+value+`}`))
		}
		return bodies
	}
	form := func(field string, values ...string) (bodies []body) {
		for _, value := range values {
			bodies = append(bodies, encodeForm(field+"="+value), encodeMultipart(t, field+"="+value, nil))
		}
		return bodies
	}

	const avatar = "/api/user/avatar"
	f(avatar, "tid", 200, object("tid", `62`, `62.0`, `62.000`, `6.2e1`, `0.62E+2`, `620e-1`, `"62"`, `" 62 "`, `0`, `-0`, `-0.0`, `0e9`)...)
	f(avatar, "tid", 200, form("tid", "62", "+62+", "0")...)
	f(avatar, "tid", 404, object("tid", `9223372036854775807`, `9223372036854775807.0`, `9.223372036854775807e18`, `"9223372036854775807"`)...)
	f(avatar, "tid", 422, object("tid", `62.5`, `6.25e1`, `"62.5"`, `"62.0"`, `"6.2e1"`, `62e-3`, `9223372036854775808`, `9223372036854775807.5`, `1e19`, `1e999`, `1e99999999999`,
		`62.`+strings.Repeat("0", 100), `"sixty-two"`, `"0x3e"`, `"6_2"`, `"62/1"`, `"6 2"`, `".62e2"`, `""`, `" "`, `true`, `null`, `[62]`, `{"tid":62}`)...)
	f(avatar, "tid", 422, form("tid", "", "+", "62.5", "62.0", "6.2e1", "62,0", "0x3e", "inf")...)
	f(avatar, "tid", 422, encodeForm("tid[a]=62"), encodeForm("tid[0][0]=62"), encodeForm("tid[0]=62&tid[a]=62"), encodeForm("tid[99999999999999999999]=62"))

	const texture = "/api/textures/62"
	f(texture, "public", 200, object("public", `true`, `false`, `1`, `0`, `"true"`, `"False"`, `"1"`, `"0"`)...)
	f(texture, "public", 200, form("public", "true", "FALSE", "1", "0", "on", "off", "Yes", "no")...)
	f(texture, "public", 422, object("public", `2`, `-1`, `1.5`, `"on"`, `"off"`, `"yes"`, `"no"`, `""`, `[true]`, `{}`)...)
	f(texture, "public", 422, form("public", "2", "", "maybe")...)
	f(texture, "public", 422, encodeForm("public[a]=true"))

	const user = "/api/user"
	f(user, "nickname", 200, object("nickname", `"Zoë"`, `"Zo\u00eb"`, `"\ud83d\ude00"`, `"\uD83D\uDE00x"`, `"\\ud83d"`, `"\\\\ud83d"`, `"\ufffd"`)...)
	f(user, "nickname", 422, object("nickname", `"abc\ud83d"`, `"\ude00"`, `"\ude00\ud83d"`, `"\ud83d\ud83d\ude00"`, `"\ud83dx"`, `"\ud83d\\ude00"`, `"\\\ud83d"`, `1`, `true`, `["Zoë"]`)...)
	f(user, "nickname", 422, form("nickname", "%ff", "%ed%a0%bd", "a%c3")...)
	f(user, "nickname", 422, encodeForm("nickname[a]=Zoë"))

	// Invalid text is rejected in every field.
	f(user, "x", 422, encodeJSON(`{"nickname":"Zoë","x":{"y":["\ud83d"]}}`), encodeJSON(`{"nickname":"Zoë","x":{"\ud83d":1}}`), encodeForm("nickname=Zoe&x=%ff"))
	f(user, "\ufffd", 422, encodeJSON(`{"nickname":"Zoë","\ud83d":1}`), encodeForm("nickname=Zoe&%ff=1"))
	c.Get(t, "/api/closet?q=%ff").IsError(t, 422, 4, "q")
	c.Get(t, "/api/closet?x=%ff").IsError(t, 422, 4, "x")
	f(user, "nickname", 200, encodeJSON(`{"nickname":"\ud83d","nickname":"Zoë"}`)) // the last value counts
	f(user, "nickname", 422, encodeJSON(`{"nickname":"Zoë","nickname":"\ud83d"}`))

	deep := func(levels int) body {
		return encodeJSON(`{"nickname":"Zoë [[[[","x":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `,"y":[],"z":{}}`)
	}
	f(user, "", 200, deep(32))
	f(user, "", 400, deep(33), deep(20_000))

	for _, kind := range []string{
		"application/json", "APPLICATION/JSON", "application/json;charset=UTF-8", `application/json; Charset="utf-8"; q=1`, "application/json; charset=utf8",
		"application/json; odata=verbose", "application/json;", "application/json;;", "application/json; charset",
	} {
		f(user, "", 200, raw(kind, `{"nickname":"Zoë"}`), raw(kind, "\xef\xbb\xbf{\"nickname\":\"Zoë\"}"))
	}
	f(user, "", 200, raw("application/x-www-form-urlencoded; charset=utf-8", "\xef\xbb\xbfnickname=Zoe"))
	for _, charset := range []string{"utf-16", "ISO-8859-1", "us-ascii", `""`} {
		f(user, "", 415, raw("application/json; charset="+charset, `{"nickname":"Zoe"}`),
			raw("application/x-www-form-urlencoded; charset="+charset, "nickname=Zoe"))
	}
	latin := "--b\r\nContent-Disposition: form-data; name=\"nickname\"\r\nContent-Type: text/plain; charset=ISO-8859-1\r\n\r\nZoë\r\n--b--\r\n"
	f(user, "", 415, raw("multipart/form-data; boundary=b", latin))
	f(user, "", 400, encodeJSON("\xef\xbb\xbf\xef\xbb\xbf{}"), encodeJSON("\xfe\xff\x00{\x00}"))
}

// Elements of an array are ordered by their indices, with gaps allowed.
func TestArraysOfForms(t *testing.T) {
	t.Parallel()
	c := start(t, "LIMIT_REQUESTS=0").signUp(t)
	steve := c.player(t, "Steve")
	f := func(form string, ok bool) {
		t.Helper()
		for _, a := range []response{
			c.Send(t, "DELETE", steve+"/textures", encodeForm(form)), c.Send(t, "DELETE", steve+"/textures", encodeMultipart(t, form, nil)),
			c.Send(t, "DELETE", steve+"/textures?"+form, body{}),
		} {
			if !ok {
				a.IsError(t, 422, 4, "type")
			} else if a.Status != 200 {
				t.Errorf("%s: %d %s", form, a.Status, a.Body)
			}
		}
	}

	for _, form := range []string{
		"type=skin&type=cape", "type[]=skin&type[]=cape", "type[0]=skin&type[1]=cape", "type%5B7%5D=skin&type%5B3%5D=cape",
		"type[0]=skin&type[]=cape&other[a][b]=c",
	} {
		f(form, true)
	}
	for _, form := range []string{
		"type[0]=skin&type[1]=cape&type[2]=skin", "type[0]=hat", "type[a]=skin", "type[0][]=skin", "type[-1]=skin",
		"type[0]=skin&type[a]=cape", "type=", "type[skin",
	} {
		f(form, false)
	}
}
