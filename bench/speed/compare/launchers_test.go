package compare

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/testenv"
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
	launcherRounds     = 11
	logInTries         = 50
)

// makeGamers makes users with ten players each, and for each player a skin of its own, a
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
	*load.Stream
	rates []float64
	cpu   time.Duration // core's
	total int64
}

// launcherSite is a core with players.
type launcherSite struct {
	*env
	core   *stack.Process
	target *target
	client *site.Client
	routes []*launcherRoute
	logIns []*logInRoute
}

// logInRoute is a request that verifies a password, and how many milliseconds each took.
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
	count := testenv.Must(strconv.Atoi(cmp.Or(os.Getenv("LAUNCHER_PLAYERS"), "1000000")))(b)
	small, large := newLauncherSite(b, activePlayers), newLauncherSite(b, count)
	sites := []*launcherSite{small, large}
	b.ResetTimer()
	small.alternate("routes", launcherRounds, len(small.routes)*len(sites), func(i, _ int) {
		s := sites[i%len(sites)]
		s.measure(b, s.routes[i/len(sites)])
	})
	small.alternate("log-ins", logInTries, len(small.logIns)*len(sites), func(i, _ int) {
		s := sites[i%len(sites)]
		r := s.logIns[i/len(sites)]
		r.took = append(r.took, milliseconds(timed(b, s.client, "POST", r.path, "application/json", []byte(r.body))))
	})
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(results.Summarize(small.routes[0].rates).Median, "reads/s")
	small.report(b, large, count)
}

func newLauncherSite(b *testing.B, players int) *launcherSite {
	b.Helper()
	core := newCore(b, "CORE_PUBLIC_URL=http://127.0.0.1:1", "CORE_YGGDRASIL_LOGIN_INTERVAL=0s", "CORE_LIMIT_REQUESTS=0",
		"CORE_LIMIT_LOGIN_FAILURES=1000000", "CORE_LIMIT_LOGIN_FAILURES_PER_ADDRESS=1000000",
		"CORE_LIMIT_LOGIN_FAILURES_PER_ACCOUNT=1000000")
	key := filepath.Join(b.TempDir(), "yggdrasil.pem")
	testenv.Do(b, os.WriteFile(key, []byte(core.Run(b, "keys", "yggdrasil")), 0o600))
	core.Set("CORE_YGGDRASIL_KEY_FILE=" + key)
	database := core.Setting("CORE_DATABASE_URL")
	conn := postgrestest.Conn(b, database)
	for _, sql := range append([]string{fmt.Sprintf(makeGamers[0], players)}, makeGamers[1:]...) {
		execute(b, conn, sql)
	}
	users := site.SignIn(b, core, userCount)
	execute(b, conn, insertRefreshes, activePlayers, refreshesPerPlayer)
	execute(b, conn, "VACUUM ANALYZE users, players, textures, launcher_tokens, game_joins")
	gamers := site.Rows(b, conn, pgx.RowToStructByPos[launcherPlayer], selectGamers, activePlayers)
	core.Set("CORE_DATABASE_URL=" + database + "&pool_max_conn_lifetime=1h") // a backend is warm as long as it lives
	core.Start(b)
	s := &launcherSite{env: &env{Options: Options{TB: b, Out: io.Discard}}, core: core, client: newClient(b, core, "")}
	s.target = &target{name: "core", address: core.Address(b, "public"), anyCPU: true}
	s.routes = s.launcherRoutes(users, gamers)
	for _, r := range s.routes[:len(s.routes)-1] { // a refresh works once
		s.warmUp(r)
	}
	register(b, newClient(b, core, ""), "known@example.com", "Known")
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
func (s *launcherSite) launcherRoutes(users []site.SignedInUser, active []launcherPlayer) []*launcherRoute {
	const api, session = "/api/yggdrasil/", "sessionserver/session/minecraft/"
	id := func(p launcherPlayer) string { return hex.EncodeToString(p.UUID[:]) }
	isPlayer := func(p launcherPlayer) string { return `{"id":"` + id(p) + `",` }
	noBody := func(launcherPlayer) string { return "" }
	gets := func(path func(launcherPlayer) string) func(launcherPlayer) []byte {
		return func(p launcherPlayer) []byte { return load.Get(api + path(p)) }
	}
	posts := func(path string, body func(launcherPlayer) string) func(launcherPlayer) []byte {
		return func(p launcherPlayer) []byte { return post("POST", api+path, "application/json", "", []byte(body(p))) }
	}
	route := func(name string, status int, players []launcherPlayer, request func(launcherPlayer) []byte, want func(launcherPlayer) string) *launcherRoute {
		stream, wants := streamOf(connections, status), make([]string, len(players))
		for i, p := range players {
			stream.Requests, wants[i] = append(stream.Requests, request(p)), want(p)
		}
		stream.Order, stream.InspectShare, stream.Inspect = load.Random(len(players), 0), 1, beginWith(wants)
		return &launcherRoute{name: name, Stream: stream}
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
	refresh := route("refresh", fasthttp.StatusOK, refreshes, posts("authserver/refresh", func(p launcherPlayer) string { return p.Name }),
		func(launcherPlayer) string { return `{"accessToken":"` })
	refresh.Order = load.Once(len(refreshes))
	reads := s.userReads(users, 0)
	reads.InspectShare = 1 // as of the others
	var lists []launcherPlayer
	for i := 0; i+bulkNames <= len(active); i += bulkNames {
		var names []string
		for _, p := range active[i : i+bulkNames] {
			names = append(names, `"`+p.Name+`"`)
		}
		lists = append(lists, launcherPlayer{Name: "[" + strings.Join(names, ",") + "]"})
	}
	return []*launcherRoute{
		{name: "GET /api/user", Stream: reads},
		route("profile, signed", fasthttp.StatusOK, active, gets(func(p launcherPlayer) string { return session + "profile/" + id(p) + "?unsigned=false" }), isPlayer),
		route("profile, unsigned", fasthttp.StatusOK, active, gets(func(p launcherPlayer) string { return session + "profile/" + id(p) }), isPlayer),
		route("hasJoined", fasthttp.StatusOK, active, gets(func(p launcherPlayer) string { return session + "hasJoined?serverId=bench&username=" + p.Name }), isPlayer),
		route("join", fasthttp.StatusNoContent, active, posts(session+"join", join), noBody),
		route("100 names", fasthttp.StatusOK, lists, posts("api/profiles/minecraft", func(p launcherPlayer) string { return p.Name }), func(launcherPlayer) string { return `[{"id":"` }),
		route("one name", fasthttp.StatusOK, active, gets(func(p launcherPlayer) string { return "api/users/profiles/minecraft/" + p.Name }), isPlayer),
		route("validate", fasthttp.StatusNoContent, active, posts("authserver/validate", token), noBody),
		refresh,
	}
}

// warmUp sends the requests of a route: it has the profiles signed, which takes 5 ms each, and the
// backends of PostgreSQL read what they need.
func (s *launcherSite) warmUp(r *launcherRoute) {
	warm := *r.Stream
	warm.Order = load.Repeat(len(warm.Requests), warmUps)
	s.send(s.target, 10*time.Minute, &warm)
}

func (s *launcherSite) measure(b *testing.B, r *launcherRoute) {
	b.Helper()
	before := s.core.CPU(b)
	result := s.send(s.target, launcherRound, r.Stream)[0]
	r.cpu += s.core.CPU(b) - before
	r.total += result.Total()
	r.rates = append(r.rates, result.Rate(r.Statuses[0]))
}

// report prints the figures of both sites as a table, and checks the bounds.
func (s *launcherSite) report(b *testing.B, large *launcherSite, count int) {
	b.Helper()
	var table strings.Builder
	fmt.Fprintf(&table, "| route | %d players | core | ratio | %d players | core | ratio | large to small |\n", activePlayers, count)
	fmt.Fprintln(&table, "|---|--:|--:|--:|--:|--:|--:|--:|")
	atLeast := func(what string, got, bound float64) {
		testenv.Check(b, got >= bound, "%s is %.3f; the bound is %.3f", what, got, bound)
	}
	bounds := map[string]float64{"profile, signed": 1, "hasJoined": 0.7}
	for i, r := range s.routes {
		fmt.Fprintf(&table, "| %s |", r.name)
		for _, site := range []*launcherSite{s, large} {
			r := site.routes[i]
			fmt.Fprintf(&table, " %.0f/s | %.1f µs | %.2f |", results.Summarize(r.rates).Median, float64(r.cpu.Microseconds())/float64(r.total), ratioOf(r.rates, site.routes[0].rates))
		}
		atLeast(r.name+" to GET /api/user", ratioOf(r.rates, s.routes[0].rates), bounds[r.name])
		growth := ratioOf(large.routes[i].rates, r.rates)
		fmt.Fprintf(&table, " %.2f |\n", growth)
		atLeast(r.name+", large site to small", growth, 0.8)
	}
	for i, r := range s.logIns {
		fmt.Fprintf(&table, "| %s |", r.name)
		for _, site := range []*launcherSite{s, large} {
			// Two equal log-ins differ by the noise, and their ratio may differ from 1 by this.
			const logInNoise = 0.03
			logIn, again, r := site.logIns[0].took, site.logIns[len(site.logIns)-1].took, site.logIns[i]
			ratio, noise := ratioOf(logIn, r.took), ratioOf(logIn, again)
			fmt.Fprintf(&table, " %.1f ms | | %.3f |", results.Summarize(r.took).Median, ratio)
			atLeast(r.name+" to a log-in", ratio, min(noise, 1/noise)-logInNoise)
		}
		growth := ratioOf(r.took, large.logIns[i].took)
		fmt.Fprintf(&table, " %.2f |\n", growth)
		atLeast(r.name+", large site to small", growth, 0.8)
	}
	b.Logf("medians of %d rounds of %s, and of %d log-ins:\n%s", launcherRounds, launcherRound, logInTries, table.String())
}

// ratioOf returns the median of the ratios of pairs.
func ratioOf(values, to []float64) float64 {
	pairs := results.Scenario{MoreIsBetter: true, Subjects: []results.Subject{{Rounds: values}, {Rounds: to}}}
	return pairs.Ratio(&pairs.Subjects[1]).Median
}
