package faults

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/veneer-skins/veneer/bench/system/site"
)

const selectStates = `
	SELECT u.uid, coalesce(p.name, '') AS name, coalesce(encode(t.hash, 'hex'), '') AS skin,
		coalesce((SELECT string_agg(c.tid || '=' || c.item_name, ',' ORDER BY c.tid) FROM closet_items c WHERE c.uid = u.uid), '') AS closet,
		EXISTS (SELECT FROM sessions s WHERE s.uid = u.uid) AS live
	FROM unnest($1::bigint[]) AS u (uid) LEFT JOIN players p USING (uid) LEFT JOIN textures t ON t.tid = p.tid_skin`

// compare compares the database with what was acknowledged to users, and what every edge serves
// with the database.
func (h *harness) compare(users []*testUser) {
	uids := make([]int64, len(users))
	lacking := make([]atomic.Bool, len(users)) // users that lack something acknowledged
	for i, p := range users {
		uids[i] = int64(p.User)
	}
	conn := h.Conn()
	defer func() { _ = conn.Close(h.Context()) }()
	states := map[int64]state{}
	for _, one := range site.Rows(h, conn, pgx.RowToStructByName[state], selectStates, uids) {
		states[one.UID] = one
	}
	for i, p := range users {
		if p.voided.Load() {
			h.row.Voided += p.acked
			continue
		}
		h.row.Acknowledged += p.acked
		if actual := states[int64(p.User)]; !p.consistentWith(actual) {
			lacking[i].Store(true)
			h.logf("LOST: after %d writes, uncertain %t, there is %+v; want %+v", p.acked, p.uncertain, actual, p.stateAfter(p.acked))
		}
	}
	h.compareWithEdges(users, states, lacking)
	atOnce(len(users), func(i int) {
		p := users[i]
		if !p.sessionEnded.Load() && (p.acked < signedOut || p.voided.Load()) {
			return
		}
		for _, core := range h.Cores {
			if status, _, err := call(h.writeLog.client, "http://"+core.Setting("CORE_LISTEN"), http.MethodGet, "/api/user", p.Bearer, "", nil); err != nil || status != http.StatusUnauthorized {
				lacking[i].Store(true)
				h.logf("LOST: the token of an ended session is answered %d, %v", status, err)
			}
		}
	})
	for i := range lacking {
		if lacking[i].Load() {
			h.row.Lost++
		}
	}
}

// compareWithEdges compares what every edge serves with the database.
func (h *harness) compareWithEdges(users []*testUser, states map[int64]state, lacking []atomic.Bool) {
	client, edges := h.writeLog.client, h.edgeURLs()
	want, ownerOf := map[string]string{}, map[string]int{}
	shown := make([]string, len(users)) // at the address of the file's hash
	atOnce(len(users), func(i int) {
		if p := users[i]; p.hash != "" && !p.voided.Load() {
			shown[i] = await(client, edges[0], "/avatar/hash/"+p.hash, visibleAfter, isDigest)
		}
	})
	for i, p := range users {
		for _, name := range p.names() {
			want["/skin/"+name+".png"] = notFound
		}
		if is := states[int64(p.User)]; is.Name != "" && is.Skin != "" {
			want["/skin/"+is.Name+".png"] = is.Skin
		}
		if p.hash == "" || p.voided.Load() {
			continue
		}
		file := "/textures/" + p.hash
		want[file], ownerOf[file] = p.hash, i
		// After a restore a tid may be another texture's.
		want[fmt.Sprint("/avatar/", p.tid)] = shown[i]
		want["/avatar/hash/"+p.hash] = shown[i]
	}
	for _, m := range compareEdges(client, edges, want, visibleAfter) {
		if owner, isFile := ownerOf[m.path]; isFile {
			lacking[owner].Store(true)
			h.logf("LOST: the file at %s is served as %s", m.path, m.got)
			continue
		}
		h.row.Mismatched++
		h.logf("MISMATCHED: edge %d serves %s at %s; want %s", m.edge, m.got, m.path, m.want)
	}
}

// visibleAfter is the time that an edge may take to see the last commit.
const visibleAfter = 5 * time.Second

func (h *harness) edgeURLs() (urls []string) {
	for _, edge := range h.Edges {
		urls = append(urls, "http://"+edge.Setting("EDGE_LISTEN"))
	}
	return urls
}
