package postgres

import (
	"context"
	"time"
)

// Server describes the server and the database of a DB.
type Server struct {
	Version     string // as in 15.13
	Number      int    // as in 150013
	Encoding    string // of the database, as in UTF8
	IsStandby   bool
	HasTrigrams bool // whether the extension pg_trgm is there
	OwnsTables  bool // whether the role may change the schema or the audit log
	LacksRights bool // whether the role may not read or write a table
	Now         time.Time
}

const selectServer = `
	SELECT split_part(current_setting('server_version'), ' ', 1), current_setting('server_version_num')::int, pg_encoding_to_char(encoding), pg_is_in_recovery(),
		EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_trgm'), coalesce((
			SELECT ` + hasOwnerRights + ` FROM pg_class WHERE oid = to_regclass('audit_log')
		), false), EXISTS (
			SELECT FROM pg_class t JOIN pg_class log ON log.oid = to_regclass('audit_log') AND t.relnamespace = log.relnamespace AND t.relowner = log.relowner
			WHERE t.relkind = 'r' AND t.relname <> '` + versionTable + `'
				AND NOT (has_table_privilege(t.oid, 'SELECT') AND has_table_privilege(t.oid, 'INSERT'))
		), clock_timestamp()
	FROM pg_database WHERE datname = current_database()`

// Server returns the server and the database, which needs no schema. Errors are as from Check.
func (db *DB) Server(ctx context.Context) (s Server, err error) {
	err = db.reads.QueryRow(ctx, selectServer).Scan(&s.Version, &s.Number, &s.Encoding, &s.IsStandby, &s.HasTrigrams, &s.OwnsTables, &s.LacksRights, &s.Now)
	if err != nil {
		err = describeConnError("DATABASE_URL", err)
	}
	return s, err
}

// selectLag is zero for a primary, and for a standby that is connected and has replayed all that it received.
const selectLag = `
	SELECT CASE WHEN EXISTS (SELECT FROM pg_stat_wal_receiver) AND pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN interval '0'
		ELSE coalesce(now() - pg_last_xact_replay_timestamp(), interval '0') END`

// LibraryLag returns how far the database of lists of textures is behind.
func (db *DB) LibraryLag(ctx context.Context) (lag time.Duration, err error) {
	err = db.library.QueryRow(ctx, selectLag).Scan(&lag)
	return lag, failure("read the lag of the standby", err)
}
