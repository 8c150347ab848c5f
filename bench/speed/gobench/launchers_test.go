package gobench_test

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
)

// Sizes of the benchmark of launchers.
const (
	// activePlayers are those that game servers and launchers ask for, drawn at random from all.
	activePlayers = userCount
	bulkNames     = 100 // in one request, the most that it may have
	// warmUps is how many times each request is sent before: each connection's backend of PostgreSQL
	// maps a page of the shared buffers when it first reads it, for longer than the read takes.
	warmUps = 24
	// refreshesPerPlayer are tokens to refresh, each of which works once.
	refreshesPerPlayer = 40
	launcherRound      = 400 * time.Millisecond
	logInTries         = 50
)

// makeGamers makes users, of which each has ten players, and for each player a skin of its own, a
// launcher's token, and a join of the game server "bench" that does not end during the benchmark.
var makeGamers = []string{
	`INSERT INTO users (email, email_key, nickname, nickname_key, password_hash, verified)
	SELECT 'gamer' || n || '@example.com', 'gamer' || n || '@example.com', 'Gamer', 'gamer', 'none', true FROM generate_series(1, %d / 10) n`,
	`INSERT INTO textures (uploader, bytes, public, type, hash, pixels, name)
	SELECT uid, 2000, false, 'alex', sha256(skin::bytea), sha256(skin::bytea), 'Skin'
	FROM users, generate_series(1, 10) n, concat(uid, '/', n) skin WHERE nickname = 'Gamer'`,
	`INSERT INTO players (uid, name, name_key, tid_skin) SELECT uploader, 'Gamer_' || tid, 'gamer_' || tid, tid FROM textures`,
	`INSERT INTO launcher_tokens (token, uid, client_token, pid, player_name, issued_at)
	SELECT sha256(('token ' || pid)::bytea), uid, 'bench', pid, name, now() FROM players`,
	`INSERT INTO game_joins (pid, server, address, joined_at) SELECT pid, sha256('bench'), '127.0.0.1', now() + interval '1 hour' FROM players`,
}

const (
	selectGamers = `SELECT pid, uuid, name FROM players ORDER BY uuid LIMIT $1` // at random, as UUIDs are

	insertRefreshes = `
	INSERT INTO launcher_tokens (token, uid, client_token, pid, player_name, issued_at)
	SELECT sha256(('refresh ' || pid || ' ' || n)::bytea), uid, 'bench', pid, name, now()
	FROM (SELECT * FROM players ORDER BY uuid LIMIT $1) p, generate_series(1, $2) n`
)

// launcherPlayer is a player as game servers and launchers ask for it.
type launcherPlayer struct {
	PID  int64
	UUID [16]byte
	Name string
}

// launcherRoute is a route and its rates in all rounds.
type launcherRoute struct {
	name string
	target
	rates []float64
	cpu   time.Duration // core's
	total int64
}

// launcherSite is a core with players.
type launcherSite struct {
	core   *stack.Process
	routes []*launcherRoute
	logIns []*logInRoute
}

// logInRoute is a request that verifies a password, and how many microseconds each took.
type logInRoute struct {
	name, path, body string
	took             []float64
}

// BenchmarkLaunchers measures what launchers and game servers ask for, on a site with 2,000 players
// and on one with a million (LAUNCHER_PLAYERS sets another number), in turns: as a ratio to GET
// /api/user of the same site or to its log-ins, and as a ratio of the large site to the small one.
// Caches are warm. Core has its defaults, but no limits of requests and log-ins, since all come from one
// address. It fails at the bounds that docs/benchmarks.md names.
func BenchmarkLaunchers(b *testing.B) {
	count, err := strconv.Atoi(cmp.Or(os.Getenv("LAUNCHER_PLAYERS"), "1000000"))
	if err != nil {
		b.Fatal(err)
	}
	small, large := newLauncherSite(b, activePlayers), newLauncherSite(b, count)
	sites := []*launcherSite{small, large}
	b.ResetTimer()
	for range rounds {
		for i := range small.routes {
			for _, s := range sites {
				s.measure(b, s.routes[i])
			}
		}
	}
	for range logInTries {
		for i := range small.logIns {
			for _, s := range sites {
				s.logIn(b, s.logIns[i])
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(small.routes[0].rates), "reads/s")
	small.report(b, large, count)
}

func newLauncherSite(b *testing.B, players int) *launcherSite {
	b.Helper()
	core := newCore(b)
	key := filepath.Join(b.TempDir(), "yggdrasil.pem")
	if err := os.WriteFile(key, []byte(core.Run(b, "keys", "yggdrasil")), 0o600); err != nil {
		b.Fatal(err)
	}
	for name, value := range map[string]string{
		"CORE_YGGDRASIL_KEY_FILE": key, "CORE_PUBLIC_URL": "http://127.0.0.1:1", "CORE_YGGDRASIL_LOGIN_INTERVAL": "0s", "CORE_LIMIT_REQUESTS": "0",
		"CORE_LIMIT_LOGIN_FAILURES": "1000000", "CORE_LIMIT_LOGIN_FAILURES_PER_ADDRESS": "1000000", "CORE_LIMIT_LOGIN_FAILURES_PER_ACCOUNT": "1000000",
	} {
		core.Set(name, value)
	}
	database := core.Setting("CORE_DATABASE_URL")
	conn := postgrestest.Conn(b, database)
	makeGamers := append([]string{fmt.Sprintf(makeGamers[0], players)}, makeGamers[1:]...)
	for _, sql := range makeGamers {
		execute(b, conn, sql)
	}
	users := core.SignIn(b, userCount)
	if _, err := conn.Exec(b.Context(), insertRefreshes, activePlayers, refreshesPerPlayer); err != nil {
		b.Fatal(err)
	}
	execute(b, conn, "VACUUM ANALYZE users, players, textures, launcher_tokens, game_joins")
	rows, _ := conn.Query(b.Context(), selectGamers, activePlayers) // CollectRows reports the error
	gamers, err := pgx.CollectRows(rows, pgx.RowToStructByPos[launcherPlayer])
	if err != nil {
		b.Fatal(err)
	}
	core.Set("CORE_DATABASE_URL", database+"&pool_max_conn_lifetime=1h") // a backend is warm as long as it lives
	core.Start(b)
	s := &launcherSite{core: core, routes: launcherRoutes(core.Address(b, "public"), users, gamers)}
	for _, r := range s.routes[:len(s.routes)-1] { // a refresh works once
		r.warmUp(b)
	}

	client := &apiClient{api: "http://" + core.Address(b, "public")}
	client.call(b, "POST", "/api/auth/register", "application/x-www-form-urlencoded",
		[]byte("email=known@example.com&password=correct+horse&nickname=Known&player_name=Known"))
	const authenticate = "/api/yggdrasil/authserver/authenticate"
	logIn := logInRoute{name: "log-in", path: "/api/auth/login", body: `{"email":"known@example.com","password":"correct horse"}`}
	s.logIns = []*logInRoute{
		&logIn,
		{name: "authenticate by e-mail", path: authenticate, body: `{"username":"known@example.com","password":"correct horse"}`},
		{name: "authenticate by player", path: authenticate, body: `{"username":"Known","password":"correct horse"}`},
		{name: "log-in again", path: logIn.path, body: logIn.body},
	}
	return s
}

// launcherRoutes returns GET /api/user and the routes that are compared with it.
func launcherRoutes(address string, users []stack.SignedInUser, active []launcherPlayer) []*launcherRoute {
	const session = "sessionserver/session/minecraft/"
	id := func(p launcherPlayer) string { return hex.EncodeToString(p.UUID[:]) }
	isPlayer := func(p launcherPlayer) string { return `{"id":"` + id(p) + `",` }
	noBody := func(launcherPlayer) string { return "" }
	get := func(path func(launcherPlayer) string) func(launcherPlayer) string {
		return func(p launcherPlayer) string {
			return fmt.Sprintf("GET /api/yggdrasil/%s HTTP/1.1\r\nHost: %s\r\n\r\n", path(p), address)
		}
	}
	post := func(path string, body func(launcherPlayer) string) func(launcherPlayer) string {
		return func(p launcherPlayer) string {
			return fmt.Sprintf("POST /api/yggdrasil/%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, address, len(body(p)), body(p))
		}
	}
	route := func(name string, status int, players []launcherPlayer, request, want func(launcherPlayer) string) *launcherRoute {
		stream := &load.Stream{Connections: connections, Statuses: []int{status}, Order: load.Random(len(players), 0)}
		wants := make([][]byte, len(players))
		for i, p := range players {
			stream.Requests = append(stream.Requests, []byte(request(p)))
			wants[i] = []byte(want(p))
		}
		expectPrefix(stream, wants...)
		return &launcherRoute{name: name, target: target{address, stream}}
	}
	token := func(p launcherPlayer) string { return fmt.Sprintf(`{"accessToken":"token %d"}`, p.PID) }
	join := func(p launcherPlayer) string {
		return fmt.Sprintf(`{"accessToken":"token %d","selectedProfile":"%s","serverId":"join"}`, p.PID, id(p))
	}
	refreshes := make([]launcherPlayer, 0, activePlayers*refreshesPerPlayer)
	for n := range refreshesPerPlayer {
		for _, p := range active {
			p.Name = fmt.Sprintf(`{"accessToken":"refresh %d %d"}`, p.PID, n+1)
			refreshes = append(refreshes, p)
		}
	}
	refresh := route("refresh", fasthttp.StatusOK, refreshes, post("authserver/refresh", func(p launcherPlayer) string { return p.Name }),
		func(launcherPlayer) string { return `{"accessToken":"` })
	refresh.Order = once(len(refreshes))
	var lists []launcherPlayer
	for i := 0; i+bulkNames <= len(active); i += bulkNames {
		var names []string
		for _, p := range active[i : i+bulkNames] {
			names = append(names, `"`+p.Name+`"`)
		}
		lists = append(lists, launcherPlayer{Name: "[" + strings.Join(names, ",") + "]"})
	}
	return []*launcherRoute{
		{name: "GET /api/user", target: userReads(address, users)},
		route("profile, signed", fasthttp.StatusOK, active, get(func(p launcherPlayer) string { return session + "profile/" + id(p) + "?unsigned=false" }), isPlayer),
		route("profile, unsigned", fasthttp.StatusOK, active, get(func(p launcherPlayer) string { return session + "profile/" + id(p) }), isPlayer),
		route("hasJoined", fasthttp.StatusOK, active, get(func(p launcherPlayer) string { return session + "hasJoined?serverId=bench&username=" + p.Name }), isPlayer),
		route("join", fasthttp.StatusNoContent, active, post(session+"join", join), noBody),
		route("100 names", fasthttp.StatusOK, lists, post("api/profiles/minecraft", func(p launcherPlayer) string { return p.Name }), func(launcherPlayer) string { return `[{"id":"` }),
		route("one name", fasthttp.StatusOK, active, get(func(p launcherPlayer) string { return "api/users/profiles/minecraft/" + p.Name }), isPlayer),
		route("validate", fasthttp.StatusNoContent, active, post("authserver/validate", token), noBody),
		refresh,
	}
}

// warmUp sends the requests of a route: it has the profiles signed, which takes 5 ms each, and the
// backends of PostgreSQL read what they need.
func (r *launcherRoute) warmUp(b *testing.B) {
	b.Helper()
	warm := *r.Stream
	n := len(warm.Requests)
	left := warmUps * n
	warm.Order = func() int {
		if left--; left < 0 {
			return -1
		}
		return left % n
	}
	if _, err := load.Run(b.Context(), r.address, 10*time.Minute, &warm); err != nil {
		b.Fatal(err)
	}
}

// once returns an order that draws each of n requests once.
func once(n int) func() int {
	next := -1
	return func() int {
		if next++; next >= n {
			return -1
		}
		return next
	}
}

// measure measures a route for a while.
func (s *launcherSite) measure(b *testing.B, r *launcherRoute) {
	b.Helper()
	before := s.core.CPU(b)
	result := send(b, r.target, launcherRound)
	r.cpu += s.core.CPU(b) - before
	r.total += result.Total()
	r.rates = append(r.rates, result.Rate(r.Statuses[0]))
}

// logIn measures one request that verifies a password.
func (s *launcherSite) logIn(b *testing.B, r *logInRoute) {
	b.Helper()
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.Header.SetMethod(fasthttp.MethodPost)
	request.Header.SetContentType("application/json")
	request.SetRequestURI("http://" + s.core.Address(b, "public") + r.path)
	request.SetBodyString(r.body)
	sent := time.Now()
	if err := fasthttp.Do(request, response); err != nil {
		b.Fatal(err)
	}
	r.took = append(r.took, float64(time.Since(sent).Microseconds()))
	if response.StatusCode() != fasthttp.StatusOK {
		b.Fatalf("%s: %d %s", r.path, response.StatusCode(), response.Body())
	}
}

// report prints the figures of both sites as a table, and checks the bounds.
func (s *launcherSite) report(b *testing.B, large *launcherSite, count int) {
	b.Helper()
	var table strings.Builder
	fmt.Fprintf(&table, "| route | %d players | core | ratio | %d players | core | ratio | large to small |\n", activePlayers, count)
	fmt.Fprintln(&table, "|---|--:|--:|--:|--:|--:|--:|--:|")
	atLeast := func(what string, got, bound float64) {
		if got < bound {
			b.Errorf("%s is %.3f; the bound is %.3f", what, got, bound)
		}
	}
	bounds := map[string]float64{"profile, signed": 1, "hasJoined": 0.8}
	for i, r := range s.routes {
		fmt.Fprintf(&table, "| %s |", r.name)
		for _, site := range []*launcherSite{s, large} {
			r := site.routes[i]
			fmt.Fprintf(&table, " %.0f/s | %.1f µs | %.2f |", median(r.rates), float64(r.cpu.Microseconds())/float64(r.total), ratioOf(r.rates, site.routes[0].rates))
		}
		atLeast(r.name+" to GET /api/user", ratioOf(r.rates, s.routes[0].rates), bounds[r.name])
		growth := ratioOf(large.routes[i].rates, r.rates)
		fmt.Fprintf(&table, " %.2f |\n", growth)
		atLeast(r.name+", large site to small", growth, 0.8)
	}
	for i, r := range s.logIns {
		fmt.Fprintf(&table, "| %s |", r.name)
		for _, site := range []*launcherSite{s, large} {
			// Two equal log-ins differ by the noise.
			logIn, again, r := site.logIns[0].took, site.logIns[len(site.logIns)-1].took, site.logIns[i]
			ratio, noise := ratioOf(logIn, r.took), ratioOf(logIn, again)
			fmt.Fprintf(&table, " %.1f ms | | %.3f |", median(r.took)/1000, ratio)
			atLeast(r.name+" to a log-in", ratio, min(noise, 1/noise)-logInNoise)
		}
		growth := ratioOf(r.took, large.logIns[i].took)
		fmt.Fprintf(&table, " %.2f |\n", growth)
		atLeast(r.name+", large site to small", growth, 0.8)
	}
	b.Logf("medians of %d rounds of %s, and of %d log-ins:\n%s", rounds, launcherRound, logInTries, table.String())
}

// logInNoise is what the ratio of two equal log-ins may differ from 1 by.
const logInNoise = 0.03

// ratioOf returns the median of the ratios of pairs.
func ratioOf(values, to []float64) float64 {
	ratios := make([]float64, len(values))
	for i := range values {
		ratios[i] = values[i] / to[i]
	}
	return median(ratios)
}
