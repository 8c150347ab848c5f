package postgres_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// Every table with rows of users is in the list of security.md, which bounds their number and age.
func TestTablesOfUsersAreBounded(t *testing.T) {
	t.Parallel()
	db := open(t)
	rows := must(db.conn().Query(t.Context(), `
		WITH RECURSIVE named AS (
			SELECT 'users'::regclass::oid AS id
			UNION
			SELECT c.conrelid FROM pg_constraint c JOIN named n ON c.confrelid = n.id WHERE c.contype = 'f' AND c.conrelid <> 'users'::regclass
		)
		SELECT id::regclass::text FROM named WHERE id <> 'users'::regclass
		UNION
		SELECT table_name FROM information_schema.columns
		WHERE table_schema = current_schema() AND column_name IN ('uid', 'uploader', 'reporter', 'actor') AND table_name <> 'users'`))(t)
	tables := must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)

	_, section, _ := strings.Cut(string(testenv.Must(os.ReadFile("../../docs/operations/security.md"))(t)), "| table | rows a user | age |\n")
	section, _, _ = strings.Cut(section, "\n\n")
	var listed []string
	for line := range strings.Lines(section) {
		for _, name := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
			listed = append(listed, name[1])
		}
	}
	slices.Sort(listed)
	slices.Sort(tables)
	cmptest.Same(t, listed, tables, "the tables in security.md")
}

// A user has the latest 100 addresses, whatever signs in.
func TestLoginAddressesAreBounded(t *testing.T) {
	t.Parallel()
	s := newSessionTest(t)
	s.db.exec(t, `INSERT INTO login_addresses (uid, address, signed_in)
		SELECT $1, '198.51.0.0'::inet + n, now() - n * interval '1 minute' FROM generate_series(1, 150) n`, s.user.ID)
	s.open(t)
	s.db.hasCount(t, 100, "SELECT count(*) FROM login_addresses")
	s.db.hasCount(t, 1, "SELECT count(*) FROM login_addresses WHERE signed_in > now() - interval '30 seconds'")
}

// Reports go a year after they are settled, and open ones stay.
func TestTrimReports(t *testing.T) {
	t.Parallel()
	r := newReportTest(t)
	first := r.texture(t, "first", true)
	must(r.SettleReport(t.Context(), r.by, r.report(t, r.bob, first), core.Settlement{State: core.ReportRejected}))(t)
	r.report(t, r.bob, r.texture(t, "second", true))
	testenv.Equal(t, must(r.TrimReports(t.Context()))(t), 0, "reports are trimmed at once")
	r.exec(t, "UPDATE reports SET reported_at = now() - interval '2 years', settled_at = settled_at - interval '366 days'")
	testenv.Equal(t, must(r.TrimReports(t.Context()))(t), 1, "reports are trimmed after a year")
	r.hasCount(t, 1, "SELECT count(*) FROM reports WHERE state = 'open'")
}
