package console_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"html"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/clientapi"
	"github.com/veneer-skins/veneer/core/console"
	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// pages starts a server without sessions, and returns a client.
func pages(t *testing.T, site console.Site) client {
	t.Helper()
	limits := testenv.Must(config.Read[httpserver.Limits]("", nil))(t)
	options := httpserver.Options{Limits: limits}
	if site.Texts == nil {
		site.Texts = func() *core.SiteTexts { return nil }
	}
	if site.Branding.Name == "" {
		site.Branding = testenv.Must(config.Read[core.Branding]("", nil))(t)
	}
	server := testenv.Must(console.New(options, nil, site, clientapi.Limiters{}))(t)
	return connect(t, options.NewServer(server.Handler(options.AddressLimiter())))
}

// connect returns a client of a server.
func connect(t *testing.T, server *fasthttp.Server) client {
	t.Helper()
	c := coretest.Client{Server: server, Check: func(*testing.T, coretest.Response) {}}.From(t, "192.0.2.1")
	// A request is sent in one write, which the server cannot end by answering and closing before all is read.
	c.HTTP.WriteBufferSize = 32 << 10
	return client{c}
}

// client sends requests to a server.
type client struct{ coretest.Client }

// checkHeaders checks headers of a response; an empty value stands for none.
func checkHeaders(t *testing.T, what string, response coretest.Response, want map[string]string) {
	t.Helper()
	for name, value := range want {
		testenv.Equal(t, response.Header.Get(name), value, "%s: %s", what, name)
	}
}

var references = regexp.MustCompile(`(?:href|src)="(/console/[^"]+)"`)

// Every page of the console is the index page, with the policy.
func TestIndex(t *testing.T) {
	t.Parallel()
	for _, site := range []console.Site{{}, {PicturesURL: "https://pictures.example.org", LaunchersPath: "/api/yggdrasil/"}} {
		c := pages(t, site)
		index := c.Get(t, "/console/")
		body := string(index.Body)
		more := ""
		if site.PicturesURL != "" {
			more = " " + site.PicturesURL
		}
		want := map[string]string{
			"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Opener-Policy": "same-origin", "Referrer-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"X-Authlib-Injector-Api-Location": site.LaunchersPath, "Vary": "Accept-Encoding", "Access-Control-Allow-Origin": "", "Set-Cookie": "",
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; " +
				"img-src 'self' blob: data:" + more + "; connect-src 'self'" + more + "; manifest-src 'self'; base-uri 'none'; frame-ancestors 'none'; " +
				"form-action 'self'; require-trusted-types-for 'script'; trusted-types 'none'",
		}
		unknown := string(c.Get(t, "/console/nothing").Body)
		for path, content := range map[string]string{
			"/console/": body, "/console/?pid=5": body, "/console/nothing/at/all/": unknown, "/console/%41": unknown, "/console/sessions": unknown,
		} {
			for _, method := range []string{"GET", "HEAD"} {
				got := c.Send(t, method, path, coretest.Body{})
				checkHeaders(t, method+" "+path, got, want)
				status := 200
				if content == unknown {
					status = 404
				}
				testenv.Check(t, got.Status == status && (method != "GET" || string(got.Body) == content),
					"%s %s: %d, %d bytes; want the index page", method, path, got.Status, len(got.Body))
			}
		}
		for query, status := range map[string]int{"": 404, "?tid=": 404, "?tid=x": 404, "?tid=0": 404, "?tid=5": 200} {
			testenv.Equal(t, c.Get(t, "/console/texture"+query).Status, status, "the status of /console/texture%s", query)
		}
		testenv.Contains(t, body, `<meta name="pictures" content="`+site.PicturesURL+`">`, "the index page")
		again := c.Send(t, "GET", "/console/", coretest.Body{}, "If-None-Match", index.Header.Get("ETag"))
		again.HasStatus(t, 304)
		testenv.Equal(t, string(again.Body), "", "the body with its entity tag")
		checkHeaders(t, "304", again, map[string]string{"Content-Security-Policy": want["Content-Security-Policy"]})

		for _, match := range references.FindAllStringSubmatch(body, -1) {
			c.Get(t, match[1]).HasStatus(t, 200) // the index page refers to it
		}
	}
}

// surfaces matches the backgrounds of text in style.css, on light and on dark pages.
var surfaces = regexp.MustCompile(`(?m)^  --(?:back|raised|tint): light-dark\((#[0-9a-f]+), (#[0-9a-f]+)\);`)

// The index page has the site's name, and a stylesheet with the accent colour, which can be read on all backgrounds.
func TestBranding(t *testing.T) {
	t.Parallel()
	backgrounds := surfaces.FindAllStringSubmatch(string(console.Modules()["app/style.css"]), -1)
	testenv.Equal(t, len(backgrounds), 3, "the number of backgrounds in style.css")
	for _, colour := range []string{core.DefaultAccent, "#000000", "#0B57D0", "#a3261f", "#7a00cc"} {
		site := console.Site{LogoPath: "/site/logo.png"}
		site.Branding = testenv.Must(config.Read[core.Branding]("", []string{"NAME=<Skins> {base}", "DESCRIPTION=\"quoted\"", "ACCENT=" + colour}))(t)
		testenv.Do(t, site.Branding.Check())
		light, dark := site.Branding.Accents()
		for _, background := range backgrounds {
			for text, on := range map[string]string{light: background[1], dark: background[2]} {
				if len(on) == 4 { // as #fff
					on = "#" + strings.Repeat(on[1:2], 2) + strings.Repeat(on[2:3], 2) + strings.Repeat(on[3:4], 2)
				}
				testenv.Check(t, core.Contrast(text, on) >= 4.5, "%s: the contrast of %s on %s is %.2f", colour, text, on, core.Contrast(text, on))
			}
		}
		testenv.Check(t, core.Contrast(light, "#ffffff") >= 4.5 && core.Contrast(dark, "#10251a") >= 4.5, "%s: text on %s or %s lacks contrast", colour, light, dark)

		c := pages(t, site)
		body := string(c.Get(t, "/console/").Body)
		for _, part := range []string{
			`<title>&lt;Skins&gt; {base}</title>`, `<meta name="application-name" content="&lt;Skins&gt; {base}">`,
			`<meta name="description" content="&#34;quoted&#34;">`, `<meta name="logo" content="/site/logo.png">`,
		} {
			testenv.Contains(t, body, part, "the index page")
		}
		found := accentLink.FindStringSubmatch(body)
		if colour == core.DefaultAccent {
			testenv.Check(t, found == nil, "the console's own colour has the stylesheet %v", found)
			continue
		}
		css := c.Get(t, found[1])
		testenv.Contains(t, string(css.Body), "light-dark("+light+","+dark+")", "the stylesheet")
		checkHeaders(t, found[1], css, map[string]string{"Content-Type": "text/css; charset=utf-8", "Cache-Control": "public, max-age=31536000, immutable"})
	}
}

var accentLink = regexp.MustCompile(`<link rel="stylesheet" href="(/console/[0-9a-f]+/accent\.css)">`)

// The index page has what the operator tells visitors, and another text once that has changed.
func TestOperator(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) { testenv.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)) }
	write("rules.md", "Be kind.")
	write("announcement.zh.md", "*\"周日\"*")
	texts := testenv.Must(core.NewSitePages(dir, slog.New(slog.DiscardHandler)))(t)
	site := console.Site{Texts: texts.Texts, Branding: testenv.Must(config.Read[core.Branding]("", []string{"CONTACT=help@example.org"}))(t)}
	c := pages(t, site)
	f := func(want string) {
		t.Helper()
		found := operatorMeta.FindStringSubmatch(string(c.Get(t, "/console/library").Body))
		testenv.Equal(t, html.UnescapeString(found[1]), want, "what the operator tells")
	}
	f(`{"contact":"mailto:help@example.org","pages":{"en":[{"name":"rules","title":"Rules"}],"zh":[{"name":"rules","title":"Rules"}]},` +
		`"announcement":{"en":"\u003cp\u003e\u003cem\u003e\u0026#34;周日\u0026#34;\u003c/em\u003e\u003c/p\u003e\n","zh":"\u003cp\u003e\u003cem\u003e\u0026#34;周日\u0026#34;\u003c/em\u003e\u003c/p\u003e\n"}}`)
	write("announcement.zh.md", "")
	write("rules.md", "")
	testenv.Do(t, texts.Refresh(t.Context()))
	f(`{"contact":"mailto:help@example.org","pages":{"en":[],"zh":[]},"announcement":{}}`)
}

var operatorMeta = regexp.MustCompile(`<meta name="operator" content="([^"]*)">`)

// pageInMain matches a page in main.js: its path, and its module.
var pageInMain = regexp.MustCompile(`(?m)^  "(/[a-z/]*)": \{.*\bimport\("\./(pages/[^"]+)"\)`)

// main.js has each module in app/pages under the module's path.
func TestPages(t *testing.T) {
	t.Parallel()
	inMain := map[string]string{}
	for _, match := range pageInMain.FindAllStringSubmatch(string(console.Modules()["app/main.js"]), -1) {
		inMain[match[1]] = "app/" + match[2]
	}
	cmptest.Same(t, inMain, console.PageModules(), "core/console/app/main.js: the pages")
}

var preload = regexp.MustCompile(`<link rel="modulepreload" href="(/console/[^"]+)">`)

// The index page of a path has the browser load all modules of the page at once, and no others.
func TestPreloads(t *testing.T) {
	t.Parallel()
	c := pages(t, console.Site{})
	modules := console.PageModules()
	modules["/nothing"] = "app/main.js"
	for path, module := range modules {
		needed := map[string]bool{}
		for _, entry := range []string{"app/main.js", module} {
			imported := testenv.Must(console.StaticImports(entry))(t)
			for _, name := range imported {
				needed[console.Base()+"/"+name] = true
			}
		}
		for _, requested := range []string{path, strings.TrimSuffix(path, "/") + "/", path + "?page=2"} {
			var found []string
			for _, match := range preload.FindAllStringSubmatch(string(c.Get(t, "/console"+requested).Body), -1) {
				found = append(found, match[1])
			}
			slices.Sort(found)
			cmptest.Same(t, found, slices.Sorted(maps.Keys(needed)), "%s: the modules that it has loaded", requested)
		}
	}
}

func TestRedirectToIndex(t *testing.T) {
	t.Parallel()
	got := pages(t, console.Site{}).Get(t, "/console")
	got.HasStatus(t, 302)
	checkHeaders(t, "GET /console", got, map[string]string{"Location": "/console/"})
}

// Files are immutable, and the same in every coding.
func TestFiles(t *testing.T) {
	t.Parallel()
	c := pages(t, console.Site{})
	types := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", "": "text/plain; charset=utf-8"}
	for path, content := range console.Files() {
		kind := types[filepath.Ext(path)]
		for coding, decoded := range map[string]func([]byte) ([]byte, error){
			"": func(b []byte) ([]byte, error) { return b, nil }, "gzip": func(b []byte) ([]byte, error) { return fasthttp.AppendGunzipBytes(nil, b) }, "br": func(b []byte) ([]byte, error) { return fasthttp.AppendUnbrotliBytes(nil, b) },
		} {
			got := c.Send(t, "GET", path, coretest.Body{}, "Accept-Encoding", coding)
			checkHeaders(t, coding+" "+path, got, map[string]string{
				"Content-Type": kind, "Content-Encoding": coding, "Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff",
				"Cross-Origin-Resource-Policy": "same-origin", "Vary": "Accept-Encoding", "Access-Control-Allow-Origin": "",
			})
			body, err := decoded(got.Body)
			testenv.Check(t, got.Status == 200 && err == nil && bytes.Equal(body, content),
				"%q %s: %d, %d bytes, %v; want %d bytes", coding, path, got.Status, len(body), err, len(content))
			tag := got.Header.Get("ETag")
			c.Send(t, "GET", path, coretest.Body{}, "Accept-Encoding", coding, "If-None-Match", tag).HasStatus(t, 304)
		}
	}
	for _, path := range []string{"/console/0000000000000000/app/main.js", "/console/main.js", "/console/favicon.ico", console.Base() + "/app/index.html", console.Base() + "/app/tsconfig.json", console.Base() + "/vendor/README.md"} {
		got := c.Get(t, path)
		got.IsError(t, 404, 3)
		checkHeaders(t, path, got, map[string]string{"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"})
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		c.Send(t, method, "/console/players", coretest.Body{}).HasStatus(t, 405)
	}
}

// The vendored files are those that their README names, in the versions in which make audit looks for advisories.
func TestVendored(t *testing.T) {
	t.Parallel()
	readme := testenv.Must(os.ReadFile("vendor/README.md"))(t)
	rows := regexp.MustCompile("(?m)^\\| (\\S+\\.js) \\| (\\S+)@(\\S+) \\| `\\S+` \\| `([0-9a-f]{64})` \\|$").FindAllStringSubmatch(string(readme), -1)
	audited := string(testenv.Must(os.ReadFile("../../bench/system/console/package.json"))(t))
	want := map[string]string{}
	for _, row := range rows {
		want[row[1]] = row[4]
		testenv.Check(t, strings.Contains(audited, `"`+row[2]+`": "`+row[3]+`"`), "package.json lacks %s in version %s", row[2], row[3])
	}
	entries := testenv.Must(os.ReadDir("vendor"))(t)
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".js") {
			continue
		}
		content := testenv.Must(os.ReadFile("vendor/" + entry.Name()))(t)
		sum := sha256.Sum256(content)
		testenv.Equal(t, hex.EncodeToString(sum[:]), want[entry.Name()], "%s in README.md: the SHA-256", entry.Name())
		delete(want, entry.Name())
	}
	testenv.Equal(t, len(want), 0, "the number of the files in README.md that are not there, %v,", want)
}
