package edgeapi_test

import (
	"bufio"
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

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/cdnpurge"
	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/core/edgeapi"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/httpserver"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
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

// startServer starts the edge API of a core, with a webhook unless that is nil.
func startServer(t *testing.T, hook cdnpurge.CDN) testServer {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	database := postgrestest.URL(t)
	db := postgrestest.Connect(t, database)
	feed := core.NewFeed(db, log)
	db.OnChange(feed.Committed)
	ctx, stop := context.WithCancel(t.Context())
	coretest.Background(t, feed.Run)
	var purges edgeapi.Purges
	if hook != nil {
		// Purges start after the revision at which the lease was first acquired.
		testenv.Must(db.NumberChanges(t.Context()))(t)
		_, _, err := db.AcquirePurgeLease(t.Context(), uuid.New(), 0)
		testenv.Do(t, err)
		purger := cdnpurge.NewPurger(db, hook, feed, time.Second, log)
		coretest.Background(t, purger.Run)
		purges = purger
	}

	options, secrets := httpserver.Options{Log: log, Limits: limits}, []string{secret, secondSecret}
	server := testenv.Must(edgeapi.New(ctx, options, core.NewMappings(db), feed, purges, secrets))(t)
	address := listen(t, server.HTTP())
	t.Cleanup(stop) // runs first: streams do not end by themselves
	return testServer{db: db, conn: postgrestest.Conn(t, database), address: address, stop: stop}
}

var limits = httpserver.Limits{
	ReadTimeout: time.Minute, WorkTimeout: time.Minute, HeaderBytes: 16 << 10, MaxConnections: 100, BodiesBytes: 64 << 20,
}

// listen serves on a real socket until the test ends, and returns its URL.
func listen(t *testing.T, server *fasthttp.Server) string {
	t.Helper()
	listener := testenv.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		testenv.Is(t, server.Shutdown(), nil, "Shutdown")
		testenv.Is(t, <-served, nil, "Serve")
	})
	return "http://" + listener.Addr().String()
}

// request sends a request and returns the response's status and body.
func (s testServer) request(t *testing.T, method, path, secret, body string) (int, io.Reader) {
	t.Helper()
	request := testenv.Must(http.NewRequestWithContext(t.Context(), method, s.address+path, strings.NewReader(body)))(t)
	if secret != "" {
		request.Header.Set("Authorization", "Bearer "+secret)
	}
	response, err := http.DefaultClient.Do(request)
	testenv.Do(t, err)
	t.Cleanup(func() { _ = response.Body.Close() })
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
	} {
		cmptest.Same(t, response.Header.Values(name), []string{want}, "%s %s: %s", method, path, name)
	}
	return response.StatusCode, response.Body
}

// addUser adds a user with a player, if that has a name.
func (s testServer) addUser(t *testing.T, player core.NewPlayer) core.User {
	t.Helper()
	return testenv.Must(s.db.CreateUser(t.Context(), core.Registrant, core.NewUser{
		Email: "ann", EmailKey: "ann@example.com", Nickname: "Ann", PasswordHash: "secret hash", Player: player,
	}))(t)
}

func TestSecretIsRequired(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)

	f := func(method, path, secret, body string, want int) {
		t.Helper()
		status, _ := s.request(t, method, path, secret, body)
		testenv.Equal(t, status, want, "%s %s with %q: the status", method, path, secret)
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

func marshal(t *testing.T, value any) string {
	t.Helper()
	return string(testenv.Must(json.Marshal(value))(t))
}

func TestShortSecretsAreRefused(t *testing.T) {
	t.Parallel()
	_, err := edgeapi.New(t.Context(), httpserver.Options{}, nil, nil, nil, []string{secret, "short"})
	testenv.ErrorHas(t, err, "EDGE_SECRETS", "a short secret")
}

// A change is on the stream and in look-ups.
func TestLookupAndChanges(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	_, stream := s.request(t, "GET", edgeproto.ChangesPath, secret, "")
	lines := bufio.NewScanner(stream)
	testenv.Equal(t, nextEvent(t, lines, isStart).Stream, "", "the name of a stream that needs no acknowledgements")

	user := s.addUser(t, core.NewPlayer{Name: "Ann", Key: "ann"})
	change := nextEvent(t, lines, isChange)

	_, answered := s.request(t, "POST", edgeproto.LookupPath, secret, `{"keys":["name:ann","`+string(edgeproto.UIDKey(int64(user.ID)))+`"]}`)
	body := testenv.Must(io.ReadAll(answered))(t)
	var response edgeproto.LookupResponse
	testenv.Do(t, json.Unmarshal(body, &response))
	testenv.Check(t, response.Cursor == change.Cursor && response.Mappings[0].Player != nil &&
		response.Mappings[1].User != nil, "response %s; want the player and the user at %+v", body, change.Cursor)
	for _, secret := range []string{"@", "hash\":\"secret", "score"} {
		testenv.Check(t, !strings.Contains(string(body), secret), "response %s has data that edges must not get", body)
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
		testenv.Do(t, json.Unmarshal(lines.Bytes(), &e))
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
	s := startServer(t, purges)
	_, stream := s.request(t, "GET", edgeproto.ChangesPath, secret, "")
	lines := bufio.NewScanner(stream)
	start := nextEvent(t, lines, isStart)
	acknowledge := func(at edgeproto.Cursor) {
		t.Helper()
		body := marshal(t, edgeproto.Acknowledgement{Cursor: at, Stream: start.Stream})
		if status, response := s.request(t, "POST", edgeproto.AcknowledgePath, secret, body); status != 200 {
			text, _ := io.ReadAll(response)
			t.Fatalf("an acknowledgement: %d %s", status, text)
		}
	}
	acknowledge(start.Cursor)

	began := time.Now()
	user := s.addUser(t, core.NewPlayer{})
	change := nextEvent(t, lines, isChange)
	for range 2 { // time enough for a purge without acknowledgements
		nextEvent(t, lines, edgeproto.Event.IsHeartbeat)
	}
	if len(purges) > 0 && time.Since(began) < 2*time.Second { // the longest wait for acknowledgements
		t.Fatalf("%v is purged, but the edge has not acknowledged it", <-purges)
	}
	acknowledge(change.Cursor)
	want := cdnpurge.Purge{Cursor: change.Cursor, Tags: []string{edgeproto.UIDKey(int64(user.ID)).Tag()}}
	cmptest.Same(t, <-purges, want, "purged")
}

// An edge that reconnects names its previous stream, which then needs no acknowledgements,
// though it may still be open. An invalid name is ignored.
func TestPreviousStream(t *testing.T) {
	t.Parallel()
	s := startServer(t, make(recordedPurges, 10))
	begin := func(query string) (name string) {
		t.Helper()
		status, stream := s.request(t, "GET", edgeproto.ChangesPath+query, secret, "")
		testenv.Equal(t, status, 200, "a stream with %q: the status", query)
		return nextEvent(t, bufio.NewScanner(stream), isStart).Stream
	}
	first := begin("")
	second := begin("?former=" + first)
	third := begin("?former=" + second[:35] + "x")
	rows := testenv.Must(s.conn.Query(t.Context(), "SELECT stream::text FROM edge_streams WHERE NOT replaced"))(t)
	waited := testenv.Must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
	want := []string{second, third}
	slices.Sort(want)
	slices.Sort(waited)
	cmptest.Same(t, waited, want, "streams that must acknowledge")
}

// The time of a heartbeat counts from the request, however long the stream takes to start.
func TestHeartbeatsCountFromRequest(t *testing.T) {
	t.Parallel()
	const held = 300 * time.Millisecond
	s := startServer(t, make(recordedPurges, 10))
	tx := testenv.Must(s.conn.Begin(t.Context()))(t)
	testenv.Must(tx.Exec(t.Context(), "LOCK edge_streams IN SHARE MODE"))(t)
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
		testenv.Is(t, tx.Commit(t.Context()), nil, "Commit")
	})
	_, stream := s.request(t, "GET", edgeproto.ChangesPath, secret, "")
	heartbeat := nextEvent(t, bufio.NewScanner(stream), edgeproto.Event.IsHeartbeat)
	testenv.Check(t, heartbeat.AsOf >= held, "the first heartbeat is %s after the request, not %s", heartbeat.AsOf, held)
}

func TestLiked(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	user := s.addUser(t, core.NewPlayer{})
	want := edgeproto.LikedTextures{Hashes: []skin.Hash{}}
	liked := func() {
		t.Helper()
		_, body := s.request(t, "GET", edgeproto.LikedPath+"?limit=2", secret, "")
		var got edgeproto.LikedTextures
		testenv.Do(t, json.NewDecoder(body).Decode(&got))
		cmptest.Same(t, got, want, "liked textures")
	}
	liked()
	for n := range byte(3) {
		texture := core.NewTexture{Name: "N", Type: skin.Classic, Hash: skin.Hash{n}, Pixels: skin.Hash{n}, Bytes: 1, Uploader: user.ID, Public: true}
		testenv.Must(s.db.AddTexture(t.Context(), texture, core.Pricing{}, func(context.Context) error { return nil }))(t)
	}
	want.Hashes = []skin.Hash{{2}, {1}}
	liked()
}

// A panic in a stream ends only that stream.
func TestPanicEndsOnlyItsStream(t *testing.T) {
	t.Parallel()
	// Without a feed, following it panics.
	options := httpserver.Options{Log: slog.New(slog.DiscardHandler), Limits: limits}
	server := testenv.Must(edgeapi.New(t.Context(), options, nil, nil, nil, []string{secret}))(t)
	s := testServer{address: listen(t, server.HTTP())}
	for range 2 {
		status, stream := s.request(t, "GET", edgeproto.ChangesPath, secret, "")
		rest := testenv.Must(io.ReadAll(stream))(t)
		testenv.Check(t, status == 200 && len(rest) == 0, "the stream is %d %q; want it to end at once", status, rest)
	}
}

// A disconnect of the edge ends its stream.
func TestDisconnectEndsStream(t *testing.T) {
	t.Parallel()
	s := startServer(t, nil)
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		request := testenv.Must(http.NewRequestWithContext(ctx, "GET", s.address+edgeproto.ChangesPath, nil))(t)
		request.Header.Set("Authorization", "Bearer "+secret)
		response, err := http.DefaultClient.Do(request)
		testenv.Do(t, err)
		testenv.Must(response.Body.Read(make([]byte, 1)))(t)
		cancel()
		_ = response.Body.Close()
	}
	// The shutdown in the cleanup waits for every stream.
}
