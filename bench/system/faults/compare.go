package faults

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

const selectStates = `
	SELECT u.uid, coalesce(p.name, '') AS name, coalesce(encode(t.hash, 'hex'), '') AS skin,
		coalesce((SELECT string_agg(c.tid || '=' || c.item_name, ',' ORDER BY c.tid) FROM closet_items c WHERE c.uid = u.uid), '') AS closet,
		EXISTS (SELECT FROM sessions s WHERE s.uid = u.uid) AS live
	FROM unnest($1::bigint[]) AS u (uid) LEFT JOIN players p USING (uid) LEFT JOIN textures t ON t.tid = p.tid_skin`

// compare compares the database with what was acknowledged to users, and what every edge serves
// with the database.
func (h *harness) compare(users []*testUser) {
	h.Helper()
	uids := make([]int64, len(users))
	var mismatches atomic.Int64
	lacking := make([]atomic.Bool, len(users)) // users that lack something acknowledged
	for i, p := range users {
		uids[i] = int64(p.User)
	}
	conn := h.Conn(h)
	defer func() { _ = conn.Close(h.Context()) }()
	rows, _ := conn.Query(h.Context(), selectStates, uids) // CollectRows reports the error
	collected, err := pgx.CollectRows(rows, pgx.RowToStructByName[state])
	if err != nil {
		h.Fatal(err)
	}
	states := map[int64]state{}
	for _, one := range collected {
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
	atOnce(len(users), func(i int) {
		p := users[i]
		for _, edge := range h.Edges {
			base := "http://" + edge.Setting("EDGE_LISTEN")
			for _, name := range p.names() {
				want := "404"
				if is := states[int64(p.User)]; is.Name == name && is.Skin != "" {
					want = is.Skin
				}
				if digest := h.awaitDigest(base, "/skin/"+name+".png", want); digest != want {
					mismatches.Add(1)
					h.logf("MISMATCHED: an edge serves %s for %s; want %s", digest, name, want)
				}
			}
			if p.hash != "" && !p.voided.Load() {
				if !h.sameTexture(base, fmt.Sprint("/avatar/", p.tid), "/avatar/hash/"+p.hash) {
					mismatches.Add(1)
					h.logf("MISMATCHED: an edge serves another picture for texture %d than for its hash", p.tid)
				}
				if digest := h.awaitDigest(base, "/textures/"+p.hash, p.hash); digest != p.hash {
					lacking[i].Store(true)
					h.logf("LOST: the file %s is served as %s", p.hash, digest)
				}
			}
		}
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
	h.row.Mismatched = int(mismatches.Load())
}

// eventually polls a condition for up to 5 s: an edge needs a moment to see the last commit.
func eventually(condition func() bool) bool {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); <-tick.C {
		if condition() {
			return true
		}
	}
	return false
}

// awaitDigest returns what a path serves in the end.
func (h *harness) awaitDigest(base, path, want string) (digest string) {
	eventually(func() bool { digest = h.fetchDigest(base, path); return digest == want })
	return digest
}

// sameTexture reports whether a tid serves the same picture as a hash: after a restore a tid may be
// another texture's.
func (h *harness) sameTexture(base, byNumber, byHash string) bool {
	return eventually(func() bool {
		digest := h.fetchDigest(base, byHash)
		return len(digest) == 2*sha256.Size && h.fetchDigest(base, byNumber) == digest
	})
}

// fetchDigest returns what a path serves now: the body's SHA-256 in hex, else the status or error.
func (h *harness) fetchDigest(base, path string) string {
	status, body, err := call(h.writeLog.client, base, http.MethodGet, path, "", "", nil)
	switch digest := sha256.Sum256(body); {
	case err != nil:
		return err.Error()
	case status == http.StatusOK:
		return hex.EncodeToString(digest[:])
	default:
		return fmt.Sprint(status)
	}
}
