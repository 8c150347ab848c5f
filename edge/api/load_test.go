package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestColdPictureIsRenderedOnce(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	w := openSeeded(t, func(s *setup) { s.backend.onDraw = func() { <-release } })
	lookups := w.core.Lookups.Load()

	const clients = 1000
	var arrived, done sync.WaitGroup
	arrived.Add(clients)
	host := strings.TrimPrefix(w.url, "http://")
	for range clients {
		done.Go(func() {
			defer arrived.Done()
			connection, err := new(net.Dialer).DialContext(t.Context(), "tcp", host)
			if err != nil {
				t.Error(err)
				return
			}
			done.Go(func() {
				defer func() { _ = connection.Close() }()
				_, _ = io.WriteString(connection, "GET /avatar/player/Steve?png&size=512 HTTP/1.1\r\nHost: x\r\n\r\n")
				response, err := http.ReadResponse(bufio.NewReader(connection), nil)
				if err != nil {
					t.Error(err)
					return
				}
				_ = response.Body.Close()
				testenv.Check(t, response.StatusCode == http.StatusOK, "%s; want 200", response.Status)
			})
		})
	}
	arrived.Wait()
	testenv.Eventually(t, "the picture is being drawn", func() bool { return w.backend.drawn.Load() > 0 })
	close(release)
	done.Wait()
	testenv.Equal(t, w.backend.fetched.Load(), 1, "files were fetched")
	testenv.Equal(t, w.backend.drawn.Load(), 1, "pictures were drawn")
	testenv.Equal(t, w.core.Lookups.Load()-lookups, 1, "look-ups")
}

func TestClientDisconnectKeepsRender(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	w := openSeeded(t, func(s *setup) { s.backend.onDraw = func() { <-release } })
	connection := dial(t, w.url, "").send(t, "GET /avatar/11 HTTP/1.1\r\nHost: x\r\n\r\n")
	testenv.Eventually(t, "the picture is being drawn", func() bool { return w.backend.drawn.Load() == 1 })
	testenv.Do(t, connection.Close())
	stayed := make(chan reply, 1)
	go func() { stayed <- w.get(t, "/avatar/11") }()
	close(release)
	testenv.Equal(t, (<-stayed).status, http.StatusOK, "the other client")
	testenv.Equal(t, w.backend.drawn.Load(), 1, "pictures were drawn")
}

func TestTooManyPicturesAtOnce(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	w := openSeeded(t, func(s *setup) {
		s.pictures.RenderWorkers, s.pictures.RenderQueuePerWorker = 1, 0
		s.backend.onDraw = func() { <-release }
	})
	first := make(chan reply, 1)
	go func() { first <- w.get(t, "/avatar/11") }()
	testenv.Eventually(t, "the picture is being drawn", func() bool { return w.backend.drawn.Load() == 1 })
	got := w.get(t, "/avatar/12")
	got.expect(t, "a picture too many", http.StatusServiceUnavailable,
		"Retry-After", "1", "code", "9", "Cache-Control", "no-store",
		"Etag", "", "Surrogate-Key", "", "Cache-Status", "veneer; detail=unavailable")
	close(release)
	testenv.Equal(t, (<-first).status, http.StatusOK, "the first")
	testenv.Equal(t, w.get(t, "/avatar/12").status, http.StatusOK, "the second, tried again")
}

// A network with more requests than can wait is rejected, and no other network. Networks are
// those of the addresses that trusted proxies report.
func TestRendersAreSharedBetweenNetworks(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	w := openSeeded(t, func(s *setup) {
		s.pictures.RenderWorkers, s.pictures.RenderQueuePerWorker = 1, 2
		s.backend.onDraw = func() { <-release }
		s.proxies.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})
	ask := func(size int, client string) int {
		return w.do(t, http.MethodGet, fmt.Sprint("/avatar/11?size=", size), http.Header{"X-Forwarded-For": {client}}, "").status
	}
	const asked = 4 // one is rendered, and two wait
	busy := make(chan int, asked)
	for i := range asked {
		go func() { busy <- ask(8*(i+1), fmt.Sprint("203.0.113.", i)) }()
		if i == 0 {
			testenv.Eventually(t, "a picture is being drawn", func() bool { return w.backend.drawn.Load() == 1 })
		}
	}
	testenv.Equal(t, <-busy, http.StatusServiceUnavailable, "a picture too many")
	quiet := make(chan int, 1)
	go func() { quiet <- ask(256, "198.51.100.1") }()
	testenv.Equal(t, <-busy, http.StatusServiceUnavailable,
		"a picture of the busy network when another network requests one")
	close(release)
	for range asked - 2 {
		testenv.Equal(t, <-busy, http.StatusOK, "a picture that was rendered or waited")
	}
	testenv.Equal(t, <-quiet, http.StatusOK, "the other network's picture")
}

func TestMissingFile(t *testing.T) {
	t.Parallel()
	w := openSeeded(t)
	w.remove(t, w.robot.Hash)
	got := w.get(t, "/avatar/11")
	got.expect(t, "a missing file", http.StatusNotFound, "Cache-Control", "no-store", "code", "3",
		"Etag", "", "Surrogate-Key", "")

	// Without its marker, the object store is unavailable, and no file counts as missing.
	w.remove(t, w.slim.Hash)
	w.removeMarker(t)
	got = w.get(t, "/avatar/12")
	if got.status != http.StatusServiceUnavailable || got.header.Get("Cache-Control") != "no-store" || got.header.Get("Retry-After") == "" || !strings.HasPrefix(got.body, `{"code":9,`) {
		t.Errorf("%d %s; want 503, code 9", got.status, got.body)
	}

	testenv.Do(t, w.store.Init(t.Context()))
	w.put(t, 11, artwork.Robot(), skin.Classic)
	// The failure is remembered for a short time.
	testenv.Eventually(t, "the picture is there once the file is back", func() bool { return w.get(t, "/avatar/11").status == http.StatusOK })
}

func TestCoreAway(t *testing.T) {
	t.Parallel()
	w := openSeeded(t, aging)
	const path = "/avatar/player/Steve?png"
	file := "/textures/" + w.robot.Hash.String()
	before := w.get(t, path)
	w.get(t, file)
	w.core.SetUnavailable(true)
	var got reply
	testenv.Eventually(t, "the mapping is stale", func() bool {
		got = w.get(t, path)
		return got.header.Get("Cache-Status") != "veneer; hit"
	})
	got.expect(t, "a cached player", http.StatusOK, "Cache-Status", "veneer; hit; detail=stale", "body", before.body)
	// A CDN may have been purged because of a change that has not arrived here.
	testenv.Equal(t, got.header.Get("Cache-Control"), "public, max-age=1", "a cached player: Cache-Control")
	// A file never changes, but the texture may have been deleted.
	testenv.Eventually(t, "the mapping of the file, which was looked up later, is stale", func() bool {
		got = w.get(t, file)
		return got.header.Get("Cache-Status") != "veneer; hit"
	})
	got.expect(t, "a cached file", http.StatusOK, "Cache-Control", "public, max-age=1")
	for _, path := range []string{"/avatar/player/Alex", "/avatar/user/2", "/avatar/user/777"} {
		got := w.get(t, path)
		got.expect(t, path, http.StatusServiceUnavailable,
			"Retry-After", "1", "code", "9", "Cache-Control", "no-store", "Cache-Status", "veneer; detail=unavailable")
	}
	w.core.SetUnavailable(false)
	testenv.Eventually(t, "the edge receives heartbeats again", func() bool { return w.get(t, path).header.Get("Cache-Status") == "veneer; hit" })
}
