package gobench_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
)

// insertLauncherPlayers gives each user a player with a skin of its own, which has joined the game
// server "bench" an hour from now: the join does not end during the benchmark.
const insertLauncherPlayers = `
	WITH skins AS (
		INSERT INTO textures (uploader, bytes, public, type, hash, pixels, name)
		SELECT uid, 2000, false, 'alex', sha256(uid::text::bytea), sha256(uid::text::bytea), 'Skin' FROM users
		RETURNING tid, uploader
	), added AS (
		INSERT INTO players (uid, name, name_key, tid_skin)
		SELECT uploader, 'Gamer_' || uploader, 'gamer_' || uploader, tid FROM skins
		RETURNING pid, uuid, name
	), joins AS (
		INSERT INTO game_joins (pid, server, address, joined_at)
		SELECT pid, sha256('bench'), '127.0.0.1', now() + interval '1 hour' FROM added
	)
	SELECT uuid, name FROM added`

// launcherPlayer is a player as game servers ask for it.
type launcherPlayer struct {
	UUID [16]byte
	Name string
}

// BenchmarkLaunchers measures what game servers ask for beside GET /api/user, alternately, with
// 2,000 players and with a million: signed profiles of which the signature is cached, and hasJoined.
// Then it measures authenticate beside log-ins. Core runs with the default limits, besides those of
// log-ins of one network.
func BenchmarkLaunchers(b *testing.B) {
	for _, players := range []int{userCount, 1_000_000} {
		b.Run(fmt.Sprintf("players=%d", players), func(b *testing.B) { benchmarkGameServers(b, players) })
	}
	b.Run("authenticate", benchmarkAuthenticate)
}

func benchmarkGameServers(b *testing.B, count int) {
	b.Helper()
	core := newLauncherCore(b)
	users := core.SignIn(b, userCount)
	conn := postgrestest.Conn(b, core.Setting("CORE_DATABASE_URL"))
	rows, _ := conn.Query(b.Context(), insertLauncherPlayers) // CollectRows reports the error
	players, err := pgx.CollectRows(rows, pgx.RowToStructByPos[launcherPlayer])
	if err != nil {
		b.Fatal(err)
	}
	if others := count - userCount; others > 0 {
		execute(b, conn, `INSERT INTO players (uid, name, name_key) SELECT `+fmt.Sprint(users[0].User)+`, 'Other_' || n, 'other_' || n FROM generate_series(1, `+fmt.Sprint(others)+`) n`)
	}
	execute(b, conn, "VACUUM ANALYZE players, textures, game_joins")
	core.Start(b)
	address := core.Address(b, "public")
	names := []string{"GET /api/user", "profile", "hasJoined"}
	targets := []target{
		userReads(address, users),
		gameReads(address, players, func(p launcherPlayer) string { return "profile/" + hex.EncodeToString(p.UUID[:]) + "?unsigned=false" }),
		gameReads(address, players, func(p launcherPlayer) string { return "hasJoined?serverId=bench&username=" + p.Name }),
	}
	// Each profile is signed once, which takes 5 ms.
	signed := targets[1]
	for deadline := time.Now().Add(5 * time.Minute); ; {
		before := core.CPU(b)
		result := send(b, signed, round)
		if perRead := (core.CPU(b) - before) / time.Duration(result.Total()); perRead < time.Millisecond/2 {
			break
		}
		if time.Now().After(deadline) {
			b.Fatal("profiles are still being signed after 5 minutes")
		}
	}
	for _, t := range targets {
		send(b, t, round)
	}

	b.ResetTimer()
	rates, cpu, total := make([][]float64, len(targets)), make([]time.Duration, len(targets)), make([]int64, len(targets))
	for range rounds {
		for i, t := range targets {
			before := core.CPU(b)
			result := send(b, t, round/2)
			cpu[i] += core.CPU(b) - before
			total[i] += result.Total()
			rates[i] = append(rates[i], result.Rate(fasthttp.StatusOK))
		}
	}
	for i, name := range names {
		b.Logf("%s: %.0f/s, %.1f µs of core's processor time, ratio to GET /api/user %.2f", name, median(rates[i]),
			float64(cpu[i].Microseconds())/float64(total[i]), ratioOf(rates[i], rates[0]))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(rates[0]), "reads/s")
	b.ReportMetric(ratioOf(rates[1], rates[0]), "profile-ratio")
	b.ReportMetric(ratioOf(rates[2], rates[0]), "hasJoined-ratio")
}

// benchmarkAuthenticate measures authenticate and log-ins of the same users, alternately.
func benchmarkAuthenticate(b *testing.B) {
	const tries = 60
	core := newLauncherCore(b)
	for _, limit := range []string{"", "_PER_ADDRESS", "_PER_ACCOUNT"} {
		core.Set("CORE_LIMIT_LOGIN_FAILURES"+limit, "1000000")
	}
	core.Set("CORE_YGGDRASIL_LOGIN_INTERVAL", "0s")
	core.Set("CORE_LIMIT_REQUESTS", "0")
	core.Start(b)
	client := &apiClient{api: "http://" + core.Address(b, "public")}
	client.call(b, "POST", "/api/auth/register", "application/x-www-form-urlencoded",
		[]byte("email=known@example.com&password=correct+horse&nickname=Known&player_name=Known"))
	requests := []struct{ path, body string }{
		{"/api/auth/login", `{"email":"known@example.com","password":"correct horse"}`},
		{"/api/yggdrasil/authserver/authenticate", `{"username":"known@example.com","password":"correct horse"}`},
	}
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.Header.SetMethod(fasthttp.MethodPost)
	request.Header.SetContentType("application/json")
	took := make([][]float64, len(requests))
	b.ResetTimer()
	for range tries {
		for i, r := range requests {
			request.SetRequestURI(client.api + r.path)
			request.SetBodyString(r.body)
			sent := time.Now()
			if err := fasthttp.Do(request, response); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], float64(time.Since(sent).Microseconds()))
			if response.StatusCode() != fasthttp.StatusOK {
				b.Fatalf("%s: %d %s", r.path, response.StatusCode(), response.Body())
			}
		}
	}
	b.Logf("medians of %d: log-in %.0f µs, authenticate %.0f µs", tries, median(took[0]), median(took[1]))
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(took[0]), "login-µs")
	b.ReportMetric(median(took[1]), "authenticate-µs")
	b.ReportMetric(ratioOf(took[1], took[0]), "ratio")
}

// newLauncherCore returns a core that serves launchers, and has not started.
func newLauncherCore(b *testing.B) *stack.Process {
	b.Helper()
	core := newCore(b)
	key := filepath.Join(b.TempDir(), "yggdrasil.pem")
	if err := os.WriteFile(key, []byte(core.Run(b, "keys", "yggdrasil")), 0o600); err != nil {
		b.Fatal(err)
	}
	core.Set("CORE_YGGDRASIL_KEY_FILE", key)
	core.Set("CORE_PUBLIC_URL", "http://127.0.0.1:1")
	return core
}

// gameReads requests each of the players at random, below the path of game servers, and checks the
// ids of the responses.
func gameReads(address string, players []launcherPlayer, path func(launcherPlayer) string) target {
	reads := &load.Stream{Connections: connections, Statuses: []int{fasthttp.StatusOK}, Order: load.Random(len(players), 0)}
	var wants [][]byte
	for _, p := range players {
		reads.Requests = append(reads.Requests, fmt.Appendf(nil, "GET /api/yggdrasil/sessionserver/session/minecraft/%s HTTP/1.1\r\nHost: %s\r\n\r\n", path(p), address))
		wants = append(wants, fmt.Appendf(nil, `{"id":"%x",`, p.UUID))
	}
	expectPrefix(reads, wants...)
	return target{address, reads}
}

// ratioOf returns the median of the ratios of pairs.
func ratioOf(values, to []float64) float64 {
	ratios := make([]float64, len(values))
	for i := range values {
		ratios[i] = values[i] / to[i]
	}
	return median(ratios)
}
