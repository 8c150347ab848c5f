package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/speed/picturecheck"
	"github.com/veneer-skins/veneer/edge/render/vips/libwebp"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

func serve(t *testing.T, handler fasthttp.RequestHandler) string {
	t.Helper()
	listener := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	server := &fasthttp.Server{Handler: handler, CloseOnShutdown: true}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() { testenv.Do(t, errors.Join(server.Shutdown(), <-served)) })
	return "http://" + listener.Addr().String()
}

// paths writes a file with paths and returns its name.
func paths(t *testing.T, all ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "paths")
	testenv.Do(t, os.WriteFile(name, []byte(strings.Join(all, "\n")+"\n"), 0o600))
	return name
}

// send runs the program, which must exit with a status, and returns its summary.
func send(t *testing.T, status int, args ...string) summary {
	t.Helper()
	return sendUntil(t.Context(), t, status, args...)
}

func sendUntil(ctx context.Context, t *testing.T, status int, args ...string) summary {
	t.Helper()
	var out, stderr bytes.Buffer
	if got := run(ctx, args, &out, &stderr); got != status || (stderr.Len() == 0) != (status == exitOK) {
		t.Fatalf("%q ends with %d and says %q; want %d", args, got, &stderr, status)
	}
	var s summary
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		t.Fatalf("read the summary %q: %v", &out, err)
	}
	return s
}

// counter counts requests by path.
type counter struct {
	mu     sync.Mutex
	counts map[string]int64
	all    int64
}

func (c *counter) count(rc *fasthttp.RequestCtx) (all int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int64{}
	}
	c.counts[string(rc.RequestURI())]++
	c.all++
	return c.all
}

func TestClosedLoop(t *testing.T) {
	t.Parallel()
	var seen counter
	url := serve(t, func(rc *fasthttp.RequestCtx) {
		seen.count(rc)
		if string(rc.Host()) == "" {
			rc.SetStatusCode(fasthttp.StatusBadRequest)
		}
		rc.SetBodyString("0123456789")
	})
	s := send(t, exitOK, "-closed", "-duration", "50ms", "-connections", "7", url+"/a?b=%2F")
	if s.Answers[200] != seen.all || s.Bytes < 100*seen.all || s.Interrupted {
		t.Errorf("%d answers of %d bytes are counted; the server gave %d", s.Answers[200], s.Bytes, seen.all)
	}
	if math.Abs(s.Rate-float64(seen.all)/s.Elapsed) > 1 || s.Elapsed < 0.05 || s.Busy <= 0 {
		t.Errorf("%.0f answers/s of %d in %v s; busy for %v s", s.Rate, seen.all, s.Elapsed, s.Busy)
	}
	l := []float64{0.000001, s.Latency["p50"], s.Latency["p90"], s.Latency["p99"], s.Latency["p99.9"], s.Latency["max"], 1001 * s.Elapsed} // accurate to three digits
	testenv.Check(t, slices.IsSorted(l), "latencies are %v", s.Latency)
	testenv.Check(t, len(seen.counts) == 1 && seen.counts["/a?b=%2F"] != 0, "requests by path: %v", seen.counts)
}

func TestOrders(t *testing.T) {
	t.Parallel()
	var all []string
	for i := range 100 {
		all = append(all, fmt.Sprintf("/%d?size=8", i))
	}
	file := paths(t, all...)
	sendAll := func(args ...string) map[string]int64 {
		var seen counter
		url := serve(t, func(rc *fasthttp.RequestCtx) { seen.count(rc) })
		send(t, exitOK, append(append(args, "-urls", file), url)...)
		return seen.counts
	}

	once, rated := sendAll("-closed", "-once", "-duration", "1h"), sendAll("-rate", "2500", "-duration", "100ms")
	for i, path := range all {
		if want := int64(2 + (149-i)/100); once[path] != 1 || rated[path] != want {
			t.Errorf("%d and %d requests for %s; want one, and again and again %d", once[path], rated[path], path, want)
		}
	}
	zipf := sendAll("-rate", "20000", "-duration", "200ms", "-zipf", "0.9")
	cmptest.Same(t, sendAll("-rate", "20000", "-duration", "200ms", "-zipf", "0.9"), zipf, "requests of the second run")
	if zipf[all[0]] < 10*zipf[all[50]] {
		t.Errorf("%d requests for the most popular path, and %d for the 51st", zipf[all[0]], zipf[all[50]])
	}
}

func TestRevalidate(t *testing.T) {
	t.Parallel()
	var unconditional, conditional atomic.Int64
	url := serve(t, func(rc *fasthttp.RequestCtx) {
		tag := `"` + string(rc.RequestURI()) + `"`
		rc.Response.Header.Set("ETag", tag)
		switch string(rc.Request.Header.Peek("If-None-Match")) {
		case tag:
			conditional.Add(1)
			rc.SetStatusCode(fasthttp.StatusNotModified)
		case "":
			unconditional.Add(1)
			rc.SetBodyString("a picture")
		default:
			rc.SetStatusCode(fasthttp.StatusBadRequest)
		}
	})
	file := paths(t, "/a?size=8", "/b//c?x=%2F", "/d")
	s := send(t, exitOK, "-closed", "-revalidate", "-duration", "20ms", "-urls", file, url)
	if unconditional.Load() != 3 || s.Answers[304] != conditional.Load() || s.Answers[304] == 0 {
		t.Errorf("%d of 3 entity tags were fetched; %v answers, %d conditional requests answered 304", unconditional.Load(), s.Answers, conditional.Load())
	}

	var out, stderr bytes.Buffer
	untagged := serve(t, func(*fasthttp.RequestCtx) {})
	if status := run(t.Context(), []string{"-closed", "-revalidate", untagged + "/x"}, &out, &stderr); status != exitFailure || !strings.Contains(stderr.String(), `/x has status 200 and tag ""`) {
		t.Errorf("without tags it ends with %d and says %q", status, &stderr)
	}
}

func encodePicture(t *testing.T, width, height int) (inPNG, inWebP []byte) {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range img.Pix {
		img.Pix[i] = byte(i*i>>3) | 1
	}
	var file bytes.Buffer
	testenv.Do(t, png.Encode(&file, img))
	inWebP = testenv.Must(libwebp.Encode(img.Pix, width, height, 0, 20))(t)
	return file.Bytes(), inWebP
}

func TestWrongAnswersAreReported(t *testing.T) {
	t.Parallel()
	inPNG, inWebP := encodePicture(t, 40, 64)
	broken := bytes.Clone(inPNG)
	broken[len(broken)/2] ^= 0xff // which the checksum detects
	url := serve(t, func(rc *fasthttp.RequestCtx) {
		switch string(rc.Path()) {
		case "/png":
			rc.SetBody(inPNG)
		case "/webp":
			rc.SetBody(inWebP)
		case "/status":
			rc.SetStatusCode(fasthttp.StatusNotFound)
		case "/broken-png":
			rc.SetBody(broken)
		case "/broken-webp":
			rc.SetBody(inWebP[:len(inWebP)-20])
		case "/text":
			rc.SetBodyString("a picture")
		}
	})
	f := func(status int, wrong map[load.Fault]int64, first string, all ...string) {
		t.Helper()
		s := send(t, status, "-closed", "-once", "-decode", "1", "-connections", "1", "-urls", paths(t, all...), url)
		if diff := cmp.Diff(wrong, s.Wrong); diff != "" || !strings.Contains(s.FirstWrong, first) {
			t.Errorf("%q has wrong answers, first %q (-want +got):\n%s", all, s.FirstWrong, diff)
		}
	}

	f(exitOK, map[load.Fault]int64{}, "", "/png?size=64", "/webp?size=64", "/png", "/webp?3d")
	f(exitFailure, map[load.Fault]int64{load.WrongStatus: 1}, "status 404; want one of [200]", "/png", "/status", "/png")
	f(exitFailure, map[load.Fault]int64{picturecheck.WrongPicture: 1}, "/broken-png", "/broken-png", "/png")
	f(exitFailure, map[load.Fault]int64{picturecheck.WrongPicture: 1}, "/broken-webp", "/broken-webp")
	f(exitFailure, map[load.Fault]int64{picturecheck.WrongPicture: 2}, "neither PNG nor WebP in the answer to /text", "/text", "/text")
	f(exitFailure, map[load.Fault]int64{picturecheck.WrongSize: 1}, "height 64, and not 40, is in the answer to /png?size=40", "/png?size=40", "/png?size=64")
	f(exitFailure, map[load.Fault]int64{picturecheck.WrongSize: 1}, "height 64, and not 40", "/webp?3d&size=40")
}

func TestShareIsDecoded(t *testing.T) {
	t.Parallel()
	inPNG, inWebP := encodePicture(t, 8, 8)
	url := serve(t, func(rc *fasthttp.RequestCtx) {
		if rc.SetBody(inPNG); string(rc.Path()) == "/webp" {
			rc.SetBody(inWebP)
		}
	})
	file := paths(t, strings.Split(strings.Repeat("/png?size=8,/webp?size=8,", 500)+"/png", ",")...)
	s := send(t, exitOK, "-closed", "-once", "-decode", "0.1", "-urls", file, url)
	if p := s.Pictures; p.Decoded < 50 || p.Decoded > 150 || p.Different < 2 || p.Different > 3 || p.Skipped != 0 {
		t.Errorf("of 1001 pictures, %+v; want about 100, of two kinds, and maybe one without a size", p)
	}
}

func TestBadArguments(t *testing.T) {
	t.Parallel()
	const url = "http://127.0.0.1:1"
	f := func(want string, args ...string) {
		t.Helper()
		var out, stderr bytes.Buffer
		status := run(t.Context(), args, &out, &stderr)
		if got := stderr.String(); status != exitUsage || out.Len() > 0 || !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("%q ends with %d and says %q; want %d and a line with %q", args, status, got, exitUsage, want)
		}
	}

	f("either -closed or a -rate", url)
	f("either -closed or a -rate", "-closed", "-rate", "5", url)
	f("-rate must be above 0", "-rate", "-5", url)
	f("-rate must be above 0", "-rate", "NaN", url)
	f("-duration", "-closed", "-duration", "0s", url)
	f("-duration", "-closed", "-duration", "soon", url)
	f("-connections", "-closed", "-connections", "0", url)
	f("-decode", "-closed", "-decode", "2", url)
	f("-decode needs", "-closed", "-decode", "1", "-revalidate", url)
	f("-zipf", "-closed", "-zipf", "x", url)
	f("cannot be combined with -zipf", "-closed", "-zipf", "1", "-once", url)
	f("-zipf must be", "-closed", "-zipf", "-1", url)
	f("one URL must follow the flags", "-closed")
	f("one URL must follow the flags", "-closed", url, "-rate", "5")
	f("not defined: -fast", "-fast", url)
	f("is not a URL", "-closed", "127.0.0.1:8080")
	f("is not a URL", "-closed", "https://127.0.0.1:8080/")
	f("must have no path", "-closed", "-urls", paths(t, "/a"), url+"/b")
	f("no such file", "-closed", "-urls", filepath.Join(t.TempDir(), "none"), url)
	f("is not a path", "-closed", "-urls", paths(t, "/a", "b"), url)
	f("line 2", "-closed", "-urls", paths(t, "/a", "/b c"), url)
	f("there is no path", "-closed", "-urls", paths(t, ""), url)
	f("example.com may be on another machine", "-closed", "http://example.com/")
	f("not a loopback address", "-closed", "http://192.0.2.1/")
	f("not a loopback address", "-closed", "http://[2001:db8::1]:80/")
	f("not a loopback address", "-closed", "http://0.0.0.0:80/")
}

func TestHelp(t *testing.T) {
	t.Parallel()
	var out, stderr bytes.Buffer
	if status := run(t.Context(), []string{"-h"}, &out, &stderr); status != exitOK || !strings.Contains(out.String(), "-zipf exponent") {
		t.Errorf("-h ends with %d and says %q and %q", status, &out, &stderr)
	}
}

func TestConnectionRefused(t *testing.T) {
	t.Parallel()
	listener := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	testenv.Do(t, listener.Close())
	s := send(t, exitFailure, "-closed", "http://"+listener.Addr().String())
	testenv.Contains(t, s.Error, "refused", "the summary's error")
}

// A signal ends the run, and the summary covers what came until then.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	const enough = 100
	ctx, interrupt := context.WithCancel(t.Context())
	var seen counter
	url := serve(t, func(rc *fasthttp.RequestCtx) {
		if seen.count(rc) == enough {
			interrupt()
		}
	})
	s := sendUntil(ctx, t, exitOK, "-closed", "-duration", "1h", "-connections", "1", url)
	if !s.Interrupted || s.Answers[200] < enough-1 || s.Elapsed > 600 {
		t.Errorf("%d answers in %v s, interrupted: %v; want nearly %d", s.Answers[200], s.Elapsed, s.Interrupted, enough)
	}
}
