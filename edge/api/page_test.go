//go:build !race

package api_test

import (
	"cmp"
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Browsers get HTML pages at /pictures, at / without an upstream, and at unknown paths, all other clients JSON.
func TestPages(t *testing.T) {
	t.Parallel()
	const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	const page, data, text = "text/html; charset=utf-8", "application/json; charset=utf-8", "text/plain; charset=utf-8"
	const docs, console = `<a href="/api/docs">`, `<a href="/console/">`
	for _, passes := range []bool{false, true} {
		w := openSeeded(t, func(s *setup) {
			if passes {
				s.api.APIUpstream = "http://127.0.0.1:1" // which no request here is forwarded to
			}
		})
		f := func(path, accept string, status int, kind, content, cache, vary string) {
			t.Helper()
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				got := w.do(t, method, path, http.Header{"Accept": {accept}}, "")
				if got.status != status || got.header.Get("Content-Type") != kind || method == http.MethodGet && !strings.Contains(got.body, content) || method == http.MethodHead && got.body != "" {
					t.Errorf("%s %s for %q: %d, %s:\n%s\nwant %d, %s, with %q", method, path, accept, got.status, got.header.Get("Content-Type"), got.body, status, kind, content)
				}
				if got.header.Get("Cache-Control") != cache || strings.Join(got.header.Values("Vary"), ", ") != vary || got.header.Get("Cache-Status") != "veneer; fwd=bypass" {
					t.Errorf("%s %s for %q: header %v; want Cache-Control %s and Vary %q", method, path, accept, got.header, cache, vary)
				}
				policy := got.header.Get("Content-Security-Policy")
				testenv.Equal(t, strings.Contains(policy, "default-src 'none'; style-src 'sha256-"), kind == page,
					"%s %s for %q: it has the policy of pages", method, path, accept)
				for _, link := range []string{docs, console} {
					if strings.Contains(got.body, link) != (passes && kind == page && method == http.MethodGet) {
						t.Errorf("%s %s, forwarding: %t, %s:\n%s", method, path, passes, link, got.body)
					}
				}
			}
		}
		const notFound = "public, max-age=15"
		f("/pictures", browser, 200, page, "<h1>Picture addresses</h1>", "no-cache", "Accept-Encoding")
		f("/pictures", "*/*", 200, page, "<h1>Picture addresses</h1>", "no-cache", "Accept-Encoding")
		for _, path := range []string{"/nothing", "/pictures/x", "/avatar/", "/preview/user/1", "/apiary"} {
			f(path, browser, 404, page, `<a href="/">Start page</a>`, notFound, "Accept")
			f(path, "*/*", 404, data, `{"code":3,`, notFound, "Accept")
		}
		// The path of a picture that does not exist is known, so this is JSON.
		w.do(t, http.MethodGet, "/avatar/99", http.Header{"Accept": {browser}}, "").expect(t, "/avatar/99", 404,
			"Content-Type", data, "Vary", "")

		w.checkMethods(t, "/pictures")
		if !passes {
			w.checkMethods(t, "/", "/robots.txt")
			f("/", browser, 200, page, "<h1>Picture addresses</h1>", "no-cache", "Accept-Encoding")
			f("/robots.txt", browser, 200, text, "Disallow: /api/\n", "public, max-age=3600", "")
			f("/p/Steve", browser, 404, page, `<a href="/">Start page</a>`, notFound, "Accept")
			f("/console/", browser, 404, page, `<a href="/">Start page</a>`, notFound, "Accept")
			w.do(t, http.MethodGet, "/api/nothing", http.Header{"Accept": {browser}}, "").expect(t, "/api/nothing", 404,
				"Content-Type", data)
		}
	}
}

// Launchers are told at / where core's API is, and nowhere else.
func TestLaunchersURL(t *testing.T) {
	t.Parallel()
	const header = "X-Authlib-Injector-Api-Location"
	for _, location := range []string{"", "/api/yggdrasil/", "https://api.example.org/api/yggdrasil/"} {
		w := openSeeded(t, func(s *setup) { s.api.LaunchersURL = location })
		for path, want := range map[string]string{"/": location, "/pictures": "", "/avatar/1": "", "/nothing": ""} {
			testenv.Equal(t, w.do(t, http.MethodGet, path, nil, "").header.Get(header), want,
				"%q: the header of %s", location, path)
		}
		forwards := openForwarding(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(header, "/core/") }, func(s *setup) { s.api.LaunchersURL = location })
		testenv.Equal(t, forwards.get(t, "/").header.Get(header), cmp.Or(location, "/core/"), "%q: the header of / from core", location)
	}
}

var (
	inlineStyle  = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	inlineScript = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	exampleImage = regexp.MustCompile(`<img src="([^"]+)"`)
	address      = regexp.MustCompile(`<code class="address">([^<]+)</code>`)
	anchor       = regexp.MustCompile(`href="#([^"]+)"`)
)

// submatches returns the first group of all matches, without the escapes of HTML.
func submatches(pattern *regexp.Regexp, page string) (all []string) {
	for _, match := range pattern.FindAllStringSubmatch(page, -1) {
		all = append(all, html.UnescapeString(match[1]))
	}
	return all
}

// The page at /pictures has the addresses of all views, all parameters, and the addresses of other services unless
// they are off. Its examples are pictures.
func TestStartPage(t *testing.T) {
	t.Parallel()
	for _, hasCompatRoutes := range []bool{false, true} {
		w := openSeeded(t, func(s *setup) { s.api.CompatRoutes, s.api.ExamplePlayer = hasCompatRoutes, "Élan" })
		page := w.get(t, "/pictures").body
		addresses := submatches(address, page)
		for _, view := range edge.Views {
			for _, route := range view.Routes {
				pattern := view.Pattern(route)
				testenv.Check(t, slices.Contains(addresses, pattern), "the page lacks %s", pattern)
			}
		}
		for _, parameter := range edge.Parameters {
			want := `<dt id="` + parameter.Name + `"><code>` + parameter.Name + `</code></dt>`
			testenv.Check(t, strings.Contains(page, want), "the page lacks %s", want)
		}
		for _, name := range submatches(anchor, page) {
			testenv.Check(t, strings.Contains(page, ` id="`+name+`"`), "a link leads to %s, which is not there", name)
		}
		_, services, _ := strings.Cut(page, `id="services"`)
		testenv.Equal(t, services != "", hasCompatRoutes,
			"EDGE_COMPAT_ROUTES=%t: the page has other services", hasCompatRoutes)
		for _, route := range edge.CompatRoutes {
			for _, name := range route.Services {
				_, row, _ := strings.Cut(services, `<tr><th scope="row">`+name+`</th>`)
				row, _, _ = strings.Cut(row, "</tr>")
				if hasCompatRoutes && !strings.Contains(row, "<code>"+strings.ReplaceAll(route.Pattern(name), "&", "&amp;")+"</code>") {
					t.Errorf("the page lacks %s of %s", route.Prefix, name)
				}
			}
		}

		images := submatches(exampleImage, page)
		testenv.Check(t, len(images) >= 10, "the page has the examples %q; want ten or more", images)
		for _, path := range images {
			if got := w.get(t, path); !strings.Contains(path, "/player/%C3%89lan") || got.status != http.StatusOK || got.header.Get("Content-Type") != "image/webp" {
				t.Errorf("the example %s: %d, %s", path, got.status, got.header.Get("Content-Type"))
			}
			testenv.Check(t, slices.Contains(addresses, path), "the page lacks the address %s of an example", path)
		}
	}
}

// The policy allows what is in the page, and nothing else. The page is sent again only when it changes.
func TestStartPageHeaders(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	got := w.get(t, "/pictures")
	styles, scripts := submatches(inlineStyle, got.body), submatches(inlineScript, got.body)
	if len(styles) != 1 || len(scripts) != 1 || strings.Count(got.body, "<script") != 1 || regexp.MustCompile(` (on[a-z]+|style)=`).MatchString(got.body) {
		t.Fatalf("the page has the styles %q and the scripts %q, or inline handlers", styles, scripts)
	}
	want := "default-src 'none'; style-src " + httpserver.SourceHash(inlineStyle.FindStringSubmatch(got.body)[1]) +
		"; script-src " + httpserver.SourceHash(inlineScript.FindStringSubmatch(got.body)[1]) + "; img-src 'self' data:; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
	testenv.Equal(t, got.header.Get("Content-Security-Policy"), want, "the policy")
	testenv.Check(t, strings.Contains(got.body, `<img src="/face/user/0"`),
		"without a player in the settings the page does not show the default skin")
	for _, coding := range []string{"", "gzip", "br"} {
		header := http.Header{"Accept-Encoding": {coding}}
		first := w.do(t, http.MethodGet, "/pictures", header, "")
		header.Set("If-None-Match", first.header.Get("Etag"))
		again := w.do(t, http.MethodGet, "/pictures", header, "")
		if first.header.Get("Content-Encoding") != coding || again.status != http.StatusNotModified || again.body != "" || again.header.Get("Etag") != first.header.Get("Etag") {
			t.Errorf("%q: %v, and then %d %v; want 304", coding, first.header, again.status, again.header)
		}
		// Of this the page may take no more, without pictures.
		if limit := 20 << 10; coding != "" && len(first.body) > limit {
			t.Errorf("%s: the page takes %d bytes; want at most %d", coding, len(first.body), limit)
		}
	}
}

// The values of parameters on the page are all that there are.
func TestDescribedParameters(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	for _, parameter := range edge.Parameters {
		if len(parameter.Values) == 1 { // a description
			continue
		}
		for _, use := range parameter.Uses() {
			for _, view := range use.Views {
				path := view + "/player/Steve?" + parameter.Name + "="
				for _, value := range parameter.Values {
					testenv.Equal(t, w.get(t, path+value).status, http.StatusOK, "%s", path+value)
				}
				if got := w.get(t, path+"nothing"); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, strings.Join(parameter.Values[:len(parameter.Values)-1], ", ")) && parameter.Name != "turn" {
					t.Errorf("%snothing: %d, %s; want 422 and the values %q", path, got.status, got.body, parameter.Values)
				}
				if use.Default != "" && w.get(t, path+use.Default).header.Get("Etag") != w.get(t, path).header.Get("Etag") {
					t.Errorf("%s%s is not the default", path, use.Default)
				}
			}
		}
	}
}
