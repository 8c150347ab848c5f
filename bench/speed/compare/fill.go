package compare

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
)

// fill fills the database. A tenth as many users as textures have ten players each; half of all
// names of textures contain steve, a fortieth dragon.
func (g *grownStack) fill(tb testing.TB) {
	tb.Helper()
	n := g.players
	g.conn = postgrestest.Conn(tb, g.core.Setting("CORE_DATABASE_URL"))
	conn := g.conn
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

	users := n / texturesPerUser
	copyIn("users", users, []string{"email", "email_key", "nickname", "password_hash"}, func(i int) []any {
		email := fmt.Sprintf("user%d@example.org", i)
		return []any{email, email, "User", "none"}
	})
	lastUser := number("SELECT max(uid) FROM users")
	user := func(i int) int64 { return lastUser - int64(i%users) }

	exec("ALTER TABLE textures DISABLE TRIGGER USER") // faster
	random := rand.New(rand.NewPCG(uint64(n), 5))
	copyIn("textures", n, []string{"uploader", "likes", "bytes", "public", "type", "hash", "pixels", "name", "name_key"}, func(i int) []any {
		var seed [8]byte
		binary.LittleEndian.PutUint64(seed[:], uint64(i))
		hash := sha256.Sum256(seed[:])
		kind := [...]string{"steve", "steve", "alex", "alex", "cape"}[i%5]
		name := textureName(random, i)
		return []any{user(i), int64(1 / (0.0005 + random.Float64())), 2000, i%20 != 13, kind, hash[:], hash[:], name, postgres.NameKey(name)}
	})
	exec("ALTER TABLE textures ENABLE TRIGGER USER")
	restore := dropIndexes(tb, conn, "texture_likes")
	exec("INSERT INTO texture_likes SELECT tid, coalesce(uploader, 0), likes, public, type, name_key FROM textures")
	restore()
	lastTexture := number("SELECT max(tid) FROM textures")

	for i := range int64(4) {
		g.textures = append(g.textures, number("SELECT tid FROM textures WHERE public AND type = 'steve' AND tid > $1 ORDER BY tid LIMIT 1", lastTexture-1000+100*i))
	}
	copyIn("players", n, []string{"uid", "name", "name_key", "tid_skin"}, func(i int) []any {
		name, uid, skinTID := fmt.Sprint("p", i+1), user(i), new(lastTexture-random.Int64N(int64(n)))
		if i < len(g.users) {
			uid, skinTID = int64(g.users[i].User), nil // so that any skin set later is a change
		}
		return []any{uid, name, name, skinTID}
	})
	rows, _ := conn.Query(tb.Context(), "SELECT pid FROM players ORDER BY pid LIMIT $1", len(g.users)) // CollectRows reports the error
	var err error
	if g.pids, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
		tb.Fatal(err)
	}
	exec("VACUUM ANALYZE")
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

// dropIndexes drops the indexes of a table that belong to no constraint, and returns a function
// that recreates them.
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

// sizes passes the bytes of a row of each table, and of its indexes, to add.
func (g *grownStack) sizes(tb testing.TB, add func(table string, row, indexes float64)) {
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
		add(s.Name, s.Row, s.Indexes)
	}
}
