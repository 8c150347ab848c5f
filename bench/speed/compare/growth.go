package compare

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/bench/speed/load"
	"github.com/veneer-skins/veneer/bench/speed/results"
	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/testenv"
)

const (
	growthUsers     = 1000 // signed-in users; their players' skins change
	texturesPerUser = 10   // textures and players for every other user
	growthRounds    = 6
	growthDuration  = 2 * time.Second  // of each measurement in a round
	growthWarmUp    = 10 * time.Second // of lookups after the start, before the rounds
	growthBatch     = 64               // keys of a large lookup
	growthLifetime  = time.Hour        // of cores' connections, longer than the whole run
	growthUploads   = 3000             // prepared for a round, more than it can send
)

// growth measures what becomes slower as a site grows, with as many textures and players in
// PostgreSQL as Sizes says: lookups of edges, reads, writes, log-ins and uploads, and the delay until
// an edge serves a change; and the sizes of tables and indexes. All sites run beside each other and
// are measured alternately.
func (e *env) growth(result *results.Run) {
	e.addSetting("of growth's cores: pool_max_conn_lifetime", growthLifetime)
	e.addDatabaseSettings()
	var sites []*grownStack
	for _, n := range e.Sizes {
		done := e.progress("growth, %d textures and players", n)
		sites = append(sites, e.newGrownStack(n))
		done()
	}
	rounds := e.rounds(growthRounds)
	interleaved := func(what string, measure func(*grownStack, int)) {
		e.alternate("growth, "+what, rounds, len(sites), func(i, round int) { measure(sites[i], round) })
		fmt.Fprintln(e.Out)
	}
	interleaved("operations that leave the size unchanged", (*grownStack).measureSteady)
	interleaved("operations that add to it", (*grownStack).measureGrowing)
	// An edge's CPU use would disturb the measurements above.
	for _, g := range sites {
		g.addEdge(e)
		g.uploadTextures(e)
		// The skins until then have no file.
		execute(e, g.db, "UPDATE players SET tid_skin = $1 WHERE pid = ANY ($2)", g.tids[0], g.pids)
	}
	interleaved("changes that edges show", (*grownStack).measureFreshness)
	sweep := results.Sweep{
		Name: "growth", Parameter: "textures and players",
		Measures: "Cores and PostgreSQL on all processors, beside the load, as textures, players and a tenth as many users grow. Rounds of the sites alternate",
	}
	for _, g := range sites {
		sweep.Steps = append(sweep.Steps, results.Step{At: float64(g.players), Figures: g.figures})
	}
	result.Sweeps = append(result.Sweeps, sweep)
}

const selectSettings = `
	SELECT name, current_setting(name) AS value FROM pg_settings
	WHERE name IN ('server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'max_connections') ORDER BY name`

// addDatabaseSettings records the settings of PostgreSQL that its figures depend on most.
func (e *env) addDatabaseSettings() {
	conn := postgrestest.Conn(e, postgrestest.Empty(e))
	for _, setting := range site.Rows(e, conn, pgx.RowToStructByName[results.Setting], selectSettings) {
		e.addSetting("PostgreSQL's "+setting.Name, setting.Value)
	}
}

// grownStack is a site with many textures and players in its database, and its measurements.
type grownStack struct {
	*liveStack

	env      *env
	db       *pgx.Conn
	players  int
	textures []int64 // two that all players may have
	figures  []results.Figure
	lookup   *target // core's listener for edges

	singles, batches, reads, writes, logIns, uploads *load.Stream

	tries int // changes served by the edge
}

func (e *env) newGrownStack(n int) *grownStack {
	if n < growthUsers {
		e.Fatalf("a site of %d is too small for %d signed-in players", n, growthUsers)
	}
	g := &grownStack{liveStack: e.newCore(growthUsers), env: e, players: n}
	g.liftLimits(e)
	g.db = g.conn(e)
	g.fill()
	g.measureSizes()

	// The CPU time of a backend process is lost when its connection ends.
	database := g.core.Setting("CORE_DATABASE_URL")
	g.core.Set("CORE_DATABASE_URL=" + fmt.Sprint(database, "&pool_max_conn_lifetime=", growthLifetime))
	g.start(e)
	g.core.Set("CORE_DATABASE_URL=" + database)
	g.anyCPU, g.clocks = true, append(g.clocks, clock{"PostgreSQL", g.backendCPU()})
	lookup := *g.target
	lookup.address, g.lookup = g.core.Address(e, "edges"), &lookup
	g.singles, g.batches = g.lookups(1, 500), g.lookups(growthBatch, 0)
	e.measure(g.lookup, e.duration(growthWarmUp), g.singles)
	g.reads = e.userReads(g.users, 0)
	g.writes = g.skinWrites(g.textures[:2]...)
	g.logIns = g.allLogIn(e)
	g.uploads = streamOf(logInConnections, fasthttp.StatusOK)
	return g
}

// backendCPU returns the clock of PostgreSQL's processes for core. Those that have ended meanwhile do
// not count.
func (g *grownStack) backendCPU() func(tb testing.TB) time.Duration {
	last, sum := map[int]time.Duration{}, time.Duration(0)
	return func(tb testing.TB) time.Duration {
		tb.Helper()
		now := site.BackendCPU(tb, g.db)
		for pid, took := range now {
			sum += took - last[pid]
		}
		last = now
		return sum
	}
}

func (g *grownStack) addFigure(name, unit string, value float64) {
	index := slices.IndexFunc(g.figures, func(f results.Figure) bool { return f.Name == name })
	if index < 0 {
		index = len(g.figures)
		g.figures = append(g.figures, results.Figure{Name: name, Unit: unit})
	}
	g.figures[index].Rounds = append(g.figures[index].Rounds, value)
}

// run sends a stream to a listener of core for a round, and adds the CPU time of each of some things in
// an answer, unless they have no name.
func (g *grownStack) run(t *target, stream *load.Stream, of string, things float64) sample {
	s := g.env.measure(t, g.env.duration(growthDuration), stream)
	for i, program := range []string{"core", "PostgreSQL"} {
		if of != "" {
			g.addFigure(program+" for "+of, "µs", float64(s.cpu[i].Nanoseconds())/1e3/s.total()/things)
		}
	}
	return s
}

// measureSteady measures operations that leave the site's size unchanged.
func (g *grownStack) measureSteady(int) {
	lookup := g.run(g.lookup, g.singles, "a look-up", 1)
	g.addFigure("look-up p50", "ms", latency(lookup.Answers, 50))
	g.addFigure("look-up p99", "ms", latency(lookup.Answers, 99))
	batch := g.run(g.lookup, g.batches, "a name of 64", growthBatch)
	g.addFigure("names looked up by 64, one question after the other", "1/s", growthBatch*batch.Rate(fasthttp.StatusOK))

	g.addFigure("API reads", "1/s", g.run(g.target, g.reads, "an API read", 1).Rate(fasthttp.StatusOK))
	g.addFigure("API writes", "1/s", g.run(g.target, g.writes, "an API write", 1).Rate(fasthttp.StatusOK))
}

// measureGrowing measures operations that add to the site.
func (g *grownStack) measureGrowing(round int) {
	g.addFigure("log-ins", "1/s", g.run(g.target, g.logIns, "", 1).Rate(fasthttp.StatusOK))
	g.uploads.Requests, g.uploads.Order = g.newUploads(round*growthUploads, growthUploads), load.Once(growthUploads)
	g.addFigure("uploads", "1/s", g.run(g.target, g.uploads, "an upload", 1).Rate(fasthttp.StatusOK))
}

func (g *grownStack) measureFreshness(int) {
	took := g.env.median(func() (time.Duration, error) {
		g.tries++
		return g.awaitChange(g.tries%len(g.pids), g.tries%len(g.tids))
	})(0)
	g.addFigure("change shown by an edge p50", "ms", took.figure)
}

// lookups sends lookups of names as edges do: at a rate a second over 16 connections, or in a closed
// loop over one if the rate is 0.
func (g *grownStack) lookups(names int, rate float64) *load.Stream {
	random := rand.New(rand.NewPCG(uint64(names), 7))
	stream := streamOf(16, fasthttp.StatusOK)
	if stream.Rate = rate; rate == 0 {
		stream.Connections = 1
	}
	for range 2000 {
		request := edgeproto.LookupRequest{}
		for range names {
			request.Keys = append(request.Keys, edgeproto.NameKey(fmt.Sprint("p", 1+random.IntN(g.players))))
		}
		body := testenv.Must(json.Marshal(request))(g.env)
		stream.Requests = append(stream.Requests, post("POST", edgeproto.LookupPath, "application/json", g.core.Setting("CORE_EDGE_SECRETS"), body))
	}
	return stream
}

// insertTextures inserts textures. Half of all names contain steve, a fortieth dragon, and a
// twentieth two Chinese characters; all end in a unique number. A tenth has one uploader, the first
// of the users, a twentieth is private, and few have many likes. One of two hundred names has three
// exclamation marks, one of a hundred contains pirate, for which no index is good, and half of
// the capes' names have " - ".
const insertTextures = `
	INSERT INTO textures (uploader, likes, upload_at, bytes, public, type, hash, pixels, name, name_key)
	SELECT
		CASE WHEN n % 10 = 3 THEN $1 ELSE $1 + n % $2 END, (1 / (0.0005 + random()))::bigint, now() - ($3 - n) * interval '1 second', 2000, n % 20 <> 13,
		CASE WHEN n % 10 < 5 THEN 'steve' WHEN n % 10 < 8 THEN 'alex' ELSE 'cape' END, sha256(n::text::bytea), sha256(n::text::bytea), name,
		regexp_replace(translate(lower(name), ' -!%', $4), '([\u1100-\U0010ffff])', '\1\1', 'g')
	FROM (
		SELECT n,
			(ARRAY['Red', 'Blue', 'Dark', 'Golden', 'Pixel', 'Happy', 'Sad', 'Tiny', 'Giant', 'Old', '红', '100%'])[1 + floor(random() * 12)] || ' ' ||
			CASE WHEN n % 10 >= 8 AND random() < 0.5 THEN '-' WHEN random() < 0.005 THEN '!!!' WHEN random() < 0.01 THEN 'Pirate' WHEN random() < 0.5 THEN 'Steve' ELSE (ARRAY[
				'Fox', 'Knight', 'Wizard', 'Cat', 'Dog', 'Girl', 'Boy', 'Robot', 'Ninja', 'King', 'Queen', 'Panda', 'Miner', 'Zombie', '狐狸', '狐狸', 'Wolf',
				'Slime', 'Witch', 'Dragon'])[1 + floor(random() * 20)] END || ' ' || to_hex(n * 2654435761 % 4294967296) AS name
		FROM generate_series(1::bigint, $3) AS n
	) named`

// fillTextures inserts textures of users with successive numbers.
func fillTextures(tb testing.TB, db *pgx.Conn, firstUser, users, textures int64) {
	tb.Helper()
	execute(tb, db, "SET maintenance_work_mem = '1GB'")
	execute(tb, db, "ALTER TABLE textures DISABLE TRIGGER USER") // faster
	fillTable(tb, db, "textures", insertTextures, firstUser, users, textures, postgres.NameKey(" -!%"))
	fillTable(tb, db, "texture_likes", "INSERT INTO texture_likes SELECT tid, coalesce(uploader, 0), likes, public, type, name_key FROM textures")
	execute(tb, db, "ALTER TABLE textures ENABLE TRIGGER USER")
	const some = "SELECT name, name_key AS key FROM textures ORDER BY tid LIMIT 1000"
	for _, x := range site.Rows(tb, db, pgx.RowToStructByName[struct{ Name, Key string }], some) {
		if x.Key != postgres.NameKey(x.Name) {
			tb.Fatalf("the key of %q is %q", x.Name, x.Key)
		}
	}
}

// fillTable fills a table without its indexes that belong to no constraint, and makes them afterwards,
// which takes a tenth of the time.
func fillTable(tb testing.TB, db *pgx.Conn, table, sql string, args ...any) {
	tb.Helper()
	indexes := site.Rows(tb, db, pgx.RowToStructByName[struct{ Name, Definition string }], `
		SELECT c.relname AS name, pg_get_indexdef(i.indexrelid) AS definition FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		WHERE i.indrelid = $1::text::regclass AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = i.indexrelid)`, table)
	for _, i := range indexes {
		execute(tb, db, "DROP INDEX "+pgx.Identifier{i.Name}.Sanitize())
	}
	execute(tb, db, sql, args...)
	for _, i := range indexes {
		execute(tb, db, i.Definition)
	}
}

func execute(tb testing.TB, db *pgx.Conn, sql string, args ...any) {
	tb.Helper()
	testenv.Must(db.Exec(tb.Context(), sql, args...))(tb)
}

const (
	insertOwners = `
	INSERT INTO users (email, email_key, nickname, password_hash)
	SELECT 'user' || n || '@example.org', 'user' || n || '@example.org', 'User', 'none' FROM generate_series(1, $1::int) n`

	// The signed-in users have the first players, without a skin, so that any set later is a change.
	insertOwned = `
	INSERT INTO players (uid, name, name_key, tid_skin)
	SELECT coalesce(($1::bigint[])[n], $2 - n % $3), 'p' || n, 'p' || n, CASE WHEN n > cardinality($1::bigint[]) THEN $4 - floor(random() * $5)::bigint END
	FROM generate_series(1::bigint, $5) n`
)

// fill fills the database. A tenth as many users as textures have ten players each.
func (g *grownStack) fill() {
	tb, n, users := g.env, int64(g.players), int64(g.players/texturesPerUser)
	number := func(sql string, args ...any) (n int64) {
		testenv.Do(g.env, g.db.QueryRow(tb.Context(), sql, args...).Scan(&n))
		return n
	}
	fillTable(tb, g.db, "users", insertOwners, users)
	lastUser := number("SELECT max(uid) FROM users")
	fillTextures(tb, g.db, lastUser-users+1, users, n)
	lastTexture := number("SELECT max(tid) FROM textures")
	for i := range int64(2) {
		g.textures = append(g.textures, number("SELECT tid FROM textures WHERE public AND type = 'steve' AND tid > $1 ORDER BY tid LIMIT 1", lastTexture-1000+100*i))
	}
	fillTable(tb, g.db, "players", insertOwned, g.userIDs(), lastUser, users, lastTexture, n)
	g.pids = site.Rows(tb, g.db, pgx.RowTo[int64], "SELECT pid FROM players ORDER BY pid LIMIT $1", len(g.users))
	execute(tb, g.db, "VACUUM ANALYZE")
}

// measureSizes adds the bytes of a row of each table, and of its indexes.
func (g *grownStack) measureSizes() {
	for _, s := range site.Rows(g.env, g.db, pgx.RowToStructByName[struct {
		Name         string
		Row, Indexes float64
	}], `
		SELECT c.relname AS name, pg_table_size(c.oid) / c.reltuples AS row, pg_indexes_size(c.oid) / c.reltuples AS indexes
		FROM pg_class c WHERE c.oid = ANY (ARRAY['users', 'textures', 'players']::regclass[]) ORDER BY 1`) {
		one := strings.TrimSuffix(s.Name, "s")
		g.addFigure("row of a "+one, "bytes", s.Row)
		g.addFigure("indexes of a "+one, "bytes", s.Indexes)
	}
}
