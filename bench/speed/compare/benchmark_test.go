package compare

// Go benchmarks measure what takes too long, or too much of the machine, for a scenario.

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/blobstore"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// newCore returns a core that has not started, with some settings. Its connections to the database have
// an application_name.
func newCore(b *testing.B, settings ...string) *stack.Process {
	b.Helper()
	core := site.NewCore(b, blobstore.Config{URL: "file://" + b.TempDir()})
	core.NameConnections()
	core.Set(settings...)
	return core
}

// newEdge starts an edge with some settings behind a stand-in for core, and a directory of textures.
func newEdge(b *testing.B, store func(files *blobstore.Store) map[edgeproto.Key]edgeproto.Mapping, settings ...string) *stack.Process {
	b.Helper()
	files := blobstore.Config{URL: "file://" + b.TempDir(), Timeout: 5 * time.Second}
	textures := testenv.Must(blobstore.New(files))(b)
	testenv.Do(b, textures.Init(b.Context()))
	core := origintest.Start(b)
	core.Set(store(textures))
	edge := site.NewEdgeAt(b, files, core.URL, origintest.Secret)
	edge.Set(settings...)
	edge.StartReady(b)
	return edge
}

func texture(tid int, hash skin.Hash) edgeproto.Mapping {
	return edgeproto.Mapping{Texture: &edgeproto.Texture{TID: int64(tid), Hash: hash, Type: skin.Classic}}
}

func newClient(b *testing.B, core *stack.Process, token string) *site.Client {
	b.Helper()
	return &site.Client{Base: core.BaseURL(b, "public"), Token: token}
}

// timed returns how long a request takes, which must succeed.
func timed(b *testing.B, c *site.Client, method, path, contentType string, body []byte) time.Duration {
	b.Helper()
	began := time.Now()
	status, content, err := c.Try(b.Context(), method, path, contentType, body)
	if err != nil || status != http.StatusOK {
		b.Fatalf("%s %s: %d %s, %v", method, path, status, content, err)
	}
	return time.Since(began)
}

// register registers a user with the password "correct horse" and a player.
func register(b *testing.B, c *site.Client, email, player string) {
	b.Helper()
	c.Token = c.Call(b, "POST", "/api/auth/register", map[string]string{"email": email, "password": "correct horse", "nickname": "Known", "player_name": player}).Data.Token
}

func reportPercentiles(b *testing.B, name string, durations []time.Duration) {
	b.Helper()
	slices.Sort(durations)
	for _, percent := range []int{50, 99} {
		b.ReportMetric(milliseconds(durations[(len(durations)-1)*percent/100]), fmt.Sprintf("%sp%d-ms", name, percent))
	}
}

// BenchmarkBroadcast sends a million users one notification a day for a year. It measures how long
// sending takes, core's peak memory, and how long lists of unread notifications take for users with
// one unread notification. Then all users read one, which is trimmed. With -short there are a
// hundred times fewer users, which says little.
func BenchmarkBroadcast(b *testing.B) {
	total, days, readers := 1_000_000, 365, 500
	if testing.Short() {
		total /= 100
	}
	core := newCore(b, "CORE_LIMIT_REQUESTS=0")
	users := site.SignIn(b, core, readers)
	conn := postgrestest.Conn(b, core.Setting("CORE_DATABASE_URL"))
	execute(b, conn, `
		INSERT INTO users (email, email_key, nickname, password_hash)
		SELECT 'user' || n || '@example.com', 'user' || n || '@example.com', 'User ' || n, 'none' FROM generate_series(1, $1::int) n`, total-readers)
	execute(b, conn, "UPDATE users SET permission = 2 WHERE uid = $1", users[0].User)
	execute(b, conn, "VACUUM ANALYZE users")
	core.StartReady(b)
	lists := func() (durations []time.Duration) {
		for range 4 {
			for _, user := range users {
				durations = append(durations, timed(b, newClient(b, core, user.Bearer), "GET", "/api/user/notifications", "", nil))
			}
		}
		return durations
	}

	empty := lists()
	b.ResetTimer()
	var sending []time.Duration
	for day := range days {
		form := fmt.Appendf(nil, "to=%s&title=Day+%d&content=News", []string{"all", "normal"}[day%2], day)
		sending = append(sending, timed(b, newClient(b, core, users[0].Bearer), "POST", "/api/admin/notifications", urlEncoded, form))
	}
	execute(b, conn, "INSERT INTO broadcast_reads (uid, mid) SELECT uid, mid FROM users, broadcasts WHERE uid <= $1 AND mid < (SELECT max(mid) FROM broadcasts)", users[readers-1].User)
	execute(b, conn, "VACUUM ANALYZE broadcasts, broadcast_reads, messages")
	full := lists()
	_, most := core.Memory(b)

	execute(b, conn, "INSERT INTO broadcast_reads (uid, mid) SELECT uid, min(mid) FROM users, broadcasts GROUP BY uid ON CONFLICT DO NOTHING")
	execute(b, conn, "UPDATE messages SET sent_at = 'epoch' WHERE mid = (SELECT min(mid) FROM messages)")
	began := time.Now()
	trimmed, err := postgrestest.Connect(b, core.Setting("CORE_DATABASE_URL")).TrimNotifications(b.Context(), began.Add(-time.Hour))
	if err != nil || trimmed != 1 {
		b.Fatalf("%d messages were trimmed, %v; want 1", trimmed, err)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(milliseconds(time.Since(began)), "trim-ms")
	reportPercentiles(b, "send-", sending)
	reportPercentiles(b, "list-none-", empty)
	reportPercentiles(b, "list-year-", full)
	b.ReportMetric(float64(most>>20), "core-MiB")
}

// playerCount is how many players have the deleted texture, each of another user with it in the
// closet and as avatar.
const playerCount = 1_000_000

const (
	insertFamous = `
	INSERT INTO textures (uploader, likes, bytes, public, type, hash, pixels, name) VALUES ($1, $2, 2000, true, 'steve', sha256('famous'), sha256('famous'), 'Famous')
	RETURNING tid`
	insertFans = `
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
	uploader := site.SignIn(b, core, 1)[0]
	conn := postgrestest.Conn(b, core.Setting("CORE_DATABASE_URL"))
	var tid int64
	testenv.Do(b, conn.QueryRow(b.Context(), insertFamous, int64(uploader.User), playerCount).Scan(&tid))
	execute(b, conn, insertFans, tid, playerCount)
	execute(b, conn, "VACUUM ANALYZE")
	core.Start(b)
	before := core.Resident(b)

	b.ResetTimer()
	began := time.Now()
	took := timed(b, newClient(b, core, uploader.Bearer), "DELETE", fmt.Sprint("/api/textures/", tid), "", nil)
	var changes, keys, left int
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for pending := true; pending; <-tick.C {
		testenv.Do(b, conn.QueryRow(b.Context(), "SELECT EXISTS (SELECT FROM changes WHERE revision IS NULL)").Scan(&pending))
	}
	numbered := time.Since(began)
	testenv.Do(b, conn.QueryRow(b.Context(), `
		SELECT count(*), sum(cardinality(keys)), (SELECT count(*) FROM players WHERE tid_skin IS NOT NULL) + (SELECT count(*) FROM closet_items) FROM changes`,
	).Scan(&changes, &keys, &left))
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

// BenchmarkPurge measures how long after its response to a change of skin core posts the purge of
// the player, with two edges that must acknowledge the change first.
func BenchmarkPurge(b *testing.B) {
	posted := make(chan time.Time, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		testenv.Is(b, err, nil, "the body of a purge")
		if bytes.Contains(body, []byte(`"player-1"`)) {
			posted <- time.Now()
		}
	}))
	defer hook.Close()
	core := newCore(b, "CORE_PURGE_URL="+hook.URL, "CORE_PURGE_SECRET="+strings.Repeat("s", 32))
	core.Start(b)
	for range 2 {
		edge := site.NewEdge(b, blobstore.Config{URL: core.Setting("CORE_OBJECTS_URL")}, core)
		edge.StartReady(b)
	}
	ann := newClient(b, core, "")
	register(b, ann, "ann@example.com", "Ann")
	<-posted
	skins := [2][]byte{}
	for i, sheet := range []skin.Sheet{skintest.Marker(64, 64), skintest.Noise(1, 64, 64)} {
		skins[i] = fmt.Append(nil, "skin=", ann.Upload(b, "bench", skin.Classic, sheet).TID)
	}

	delays := make([]time.Duration, 0, b.N)
	for i := range b.N {
		timed(b, ann, "PUT", "/api/players/1/textures", urlEncoded, skins[i%2])
		answered := time.Now()
		delays = append(delays, (<-posted).Sub(answered))
	}
	reportPercentiles(b, "", delays)
}

// BenchmarkSweep measures a sweep of 100,000 files: of a directory and of a bucket,
// first with a texture for each of them, and then after every tenth texture was
// deleted. With -short there are a hundred times fewer.
func BenchmarkSweep(b *testing.B) {
	b.Run("directory", func(b *testing.B) { benchmarkSweep(b, blobstoretest.Directory(b)) })
	b.Run("bucket", func(b *testing.B) { benchmarkSweep(b, blobstoretest.Bucket(b)) })
}

func benchmarkSweep(b *testing.B, backend blobstoretest.Backend) {
	b.Helper()
	n := 100_000
	if testing.Short() {
		n /= 100
	}
	files := blobstoretest.Open(b, backend.Config)
	testenv.Do(b, files.Init(b.Context()))
	hashes := putFiles(b, files, n)
	address := postgrestest.URL(b)
	db, conn := postgrestest.Connect(b, address), postgrestest.Conn(b, address)
	columns := strings.Fields("bytes public type hash pixels name")
	rows := pgx.CopyFromSlice(n, func(i int) ([]any, error) {
		return []any{1, true, "steve", hashes[i][:], hashes[i][:], "N"}, nil
	})
	testenv.Must(conn.CopyFrom(b.Context(), pgx.Identifier{"textures"}, columns, rows))(b)
	execute(b, conn, "VACUUM ANALYZE textures")
	sweep := func() (core.SweepReport, float64) {
		b.Helper()
		sweep := core.NewSweep(db, files, core.SweepOptions{
			Before:    time.Now().Add(time.Hour),
			OnMissing: func(tid core.TextureID, _ skin.Hash) { b.Errorf("texture %d has no file", tid) },
		})
		began := time.Now()
		testenv.Do(b, sweep.Run(b.Context()))
		return sweep.Report(), time.Since(began).Seconds()
	}

	b.ResetTimer()
	all, took := sweep()
	testenv.Check(b, all.Files == n && all.Orphans == 0, "of %d files with textures: %+v", n, all)
	b.ReportMetric(float64(all.Files)/took, "files/s")
	execute(b, conn, "DELETE FROM textures WHERE tid % 10 = 0")
	rest, took := sweep()
	testenv.Check(b, rest.Files == n && rest.Removed == n/10, "of %d files, a tenth of them orphans: %+v", n, rest)
	b.ReportMetric(float64(rest.Removed)/took, "removals/s")
	b.ReportMetric(0, "ns/op")
}

// putFiles stores n files of 2 KiB, the size of an ordinary skin, and returns their hashes.
func putFiles(b *testing.B, files *blobstore.Store, n int) []skin.Hash {
	b.Helper()
	hashes := make([]skin.Hash, n)
	testenv.Do(b, parallel(n, 32, func(i int) error {
		file := bytes.Repeat([]byte("texture "), 256)
		binary.LittleEndian.PutUint64(file, uint64(i))
		hashes[i] = skin.HashOf(file)
		return files.Put(b.Context(), hashes[i], file)
	}))
	return hashes
}
