package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/blobstore/blobstoretest"
)

// listNames returns the names in the texture list of a query.
func (c *client) listNames(t *testing.T, query string) (code int, names []string) {
	t.Helper()
	var list struct {
		Code int
		Data []struct{ Name string }
	}
	c.get(t, "/api/textures?"+query, &list)
	for _, item := range list.Data {
		names = append(names, item.Name)
	}
	return list.Code, names
}

// awaitList waits until a list has these names.
func (c *client) awaitList(t *testing.T, query string, want ...string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); ; <-tick.C {
		code, names := c.listNames(t, query)
		if slices.Equal(names, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("?%s lists %q, code %d; want %q", query, names, code, want)
		}
	}
}

// Lists are read from a standby as far as it has replayed, and from the primary without one. All
// else is read from the primary.
func TestListsFromAStandby(t *testing.T) {
	t.Parallel()
	primary := stack.NewPostgres(t)
	standby := primary.Standby(t)
	files := blobstoretest.Directory(t).Config
	core := stack.NewCoreAt(t, files, primary.URL(primary.Address))
	core.Set("CORE_LIBRARY_DATABASE_URL", primary.URL(standby.Address+","+primary.Address)+"&target_session_attrs=prefer-standby")
	core.Set("CORE_LIMIT_REQUESTS", "0")
	core.Start(t)
	core.AwaitReady(t)
	ann := signUp(t, "http://"+core.Address(t, "public"))

	first := ann.upload(t, "First", drawSheet(1))
	const all, search = "", "q=first"
	ann.awaitList(t, all, "First")
	onStandby := postgrestest.Conn(t, standby.URL(standby.Address))
	if _, err := onStandby.Exec(t.Context(), "SELECT pg_wal_replay_pause()"); err != nil {
		t.Fatal(err)
	}
	// Replay continues until it notices the pause.
	bounded, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for paused := ""; paused != "paused"; {
		if err := onStandby.QueryRow(bounded, "SELECT pg_get_wal_replay_pause_state()").Scan(&paused); err != nil {
			t.Fatal(err)
		}
	}
	second := ann.upload(t, "First again", drawSheet(2))
	for _, query := range []string{all, search, "uploader=1&sort=likes"} {
		if _, names := ann.listNames(t, query); !slices.Equal(names, []string{"First"}) {
			t.Errorf("?%s lists %q, which the standby has not replayed", query, names)
		}
	}
	var texture struct{ Name string }
	if ann.get(t, fmt.Sprint("/api/textures/", second.Data.TID), &texture); texture.Name != "First again" {
		t.Errorf("the texture itself is %+v", texture)
	}

	// A deleted texture is not listed, even if the standby still has it.
	ann.call(t, http.MethodDelete, fmt.Sprint("/api/textures/", first.Data.TID), nil)
	if _, names := ann.listNames(t, all); len(names) > 0 {
		t.Errorf("lists show %q, which was deleted", names)
	}

	standby.Kill(t)
	for _, query := range []string{all, search} {
		ann.awaitList(t, query, "First again")
	}
	if status, body := readiness(t, core); status != http.StatusOK || !strings.Contains(body, "postgres for lists") {
		t.Errorf("without the standby: %d %s", status, body)
	}
}
