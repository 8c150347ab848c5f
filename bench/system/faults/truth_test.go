package faults

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/core/postgres/postgrestest"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// awaitConnected waits until all edges have been connected for maxStaleness. By then they have seen
// every change that was committed without a response.
func (c *chaos) awaitConnected(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // other tests need the processors, too
	defer cancel()
	began := time.Now()
	for _, client := range c.clients {
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
func (c *chaos) compare(t *testing.T, w *writer) {
	t.Helper()
	began := time.Now()
	want, bases := c.expected(t, w), make([]string, len(c.clients))
	for i, client := range c.clients {
		bases[i] = client.base
	}
	wrong := compareEdges(c.clients[0].client, bases, want, freshAfter)
	for _, m := range wrong[:min(len(wrong), 20)] {
		t.Errorf("at the end %s serves %q at %s; want %q", c.clients[m.edge].name, m.got, m.path, m.want)
	}
	for _, client := range c.clients {
		// One flush at the start, and no other.
		flushes := metric(client.client, client.operators, "veneer_edge_mapping_cache_flushes_total")
		testenv.Equal(t, flushes, "1", "flushes of the mapping cache of %s", client.name)
	}
	t.Logf("%d addresses on each edge, %d wrong, compared in %s", len(want), len(wrong), time.Since(began).Round(logPrecision))
}

// freshAfter is the time until an answer is not stale. It may be stale at first, if the path was not
// requested before the edge was cut off, or if its core waits for dead connections to the database.
const freshAfter = 30 * time.Second

// expected returns, by path, what edges must serve according to the database.
func (c *chaos) expected(t *testing.T, w *writer) map[string]string {
	t.Helper()
	conn := postgrestest.Conn(t, c.database.URL(c.database.Address))
	// A core may still be busy with a write that its client gave up, and the database with one of a core
	// that was killed.
	for _, core := range c.cores {
		testenv.Eventually(t, "the end of all requests of a core", func() bool {
			return metric(http.DefaultClient, core.BaseURL(t, "operators"), `veneer_requests_in_flight{listener="public"}`) == "0"
		})
	}
	const selectWriting = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND backend_xid IS NOT NULL)"
	testenv.Eventually(t, "the end of all transactions", func() (writing bool) {
		testenv.Do(t, conn.QueryRow(t.Context(), selectWriting).Scan(&writing))
		return !writing
	})
	want := map[string]string{}

	avatarOf := map[int64]string{0: notFound}
	for i, tid := range w.tids {
		avatarOf[tid] = w.avatars[i]
	}
	for _, tid := range w.capes {
		avatarOf[tid] = noHeadStatus
	}
	textures := site.Rows(t, conn, pgx.RowToStructByName[struct {
		TID  int64
		Hash string
	}], selectTextures)
	// Pictures of textures uploaded during the run are compared with the pictures of one edge.
	first := c.clients[0]
	avatars := make([]string, len(textures))
	atOnce(len(textures), func(i int) {
		if avatars[i] = avatarOf[textures[i].TID]; avatars[i] == "" {
			avatars[i] = await(first.client, first.base, "/avatar/hash/"+textures[i].Hash, freshAfter, isDigest)
		}
	})
	for i, texture := range textures {
		want[fmt.Sprint("/avatar/", texture.TID)] = avatars[i]
		want["/avatar/hash/"+texture.Hash] = avatars[i]
		if !isDigest(avatars[i]) && avatars[i] != noHeadStatus {
			t.Errorf("in the end texture %d is shown as %q", texture.TID, avatars[i])
		}
	}
	last := textures[len(textures)-1].TID
	for never := range int64(20) {
		want[fmt.Sprint("/avatar/", last+1000+never)] = notFound
	}

	// Users are changed in the order of their numbers. Of the others, which are alike, some are compared.
	limit := int64(math.MaxInt64)
	if unchanged := <-w.users; unchanged != nil {
		limit = unchanged.uid + 20
	}
	defaultAvatar := await(first.client, first.base, "/avatar/user/0", freshAfter, isDigest)
	const selectAvatars = "SELECT uid, avatar FROM users WHERE uid < $1"
	for _, user := range site.Rows(t, conn, pgx.RowToStructByName[struct{ UID, Avatar int64 }], selectAvatars, limit) {
		avatar := defaultAvatar
		if user.Avatar != 0 {
			avatar = avatarOf[user.Avatar]
		}
		want[fmt.Sprint("/avatar/user/", user.UID)] = avatar
	}

	for _, player := range site.Rows(t, conn, pgx.RowToStructByName[player], selectPlayers, limit) {
		want[playerPath+player.Name] = avatarOf[player.TID]
		want["/avatar/uuid/"+player.UUID] = avatarOf[player.TID]
		want["/skin/"+player.Name+".png"] = cmp.Or(player.Skin, notFound)
		want["/cape/"+player.Name+".png"] = cmp.Or(player.Cape, notFound)
		want["/csl/"+player.Name+".json"] = player.profile(t)
		for _, path := range []string{playerPath + "%s", "/skin/%s.png", "/cape/%s.png", "/csl/%s.json"} {
			want[fmt.Sprintf(path, player.Other)] = notFound
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

// profile returns the SHA-256 of the player's CustomSkinLoader profile.
func (p player) profile(t *testing.T) string {
	t.Helper()
	type textures struct {
		Default string `json:"default,omitempty"`
		Cape    string `json:"cape,omitempty"`
	}
	text := testenv.Must(json.Marshal(struct {
		Username string   `json:"username"`
		Skins    textures `json:"skins"`
		Cape     string   `json:"cape,omitempty"`
		Textures textures `json:"textures"`
	}{p.Name, textures{Default: p.Skin}, p.Cape, textures{p.Skin, p.Cape}}))(t)
	return skin.HashOf(text).String()
}

const (
	selectTextures = "SELECT tid, encode(hash, 'hex') AS hash FROM textures ORDER BY tid"

	selectPlayers = `
	SELECT p.name, 'p' || p.uid || CASE WHEN p.name LIKE '%a' THEN 'b' ELSE 'a' END AS other, p.uuid::text,
		coalesce(p.tid_skin, 0) AS tid, coalesce(encode(s.hash, 'hex'), '') AS skin, coalesce(encode(c.hash, 'hex'), '') AS cape
	FROM players p LEFT JOIN textures s ON s.tid = p.tid_skin LEFT JOIN textures c ON c.tid = p.tid_cape
	WHERE p.uid < $1`
)
