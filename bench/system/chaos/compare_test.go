package chaos

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/edge"
)

// awaitConnected waits until all edges have been connected for maxStaleness. By then they have seen
// every change that was committed without a response.
func (h *harness) awaitConnected(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	began := time.Now()
	for _, client := range h.clients {
		for !client.connected(ctx, began, began.Add(maxStaleness)) {
			if ctx.Err() != nil {
				t.Fatalf("%s is not connected again", client.name)
			}
			began = time.Now()
		}
	}
}

// compare compares what every edge serves with the database, by every kind of URL: all names that
// players have or had, their UUIDs, all users, all textures, and some that never existed.
func (h *harness) compare(t *testing.T, w *writer) {
	t.Helper()
	began := time.Now()
	want := h.expected(t, w)
	paths := slices.Sorted(maps.Keys(want))
	var wrong atomic.Int64
	var all sync.WaitGroup
	for _, client := range h.clients {
		all.Go(func() {
			atOnce(len(paths), func(i int) {
				if value := client.awaitFresh(paths[i]); value != want[paths[i]] && wrong.Add(1) < 20 {
					t.Errorf("at the end %s serves %q at %s; want %q", client.name, value, paths[i], want[paths[i]])
				}
			})
			// One flush at the start, and no other.
			operators := &fasthttp.HostClient{Addr: client.operators}
			if flushes := metric(operators, "veneer_edge_mapping_cache_flushes_total"); flushes != "1" {
				t.Errorf("%s flushed its mapping cache %s times; want 1", client.name, flushes)
			}
		})
	}
	all.Wait()
	t.Logf("%d addresses on each edge, %d wrong, compared in %s", len(want), wrong.Load(), time.Since(began).Round(logPrecision))
}

// atOnce calls do with the numbers below n from eight goroutines.
func atOnce(n int, do func(int)) {
	const workers = 8
	var all sync.WaitGroup
	for first := range workers {
		all.Go(func() {
			for i := first; i < n; i += workers {
				do(i)
			}
		})
	}
	all.Wait()
}

// awaitFresh returns what a path serves once the answer is not stale. It may be stale at first, if
// the path was not requested before the edge was cut off, or if its core waits for dead connections
// to the database.
func (c *edgeClient) awaitFresh(path string) (value string) {
	fetch := c.fetchTag
	if strings.HasSuffix(path, ".json") {
		fetch = c.fetchBody
	}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-tick.C {
		var stale, ok bool
		if value, stale, ok = fetch(path); ok && !stale {
			break
		}
	}
	return value
}

// expected returns, by path, what edges must serve according to the database.
func (h *harness) expected(t *testing.T, w *writer) map[string]string {
	t.Helper()
	conn := postgrestest.Conn(t, h.database.URL(h.database.Address))
	want := map[string]string{}

	tagOf := map[int64]string{0: missing}
	for i, tid := range w.tids {
		tagOf[tid] = w.tags[i]
	}
	for _, tid := range w.capes {
		tagOf[tid] = noHeadStatus
	}
	textures := queryRows[struct {
		TID  int64
		Hash string
	}](t, conn, selectTextures)
	// Pictures of textures uploaded during the run are compared with those of one edge.
	tags := make([]string, len(textures))
	atOnce(len(textures), func(i int) {
		if tags[i] = tagOf[textures[i].TID]; tags[i] == "" {
			tags[i] = h.clients[0].awaitFresh("/avatar/hash/" + textures[i].Hash)
		}
	})
	for i, texture := range textures {
		want[fmt.Sprint("/avatar/", texture.TID)] = tags[i]
		want["/avatar/hash/"+texture.Hash] = tags[i]
		if !strings.HasPrefix(tags[i], `"`) && tags[i] != noHeadStatus {
			t.Errorf("in the end texture %d is shown as %q", texture.TID, tags[i])
		}
	}
	last := textures[len(textures)-1].TID
	for never := range int64(20) {
		want[fmt.Sprint("/avatar/", last+1+never)] = missing
	}

	defaultTag := h.clients[0].awaitFresh("/avatar/user/0")
	for _, user := range queryRows[struct{ UID, Avatar int64 }](t, conn, "SELECT uid, avatar FROM users") {
		tag := defaultTag
		if user.Avatar != 0 {
			tag = tagOf[user.Avatar]
		}
		want[fmt.Sprint("/avatar/user/", user.UID)] = tag
	}

	for _, player := range queryRows[player](t, conn, selectPlayers) {
		want[playerPath+player.Name] = tagOf[player.TID]
		want["/avatar/uuid/"+player.UUID] = tagOf[player.TID]
		want["/skin/"+player.Name+".png"] = fileTag(t, player.Skin)
		want["/cape/"+player.Name+".png"] = fileTag(t, player.Cape)
		want["/csl/"+player.Name+".json"] = player.profile(t)
		for _, path := range []string{playerPath + "%s", "/skin/%s.png", "/cape/%s.png", "/csl/%s.json"} {
			want[fmt.Sprintf(path, player.Other)] = missing
		}
	}
	return want
}

// player is a row of selectPlayers.
type player struct {
	Name, Other string // the current name, and the other of its two names
	UUID        string
	TID         int64  // of the skin; 0 for none
	Skin, Cape  string // hashes of the files; empty for none
}

// profile returns the CustomSkinLoader profile of the player.
func (p player) profile(t *testing.T) string {
	t.Helper()
	type textures struct {
		Default string `json:"default,omitempty"`
		Cape    string `json:"cape,omitempty"`
	}
	text, err := json.Marshal(struct {
		Username string   `json:"username"`
		Skins    textures `json:"skins"`
		Cape     string   `json:"cape,omitempty"`
		Textures textures `json:"textures"`
	}{p.Name, textures{Default: p.Skin}, p.Cape, textures{p.Skin, p.Cape}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fileTag returns the entity tag of a stored file, or missing without one.
func fileTag(t *testing.T, hash string) string {
	t.Helper()
	if hash == "" {
		return missing
	}
	name, err := hex.DecodeString(hash)
	if err != nil {
		t.Fatal(err)
	}
	tag := edge.ETagOf(name)
	return string(tag[:])
}

// queryRows returns the rows of a query.
func queryRows[Row any](t *testing.T, conn *pgx.Conn, sql string) []Row {
	t.Helper()
	rows, _ := conn.Query(t.Context(), sql) // CollectRows reports the error
	collected, err := pgx.CollectRows(rows, pgx.RowToStructByName[Row])
	if err != nil {
		t.Fatal(err)
	}
	return collected
}

const (
	selectTextures = "SELECT tid, encode(hash, 'hex') AS hash FROM textures ORDER BY tid"

	selectPlayers = `
	SELECT p.name, 'p' || p.uid || CASE WHEN p.name LIKE '%a' THEN 'b' ELSE 'a' END AS other, p.uuid::text,
		coalesce(p.tid_skin, 0) AS tid, coalesce(encode(s.hash, 'hex'), '') AS skin, coalesce(encode(c.hash, 'hex'), '') AS cape
	FROM players p LEFT JOIN textures s ON s.tid = p.tid_skin LEFT JOIN textures c ON c.tid = p.tid_cape`
)
