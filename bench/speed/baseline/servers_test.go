package baseline

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/tlsreload/tlsreloadtest"
)

// Some of the baselines are this program, so the test binary must be it.
func TestMain(m *testing.M) {
	ServeRole()
	m.Run()
}

func requireProgram(t *testing.T, program Program) {
	t.Helper()
	if _, missing := program.Version(t.Context()); missing != nil {
		testenv.Skip(t, missing)
	}
}

// timeout is how long a response may take.
const timeout = 30 * time.Second

// get sends a request and returns the response, which must have a status.
func get(t *testing.T, address, target, tag string, status int) *fasthttp.Response {
	t.Helper()
	var request fasthttp.Request
	request.SetRequestURI("http://" + address + target)
	if tag != "" {
		request.Header.Set(fasthttp.HeaderIfNoneMatch, tag)
	}
	response := new(fasthttp.Response)
	testenv.Do(t, fasthttp.DoTimeout(&request, response, timeout))
	testenv.Equal(t, response.StatusCode(), status, "%s answers", target)
	return response
}

// The servers of recorded responses serve just those.
func TestRecorded(t *testing.T) {
	t.Parallel()
	r := &Record{Bodies: [][]byte{[]byte("first"), []byte("other")}}
	for i, target := range []string{"/avatar/1?size=64", "/avatar/2?size=64", "/preview/3"} {
		a := Response{Target: target, Status: http.StatusOK, Body: i % 2, Headers: []Header{
			{"Content-Type", "image/png"}, {etag, `"tag"`}, {"Cache-Control", "public, max-age=60"},
		}}
		r.Full = append(r.Full, a)
		a.Status, a.Headers = http.StatusNotModified, a.Headers[1:]
		r.Unmodified = append(r.Unmodified, a)
	}
	for name, start := range map[string]func(t *testing.T) *Server{
		"bare": func(t *testing.T) *Server { t.Helper(); return Fasthttp.StartRecorded(t, r, "", "") },
		"bare, TLS": func(t *testing.T) *Server {
			t.Helper()
			chain, key := tlsreloadtest.NewAuthority(t).Issue(t)
			return Fasthttp.StartRecorded(t, r, chain, key)
		},
		"loop": func(t *testing.T) *Server { t.Helper(); return Loop.StartRecorded(t, r, "", "") },
		"loop, TLS": func(t *testing.T) *Server {
			t.Helper()
			chain, key := tlsreloadtest.NewAuthority(t).Issue(t)
			return Loop.StartRecorded(t, r, chain, key)
		},
		"epoll":             func(t *testing.T) *Server { t.Helper(); return Epoll.StartRecorded(t, r, "", "") },
		"nginx, by address": func(t *testing.T) *Server { t.Helper(); return StartNginx(t, ByAddress, 100, r) },
		"nginx, by body":    func(t *testing.T) *Server { t.Helper(); return StartNginx(t, ByBody, 100, r) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if strings.HasPrefix(name, "nginx") {
				requireProgram(t, Nginx)
			}
			testenv.Must(start(t).Check(t.Context(), r))(t)
		})
	}
}

// The minimal servers do their work on each request's body.
func TestMinimalServers(t *testing.T) {
	t.Parallel()
	send := func(t *testing.T, s *Server, body []byte) (status int, answer string) {
		t.Helper()
		var request fasthttp.Request
		request.SetRequestURI("http://" + s.Address)
		request.Header.SetMethod(fasthttp.MethodPost)
		request.SetBody(body)
		var response fasthttp.Response
		testenv.Do(t, fasthttp.DoTimeout(&request, &response, timeout))
		return response.StatusCode(), string(response.Body())
	}

	t.Run("argon2", func(t *testing.T) {
		t.Parallel()
		s := Argon2.Start(t)
		hashes := map[string]bool{}
		for range 3 {
			_, hash := send(t, s, []byte("password"))
			if hashes[hash] = true; len(hash) != 64 {
				t.Errorf("the hash is %q", hash)
			}
		}
		testenv.Equal(t, len(hashes), 3, "different hashes, as each has its salt")
	})
	t.Run("reencode", func(t *testing.T) {
		t.Parallel()
		files := t.TempDir()
		s := Reencode.Start(t, files)
		picture := image.NewNRGBA(image.Rect(0, 0, 64, 32))
		picture.SetNRGBA(3, 4, color.NRGBA{R: 200, A: 255})
		var uploaded bytes.Buffer
		testenv.Do(t, png.Encode(&uploaded, picture))
		status, name := send(t, s, uploaded.Bytes())
		file, err := os.ReadFile(filepath.Join(files, name))
		if err != nil || status != fasthttp.StatusOK {
			t.Fatalf("%d %s: %v", status, name, err)
		}
		if stored, err := png.Decode(bytes.NewReader(file)); err != nil || !cmp.Equal(image.Image(picture), stored) {
			t.Errorf("the picture is not the same: %v, %v", stored, err)
		}
		if status, answer := send(t, s, []byte("no picture")); status != fasthttp.StatusBadRequest {
			t.Errorf("an invalid picture: %d %s", status, answer)
		}
	})
}

// Every program reports its version, or how to install it.
func TestPrograms(t *testing.T) {
	for _, path := range []string{os.Getenv("PATH"), ""} {
		t.Setenv("PATH", path)
		for program, install := range map[*Program]string{
			&Fasthttp: "", &ImagePNG: "", &Argon2: "", &Reencode: "", &Nginx: "apt-get install nginx", &Varnish: "apt-get install varnish",
			&Haproxy: "apt-get install haproxy", &Pgbench: "apt-get install postgresql", &Libwebp: "apt-get install libwebp-dev", new(Sharp(t.TempDir())): "deploy/dev/node",
		} {
			version, err := program.Version(t.Context())
			switch {
			case err == nil && (!strings.HasPrefix(version, program.Name+" ") || !strings.ContainsAny(version, "0123456789")):
				t.Errorf("%s: version %q", program.Name, version)
			case err != nil && (install == "" || !strings.HasPrefix(err.Error(), program.Name+" is missing") || !strings.Contains(err.Error(), install)):
				t.Errorf("%s: %v", program.Name, err)
			case err == nil && (program.Name == "sharp" || program.Name == "nginx" && path == ""):
				t.Errorf("%s is found where it is not", version)
			}
		}
	}
}
