package compare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/baseline"
	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/artwork"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

const (
	userCount       = 2000 // signed-in users, each with a player
	password        = "a password of many"
	siteWarmUp      = 3
	siteRounds      = 11
	siteEach        = 2 * time.Second // whole seconds, for pgbench
	freshnessRounds = 11
	freshnessTries  = 20 // changes in a round
)

// liveStack is the real programs: core with its database, and an edge. Core and the edge share the
// processor of the servers; the database may use all.
type liveStack struct {
	core, edge  *stack.Process
	api, images string // addresses
	users       []stack.SignedInUser
	pids        []int64
	tids        [4]int64
	tags        [4]string // of the avatars of those textures
}

// liftedLimits are the limits of core that are switched off.
var liftedLimits = []string{"REQUESTS", "UPLOADS", "CHANGES", "LOGIN_FAILURES", "LOGIN_FAILURES_PER_ADDRESS", "LOGIN_FAILURES_PER_ACCOUNT"}

// liveScenarios returns the scenarios of the whole system.
func liveScenarios() []scenario {
	return []scenario{
		{
			name: "API read", measures: "GET /api/user of 2,000 users over 32 connections, beside the query that it makes.", unit: "answers/s",
			moreIsBetter: true, warmUp: siteWarmUp, rounds: siteRounds, open: (*env).reads,
		},
		{
			name: "API write", measures: "A player's skin is changed, over 32 connections, beside the UPDATE statement alone.", unit: "writes/s",
			moreIsBetter: true, warmUp: siteWarmUp, rounds: siteRounds, open: (*env).writes,
		},
		{
			name: "sign-in", measures: "Log-ins over 8 connections, beside the hash of the password alone.", unit: "log-ins/s",
			moreIsBetter: true, warmUp: siteWarmUp, rounds: siteRounds, open: (*env).logIns,
		},
		{
			name: "upload", measures: "New skins of 128 by 128 over 8 connections, beside decoding, encoding and writing a file.", unit: "uploads/s",
			moreIsBetter: true, warmUp: siteWarmUp, rounds: siteRounds, open: (*env).uploads,
		},
		{
			name: "freshness", measures: "From the request of a change until an edge shows it, beside PostgreSQL's NOTIFY alone.", unit: "ms",
			warmUp: siteWarmUp, rounds: freshnessRounds, open: (*env).freshness,
		},
	}
}

const insertPlayers = `
	INSERT INTO players (uid, name, name_key, tid_skin)
	SELECT uid, 'p' || n, 'p' || n, $2 FROM unnest($1::bigint[]) WITH ORDINALITY AS u (uid, n) ORDER BY n
	RETURNING pid`

// openLive opens the stack.
func (e *env) openLive() (*liveStack, error) {
	if e.live != nil {
		return e.live, nil
	}
	tb := e.TB
	files := blobstore.Config{URL: "file://" + tb.TempDir()}
	t := &liveStack{core: stack.NewCore(tb, files)}
	t.core.NameConnections(tb)
	t.core.ConnectPatiently(tb)
	for _, limit := range liftedLimits {
		t.core.Set("CORE_LIMIT_"+limit, "0")
		e.addSetting("CORE_LIMIT_"+limit, 0)
	}
	e.addSetting("core's processor", e.serverEnv.CPUs[0])
	e.addSetting("PostgreSQL's and pgbench's processors", "all")
	e.addDatabaseSettings(tb)
	t.users = t.core.SignIn(tb, userCount)
	unpin, err := load.Pin(e.serverEnv.CPUs[0]) // processes started now inherit the affinity
	if err != nil {
		return nil, err
	}
	defer unpin()
	t.core.Start(tb)
	t.edge = stack.NewEdge(tb, files, t.core)
	t.edge.Start(tb)
	t.api, t.images = t.core.Address(tb, "public"), t.edge.Address(tb, "public")
	t.edge.AwaitReady(tb)

	if err := t.uploadTextures(); err != nil {
		return nil, err
	}
	uids := make([]int64, len(t.users))
	for i, p := range t.users {
		uids[i] = int64(p.User)
	}
	rows, _ := postgrestest.Conn(tb, t.core.Setting("CORE_DATABASE_URL")).Query(tb.Context(), insertPlayers, uids, t.tids[0]) // CollectRows reports the error
	if t.pids, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		return nil, err
	}
	e.live = t
	return t, nil
}

// uploadTextures uploads the textures that all players may have.
func (s *liveStack) uploadTextures() (err error) {
	for i := range s.tids {
		form := stack.SheetForm("bench", skin.Classic, skintest.Noise(uint64(i), 64, 64))
		var answer struct{ Data struct{ TID int64 } }
		// PostgreSQL may be too busy with other tests to accept core's first connections.
		for began, tick := time.Now(), time.Tick(100*time.Millisecond); ; <-tick {
			err = s.call("POST", "/api/textures", stack.UploadType, s.users[0].Bearer, form, &answer)
			if !errors.Is(err, errUnavailable) || time.Since(began) > time.Minute {
				break
			}
		}
		if err != nil {
			return err
		}
		s.tids[i] = answer.Data.TID
		if s.tags[i], err = s.fetchTag(fmt.Sprint("/avatar/", s.tids[i])); err != nil {
			return err
		}
	}
	return nil
}

// errUnavailable is a response with the status 503.
var errUnavailable = errors.New("unavailable")

// call sends a request to core, which must succeed.
func (s *liveStack) call(method, path, contentType, bearer string, body []byte, answer any) error {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI("http://" + s.api + path)
	request.Header.SetMethod(method)
	request.Header.SetContentType(contentType)
	if bearer != "" {
		request.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+bearer)
	}
	request.SetBody(body)
	if err := fasthttp.Do(request, response); err != nil {
		return err
	}
	switch response.StatusCode() {
	case fasthttp.StatusOK:
	case fasthttp.StatusServiceUnavailable:
		return fmt.Errorf("%s %s: %w: %s", method, path, errUnavailable, response.Body())
	default:
		return fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode(), response.Body())
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(response.Body(), answer)
}

// fetchTag returns the entity tag of a picture.
func (s *liveStack) fetchTag(path string) (string, error) {
	return fetchTagAt("http://" + s.images + path)
}

// fetchTagAt returns the entity tag of a picture at a URL.
func fetchTagAt(url string) (string, error) {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI(url)
	if err := fasthttp.Do(request, response); err != nil {
		return "", err
	}
	if response.StatusCode() != fasthttp.StatusOK {
		return "", fmt.Errorf("%s: %d %s", url, response.StatusCode(), response.Body())
	}
	return string(response.Header.Peek(fasthttp.HeaderETag)), nil
}

// authorizedRequest returns a user's request with the token.
func authorizedRequest(p stack.SignedInUser, method, path, contentType string, body []byte) []byte {
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		method, path, p.Bearer, contentType, len(body), body)
}

const urlEncoded = "application/x-www-form-urlencoded"

// measureAPI returns the measurement of core in a closed loop.
func (e *env) measureAPI(t *liveStack, stream *load.Stream) func(context.Context, int) (outcome, error) {
	return func(ctx context.Context, _ int) (outcome, error) {
		before := t.core.CPU(e.TB)
		answers, err := e.send(ctx, t.api, e.duration(siteEach), stream)
		if err != nil {
			return outcome{}, err
		}
		latencies, total := answers.All(), float64(answers.Total())
		return outcome{total / answers.Elapsed.Seconds(), []namedFigure{
			{"p50", "ms", float64(latencies.ValueAtPercentile(50)) / 1e6},
			{"p99", "ms", float64(latencies.ValueAtPercentile(99)) / 1e6},
			{"processor time", "µs/answer", float64((t.core.CPU(e.TB) - before).Microseconds()) / total},
			loadBusy(answers),
		}}, nil
	}
}

// duration returns the duration of a measurement.
func (e *env) duration(full time.Duration) time.Duration {
	if e.Quick {
		return full / 10
	}
	return full
}

// pgbench returns pgbench as a subject. Its rounds are whole seconds.
func (e *env) pgbench(ctx context.Context, start func() *stack.Pgbench) (subject, error) {
	const name = "pgbench"
	_, err := baseline.PgbenchVersion(ctx)
	if missing, ok := errors.AsType[*baseline.MissingError](err); ok {
		e.missing[name] = missing
		return subject{name: name, missing: missing.Error()}, nil
	}
	if err != nil {
		return subject{}, err
	}
	e.usedPrograms[name] = true
	p := start()
	return subject{name: name, measure: func(context.Context, int) (outcome, error) {
		return outcome{figure: p.Rate(e.TB, max(time.Second, e.duration(siteEach)))}, nil
	}}, nil
}

// userReads requests random users' own data. The round is the seed.
func (e *env) userReads(t *liveStack, round int) *load.Stream {
	stream := &load.Stream{
		Connections: connections, Statuses: []int{fasthttp.StatusOK}, Order: load.Random(len(t.users), uint64(round)),
		InspectShare: e.compareShare(), Inspect: func(request, _ int, body []byte) error {
			var answer struct{ UID core.UserID }
			if err := json.Unmarshal(body, &answer); err != nil {
				return err
			}
			if want := t.users[request].User; answer.UID != want {
				return fmt.Errorf("user %d was answered with %d", want, answer.UID)
			}
			return nil
		},
	}
	for _, p := range t.users {
		stream.Requests = append(stream.Requests, authorizedRequest(p, "GET", "/api/user", "", nil))
	}
	return stream
}

func (e *env) reads(ctx context.Context) ([]subject, error) {
	t, err := e.openLive()
	if err != nil {
		return nil, err
	}
	veneer := e.measureAPI(t, e.userReads(t, 0))
	if _, err := veneer(ctx, 0); err != nil { // so that the database has seen the query
		return nil, err
	}
	other, err := e.pgbench(ctx, func() *stack.Pgbench { return stack.NewSessionPgbench(e.TB, t.core, t.users, connections) })
	return []subject{{name: "Veneer", measure: veneer}, other}, err
}

func (e *env) writes(ctx context.Context) ([]subject, error) {
	t, err := e.openLive()
	if err != nil {
		return nil, err
	}
	stream := &load.Stream{Connections: connections, Statuses: []int{fasthttp.StatusOK}}
	for _, tid := range []int64{t.tids[1], t.tids[2]} {
		for i, pid := range t.pids {
			stream.Requests = append(stream.Requests, authorizedRequest(t.users[i], "PUT", fmt.Sprintf("/api/players/%d/textures", pid), urlEncoded, fmt.Appendf(nil, "skin=%d", tid)))
		}
	}
	// It must be a change there, too, or PostgreSQL would update no index.
	script := fmt.Sprintf("\\set n random(%d, %d)\nUPDATE players SET tid_skin = CASE tid_skin WHEN %d THEN %d ELSE %[3]d END, last_modified = now() WHERE pid = :n;\n",
		t.pids[0], t.pids[len(t.pids)-1], t.tids[2], t.tids[3])
	other, err := e.pgbench(ctx, func() *stack.Pgbench {
		return stack.NewPgbench(e.TB, t.core.Setting("CORE_DATABASE_URL"), script, connections)
	})
	return []subject{{name: "Veneer", measure: e.measureAPI(t, stream)}, other}, err
}

// logInConnections is the number of concurrent log-ins; each takes 20 ms of CPU time.
const logInConnections = 8

func (e *env) logIns(ctx context.Context) ([]subject, error) {
	t, err := e.openLive()
	if err != nil {
		return nil, err
	}
	stream, err := t.allLogIn(e.TB)
	if err != nil {
		return nil, err
	}
	other, err := e.minimalSubject(ctx, "argon2id alone", baseline.StartArgon2, [][]byte{[]byte(password)})
	return []subject{{name: "Veneer", measure: e.measureAPI(t, stream)}, other}, err
}

// allLogIn gives all users one password, and returns their log-ins one after another.
func (s *liveStack) allLogIn(tb testing.TB) (*load.Stream, error) {
	tb.Helper()
	register := fmt.Appendf(nil, "email=first@example.org&password=%s&nickname=First", password)
	if err := s.call("POST", "/api/auth/register", urlEncoded, "", register, nil); err != nil {
		return nil, err
	}
	conn := postgrestest.Conn(tb, s.core.Setting("CORE_DATABASE_URL"))
	rows, _ := conn.Query(tb.Context(), `
		UPDATE users SET password_hash = (SELECT password_hash FROM users WHERE email = 'first@example.org')
		WHERE email LIKE 'person%' RETURNING email`) // CollectRows reports the error
	emails, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	stream := &load.Stream{Connections: logInConnections, Statuses: []int{fasthttp.StatusOK}}
	for _, email := range emails {
		body := fmt.Sprintf("email=%s&password=%s", email, password)
		stream.Requests = append(stream.Requests, fmt.Appendf(nil, "POST /api/auth/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", urlEncoded, len(body), body))
	}
	return stream, nil
}

// minimalSubject opens a server that does only the unavoidable part of core's work on a body, at
// the same number of connections.
func (e *env) minimalSubject(ctx context.Context, name string, start func(context.Context, baseline.Env) (*baseline.Server, error), bodies [][]byte) (subject, error) {
	server, err := e.startServer(name, func(at baseline.Env) (*baseline.Server, error) { return start(ctx, at) })
	if err != nil {
		return subject{}, err
	}
	stream := &load.Stream{Connections: logInConnections, Statuses: []int{fasthttp.StatusOK}}
	for _, body := range bodies {
		stream.Requests = append(stream.Requests, fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	}
	return e.subject(name, server, func(server *baseline.Server) func(context.Context, int) (outcome, error) {
		return func(ctx context.Context, _ int) (outcome, error) {
			return e.measureClosed(ctx, server, server.Address, e.duration(siteEach), stream)
		}
	}), nil
}

// uploadsEach is the number of uploads prepared for a round, more than it can send.
const uploadsEach = 1500

func (e *env) uploads(ctx context.Context) ([]subject, error) {
	t, err := e.openLive()
	if err != nil {
		return nil, err
	}
	uploaded := make([][]byte, 256)
	for i := range uploaded {
		if uploaded[i], err = newSkin(i).PNG(); err != nil {
			return nil, err
		}
	}
	other, err := e.minimalSubject(ctx, "image/png and a file", baseline.StartReencode, uploaded)
	if err != nil {
		return nil, err
	}
	stream := &load.Stream{Connections: logInConnections, Statuses: []int{fasthttp.StatusOK}}
	veneer := e.measureAPI(t, stream)
	return []subject{{name: "Veneer", measure: func(ctx context.Context, round int) (outcome, error) {
		stream.Requests, stream.Order = t.newUploads(len(uploaded)+round*uploadsEach, uploadsEach), once(uploadsEach)
		return veneer(ctx, round)
	}}, other}, nil
}

// newSkin returns a typical skin, with a few texels that differ for each number.
func newSkin(n int) skin.Sheet {
	robot := artwork.Robot()
	for i := range 8 {
		robot.Pix[4*(64*20+20+i)] = byte(n >> (8 * i))
	}
	return robot
}

// newUploads returns requests to upload new skins, from a number on. They are made ahead, as real
// clients make them elsewhere.
func (s *liveStack) newUploads(first, count int) [][]byte {
	requests := make([][]byte, count)
	var all sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for worker := range workers {
		all.Go(func() {
			for i := worker; i < count; i += workers {
				n := first + i
				requests[i] = authorizedRequest(s.users[n%len(s.users)], "POST", "/api/textures", stack.UploadType, stack.SheetForm("bench", skin.Classic, newSkin(n)))
			}
		})
	}
	all.Wait()
	return requests
}

func (e *env) freshness(ctx context.Context) ([]subject, error) {
	t, err := e.openLive()
	if err != nil {
		return nil, err
	}
	database := t.core.Setting("CORE_DATABASE_URL")
	writer, listener := postgrestest.Conn(e.TB, database), postgrestest.Conn(e.TB, database)
	if _, err := listener.Exec(ctx, "LISTEN bench_news"); err != nil {
		return nil, err
	}
	n := 0
	return []subject{
		{name: "Veneer", measure: median(func() (time.Duration, error) {
			n++
			return t.awaitChange(n%len(t.pids), n%len(t.tids))
		})},
		{name: "PostgreSQL's NOTIFY", measure: median(func() (time.Duration, error) {
			began := time.Now()
			batch := &pgx.Batch{}
			batch.Queue("UPDATE players SET last_modified = now() WHERE pid = $1", t.pids[0])
			batch.Queue("NOTIFY bench_news")
			if err := writer.SendBatch(ctx, batch).Close(); err != nil {
				return 0, err
			}
			_, err := listener.WaitForNotification(ctx)
			return time.Since(began), err
		})},
	}, nil
}

// awaitChange sets one of the textures as a player's skin, or the next one if that is the current
// skin, and returns how long it took until the edge served it.
func (s *liveStack) awaitChange(player, texture int) (time.Duration, error) {
	path := fmt.Sprint("/avatar/player/p", player+1)
	current, err := s.fetchTag(path) // the edge has the mapping then
	if err != nil {
		return 0, err
	}
	if current == s.tags[texture] {
		texture = (texture + 1) % len(s.tids)
	}
	began := time.Now()
	if err := s.call("PUT", fmt.Sprintf("/api/players/%d/textures", s.pids[player]), urlEncoded, s.users[player].Bearer, fmt.Appendf(nil, "skin=%d", s.tids[texture]), nil); err != nil {
		return 0, err
	}
	for time.Since(began) < 10*time.Second {
		tag, err := s.fetchTag(path)
		if err != nil {
			return 0, err
		}
		if tag == s.tags[texture] {
			return time.Since(began), nil
		}
	}
	return 0, errors.New("a change is not shown")
}

// median returns the measurement of the median of some tries.
func median(try func() (time.Duration, error)) func(context.Context, int) (outcome, error) {
	return func(context.Context, int) (outcome, error) {
		var took []time.Duration
		for range freshnessTries {
			d, err := try()
			if err != nil {
				return outcome{}, err
			}
			took = append(took, d)
		}
		slices.Sort(took)
		return outcome{figure: float64(took[freshnessTries/2].Microseconds()) / 1000, others: []namedFigure{{"longest", "ms", float64(took[freshnessTries-1].Microseconds()) / 1000}}}, nil
	}
}
