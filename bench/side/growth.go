package side

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/load"
	"github.com/veneer-skins/veneer/bench/report"
	"github.com/veneer-skins/veneer/bench/system"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/mapping"
	"github.com/veneer-skins/veneer/shared/objects"
)

const (
	growthPeople   = 1000 // users who are signed in, and change what their players wear
	growthEach     = 10   // textures and players for every other user
	growthRate     = 200  // changes a second
	growthRounds   = 6
	growthDuration = 2 * time.Second  // of each thing, in each round
	growthLook     = 200              // answers of each list in a round, of which the p99 counts
	growthList     = time.Minute      // longer than that takes
	growthAwake    = 10 * time.Second // for which look-ups are asked for after the start, before the rounds
	growthBatch    = 64               // keys of a large question
	growthStart    = 2 * time.Minute  // longer than core takes to read what lists are made of
)

// growthLists are the lists that are asked for, of a hundred textures each.
var growthLists = []string{
	"sort=newest", "sort=likes", "sort=newest&page=1000", "sort=likes&page=1000", "sort=newest&q=dragon", "sort=likes&q=dragon",
	"sort=newest&q=steve", "sort=likes&q=steve&page=1000",
}

// growth measures what becomes slower as a site grows, with so many textures and as many
// players in PostgreSQL as the sizes say: look-ups of edges, lists, reads and writes, and
// how long it takes until an edge hears of a change; and how large everything is. The
// rows are copied in, with the indexes made afterwards. Each site goes before the next.
// With an error come the steps before it.
func (s *stage) growth(ctx context.Context) (*report.Sweep, error) {
	sweep := &report.Sweep{
		Name: "growth", Grows: "textures and players",
		Measures: "Core and PostgreSQL on all processors, beside the load, as textures, players and a tenth as many users grow",
		Plotted:  []string{"look-up p99", "worst list p99", "change heard of p99", "PostgreSQL for a name of 64", "indexes of a texture", "indexes of a player"},
	}
	s.tell("CORE_LIMIT_REQUESTS", 0)
	for i, n := range s.Sizes {
		if n < growthPeople {
			return sweep, fmt.Errorf("a site of %d is too small for %d players who are signed in", n, growthPeople)
		}
		fmt.Fprintf(s.Out, "==> growth, %d textures and players … ", n)
		began := time.Now()
		var figures []report.Figure
		if err := system.Main(ctx, func(tb testing.TB) {
			tb.Helper()
			if i == 0 {
				s.tellDatabase(tb)
			}
			figures = s.grown(tb, n)
		}); err != nil {
			return sweep, fmt.Errorf("%d textures and players: %w", n, err)
		}
		sweep.Steps = append(sweep.Steps, report.Step{At: float64(n), Figures: figures})
		fmt.Fprintf(s.Out, ", %.0f s\n", time.Since(began).Seconds())
	}
	return sweep, nil
}

const selectSettings = `
	SELECT name, current_setting(name) AS value FROM pg_settings
	WHERE name IN ('server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'max_connections') ORDER BY name`

// tellDatabase notes the settings of PostgreSQL that its figures depend on most.
func (s *stage) tellDatabase(tb testing.TB) {
	tb.Helper()
	rows, _ := postgrestest.Conn(tb, postgrestest.Empty(tb)).Query(tb.Context(), selectSettings) // CollectRows reports the error
	settings, err := pgx.CollectRows(rows, pgx.RowToStructByName[report.Setting])
	if err != nil {
		tb.Fatal(err)
	}
	for _, setting := range settings {
		s.tell("PostgreSQL's "+setting.Name, setting.Value)
	}
}

// grown measures a site of one size.
func (s *stage) grown(tb testing.TB, n int) (figures []report.Figure) {
	tb.Helper()
	core := system.NewCore(tb, objects.Config{URL: "file://" + tb.TempDir()})
	core.NameConnections(tb)
	core.Set("CORE_LIMIT_REQUESTS", "0")
	people := core.SignIn(tb, growthPeople)
	began := time.Now()
	g := grow(tb, core, n, people)
	progress := func(what string, args ...any) {
		fmt.Fprintf(s.Out, "\r==> growth, %d textures and players … "+what, append([]any{n}, args...)...)
	}
	progress("made in %.0f s", time.Since(began).Seconds())
	tell := func(name, unit string, value float64) {
		known := slices.IndexFunc(figures, func(f report.Figure) bool { return f.Name == name })
		if known < 0 {
			known = len(figures)
			figures = append(figures, report.Figure{Name: name, Unit: unit})
		}
		figures[known].Rounds = append(figures[known].Rounds, value)
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	costs := func(of string, c spent, names float64) {
		tell("core for "+of, "µs", float64(c.core.Nanoseconds())/1e3/float64(c.answers.Total())/names)
		tell("PostgreSQL for "+of, "µs", float64(c.postgres.Nanoseconds())/1e3/float64(c.answers.Total())/names)
	}

	g.sizes(tb, func(table string, row, indexes float64) {
		one := strings.TrimSuffix(table, "s")
		tell("row of a "+one, "bytes", row)
		tell("indexes of a "+one, "bytes", indexes)
	})
	core.Start(tb)
	public, edges := core.Address(tb, "public"), core.Address(tb, "edges")
	began = time.Now()
	// It is answered as soon as core has read what lists are made of. Whoever asks is
	// refused when that takes longer than an answer may.
	for {
		status, body, err := fasthttp.Get(nil, "http://"+public+"/api/textures")
		if err == nil && status == fasthttp.StatusOK {
			break
		}
		if err != nil || status != fasthttp.StatusServiceUnavailable || time.Since(began) > growthStart {
			tb.Fatalf("the first list: %d %s, %v", status, body, err)
		}
	}
	tell("first list after the start", "s", time.Since(began).Seconds())

	awake := g.spend(tb, edges, s.each(growthAwake), g.lookUps(tb, 1, 500))
	tell("look-up p99 in the first 10 s", "ms", ms(awake.answers.Percentile(fasthttp.StatusOK, 99)))

	reads := &load.Stream{Connections: connections, Statuses: []int{fasthttp.StatusOK}, Order: load.Random(len(people), 0)}
	writes := &load.Stream{Connections: connections, Statuses: []int{fasthttp.StatusOK}}
	for _, p := range people {
		reads.Requests = append(reads.Requests, bearing(p, "GET", "/api/user", "", nil))
	}
	for wears := range 2 {
		for i := range people {
			writes.Requests = append(writes.Requests, g.dress(people, i, wears))
		}
	}
	singles, batches := g.lookUps(tb, 1, 500), g.lookUps(tb, growthBatch, 0)
	duration, rounds, changes := s.each(growthDuration), growthRounds, 0
	if s.Quick {
		rounds = 1
	}
	for round := range rounds {
		progress("%d of %d rounds", round+1, rounds)
		single := g.spend(tb, edges, duration, singles)
		tell("look-up p50", "ms", ms(single.answers.Percentile(fasthttp.StatusOK, 50)))
		tell("look-up p99", "ms", ms(single.answers.Percentile(fasthttp.StatusOK, 99)))
		costs("a look-up", single, 1)
		batch := g.spend(tb, edges, duration, batches)
		tell("names looked up by 64, one question after the other", "1/s", growthBatch*batch.answers.Rate(fasthttp.StatusOK))
		costs("a name of 64", batch, growthBatch)

		worst := time.Duration(0)
		for _, query := range growthLists {
			looked := g.spend(tb, public, growthList, list(query, growthLook))
			worst = max(worst, looked.answers.Percentile(fasthttp.StatusOK, 99))
		}
		tell("worst list p99", "ms", ms(worst))

		lags := g.lag(tb, people, duration, changes)
		changes += len(lags)
		tell("change heard of p50", "ms", ms(lags[len(lags)/2]))
		tell("change heard of p99", "ms", ms(lags[len(lags)*99/100]))

		read := g.spend(tb, public, duration, reads)
		tell("API reads", "1/s", read.answers.Rate(fasthttp.StatusOK))
		costs("an API read", read, 1)
		write := g.spend(tb, public, duration, writes)
		tell("API writes", "1/s", write.answers.Rate(fasthttp.StatusOK))
		costs("an API write", write, 1)
	}
	tell("core, resident", "MiB", float64(core.Resident(tb))/(1<<20))
	return figures
}

// grownSite is a core whose database has many textures and players.
type grownSite struct {
	core     *system.Process
	conn     *pgx.Conn
	players  int
	textures []int64 // those that everybody may wear, a few
	own      []int64 // the players of those who are signed in, in their order
}

// grow fills a database. A tenth as many users as textures have one player in ten each;
// half of all names of textures have steve in them, a fortieth dragon.
func grow(tb testing.TB, core *system.Process, n int, people []system.Person) *grownSite {
	tb.Helper()
	conn := postgrestest.Conn(tb, core.Setting("CORE_DATABASE_URL"))
	exec := func(sql string) {
		tb.Helper()
		if _, err := conn.Exec(tb.Context(), sql); err != nil {
			tb.Fatal(err)
		}
	}
	number := func(sql string, args ...any) (n int64) {
		tb.Helper()
		if err := conn.QueryRow(tb.Context(), sql, args...).Scan(&n); err != nil {
			tb.Fatal(err)
		}
		return n
	}
	copyIn := func(table string, n int, columns []string, row func(i int) []any) {
		tb.Helper()
		rows := pgx.CopyFromSlice(n, func(i int) ([]any, error) { return row(i), nil })
		restore := dropIndexes(tb, conn, table)
		if _, err := conn.CopyFrom(tb.Context(), pgx.Identifier{table}, columns, rows); err != nil {
			tb.Fatal(err)
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

	g := &grownSite{core: core, conn: conn, players: n}
	for i := range int64(4) {
		g.textures = append(g.textures, number("SELECT tid FROM textures WHERE public AND type = 'steve' AND tid > $1 ORDER BY tid LIMIT 1", lastTexture-1000+100*i))
	}
	copyIn("players", n, []string{"uid", "name", "name_key", "tid_skin"}, func(i int) []any {
		name, uid, worn := fmt.Sprint("p", i), user(i), new(lastTexture-random.Int64N(int64(n)))
		if i < len(people) {
			uid, worn = int64(people[i].User), nil // so that whatever is put on is a change
		}
		return []any{uid, name, name, worn}
	})
	rows, _ := conn.Query(tb.Context(), "SELECT pid FROM players ORDER BY pid LIMIT $1", len(people)) // CollectRows reports the error
	own, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		tb.Fatal(err)
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
func dropIndexes(tb testing.TB, conn *pgx.Conn, table string) (restore func()) {
	tb.Helper()
	rows, _ := conn.Query(tb.Context(), `
		SELECT c.relname AS name, pg_get_indexdef(i.indexrelid) AS definition FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		WHERE i.indrelid = $1::text::regclass AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid)`, table) // CollectRows reports the error
	type index struct{ Name, Definition string }
	indexes, err := pgx.CollectRows(rows, pgx.RowToStructByName[index])
	if err != nil {
		tb.Fatal(err)
	}
	exec := func(sql string) {
		if _, err := conn.Exec(tb.Context(), sql); err != nil {
			tb.Fatal(err)
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

// sizes tells how many bytes a row of each table takes, and how many its indexes.
func (g *grownSite) sizes(tb testing.TB, tell func(table string, row, indexes float64)) {
	tb.Helper()
	rows, _ := g.conn.Query(tb.Context(), `
		SELECT c.relname AS name, pg_table_size(c.oid) / c.reltuples AS row, pg_indexes_size(c.oid) / c.reltuples AS indexes
		FROM pg_class c WHERE c.oid = ANY (ARRAY['users', 'textures', 'players']::regclass[]) ORDER BY 1`) // CollectRows reports the error
	type size struct {
		Name         string
		Row, Indexes float64
	}
	sizes, err := pgx.CollectRows(rows, pgx.RowToStructByName[size])
	if err != nil {
		tb.Fatal(err)
	}
	for _, s := range sizes {
		tell(s.Name, s.Row, s.Indexes)
	}
}

// spent is what answers took of core's and the database's processor time.
type spent struct {
	answers        load.Answers
	core, postgres time.Duration
}

// spend sends a stream to core, which must answer all of it right.
func (g *grownSite) spend(tb testing.TB, address string, duration time.Duration, stream *load.Stream) spent {
	tb.Helper()
	core, backends := g.core.CPU(tb), g.backends(tb)
	answers, err := load.Run(tb.Context(), address, duration, stream)
	if err == nil {
		err = answers[0].Check()
	}
	if err != nil {
		tb.Fatal(err)
	}
	took := spent{answers: answers[0], core: g.core.CPU(tb) - core}
	for pid, after := range g.backends(tb) {
		took.postgres += after - backends[pid]
	}
	return took
}

const selectBackends = `
	SELECT pid FROM pg_stat_activity
	WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid()`

// backends returns what processor time the database's processes have taken that work for
// core.
func (g *grownSite) backends(tb testing.TB) map[int]time.Duration {
	tb.Helper()
	rows, _ := g.conn.Query(tb.Context(), selectBackends) // CollectRows reports the error
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		tb.Fatal(err)
	}
	took := map[int]time.Duration{}
	for _, pid := range pids {
		took[pid] = system.CPU(tb, pid)
	}
	return took
}

// lookUps asks core as edges do, for so many names at once: at a rate a second over 16
// connections, or over one as fast as it answers if the rate is 0.
func (g *grownSite) lookUps(tb testing.TB, names int, rate float64) *load.Stream {
	tb.Helper()
	random := rand.New(rand.NewPCG(uint64(names), 7))
	stream := &load.Stream{Connections: 16, Rate: rate, Statuses: []int{fasthttp.StatusOK}}
	if rate == 0 {
		stream.Connections = 1
	}
	for range 2000 {
		question := mapping.Question{}
		for range names {
			question.Keys = append(question.Keys, mapping.Name(fmt.Sprint("p", random.IntN(g.players))))
		}
		body, err := json.Marshal(question)
		if err != nil {
			tb.Fatal(err)
		}
		stream.Requests = append(stream.Requests, fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s",
			mapping.LookupPath, g.core.Setting("CORE_EDGE_SECRETS"), len(body), body))
	}
	return stream
}

// list asks for a list so many times, again and again.
func list(query string, times int) *load.Stream {
	next := once(times)
	return &load.Stream{
		Connections: 1, Statuses: []int{fasthttp.StatusOK}, Order: func() int { return min(next(), 0) },
		Requests: [][]byte{fmt.Appendf(nil, "GET /api/textures?%s&perPage=100 HTTP/1.1\r\nHost: bench\r\n\r\n", query)},
	}
}

// dress returns the request of somebody whose player is to wear one of the textures.
func (g *grownSite) dress(people []system.Person, who, wears int) []byte {
	return bearing(people[who], "PUT", fmt.Sprintf("/api/players/%d/textures", g.own[who]), urlEncoded, fmt.Appendf(nil, "skin=%d", g.textures[wears]))
}

// lag changes what players wear at a constant rate, after so many changes of earlier calls,
// and returns how long after core's answer each change was on the stream that an edge
// would follow, in their order. They wear something else than after dress of 0 or 1.
func (g *grownSite) lag(tb testing.TB, people []system.Person, duration time.Duration, earlier int) []time.Duration {
	tb.Helper()
	ctx, stop := context.WithCancel(tb.Context())
	defer stop()
	heard := g.follow(ctx, tb)
	client := &fasthttp.HostClient{Addr: g.core.Address(tb, "public"), MaxConns: 256}
	var all sync.WaitGroup
	var mu sync.Mutex
	var lags []time.Duration
	clock := time.NewTicker(time.Second / growthRate)
	defer clock.Stop()
	for n := earlier; n < earlier+int(growthRate*duration.Seconds()); n++ {
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
			request.SetBodyString(fmt.Sprintf("skin=%d", g.textures[2+n/len(people)%2]))
			if err := client.Do(request, response); err != nil || response.StatusCode() != fasthttp.StatusOK {
				tb.Errorf("change %d: %d %s, %v", n, response.StatusCode(), response.Body(), err)
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
				tb.Errorf("change %d is not on the stream", n)
			}
		})
	}
	all.Wait()
	if len(lags) == 0 {
		tb.Fatal("no change was heard of")
	}
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
func (g *grownSite) follow(ctx context.Context, tb testing.TB) *hearing {
	tb.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.core.Address(tb, "edges")+mapping.ChangesPath, http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+g.core.Setting("CORE_EDGE_SECRETS"))
	response, err := http.DefaultClient.Do(request) //nolint:bodyclose // by whoever reads it
	if err != nil || response.StatusCode != http.StatusOK {
		tb.Fatalf("follow the stream of changes: %v, %v", response, err)
	}
	h := &hearing{keys: map[mapping.Key]chan time.Time{}}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	if !lines.Scan() {
		tb.Fatalf("the stream of changes ends: %v", lines.Err())
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
