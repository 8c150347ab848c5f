package postgres_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// openSized returns a new database with a number of connections for writes.
func openSized(t *testing.T, connections int32) store {
	t.Helper()
	db := open(t)
	address := db.address + "&application_name=" + postgrestest.Name(db.address)
	db.DB = must(postgres.Open(t.Context(), postgres.Config{URL: address, Connections: connections}))(t)
	t.Cleanup(db.Close)
	return db
}

func TestPoolsAreExposed(t *testing.T) {
	t.Parallel()
	db := openSized(t, 2)
	registry := prometheus.NewRegistry()
	db.Expose(registry)
	f := func(moment string, wants ...string) {
		t.Helper()
		text := metricstest.Text(t, registry)
		for _, want := range wants {
			testenv.Equal(t, strings.Contains(text, "veneer_pool_"+want+"\n"), true, "%s has %s:\n%s", moment, want, text)
		}
	}

	f("at first",
		`connections{pool="reads",state="used"} 0`, `connections{pool="reads",state="idle"} 0`, `waits_total{pool="reads"} 0`,
		`wait_seconds_total{pool="reads"} 0`, `gave_up_total{pool="reads"} 0`)

	// The first connection must be made, which counts as a wait, and is then reused.
	session := &sessionTest{db: db, user: addUser(t, db, "ann"), now: time.Now()}
	token := session.verified(session.open(t))
	f("after a write", `connections{pool="writes",state="used"} 0`, `connections{pool="writes",state="idle"} 1`, `waits_total{pool="writes"} 1`)

	other := db.lock(t, "LOCK TABLE players IN ACCESS EXCLUSIVE MODE")
	list := func() error { return errOf(db.Players(t.Context(), token)) }
	first, second := start(list), start(list)
	other.waitBlocked(t, 2)
	shortCtx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	testenv.ErrorHas(t, errOf(db.Players(shortCtx, token)), "", "a third connection")
	f("while all wait", `connections{pool="reads",state="used"} 2`, `connections{pool="reads",state="idle"} 0`, `waits_total{pool="reads"} 2`,
		`gave_up_total{pool="reads"} 1`)
	other.commitOnceBlocked(t, 2)
	do(t, <-first)
	do(t, <-second)
	f("afterwards", `connections{pool="reads",state="used"} 0`, `connections{pool="reads",state="idle"} 2`)

	// The pools are separate.
	must(db.Mappings(t.Context(), nil))(t)
	must(db.NumberChanges(t.Context()))(t)
	f("at last", `waits_total{pool="writes"} 1`, `waits_total{pool="lookups"} 1`, `waits_total{pool="feed"} 1`,
		`connections{pool="lookups",state="idle"} 1`, `connections{pool="feed",state="idle"} 1`)
	waited := metricstest.Value(t, metricstest.Text(t, registry), `veneer_pool_wait_seconds_total{pool="reads"}`)
	testenv.Equal(t, waited > 0, true, "waiting took time")
}

// Reads have connections however many writes wait, for locks or for a synchronous standby.
func TestReadsWaitForNoWrite(t *testing.T) {
	t.Parallel()
	const writes = 4
	db := openSized(t, writes)
	session := &sessionTest{db: db, user: addUser(t, db, "ann"), now: time.Now()}
	token := session.verified(session.open(t))

	other := db.lock(t, "LOCK TABLE users IN EXCLUSIVE MODE") // which blocks writes only, as a commit that waits for a standby
	var done []<-chan error
	for range 2 * writes { // twice the pool size
		done = append(done, start(func() error {
			return errOf(db.SetNickname(t.Context(), as(session.user.ID), session.user.ID, "Ann"))
		}))
	}
	other.waitBlocked(t, writes)
	boundedCtx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	testenv.Is(t, errOf(db.Players(boundedCtx, token)), nil, "a list while all writes wait")
	testenv.Is(t, errOf(db.SessionUser(boundedCtx, token)), nil, "a look at a session while all writes wait")
	testenv.Is(t, db.Check(boundedCtx), nil, "a look at the schema while all writes wait")
	other.commitOnceBlocked(t, writes)
	for _, outcome := range done {
		do(t, <-outcome)
	}
}

// A read that never gets a connection, since others of its network have them, returns its context's error.
func TestReadBeyondTheNetworksLimit(t *testing.T) {
	t.Parallel()
	db := openSized(t, 4) // with one read of a network at once
	session := &sessionTest{db: db, user: addUser(t, db, "ann"), now: time.Now()}
	token := session.verified(session.open(t))
	ctx := core.WithClient(t.Context(), core.Client{Network: netip.MustParsePrefix("192.0.2.0/24")})
	other := db.lock(t, "LOCK TABLE notifications IN ACCESS EXCLUSIVE MODE")
	first := start(func() error { return errOf(db.Unread(ctx, token)) })
	other.waitBlocked(t, 1)
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	testenv.Check(t, errOf(db.Unread(short, token)) != nil, "a read beyond the limit succeeded")
	other.commitOnceBlocked(t, 1)
	do(t, <-first)
}

// Connections are made within 2 seconds, and live for 30 seconds at most, so that none leads to a
// former primary for long; or as the URL says.
func TestLifetimes(t *testing.T) {
	t.Parallel()
	for url, want := range map[string][3]time.Duration{
		"postgres://u@127.0.0.1/d":                           {2 * time.Second, 25 * time.Second, 30 * time.Second},
		"postgres://u@127.0.0.1/d?pool_max_conn_lifetime=1h": {2 * time.Second, time.Hour, time.Hour},
		"host=127.0.0.1 user=u pool_max_conn_lifetime=45s":   {2 * time.Second, 45 * time.Second, 45 * time.Second},
		"postgres://u@127.0.0.1/d?connect_timeout=60":        {time.Minute, 25 * time.Second, 30 * time.Second},
	} {
		db := must(postgres.Open(t.Context(), postgres.Config{URL: url, Connections: 4}))(t)
		t.Cleanup(db.Close)
		cmptest.Same(t, db.Lifetimes(), [][3]time.Duration{want, want, want, want}, "how long %s has connections", url)
	}
}
