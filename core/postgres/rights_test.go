package postgres_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// The role of core serve has the rights that it needs, and loses all others. What it needs is proved by the
// tests that use postgrestest.Connect.
func TestGrantRights(t *testing.T) {
	t.Parallel()
	db := openEmpty(t)
	do(t, db.MigrateTo(t.Context(), migration(t, "join_tokens")))
	service := postgrestest.AsService(db.address)
	cfg := postgres.Config{URL: service, ListenURL: service, OwnerURL: db.address}
	grant := func(want ...string) {
		t.Helper()
		cmptest.Same(t, must(db.GrantRights(t.Context(), cfg))(t), want, "roles whose rights have changed")
	}

	grant("veneer_service")
	_, _, err := postgrestest.Connect(t, db.address).Migrate(t.Context(), func(string) {})
	testenv.ErrorHas(t, err, "DATABASE_URL has a role that may not change the schema; set CORE_OWNER_DATABASE_URL", "Migrate")
	db.migrate(t)
	grant()
	db.exec(t, "GRANT ALL ON ALL TABLES IN SCHEMA veneer_test TO veneer_service; GRANT ALL ON SCHEMA veneer_test TO veneer_service")
	grant("veneer_service")
	db.exec(t, "GRANT SELECT ON users TO veneer_service WITH GRANT OPTION; REVOKE SELECT ON SEQUENCE users_uid_seq FROM veneer_service; "+
		"REVOKE SELECT ON schema_version FROM veneer_service")
	testenv.ErrorHas(t, postgrestest.Connect(t, db.address).Check(t.Context()), "DATABASE_URL has a role that lacks rights; run core migrate", "Check")
	grant("veneer_service")
	db.hasCount(t, 0, "SELECT count(*) FROM pg_class, aclexplode(relacl) WHERE is_grantable AND grantee <> relowner")
	other := db.lock(t, "SELECT pg_advisory_xact_lock('audit_log'::regclass::int, 0)") // another core migrate
	other.exec(t, "REVOKE ALL ON users FROM veneer_service")
	do(t, other.delays(t, func() error { return errOf(db.GrantRights(t.Context(), cfg)) }))
	grant()

	conn := postgrestest.Conn(t, service)
	for _, sql := range []string{
		"UPDATE audit_log SET action = 'nothing'", "DELETE FROM audit_log", "TRUNCATE audit_log", "SELECT FROM audit_log FOR UPDATE",
		"ALTER TABLE audit_log DISABLE TRIGGER ALL", "DROP TABLE audit_log", "DROP FUNCTION audit_log_is_append_only CASCADE",
		"CREATE TRIGGER mine BEFORE INSERT ON audit_log FOR EACH ROW EXECUTE FUNCTION note_texture_change()",
		"UPDATE schema_version SET version = 0", "TRUNCATE users", "ALTER TABLE users ADD stolen text", "CREATE INDEX ON users (score)",
		"SELECT setval('users_uid_seq', 1)", "CREATE TABLE mine ()", "CREATE SCHEMA mine", "CREATE ROLE mine", "SET ROLE veneer",
		"DROP DATABASE " + postgrestest.Name(db.address), "SELECT FROM pg_authid", "SELECT pg_read_file('/etc/passwd')", "COPY users TO PROGRAM 'true'",
	} {
		_, err := conn.Exec(t.Context(), sql)
		testenv.Check(t, err != nil && strings.Contains(err.Error(), "42501"), "%s: %v; want insufficient_privilege", sql, err)
	}
	must(conn.Exec(t.Context(), "SELECT last_value FROM users_uid_seq"))(t) // pg_dump
	db.exec(t, "CREATE TABLE later (n int)")                                // of a migration, to which a trigger writes at once
	must(conn.Exec(t.Context(), "INSERT INTO later VALUES (1)"))(t)

	// Other configurations.
	_, err = postgrestest.Connect(t, db.address).GrantRights(t.Context(), cfg)
	testenv.ErrorHas(t, err, "OWNER_DATABASE_URL has a role that does not own the tables", "GrantRights")
	cfg.LibraryURL = db.address + "&user=nobody"
	testenv.ErrorHas(t, errOf(db.GrantRights(t.Context(), cfg)), `role "nobody" does not exist`, "GrantRights")
	cfg = postgres.Config{URL: db.address, OwnerURL: db.address}
	grant()
	cfg.OwnerURL = ""
	grant()
}

// core serve logs once if its role may do more than it needs.
func TestLogOwnerRights(t *testing.T) {
	t.Parallel()
	db := openEmpty(t)
	logs := func(address string, run func()) string {
		t.Helper()
		var log strings.Builder
		done, service := make(chan struct{}), postgrestest.ConnectOwner(t, address)
		go func() { service.LogOwnerRights(t.Context(), slog.New(slog.NewTextHandler(&log, nil))); close(done) }()
		run()
		<-done
		return log.String()
	}
	nothing := func() {}

	line := logs(db.address, func() { db.migrate(t) })
	testenv.Check(t, strings.Count(line, "\n") == 1 && strings.Contains(line, "CORE_OWNER_DATABASE_URL") && strings.HasSuffix(line, " role=veneer\n"), "as the owner: %q", line)
	service := postgrestest.AsService(db.address)
	cfg := postgres.Config{URL: service, OwnerURL: db.address}
	for _, more := range []string{"UPDATE ON audit_log", "DELETE ON audit_log", "TRUNCATE ON audit_log", "TRIGGER ON audit_log", "CREATE ON SCHEMA veneer_test"} {
		must(db.GrantRights(t.Context(), cfg))(t)
		testenv.Equal(t, logs(service, nothing), "", "the log")
		db.exec(t, "GRANT "+more+" TO veneer_service")
		testenv.Check(t, strings.HasSuffix(logs(service, nothing), " role=veneer_service\n"), "nothing is logged with %s", more)
	}
}
