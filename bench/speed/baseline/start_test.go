package baseline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"
	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/shared/testenv"
)

// Some of the baselines are this program, so the test binary must be it.
func TestMain(m *testing.M) {
	if isRole, err := ServeRole(os.Args[1:]); isRole {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// start starts a server, or skips the test if it is not installed.
func start(t *testing.T, start func(context.Context, Env) (*Server, error)) *Server {
	t.Helper()
	s, err := start(t.Context(), Env{CPUs: []int{someCPU(t)}, WorkDir: t.TempDir()})
	if missing, ok := errors.AsType[*MissingError](err); ok {
		testenv.Skip(t, missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	// A pidfd is readable when its process has exited.
	var processes []unix.PollFd
	for _, pid := range processTree(s.command.Process.Pid) {
		descriptor, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		processes = append(processes, unix.PollFd{Fd: int32(descriptor), Events: unix.POLLIN})
	}
	t.Cleanup(func() {
		s.Stop()
		for i := range processes {
			if ended, err := unix.Poll(processes[i:i+1], int(startTimeout.Milliseconds())); ended != 1 {
				t.Errorf("process %d of %s has outlived it: %v", i+1, s.Name, err)
			}
			_ = unix.Close(int(processes[i].Fd))
		}
	})
	return s
}

// someCPU returns a processor that this program may use.
func someCPU(t *testing.T) int {
	t.Helper()
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !may.IsSet(cpu) {
		cpu++
	}
	return cpu
}

// get sends a request and returns the response, which must have a status.
func get(t *testing.T, address, target, tag string, status int) *fasthttp.Response {
	t.Helper()
	var request fasthttp.Request
	request.SetRequestURI("http://" + address + target)
	if tag != "" {
		request.Header.Set(fasthttp.HeaderIfNoneMatch, tag)
	}
	response := new(fasthttp.Response)
	if err := fasthttp.DoTimeout(&request, response, startTimeout); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode() != status {
		t.Errorf("%s answers %d; want %d", target, response.StatusCode(), status)
	}
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
	f := func(name string, run func(ctx context.Context, env Env) (*Server, error)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := start(t, run)
			if _, err := s.Check(t.Context(), r); err != nil {
				t.Error(err)
			}
		})
	}

	f("bare", func(ctx context.Context, env Env) (*Server, error) {
		return StartFasthttp(ctx, env, r, Certificate{})
	})
	f("bare, TLS", func(ctx context.Context, env Env) (*Server, error) {
		certificate, err := env.Certify()
		if err != nil {
			return nil, err
		}
		return StartFasthttp(ctx, env, r, certificate)
	})
	for _, layout := range []Layout{ByAddress, ByBody} {
		f(string(layout), func(ctx context.Context, env Env) (*Server, error) {
			if err := WriteFiles(env.WorkDir, r); err != nil {
				return nil, err
			}
			return StartNginx(ctx, env, env.WorkDir, layout, 100, r)
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
		if err := fasthttp.DoTimeout(&request, &response, startTimeout); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode(), string(response.Body())
	}

	t.Run("argon2", func(t *testing.T) {
		t.Parallel()

		s := start(t, StartArgon2)
		hashes := map[string]bool{}
		for range 3 {
			_, hash := send(t, s, []byte("password"))
			if hashes[hash] = true; len(hash) != 64 {
				t.Errorf("the hash is %q", hash)
			}
		}
		if len(hashes) != 3 {
			t.Errorf("hashes have no salt: %v", hashes)
		}
	})
	t.Run("reencode", func(t *testing.T) {
		t.Parallel()

		var env Env
		s := start(t, func(ctx context.Context, p Env) (*Server, error) {
			env = p
			return StartReencode(ctx, p)
		})
		picture := image.NewNRGBA(image.Rect(0, 0, 64, 32))
		picture.SetNRGBA(3, 4, color.NRGBA{R: 200, A: 255})
		var uploaded bytes.Buffer
		if err := png.Encode(&uploaded, picture); err != nil {
			t.Fatal(err)
		}
		status, name := send(t, s, uploaded.Bytes())
		paths, err := filepath.Glob(filepath.Join(env.WorkDir, "*", name))
		if err != nil || len(paths) != 1 || status != fasthttp.StatusOK {
			t.Fatalf("%d %s is stored in %v: %v", status, name, paths, err)
		}
		file, err := os.ReadFile(paths[0])
		if err != nil {
			t.Fatal(err)
		}
		if stored, err := png.Decode(bytes.NewReader(file)); err != nil || !cmp.Equal(image.Image(picture), stored) {
			t.Errorf("the picture is not the same: %v, %v", stored, err)
		}
		if status, answer := send(t, s, []byte("no picture")); status != fasthttp.StatusBadRequest {
			t.Errorf("an invalid picture: %d %s", status, answer)
		}
	})
}

// An error for a missing program says how to install it.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", "")
	env := Env{WorkDir: t.TempDir()}
	f := func(what, install string, start func() (*Server, error)) {
		t.Helper()
		s, err := start()
		if err == nil {
			s.Stop()
		}
		missing, ok := errors.AsType[*MissingError](err)
		if !ok || missing.What != what || !strings.Contains(missing.Install, install) {
			t.Errorf("%s: %v", what, err)
		}
	}

	f("nginx", "apt-get install nginx", func() (*Server, error) { return StartNginx(t.Context(), env, env.WorkDir, ByBody, 1, new(Record)) })
	f("nginx", "apt-get install nginx", func() (*Server, error) { return StartNginxCache(t.Context(), env, "127.0.0.1:1", 1) })
	f("Varnish", "apt-get install varnish", func() (*Server, error) { return StartVarnish(t.Context(), env, "127.0.0.1:1", 1) })
	f("sharp", "deploy/dev/node", func() (*Server, error) { return StartSharp(t.Context(), env, env.WorkDir, modules) })
}

// Every program of the list reports its version, or how to install it.
func TestPrograms(t *testing.T) {
	t.Parallel()

	for _, p := range Programs(t.TempDir()) {
		version, err := p.Version(t.Context())
		missing, ok := errors.AsType[*MissingError](err)
		switch {
		case err == nil && !strings.ContainsAny(version, "0123456789"):
			t.Errorf("%s: version %q", p.Name, version)
		case err != nil && (!ok || missing.What != p.Name || missing.Install == ""):
			t.Errorf("%s: %v", p.Name, err)
		case p.Name == "sharp" && err == nil:
			t.Errorf("%s is found in an empty directory", version)
		}
	}
}

// A server that cannot start is reported at once, with its output.
func TestAwaitReportsExit(t *testing.T) {
	t.Parallel()

	p, err := Run(Env{WorkDir: t.TempDir()}, "it", nil, nil, "sh", "-c", "echo no such luck; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	err = p.Await(t.Context(), func() error { return errors.New("not listening") })
	if err == nil || !strings.Contains(err.Error(), "it has ended: not listening; it says:\nno such luck") {
		t.Errorf("Await: %v", err)
	}
}
