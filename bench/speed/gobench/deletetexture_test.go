package gobench_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
)

// playerCount is how many players have the deleted texture, each of another user with it in the
// closet and as avatar.
const playerCount = 1_000_000

const (
	insertFamous = `
	INSERT INTO textures (uploader, likes, bytes, public, type, hash, pixels, name) VALUES ($1, $2, 2000, true, 'steve', sha256('famous'), sha256('famous'), 'Famous')
	RETURNING tid`
	insertPlayers = `
	WITH owners AS (
		INSERT INTO users (email, email_key, nickname, password_hash, avatar)
		SELECT 'fan' || n, 'fan' || n, 'Fan', 'none', $1 FROM generate_series(1, $2) n RETURNING uid
	), worn AS (
		INSERT INTO players (uid, name, name_key, tid_skin) SELECT uid, 'Fan_' || uid, 'fan_' || uid, $1 FROM owners
	)
	INSERT INTO closet_items (uid, tid, cape, item_name) SELECT uid, $1, false, 'Famous' FROM owners`
)

// BenchmarkDeleteTexture measures DELETE /api/textures/{tid} of a texture that a million players
// have: how long the request takes with all its consequences, how long until all changes for edges
// are numbered, and how much memory core needs meanwhile.
func BenchmarkDeleteTexture(b *testing.B) {
	core := newCore(b)
	uploader := core.SignIn(b, 1)[0]
	conn := postgrestest.Conn(b, core.Setting("CORE_DATABASE_URL"))
	var tid int64
	if err := conn.QueryRow(b.Context(), insertFamous, int64(uploader.User), playerCount).Scan(&tid); err != nil {
		b.Fatal(err)
	}
	if _, err := conn.Exec(b.Context(), insertPlayers, tid, playerCount); err != nil {
		b.Fatal(err)
	}
	if _, err := conn.Exec(b.Context(), "VACUUM ANALYZE"); err != nil {
		b.Fatal(err)
	}
	core.Start(b)
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI(fmt.Sprintf("http://%s/api/textures/%d", core.Address(b, "public"), tid))
	request.Header.SetMethod(fasthttp.MethodDelete)
	request.Header.Set("Authorization", "Bearer "+uploader.Bearer)
	before := core.Resident(b)

	b.ResetTimer()
	began := time.Now()
	if err := fasthttp.Do(request, response); err != nil {
		b.Fatal(err)
	}
	took := time.Since(began)
	if response.StatusCode() != fasthttp.StatusOK {
		b.Fatalf("delete: %d %s", response.StatusCode(), response.Body())
	}
	var changes, keys, left int
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for pending := true; pending; <-tick.C {
		if err := conn.QueryRow(b.Context(), "SELECT EXISTS (SELECT FROM changes WHERE revision IS NULL)").Scan(&pending); err != nil {
			b.Fatal(err)
		}
	}
	numbered := time.Since(began)
	if err := conn.QueryRow(b.Context(), `
		SELECT count(*), sum(cardinality(keys)), (SELECT count(*) FROM players WHERE tid_skin IS NOT NULL) + (SELECT count(*) FROM closet_items) FROM changes`,
	).Scan(&changes, &keys, &left); err != nil {
		b.Fatal(err)
	}
	if want := 4*playerCount + 2; keys != want || left != 0 {
		b.Errorf("%d keys changed, and %d players and closets still have the texture; want %d and none", keys, left, want)
	}
	_, most := core.Memory(b)
	b.Logf("%d players: deleted within %v, %d changes of %d keys numbered within %v; core grew from %d to at most %d MiB",
		playerCount, took, changes, keys, numbered, before>>20, most>>20)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took.Seconds(), "s-to-delete")
	b.ReportMetric(numbered.Seconds(), "s-to-number")
	b.ReportMetric(float64((most-before)>>20), "core-MiB-more")
}
