package console_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"github.com/veneer-skins/veneer/core/console"
	"github.com/veneer-skins/veneer/core/public"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// pages starts a server without sessions, and returns a client.
func pages(t *testing.T, site console.Site) client {
	t.Helper()
	limits, err := config.Read[httpserver.Limits]("", nil)
	if err != nil {
		t.Fatal(err)
	}
	options := httpserver.Options{Limits: limits}
	server, err := console.New(options, nil, site, public.Limiters{})
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, options.NewServer(server.Handler(options.AddressLimiter())))
}

// connect starts a server and returns a client.
func connect(t *testing.T, server *fasthttp.Server) client {
	t.Helper()
	listener := fasthttputil.NewInmemoryListener()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = listener.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return client{http: &fasthttp.HostClient{
		Addr: "veneer.test", Dial: func(string) (net.Conn, error) { return listener.Dial() },
		WriteBufferSize: 32 << 10, // a request is sent in one write, which the server cannot end by answering and closing before all is read
	}}
}

// client sends requests to a server.
type client struct{ http *fasthttp.HostClient }

// send sends a request; headers are pairs of name and value, and those of a name are all sent.
func (c client) send(t *testing.T, method, path, body string, headers ...string) *fasthttp.Response {
	t.Helper()
	request, response := new(fasthttp.Request), new(fasthttp.Response)
	request.Header.SetNoDefaultContentType(true)
	request.Header.SetMethod(method)
	request.SetRequestURI("http://veneer.test" + path)
	request.SetBodyString(body)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.UseHostHeader = true
			request.Header.SetHost(headers[i+1])
		} else {
			request.Header.Add(headers[i], headers[i+1])
		}
	}
	if err := c.http.Do(request, response); err != nil {
		t.Fatal(err)
	}
	return response
}

// checkHeaders checks headers of a response; an empty value stands for none.
func checkHeaders(t *testing.T, what string, response *fasthttp.Response, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := string(response.Header.Peek(name)); got != value {
			t.Errorf("%s: %s is %q; want %q", what, name, got, value)
		}
	}
}

var (
	importMap  = regexp.MustCompile(`(?s)<script type="importmap">(.*?)</script>`)
	references = regexp.MustCompile(`(?:href|src)="(/console/[^"]+)"`)
)

// Every page of the console is the index page, with the policy.
func TestIndex(t *testing.T) {
	t.Parallel()
	for _, site := range []console.Site{{}, {PicturesURL: "https://pictures.example.org", LaunchersPath: "/api/yggdrasil/"}} {
		c := pages(t, site)
		index := c.send(t, "GET", "/console/", "")
		body := string(index.Body())
		found := importMap.FindStringSubmatch(body)
		if found == nil {
			t.Fatalf("there is no import map:\n%s", body)
		}
		sum := sha256.Sum256([]byte(found[1]))
		more := ""
		if site.PicturesURL != "" {
			more = " " + site.PicturesURL
		}
		want := map[string]string{
			"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Opener-Policy": "same-origin", "Referrer-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"X-Authlib-Injector-Api-Location": site.LaunchersPath, "Vary": "Accept-Encoding", "Access-Control-Allow-Origin": "", "Set-Cookie": "",
			"Content-Security-Policy": "default-src 'none'; script-src 'self' 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; style-src 'self'; " +
				"img-src 'self' blob: data:" + more + "; connect-src 'self'" + more + "; manifest-src 'self'; base-uri 'none'; frame-ancestors 'none'; " +
				"form-action 'self'; require-trusted-types-for 'script'; trusted-types 'none'",
		}
		unknown := string(c.send(t, "GET", "/console/nothing", "").Body())
		for path, content := range map[string]string{
			"/console/": body, "/console/?pid=5": body, "/console/nothing/at/all/": unknown, "/console/%41": unknown, "/console/sessions": unknown,
		} {
			for _, method := range []string{"GET", "HEAD"} {
				got := c.send(t, method, path, "")
				checkHeaders(t, method+" "+path, got, want)
				if got.StatusCode() != 200 || method == "GET" && string(got.Body()) != content {
					t.Errorf("%s %s: %d, %d bytes; want the index page", method, path, got.StatusCode(), len(got.Body()))
				}
			}
		}
		if !strings.Contains(body, `<meta name="pictures" content="`+site.PicturesURL+`">`) {
			t.Errorf("the index page does not say that pictures come from %q:\n%s", site.PicturesURL, body)
		}
		again := c.send(t, "GET", "/console/", "", "If-None-Match", string(index.Header.Peek("ETag")))
		if again.StatusCode() != 304 || len(again.Body()) != 0 {
			t.Errorf("with its entity tag: %d, %d bytes", again.StatusCode(), len(again.Body()))
		}
		checkHeaders(t, "304", again, map[string]string{"Content-Security-Policy": want["Content-Security-Policy"]})

		var imports struct{ Imports map[string]string }
		if err := json.Unmarshal([]byte(found[1]), &imports); err != nil || len(imports.Imports) != 5 {
			t.Errorf("the import map is %s: %v", found[1], err)
		}
		paths := []string{}
		for _, path := range imports.Imports {
			paths = append(paths, path)
		}
		for _, match := range references.FindAllStringSubmatch(body, -1) {
			paths = append(paths, match[1])
		}
		for _, path := range paths {
			if got := c.send(t, "GET", path, "").StatusCode(); got != 200 {
				t.Errorf("the index page refers to %s: %d", path, got)
			}
		}
	}
}

var preload = regexp.MustCompile(`<link rel="modulepreload" href="(/console/[^"]+)">`)

// The index page of a path has the browser load all modules of the page at once, and no others.
func TestPreloads(t *testing.T) {
	t.Parallel()
	c := pages(t, console.Site{})
	modules := console.PageModules()
	if written := strings.Count(string(console.Modules()["app/main.js"]), `import("./pages/`); len(modules) != written {
		t.Errorf("there are %d pages: %v; main.js has %d", len(modules), modules, written)
	}
	modules["/nothing"] = "app/main.js"
	for path, module := range modules {
		needed := map[string]bool{}
		for _, entry := range []string{"app/main.js", module} {
			imported, err := console.StaticImports(entry)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range imported {
				needed[console.Base()+"/"+name] = true
			}
		}
		for _, requested := range []string{path, strings.TrimSuffix(path, "/") + "/", path + "?page=2"} {
			found := map[string]bool{}
			for _, match := range preload.FindAllStringSubmatch(string(c.send(t, "GET", "/console"+requested, "").Body()), -1) {
				if found[match[1]] {
					t.Errorf("%s has %s loaded twice", requested, match[1])
				}
				found[match[1]] = true
			}
			if !maps.Equal(found, needed) {
				t.Fatalf("%s has these loaded: %v; want %v", requested, slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(needed)))
			}
		}
	}
}

func TestRedirectToIndex(t *testing.T) {
	t.Parallel()
	got := pages(t, console.Site{}).send(t, "GET", "/console", "")
	if location := string(got.Header.Peek("Location")); got.StatusCode() != 302 || location != "/console/" {
		t.Errorf("GET /console: %d to %q", got.StatusCode(), location)
	}
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
			got := c.send(t, "GET", path, "", "Accept-Encoding", coding)
			checkHeaders(t, coding+" "+path, got, map[string]string{
				"Content-Type": kind, "Content-Encoding": coding, "Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff",
				"Cross-Origin-Resource-Policy": "same-origin", "Vary": "Accept-Encoding", "Access-Control-Allow-Origin": "",
			})
			body, err := decoded(got.Body())
			if got.StatusCode() != 200 || err != nil || !bytes.Equal(body, content) {
				t.Errorf("%q %s: %d, %d bytes, %v; want %d bytes", coding, path, got.StatusCode(), len(body), err, len(content))
			}
			if got := c.send(t, "GET", path, "", "Accept-Encoding", coding, "If-None-Match", string(got.Header.Peek("ETag"))); got.StatusCode() != 304 {
				t.Errorf("%q %s with its entity tag: %d", coding, path, got.StatusCode())
			}
		}
	}
	for _, path := range []string{"/console/0000000000000000/app/main.js", "/console/main.js", "/console/favicon.ico", console.Base() + "/app/index.html", console.Base() + "/app/tsconfig.json", console.Base() + "/vendor/README.md"} {
		got := c.send(t, "GET", path, "")
		if got.StatusCode() != 404 || !strings.HasPrefix(string(got.Body()), `{"code":3,`) {
			t.Errorf("%s: %d %.80s; want 404", path, got.StatusCode(), got.Body())
		}
		checkHeaders(t, path, got, map[string]string{"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"})
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		if got := c.send(t, method, "/console/players", "").StatusCode(); got != 405 {
			t.Errorf("%s of a page: %d; want 405", method, got)
		}
	}
}

// The vendored files are those that their README names.
func TestVendored(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("vendor/README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| (\\S+\\.js) \\| (\\S+@\\S+) \\| `\\S+` \\| `([0-9a-f]{64})` \\|$").FindAllStringSubmatch(string(readme), -1)
	want := map[string]string{}
	for _, row := range rows {
		want[row[1]] = row[3]
	}
	entries, err := os.ReadDir("vendor")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".js") {
			continue
		}
		content, err := os.ReadFile("vendor/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != want[entry.Name()] {
			t.Errorf("%s has the SHA-256 %x; its row in README.md has %q", entry.Name(), sum, want[entry.Name()])
		}
		delete(want, entry.Name())
	}
	if len(want) > 0 {
		t.Errorf("README.md names files that are not there: %v", want)
	}
}
