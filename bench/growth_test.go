package bench_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/load"
	"github.com/veneer-skins/veneer/bench/system"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/mapping"
)

const (
	growthPeople   = 1000 // users who are signed in, and change what their players wear
	growthEach     = 10   // textures and players for every other user
	growthRate     = 200  // changes a second
	growthDuration = 10 * time.Second
	growthBatch    = 64 // keys of a large question
)

// BenchmarkGrowth measures what becomes slower as a site grows, with so many textures and
// as many players in PostgreSQL as TEST_GROWTH says, separated by commas: look-ups of
// edges, lists, and how long it takes until an edge hears of a change; and how large
// everything is. The rows are copied in, with the indexes made afterwards.
func BenchmarkGrowth(b *testing.B) {
	sizes := "10000,1000000"
	if wanted := os.Getenv("TEST_GROWTH"); wanted != "" {
		sizes = wanted
	}
	for text := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < growthPeople {
			b.Fatalf("TEST_GROWTH is %q, but must be numbers of at least %d, separated by commas", sizes, growthPeople)
		}
		b.Run(text, func(b *testing.B) { measureGrown(b, n) })
	}
}

func measureGrown(b *testing.B, n int) {
	b.Helper()
	core := newCore(b)
	core.Set("CORE_LIMIT_REQUESTS", "0")
	people := core.SignIn(b, growthPeople)
	conn := postgrestest.Conn(b, core.Setting("CORE_DATABASE_URL"))
	began := time.Now()
	g := grow(b, conn, n, people)
	b.Logf("%d textures and players are there after %v", n, time.Since(began).Round(time.Second))
	g.tell(b)

	core.Start(b)
	address := core.Address(b, "public")
	began = time.Now()
	library{address, "", ""}.page(b, "")
	resident := core.Resident(b)
	b.Logf("lists are there %.1f s after the start; core has %d MiB", time.Since(began).Seconds(), resident>>20)

	b.ResetTimer()
	single, batches := g.lookUp(b, core, 1, 500), g.lookUp(b, core, growthBatch, 0)
	b.Logf("look-ups of a name, 500 a second: p50 %v, p99 %v", single.Percentile(200, 50), single.Percentile(200, 99))
	b.Logf("look-ups of %d names, one after the other: %.0f names a second, p99 %v", growthBatch, growthBatch*batches.Rate(200), batches.Percentile(200, 99))
	worst := time.Duration(0)
	for _, query := range []string{
		"sort=newest", "sort=likes", "sort=newest&page=1000", "sort=likes&page=1000", "sort=newest&q=dragon", "sort=likes&q=dragon",
		"sort=newest&q=steve", "sort=likes&q=steve&page=1000",
	} {
		list := library{address, "", ""}.look(b, core, query+"&perPage=100")
		b.Logf("%s: p50 %v, p99 %v", list.what, list.p50, list.p99)
		worst = max(worst, list.p99)
	}
	lags := g.lag(b, core, people)
	b.Logf("%d changes at %d a second: heard of since core's answer p50 %v, p99 %v", len(lags), growthRate, quantile(lags, 0.5), quantile(lags, 0.99))

	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(single.Percentile(200, 99).Microseconds()), "lookup-p99-µs")
	b.ReportMetric(growthBatch*batches.Rate(200), "names/s")
	b.ReportMetric(float64(worst.Microseconds()), "worst-list-p99-µs")
	b.ReportMetric(float64(quantile(lags, 0.99).Microseconds()), "lag-p99-µs")
	b.ReportMetric(float64(resident>>20), "core-MiB")
}

// grown is a database with many textures and players.
type grown struct {
	conn     *pgx.Conn
	players  int
	textures []int64 // those that everybody may wear, a few
	own      []int64 // the players of those who are signed in, in their order
}

// grow fills a database. A tenth as many users as textures have one player in ten each;
// half of all names of textures have steve in them, a fortieth dragon.
func grow(b *testing.B, conn *pgx.Conn, n int, people []system.Person) grown {
	b.Helper()
	exec := func(sql string) {
		b.Helper()
		if _, err := conn.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	number := func(sql string, args ...any) (n int64) {
		b.Helper()
		if err := conn.QueryRow(b.Context(), sql, args...).Scan(&n); err != nil {
			b.Fatal(err)
		}
		return n
	}
	copyIn := func(table string, n int, columns []string, row func(i int) []any) {
		b.Helper()
		rows := pgx.CopyFromSlice(n, func(i int) ([]any, error) { return row(i), nil })
		restore := dropIndexes(b, conn, table)
		if _, err := conn.CopyFrom(b.Context(), pgx.Identifier{table}, columns, rows); err != nil {
			b.Fatal(err)
		}
		restore()
	}

	users := n / growthEach
	copyIn("users", users, []string{"email", "email_key", "nickname", "password_hash"}, func(i int) []any {
		email := fmt.Sprintf("user%d@example.org", i)
		return []any{email, email, "User", "none"}
	})
	lastUser := number("SELECT max(uid) FROM users")
	user := func(i int) int64 { return lastUser - int64(i%users) }

	exec("ALTER TABLE textures DISABLE TRIGGER note_change") // core is not there yet
	random := rand.New(rand.NewPCG(uint64(n), 5))
	copyIn("textures", n, []string{"uploader", "likes", "bytes", "public", "type", "hash", "pixels", "name"}, func(i int) []any {
		var seed [8]byte
		binary.LittleEndian.PutUint64(seed[:], uint64(i))
		hash := sha256.Sum256(seed[:])
		kind := [...]string{"steve", "steve", "alex", "alex", "cape"}[i%5]
		return []any{user(i), int64(1 / (0.0005 + random.Float64())), 2000, i%20 != 13, kind, hash[:], hash[:], textureName(random, i)}
	})
	exec("ALTER TABLE textures ENABLE TRIGGER note_change")
	lastTexture := number("SELECT max(tid) FROM textures")

	g := grown{conn: conn, players: n}
	for i := range int64(4) {
		g.textures = append(g.textures, number("SELECT tid FROM textures WHERE public AND type = 'steve' AND tid > $1 ORDER BY tid LIMIT 1", lastTexture-1000+100*i))
	}
	copyIn("players", n, []string{"uid", "name", "name_key", "tid_skin"}, func(i int) []any {
		name, uid := fmt.Sprint("p", i), user(i)
		if i < len(people) {
			uid = int64(people[i].User)
		}
		return []any{uid, name, name, lastTexture - random.Int64N(int64(n))}
	})
	rows, _ := conn.Query(b.Context(), "SELECT pid FROM players ORDER BY pid LIMIT $1", len(people)) // CollectRows reports the error
	own, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		b.Fatal(err)
	}
	g.own = own
	exec("VACUUM ANALYZE")
	return g
}

func textureName(random *rand.Rand, i int) string {
	first := [...]string{"Red", "Blue", "Dark", "Golden", "Pixel", "Happy", "Sad", "Tiny", "Giant", "Old"}
	second := [...]string{
		"Fox", "Knight", "Wizard", "Cat", "Dog", "Girl", "Boy", "Robot", "Ninja", "King", "Queen", "Panda", "Miner", "Zombie", "Bear", "Owl", "Wolf",
		"Slime", "Witch", "Dragon",
	}
	name := "Steve"
	if random.IntN(2) == 0 {
		name = second[random.IntN(len(second))]
	}
	return fmt.Sprintf("%s %s %x", first[random.IntN(len(first))], name, uint32(i)*2654435761)
}

// dropIndexes drops the indexes of a table that belong to no constraint, and returns how
// to make them again.
func dropIndexes(b *testing.B, conn *pgx.Conn, table string) (restore func()) {
	b.Helper()
	rows, _ := conn.Query(b.Context(), `
		SELECT c.relname AS name, pg_get_indexdef(i.indexrelid) AS definition FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		WHERE i.indrelid = $1::text::regclass AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid)`, table) // CollectRows reports the error
	type index struct{ Name, Definition string }
	indexes, err := pgx.CollectRows(rows, pgx.RowToStructByName[index])
	if err != nil {
		b.Fatal(err)
	}
	exec := func(sql string) {
		if _, err := conn.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	for _, i := range indexes {
		exec("DROP INDEX " + pgx.Identifier{i.Name}.Sanitize())
	}
	return func() {
		for _, i := range indexes {
			exec(i.Definition)
		}
	}
}

// tell tells how large the tables and their indexes are.
func (g grown) tell(b *testing.B) {
	b.Helper()
	rows, _ := g.conn.Query(b.Context(), `
		SELECT c.relname AS name, pg_table_size(c.oid) AS rows, pg_indexes_size(c.oid) AS indexes
		FROM pg_class c WHERE c.oid = ANY (ARRAY['users', 'textures', 'players']::regclass[]) ORDER BY 1`) // CollectRows reports the error
	type size struct {
		Name          string
		Rows, Indexes int64
	}
	sizes, err := pgx.CollectRows(rows, pgx.RowToStructByName[size])
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range sizes {
		b.Logf("%s: %.1f MiB, and %.1f MiB of indexes", s.Name, float64(s.Rows)/(1<<20), float64(s.Indexes)/(1<<20))
	}
}

// lookUp asks core as edges do, for so many names at once: at a rate a second over 16
// connections, or over one as fast as it answers if the rate is 0.
func (g grown) lookUp(b *testing.B, core *system.Process, names int, rate float64) load.Answers {
	b.Helper()
	random := rand.New(rand.NewPCG(uint64(names), 7))
	var requests [][]byte
	for range 2000 {
		question := mapping.Question{}
		for range names {
			question.Keys = append(question.Keys, mapping.Name(fmt.Sprint("p", random.IntN(g.players))))
		}
		body, err := json.Marshal(question)
		if err != nil {
			b.Fatal(err)
		}
		requests = append(requests, fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
			mapping.LookupPath, core.Setting("CORE_EDGE_SECRETS"), len(body), body))
	}
	stream := &load.Stream{Connections: 16, Rate: rate, Requests: requests}
	if rate == 0 {
		stream.Connections = 1
	}
	all, err := load.Run(b.Context(), core.Address(b, "edges"), growthDuration, stream)
	if err != nil {
		b.Fatal(err)
	}
	if ok := all[0].Latencies[fasthttp.StatusOK]; ok == nil || ok.TotalCount() != all[0].Total() {
		b.Fatalf("of %d answers not all are 200", all[0].Total())
	}
	return all[0]
}

// lag changes what players wear at a constant rate, and returns how long after core's
// answer each change was on the stream that an edge would follow, in their order.
func (g grown) lag(b *testing.B, core *system.Process, people []system.Person) []time.Duration {
	b.Helper()
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	heard := g.follow(ctx, b, core)
	client := &fasthttp.HostClient{Addr: core.Address(b, "public"), MaxConns: 256}
	var all sync.WaitGroup
	var mu sync.Mutex
	var lags []time.Duration
	clock := time.NewTicker(time.Second / growthRate)
	defer clock.Stop()
	for n := range int(growthRate * growthDuration / time.Second) {
		<-clock.C
		all.Go(func() {
			// Each player changes once or twice, seconds apart.
			who := n % len(people)
			request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
			defer fasthttp.ReleaseRequest(request)
			defer fasthttp.ReleaseResponse(response)
			request.SetRequestURI(fmt.Sprintf("http://%s/api/players/%d/textures", client.Addr, g.own[who]))
			request.Header.SetMethod(fasthttp.MethodPut)
			request.Header.SetContentType("application/x-www-form-urlencoded")
			request.Header.Set(fasthttp.HeaderAuthorization, "Bearer "+people[who].Bearer)
			request.SetBodyString(fmt.Sprintf("skin=%d", g.textures[(n/len(people)+n)%len(g.textures)]))
			if err := client.Do(request, response); err != nil || response.StatusCode() != fasthttp.StatusOK {
				b.Errorf("change %d: %d %s, %v", n, response.StatusCode(), response.Body(), err)
				return
			}
			answered := time.Now()
			key := mapping.PID(g.own[who])
			select {
			case at := <-heard.of(key):
				mu.Lock()
				defer mu.Unlock()
				lags = append(lags, max(0, at.Sub(answered)))
			case <-time.After(10 * time.Second):
				b.Errorf("change %d is not on the stream", n)
			}
		})
	}
	all.Wait()
	slices.Sort(lags)
	return lags
}

// hearing is when keys were named on a stream, each time.
type hearing struct {
	mu   sync.Mutex
	keys map[mapping.Key]chan time.Time
}

func (h *hearing) of(key mapping.Key) chan time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keys[key] == nil {
		h.keys[key] = make(chan time.Time, 16)
	}
	return h.keys[key]
}

// follow follows the stream of changes, from now on until ctx ends.
func (g grown) follow(ctx context.Context, b *testing.B, core *system.Process) *hearing {
	b.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+core.Address(b, "edges")+mapping.ChangesPath, http.NoBody)
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+core.Setting("CORE_EDGE_SECRETS"))
	response, err := http.DefaultClient.Do(request) //nolint:bodyclose // by whoever reads it
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("follow the stream of changes: %v, %v", response, err)
	}
	h := &hearing{keys: map[mapping.Key]chan time.Time{}}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	if !lines.Scan() {
		b.Fatalf("the stream of changes ends: %v", lines.Err())
	}
	go func() {
		defer func() { _ = response.Body.Close() }()
		for lines.Scan() {
			var event mapping.Event
			if json.Unmarshal(lines.Bytes(), &event) != nil {
				return // what is not heard is an error in the end
			}
			at := time.Now()
			for _, key := range event.Keys {
				if strings.HasPrefix(string(key), mapping.PIDPrefix) {
					h.of(key) <- at
				}
			}
		}
	}()
	return h
}
