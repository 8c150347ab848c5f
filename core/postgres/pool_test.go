package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/veneer-skins/veneer/core/postgres"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
)

func TestPoolsAreExposed(t *testing.T) {
	t.Parallel()
	address := postgrestest.URL(t)
	_, schema, _ := strings.Cut(address, "search_path=")
	db := must(postgres.Open(t.Context(), postgres.Config{URL: address + "&application_name=" + schema, Connections: 2}))(t)
	t.Cleanup(db.Close)
	set := metrics.NewSet()
	db.Expose(set)
	f := func(moment string, wants ...string) {
		t.Helper()
		var out strings.Builder
		set.WritePrometheus(&out)
		for _, want := range wants {
			if !strings.Contains(out.String(), "veneer_pool_"+want+"\n") {
				t.Errorf("%s the metrics lack %s:\n%s", moment, want, out.String())
			}
		}
	}

	f("at first",
		`connections{pool="requests",state="used"} 0`, `connections{pool="requests",state="idle"} 0`, `waits_total{pool="requests"} 0`,
		`wait_seconds_total{pool="requests"} 0`, `gave_up_total{pool="requests"} 0`)

	// The first connection is waited for, as it must be made, and then kept.
	session := &sessionTest{db: db, user: addUser(t, db, "ann"), now: time.Now()}
	ticket := session.ticket(session.open(t))
	f("after a request", `connections{pool="requests",state="used"} 0`, `connections{pool="requests",state="idle"} 1`, `waits_total{pool="requests"} 1`)

	other := hold(t, address)
	other.do(t, "LOCK TABLE players IN ACCESS EXCLUSIVE MODE")
	done := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := db.Players(t.Context(), ticket)
			done <- err
		}()
	}
	other.awaitWaiting(t, 2)
	impatient, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := db.Players(impatient, ticket); err == nil {
		t.Error("there is a third connection")
	}
	f("while all wait", `connections{pool="requests",state="used"} 2`, `connections{pool="requests",state="idle"} 0`, `waits_total{pool="requests"} 2`,
		`gave_up_total{pool="requests"} 1`)
	other.releaseOnceWaitedFor(t, 2)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	f("afterwards", `connections{pool="requests",state="used"} 0`, `connections{pool="requests",state="idle"} 2`)

	// The pools are apart.
	must(db.Mappings(t.Context(), nil))(t)
	must(db.NumberChanges(t.Context()))(t)
	f("at last", `waits_total{pool="requests"} 2`, `waits_total{pool="lookups"} 1`, `waits_total{pool="feed"} 1`,
		`connections{pool="lookups",state="idle"} 1`, `connections{pool="feed",state="idle"} 1`)
	var out strings.Builder
	set.WritePrometheus(&out)
	if strings.Contains(out.String(), `veneer_pool_wait_seconds_total{pool="requests"} 0`+"\n") {
		t.Error("waiting took no time")
	}
}
