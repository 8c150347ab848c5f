//go:build !race

package api_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// memoryConn is the server side of a connection on which a test sends one request after another.
type memoryConn struct {
	net.Conn
	requests chan []byte
	idle     chan struct{} // receives when the server reads the next request
	answer   []byte        // everything written since the last request
}

func (m *memoryConn) Read(into []byte) (int, error) {
	m.idle <- struct{}{}
	request, ok := <-m.requests
	if !ok {
		return 0, io.EOF
	}
	return copy(into, request), nil
}

func (m *memoryConn) Write(part []byte) (int, error) {
	m.answer = append(m.answer, part...)
	return len(part), nil
}

func (m *memoryConn) Close() error                     { return nil }
func (m *memoryConn) SetDeadline(time.Time) error      { return nil }
func (m *memoryConn) SetReadDeadline(time.Time) error  { return nil }
func (m *memoryConn) SetWriteDeadline(time.Time) error { return nil }
func (m *memoryConn) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (m *memoryConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// ask sends a request and waits for the response.
func (m *memoryConn) ask(request []byte) {
	m.answer = m.answer[:0]
	m.requests <- request
	<-m.idle
}

// socketClient is a client on a socket that does not allocate.
type socketClient struct {
	net.Conn
	answer []byte
	buffer [128 << 10]byte
}

// ask sends a request and reads a response of a length, 0 if it is unknown.
func (s *socketClient) ask(tb testing.TB, request []byte, length int) {
	tb.Helper()
	_, err := s.Write(request)
	testenv.Do(tb, err)
	for n := 0; n == 0 || n < length; {
		read, err := s.Read(s.buffer[n:])
		testenv.Do(tb, err)
		n += read
		s.answer = s.buffer[:n]
	}
}

// mallocs returns how many allocations the process makes during a call.
func mallocs(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// A hit is served without allocations, from the first byte that is read to the last one that
// is written, on the fast path and on the server behind it.
func TestHitsAllocateNothing(t *testing.T) { //nolint:paralleltest // counts allocations of the process
	w := openSeeded(t)
	w.set(t, map[edgeproto.Key]edgeproto.Mapping{
		"uuid:7d444840-9dc0-11d1-b245-5ffdce74fad2": {Player: &edgeproto.Player{PID: 1, Name: "Steve", Skin: w.robot, Cape: w.cape}},
	})
	w.date(t, changed)
	w.unfollow() // heartbeats allocate
	through := &memoryConn{requests: make(chan []byte), idle: make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- w.server.ServeConn(through) }()
	<-through.idle
	defer func() {
		close(through.requests)
		testenv.Do(t, <-served)
	}()

	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	testenv.Do(t, err)
	defer func() { _ = conn.Close() }()
	short := &socketClient{Conn: conn}
	short.ask(t, []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 0)

	hash := w.robot.Hash.String()
	for _, path := range []string{
		"/avatar/player/Steve", "/avatar/player/STEVE.png", "/avatar/player/%53teve?3d&size=64&png",
		"/avatar/player/Steve?png=1&3d=1&size=64", "/avatar/player/Steve?size=64&x=y&png&3d",
		"/avatar/uuid/7d444840-9dc0-11d1-b245-5ffdce74fad2?size=32", "/avatar/uuid/7D4448409DC011D1B2455FFDCE74FAD2.webp",
		"/avatar/user/1?3d", "/avatar/user/2", "/avatar/user/777.png?size=512", "/avatar/user/0",
		"/avatar/11", "/avatar/12?3d&png", "/avatar/hash/" + hash + "?size=128",
		"/preview/12", "/preview/13.png", "/preview/hash/" + hash + "?height=200&png",
		"/face/player/Steve", "/head/uuid/7D4448409DC011D1B2455FFDCE74FAD2?turn=3&tilt=0&size=64", "/bust/user/1?no=hat,light", "/body/12.png?Turn=0&TILT=Iso&no=LAYERS&height=128",
		"/front/hash/" + hash + "?turn=2", "/back/player/STEVE.webp", "/left/11?no=", "/right/11",
		"/textures/" + hash, "/textures/" + hash + ".png", "/csl/textures/" + hash,
		"/skin/Steve.png", "/cape/steve.png", "/csl/Steve.json",
		"/Steve.json", "/usm/Alex.json", "/usm/Steve.7d444840-9dc0-11d1-b245-5ffdce74fad2.json", "/raw/11", "/usm/textures/" + hash, "/textures/" + hash + "-legacy",
		"/skins/Steve", "/skins?name=Steve.png", "/MinecraftSkins/Steve.png", "/cloaks/Steve", "/cloaks?x&name=Steve", "/MinecraftCloaks/Steve.png",
		"/legacy/Alex.png", "/usm/MinecraftSkins/Alex.png", "/usm/MinecraftCloaks/Steve.png",
		"/api/yggdrasil/skins/MinecraftSkins/Alex.png", "/api/yggdrasil/skins/MinecraftCloaks/Steve.png",
		"/avatars/7d4448409dc011d1b2455ffdce74fad2?size=64&overlay", "/renders/head/7d444840-9dc0-11d1-b245-5ffdce74fad2.png?scale=4&default=MHF_Steve", "/helm/Steve/128.png",
		"/helm/Nobody_1/24", "/avatar/Steve/left/64", "/full/832/Steve.png?no=cape", "/head/12/64/nohelm", "/bust/256/Steve?y=50", "/body/front/Steve?scale=4", "/skins/Steve", "/player/Steve.webp",
		"/body/player/Steve?pose=wave", "/back/player/Steve?wear=elytra", "/face/player/Nobody_1?default=slim&size=17&exact", "/skin/user/1", "/cape/13", "/download/Steve", "/head/player/Steve?download",
		"/skin/Dated.png", "/csl/Dated.JSON", "/avatar/player/Steve.WebP?SIZE=64&3D",
	} {
		first := w.get(t, path)
		if first.status != http.StatusOK {
			t.Fatalf("%s: %d; want 200", path, first.status)
		}
		w.get(t, path) // caches a picture that is cached on its second request
		if status := w.get(t, path).header.Get("Cache-Status"); status != "veneer; hit" {
			t.Fatalf("%s once more: Cache-Status %s; want a hit", path, status)
		}
		// A picture that was just rendered is a hit before it is in the store.
		testenv.Eventually(t, "the picture is in its place", func() bool {
			request := []byte("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")
			return testing.AllocsPerRun(10, func() { through.ask(request) }) == 0
		})
		const header = "Host: images.example.org\r\nUser-Agent: test\r\nAccept: image/webp,*/*\r\n"
		for header, want := range map[string]string{
			header: "HTTP/1.1 200 OK\r\n",
			header + "If-None-Match: \"other\", " + first.header.Get("Etag") + "\r\n": "HTTP/1.1 304 Not Modified\r\n",
			header + "X-Request-ID: abc-123\r\n":                                      "HTTP/1.1 200 OK\r\n",
			header + "If-Modified-Since: Wed, 04 Mar 2026 05:06:06 GMT\r\n":           "HTTP/1.1 200 OK\r\n",
		} {
			request := []byte("GET " + path + " HTTP/1.1\r\n" + header + "\r\n")
			id := []byte("\r\nX-Request-Id: ")
			if _, sent, ok := strings.Cut(header, "X-Request-ID: "); ok {
				id = append(id, sent...)
			}
			through.ask(request)
			allocations := testing.AllocsPerRun(100, func() { through.ask(request) })
			if len(through.answer) < len(want) || string(through.answer[:len(want)]) != want || !bytes.Contains(through.answer, id) {
				t.Errorf("%s: the answer begins %q; want %q with an id", path, through.answer[:min(60, len(through.answer))], want)
			}
			testenv.Equal(t, allocations, 0, "%s, answered %q: allocations", path, want)
			if strings.Contains(path, "%53") { // which the fast path does not serve
				continue
			}
			length, handled := len(through.answer), w.handled.Load()
			short.ask(t, request, length)
			allocations = testing.AllocsPerRun(100, func() { short.ask(t, request, length) })
			if !bytes.HasPrefix(short.answer, []byte(want)) || !bytes.Contains(short.answer, id) || w.handled.Load() != handled {
				t.Errorf("%s: the fast path answers %q; want %q with an id", path, short.answer[:min(60, len(short.answer))], want)
			}
			testenv.Equal(t, allocations, 0, "%s, answered %q by the fast path: allocations", path, want)
		}
	}

	// Those are averages without their fractions. Ristretto's access log allocates once in 64 hits.
	request := []byte("GET /avatar/11 HTTP/1.1\r\nHost: x\r\n\r\n")
	const hits = 1 << 15
	allocations := mallocs(func() {
		for range hits {
			through.ask(request)
		}
	})
	testenv.Check(t, allocations <= 2*hits/64, "%d hits make %d allocations; want about %d", hits, allocations, hits/64)
}
