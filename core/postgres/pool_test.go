package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/metrics/metricstest"
)

func TestPoolsAreExposed(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	_, schema, _ := strings.Cut(address, "search_path=")
	db := must(postgres.Open(t.Context(), postgres.Config{URL: address + "&application_name=" + schema, Connections: 2}))(t)
	t.Cleanup(db.Close)
	registry := prometheus.NewRegistry()
	db.Expose(registry)
	f := func(moment string, wants ...string) {
		t.Helper()
		text := metricstest.Text(t, registry)
		for _, want := range wants {
			if !strings.Contains(text, "veneer_pool_"+want+"\n") {
				t.Errorf("%s the metrics lack %s:\n%s", moment, want, text)
			}
		}
	}

	f("at first",
		`connections{pool="reads",state="used"} 0`, `connections{pool="reads",state="idle"} 0`, `waits_total{pool="reads"} 0`,
		`wait_seconds_total{pool="reads"} 0`, `gave_up_total{pool="reads"} 0`)

	// The first connection must be made, which counts as a wait, and is then reused.
	session := &sessionTest{db: db, user: addUser(t, db, "ann"), now: time.Now()}
	token := session.verified(session.open(t))
	f("after a write", `connections{pool="writes",state="used"} 0`, `connections{pool="writes",state="idle"} 1`, `waits_total{pool="writes"} 1`)

	other := beginLockTx(t, address)
	other.exec(t, "LOCK TABLE players IN ACCESS EXCLUSIVE MODE")
	done := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := db.Players(t.Context(), token)
			done <- err
		}()
	}
	other.waitBlocked(t, 2)
	shortCtx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := db.Players(shortCtx, token); err == nil {
		t.Error("there is a third connection")
	}
	f("while all wait", `connections{pool="reads",state="used"} 2`, `connections{pool="reads",state="idle"} 0`, `waits_total{pool="reads"} 2`,
		`gave_up_total{pool="reads"} 1`)
	other.commitOnceBlocked(t, 2)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	f("afterwards", `connections{pool="reads",state="used"} 0`, `connections{pool="reads",state="idle"} 2`)

	// The pools are separate.
	must(db.Mappings(t.Context(), nil))(t)
	must(db.NumberChanges(t.Context()))(t)
	f("at last", `waits_total{pool="writes"} 1`, `waits_total{pool="lookups"} 1`, `waits_total{pool="feed"} 1`,
		`connections{pool="lookups",state="idle"} 1`, `connections{pool="feed",state="idle"} 1`)
	if metricstest.Value(t, metricstest.Text(t, registry), `veneer_pool_wait_seconds_total{pool="reads"}`) == 0 {
		t.Error("waiting took no time")
	}
}

// Reads have connections however many writes wait, for locks or for a synchronous standby.
func TestReadsWaitForNoWrite(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	_, schema, _ := strings.Cut(address, "search_path=")
	const writes = 4
	db := must(postgres.Open(t.Context(), postgres.Config{URL: address + "&application_name=" + schema, Connections: writes}))(t)
	t.Cleanup(db.Close)
	session := &sessionTest{db: db, user: addUser(t, db, "ann"), now: time.Now()}
	token := session.verified(session.open(t))

	other := beginLockTx(t, address)
	other.exec(t, "LOCK TABLE users IN EXCLUSIVE MODE") // which blocks writes only, as a commit that waits for a standby
	done := make(chan error, 2*writes)
	for range 2 * writes { // twice the pool size
		go func() {
			_, err := db.SetNickname(t.Context(), session.user.ID, "Ann")
			done <- err
		}()
	}
	other.waitBlocked(t, writes)
	boundedCtx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := db.Players(boundedCtx, token); err != nil {
		t.Errorf("a list while all writes wait: %v", err)
	}
	if _, err := db.SessionUser(boundedCtx, token); err != nil {
		t.Errorf("a look at a session while all writes wait: %v", err)
	}
	if err := db.Check(boundedCtx); err != nil {
		t.Errorf("a look at the schema while all writes wait: %v", err)
	}
	other.commitOnceBlocked(t, writes)
	for range 2 * writes {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
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
		if got := db.Lifetimes(); !cmp.Equal(got, [][3]time.Duration{want, want, want, want}) {
			t.Errorf("with %s connections are used for %v; want %v", url, got, want)
		}
	}
}
