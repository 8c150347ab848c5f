package httpserver_test

import (
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestPrefersHTML(t *testing.T) {
	t.Parallel()
	f := func(want bool, accept ...string) {
		t.Helper()
		rc := exchange(nil)
		for _, line := range accept {
			rc.Request.Header.Add("Accept", line)
		}
		testenv.Equal(t, httpserver.PrefersHTML(rc), want, "Accept %q", accept)
		testenv.Equal(t, string(rc.Response.Header.Peek("Vary")), "Accept", "Accept %q: Vary", accept)
	}

	f(true, "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8") // browsers
	f(true, "text/html")
	f(true, "TEXT/HTML ; level=1 ; Q=0.5")
	f(true, "application/json;q=0.5, text/html;q=0.6")
	f(true, "application/json;q=0.5", "text/html")
	f(true, "text/*, */*;q=0.1")
	f(true, "*/*, application/json;q=0")
	f(false)
	f(false, "")
	f(false, "*/*")
	f(false, "image/webp,*/*;q=0.8")
	f(false, "application/json")
	f(false, "application/json, text/html")
	f(false, "text/html;q=0.5, application/*")
	f(false, "text/html;q=0, */*")
	f(false, "text/html;q=much")
	f(false, ",;=,/")
}

func TestLanguage(t *testing.T) {
	t.Parallel()
	f := func(want, target string, accept ...string) {
		t.Helper()
		rc := exchange(nil)
		rc.Request.SetRequestURI(target)
		for _, line := range accept {
			rc.Request.Header.Add("Accept-Language", line)
		}
		testenv.Equal(t, httpserver.Language(rc, "en", "zh"), want, "%s, Accept-Language %q", target, accept)
		testenv.Equal(t, string(rc.Response.Header.Peek("Vary")), "Accept-Language", "%s, Accept-Language %q: Vary", target, accept)
	}
	f("en", "/")
	f("zh", "/?lang=zh")
	f("zh", "/?lang=zh", "en")
	f("en", "/?lang=fr")
	f("zh", "/", "zh-Hans-CN,zh;q=0.9,en;q=0.8")
	f("zh", "/", "fr, ZH-tw ; q=0.5, en;q=0.4")
	f("en", "/", "fr;q=1", "zh;q=0, *;q=0.5")
	f("en", "/", ",;=,-")
	rc := exchange(nil)
	testenv.Equal(t, httpserver.Language(rc, "de"), "de", "the only language")
	testenv.Equal(t, string(rc.Response.Header.Peek("Vary")), "", "Vary with one language")
}

func TestPage(t *testing.T) {
	t.Parallel()
	page := httpserver.NewPage(httpserver.PageText{Title: "A <b>", Paragraphs: []string{"x & y"}, Links: []httpserver.Link{{"/api/docs", "The <API>"}, {"javascript:alert(1)", "no"}}})
	rc := exchange(nil)
	page.Write(rc, fasthttp.StatusTeapot)
	body := string(rc.Response.Body())
	for _, want := range []string{"<title>A &lt;b&gt;</title>", "<p>x &amp; y</p>", `<a href="/api/docs">The &lt;API&gt;</a>`} {
		testenv.Check(t, strings.Contains(body, want), "the page lacks %s:\n%s", want, body)
	}
	testenv.Check(t, !strings.Contains(body, "javascript:") && !strings.Contains(body, "<script"),
		"the page has a script:\n%s", body)
	header := &rc.Response.Header
	if policy := string(header.Peek("Content-Security-Policy")); !strings.HasPrefix(policy, "default-src 'none'; style-src 'sha256-") || rc.Response.StatusCode() != fasthttp.StatusTeapot ||
		string(header.ContentType()) != "text/html; charset=utf-8" {
		t.Errorf("the answer is\n%s", header)
	}
}

func TestNotFoundPage(t *testing.T) {
	t.Parallel()
	page := httpserver.NotFoundPage(httpserver.Link{Path: "/", Text: "Start"})
	rc := exchange(nil)
	err := page.WriteNotFound(rc)
	testenv.Check(t, fault.KindOf(err) == fault.NotFound, "a program gets %v; want a NotFound fault", err)
	rc.Request.Header.Set("Accept", "text/html")
	if err := page.WriteNotFound(rc); err != nil || rc.Response.StatusCode() != fasthttp.StatusNotFound || !strings.Contains(string(rc.Response.Body()), `<a href="/">Start</a>`) {
		t.Errorf("a browser gets %v, %d %s", err, rc.Response.StatusCode(), rc.Response.Body())
	}
}
