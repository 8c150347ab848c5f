package edgeapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/cdnpurge"
	"github.com/veneer-skins/veneer/core/edgeapi"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/skin"
)

const (
	secret       = "the-first-secret-of-the-ring"
	secondSecret = "another-secret-of-the-ring"
)

// testServer is the edge API of a core on a real socket.
type testServer struct {
	db      *postgres.DB
	conn    *pgx.Conn // to the same database
	address string
	stop    context.CancelFunc // ends the streams
}

// startServer starts the edge API of a core without a webhook.
func startServer(t *testing.T) testServer {
	t.Helper()
	return startServerWithHook(t, nil)
}

// startServerWithHook starts the edge API of a core with a webhook, unless that is nil.
func startServerWithHook(t *testing.T, hook cdnpurge.CDN) testServer {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	database := postgrestest.URL(t)
	db := postgrestest.Connect(t, database)
	feed := core.NewFeed(db, log)
	db.OnChange(feed.Committed)
	ctx, stop := context.WithCancel(t.Context())
	run, endRun := context.WithCancel(t.Context())
	var background sync.WaitGroup
	background.Go(func() { feed.Run(run) })
	var purges edgeapi.Purges
	if hook != nil {
		// Purges start after the revision at which the lease was first acquired.
		if _, err := db.NumberChanges(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := db.AcquirePurgeLease(t.Context(), uuid.New(), 0); err != nil {
			t.Fatal(err)
		}
		purger := cdnpurge.NewPurger(db, hook, feed, time.Second, log)
		background.Go(func() { purger.Run(run) })
		purges = purger
	}

	limits := httpserver.Limits{ReadTimeout: time.Minute, WorkTimeout: time.Minute, HeaderBytes: 16 << 10, MaxConnections: 100, BodiesBytes: 64 << 20}
	server, err := edgeapi.New(ctx, httpserver.Options{Log: log, Limits: limits}, core.NewMappings(db), feed, purges, []string{secret, secondSecret})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		endRun()
		background.Wait()
	})
	address := listen(t, server.HTTP())
	t.Cleanup(stop) // runs first: streams do not end by themselves
	return testServer{db: db, conn: postgrestest.Conn(t, database), address: address, stop: stop}
}

// listen serves on a real socket until the test ends, and returns its URL.
func listen(t *testing.T, server *fasthttp.Server) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		if err := server.Shutdown(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}

// request sends a request and returns the response's status and body.
func (s testServer) request(t *testing.T, method, path, secret, body string) (int, io.Reader) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if secret != "" {
		request.Header.Set("Authorization", "Bearer "+secret)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
	} {
		if got := response.Header.Values(name); len(got) != 1 || got[0] != want {
			t.Errorf("%s %s: %s is %q; want %q", method, path, name, got, want)
		}
	}
	return response.StatusCode, response.Body
}

func TestSecretIsRequired(t *testing.T) {
	t.Parallel()
	s := startServer(t)

	f := func(method, path, secret, body string, want int) {
		t.Helper()
		if status, _ := s.request(t, method, path, secret, body); status != want {
			t.Errorf("%s %s with %q: %d; want %d", method, path, secret, status, want)
		}
	}

	lookup := `{"keys":[]}`
	f("POST", edgeproto.LookupPath, secret, lookup, 200)
	f("POST", edgeproto.LookupPath, secondSecret, lookup, 200)
	f("POST", edgeproto.LookupPath, "", lookup, 401)
	f("POST", edgeproto.LookupPath, secret+"!", lookup, 401)
	f("POST", edgeproto.LookupPath, secret[:len(secret)-1], lookup, 401)
	f("GET", edgeproto.ChangesPath, "wrong", "", 401)
	f("GET", "/", "wrong", "", 401)
	f("GET", "/", secret, "", 404)
	f("GET", edgeproto.LookupPath, secret, "", 405)
	f("POST", edgeproto.ChangesPath, secret, "", 405)
	f("POST", edgeproto.LookupPath, secret, "nonsense", 400)
	f("POST", edgeproto.AcknowledgePath, "wrong", "{}", 401)
	f("GET", edgeproto.AcknowledgePath, secret, "", 405)
	f("POST", edgeproto.AcknowledgePath, secret, "nonsense", 400)
	f("POST", edgeproto.AcknowledgePath, secret, `{"stream":"nonsense"}`, 422)
	f("POST", edgeproto.AcknowledgePath, secret, `{"stream":"7d444840-9dc0-11d1-b245-5ffdce74fad2"}`, 200)
	f("GET", edgeproto.ChangesPath+"?revision=nonsense", secret, "", 422)
	f("GET", edgeproto.LikedPath+"?limit=1", "wrong", "", 401)
	f("POST", edgeproto.LikedPath+"?limit=1", secret, "", 405)
	f("GET", edgeproto.LikedPath, secret, "", 422)
	f("GET", edgeproto.LikedPath+"?limit=all", secret, "", 422)
	f("GET", edgeproto.LikedPath+"?limit=0", secret, "", 422)
	f("GET", fmt.Sprintf("%s?limit=%d", edgeproto.LikedPath, edgeproto.MaxLiked+1), secret, "", 422)

	// JSON has six bytes for each of a name of this character.
	longest, id := edgeproto.NameKey(strings.Repeat("<", edgeproto.MaxNameBytes)), strings.Repeat("a", 64)
	full := edgeproto.LookupRequest{Keys: slices.Repeat([]edgeproto.Key{longest}, edgeproto.MaxKeys), Requests: slices.Repeat([]string{id}, edgeproto.MaxKeys)}
	f("POST", edgeproto.LookupPath, secret, marshal(t, full), 200)
	f("POST", edgeproto.LookupPath, secret, marshal(t, edgeproto.LookupRequest{Keys: append(full.Keys, longest)}), 422)
}

func marshal(t *testing.T, request edgeproto.LookupRequest) string {
	t.Helper()
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestShortSecretsAreRefused(t *testing.T) {
	t.Parallel()
	if _, err := edgeapi.New(t.Context(), httpserver.Options{}, nil, nil, nil, []string{secret, "short"}); err == nil || !strings.Contains(err.Error(), "EDGE_SECRETS") {
		t.Errorf("%v; want an error that names the setting", err)
	}
}

// A change is on the stream and in look-ups.
func TestLookupAndChanges(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	_, stream := s.request(t, "GET", edgeproto.ChangesPath, secret, "")
	lines := bufio.NewScanner(stream)
	if start := nextEvent(t, lines, isStart); start.Stream != "" {
		t.Errorf("the stream has the name %q, but acknowledgements are not needed", start.Stream)
	}

	user, err := s.db.CreateUser(t.Context(), core.NewUser{
		Email: "ann", EmailKey: "ann@example.com", Nickname: "Ann", PasswordHash: "secret hash", Player: core.NewPlayer{Name: "Ann", Key: "ann"},
	})
	if err != nil {
		t.Fatal(err)
	}
	change := nextEvent(t, lines, isChange)

	_, answered := s.request(t, "POST", edgeproto.LookupPath, secret, `{"keys":["name:ann","`+string(edgeproto.UIDKey(int64(user.ID)))+`"]}`)
	body, err := io.ReadAll(answered)
	if err != nil {
		t.Fatal(err)
	}
	var response edgeproto.LookupResponse
	if err := json.Unmarshal(body, &response); err != nil {
		t.Fatal(err)
	}
	if response.Cursor != change.Cursor || response.Mappings[0].Player == nil || response.Mappings[1].User == nil {
		t.Errorf("response %s; want the player and the user at %+v", body, change.Cursor)
	}
	if bytes.Contains(body, []byte("@")) || bytes.Contains(body, []byte("hash\":\"secret")) || bytes.Contains(body, []byte("score")) {
		t.Errorf("response %s has data that edges must not get", body)
	}

	s.stop()
	for lines.Scan() { // ends, since the server is stopping
	}
}

func isStart(e edgeproto.Event) bool { return e.Start }

func isChange(e edgeproto.Event) bool { return len(e.Keys) > 0 }

// nextEvent returns the next matching event of a stream.
func nextEvent(t *testing.T, lines *bufio.Scanner, wanted func(edgeproto.Event) bool) edgeproto.Event {
	t.Helper()
	for lines.Scan() {
		var e edgeproto.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if wanted(e) {
			return e
		}
	}
	t.Fatalf("the stream ended: %v", lines.Err())
	return edgeproto.Event{}
}

// recordedPurges is a webhook that records purges.
type recordedPurges chan cdnpurge.Purge

func (p recordedPurges) Purge(_ context.Context, purge cdnpurge.Purge) error {
	p <- purge
	return nil
}

// A change is purged only after the edge has acknowledged it with the name of its stream.
func TestAcknowledge(t *testing.T) {
	t.Parallel()
	purges := make(recordedPurges, 10)
	s := startServerWithHook(t, purges)
	_, stream := s.request(t, "GET", edgeproto.ChangesPath, secret, "")
	lines := bufio.NewScanner(stream)
	start := nextEvent(t, lines, isStart)
	acknowledge := func(at edgeproto.Cursor) {
		t.Helper()
		body, err := json.Marshal(edgeproto.Acknowledgement{Cursor: at, Stream: start.Stream})
		if err != nil {
			t.Fatal(err)
		}
		if status, response := s.request(t, "POST", edgeproto.AcknowledgePath, secret, string(body)); status != 200 {
			text, _ := io.ReadAll(response)
			t.Fatalf("an acknowledgement: %d %s", status, text)
		}
	}
	acknowledge(start.Cursor)

	began := time.Now()
	user, err := s.db.CreateUser(t.Context(), core.NewUser{Email: "ann", EmailKey: "ann@example.com", Nickname: "Ann", PasswordHash: "x"})
	if err != nil {
		t.Fatal(err)
	}
	change := nextEvent(t, lines, isChange)
	for range 2 { // time enough for a purge without acknowledgements
		nextEvent(t, lines, edgeproto.Event.IsHeartbeat)
	}
	if len(purges) > 0 && time.Since(began) < 2*time.Second { // the longest wait for acknowledgements
		t.Fatalf("%v is purged, but the edge has not acknowledged it", <-purges)
	}
	acknowledge(change.Cursor)
	want := cdnpurge.Purge{Cursor: change.Cursor, Tags: []string{edgeproto.UIDKey(int64(user.ID)).Tag()}}
	if diff := cmp.Diff(want, <-purges); diff != "" {
		t.Errorf("purged (-want +got):\n%s", diff)
	}
}

// An edge that reconnects names its previous stream, which then needs no acknowledgements,
// though it may still be open. An invalid name is ignored.
func TestPreviousStream(t *testing.T) {
	t.Parallel()
	s := startServerWithHook(t, make(recordedPurges, 10))
	begin := func(query string) (name string) {
		t.Helper()
		status, stream := s.request(t, "GET", edgeproto.ChangesPath+query, secret, "")
		if status != 200 {
			t.Fatalf("a stream with %q: %d", query, status)
		}
		return nextEvent(t, bufio.NewScanner(stream), isStart).Stream
	}
	first := begin("")
	second := begin("?former=" + first)
	third := begin("?former=" + second[:35] + "x")
	rows, err := s.conn.Query(t.Context(), "SELECT stream::text FROM edge_streams WHERE NOT replaced")
	if err != nil {
		t.Fatal(err)
	}
	waited, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	want := []string{second, third}
	slices.Sort(want)
	slices.Sort(waited)
	if diff := cmp.Diff(want, waited); diff != "" {
		t.Errorf("streams that must acknowledge (-want +got):\n%s", diff)
	}
}

// The time of a heartbeat counts from the request, however long the stream takes to start.
func TestHeartbeatsCountFromRequest(t *testing.T) {
	t.Parallel()
	const held = 300 * time.Millisecond
	s := startServerWithHook(t, make(recordedPurges, 10))
	tx, err := s.conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK edge_streams IN SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	var letting sync.WaitGroup
	defer letting.Wait()
	letting.Go(func() {
		for waits := false; !waits; { // until the request waits for the lock
			const query = "SELECT count(*) > 0 FROM pg_locks WHERE relation = 'edge_streams'::regclass AND NOT granted"
			if err := tx.QueryRow(t.Context(), query).Scan(&waits); err != nil {
				t.Error(err)
				return
			}
		}
		<-time.After(held)
		if err := tx.Commit(t.Context()); err != nil {
			t.Error(err)
		}
	})
	_, stream := s.request(t, "GET", edgeproto.ChangesPath, secret, "")
	if heartbeat := nextEvent(t, bufio.NewScanner(stream), edgeproto.Event.IsHeartbeat); heartbeat.AsOf < held {
		t.Errorf("the first heartbeat is of %s after the request; want %s or more", heartbeat.AsOf, held)
	}
}

func TestLiked(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	user, err := s.db.CreateUser(t.Context(), core.NewUser{Email: "ann", EmailKey: "ann@example.com", Nickname: "Ann", PasswordHash: "secret hash"})
	if err != nil {
		t.Fatal(err)
	}
	want := edgeproto.LikedTextures{Hashes: []skin.Hash{}}
	liked := func() {
		t.Helper()
		_, body := s.request(t, "GET", edgeproto.LikedPath+"?limit=2", secret, "")
		var got edgeproto.LikedTextures
		if err := json.NewDecoder(body).Decode(&got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("liked textures (-want +got):\n%s", diff)
		}
	}
	liked()
	for n := range byte(3) {
		texture := core.NewTexture{Name: "N", Type: skin.Classic, Hash: skin.Hash{n}, Pixels: skin.Hash{n}, Bytes: 1, Uploader: user.ID, Public: true}
		if _, err := s.db.AddTexture(t.Context(), texture, core.Pricing{}, func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	want.Hashes = []skin.Hash{{2}, {1}}
	liked()
}

// A panic in a stream ends only that stream.
func TestPanicEndsOnlyItsStream(t *testing.T) {
	t.Parallel()
	limits := httpserver.Limits{ReadTimeout: time.Minute, WorkTimeout: time.Minute, HeaderBytes: 16 << 10, MaxConnections: 100, BodiesBytes: 64 << 20}
	// Without a feed, following it panics.
	server, err := edgeapi.New(t.Context(), httpserver.Options{Log: slog.New(slog.DiscardHandler), Limits: limits}, nil, nil, nil, []string{secret})
	if err != nil {
		t.Fatal(err)
	}
	s := testServer{address: listen(t, server.HTTP())}
	for range 2 {
		status, stream := s.request(t, "GET", edgeproto.ChangesPath, secret, "")
		if rest, err := io.ReadAll(stream); status != 200 || err != nil || len(rest) > 0 {
			t.Errorf("the stream is %d %q, %v; want it to end at once", status, rest, err)
		}
	}
}

// A disconnect of the edge ends its stream.
func TestDisconnectEndsStream(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, "GET", s.address+edgeproto.ChangesPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+secret)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := response.Body.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		cancel()
		_ = response.Body.Close()
	}
	// The shutdown in the cleanup waits for every stream.
}
