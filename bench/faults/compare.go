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
	SELECT u.uid, coalesce(p.name, '') AS name, coalesce(encode(t.hash, 'hex'), '') AS wears,
		coalesce((SELECT string_agg(c.tid || '=' || c.item_name, ',' ORDER BY c.tid) FROM closet_items c WHERE c.uid = u.uid), '') AS closet,
		EXISTS (SELECT FROM sessions s WHERE s.uid = u.uid) AS live
	FROM unnest($1::bigint[]) AS u (uid) LEFT JOIN players p USING (uid) LEFT JOIN textures t ON t.tid = p.tid_skin`

// compare holds what PostgreSQL has of people against what was acknowledged to them, and
// what every edge shows of them against what PostgreSQL has.
func (s *stage) compare(who []*person) {
	s.Helper()
	uids := make([]int64, len(who))
	var unlike atomic.Int64
	wronged := make([]atomic.Bool, len(who)) // who lacks something that was acknowledged
	for i, p := range who {
		uids[i] = int64(p.User)
	}
	conn := s.Conn(s)
	defer func() { _ = conn.Close(s.Context()) }()
	rows, _ := conn.Query(s.Context(), selectStates, uids) // CollectRows reports the error
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[state])
	if err != nil {
		s.Fatal(err)
	}
	states := map[int64]state{}
	for _, one := range found {
		states[one.UID] = one
	}
	for i, p := range who {
		if p.void.Load() {
			s.row.Voided += p.done
			continue
		}
		s.row.Acknowledged += p.done
		if kept := states[int64(p.User)]; !p.kept(kept) {
			wronged[i].Store(true)
			s.say("LOST: after %d writes, loose %t, there is %+v; want %+v", p.done, p.loose, kept, p.after(p.done))
		}
	}
	atOnce(len(who), func(i int) {
		p := who[i]
		for _, edge := range s.Edges {
			base := "http://" + edge.Setting("EDGE_LISTEN")
			for _, name := range p.names() {
				want := "404"
				if is := states[int64(p.User)]; is.Name == name && is.Wears != "" {
					want = is.Wears
				}
				if shows := s.settled(base, "/skin/"+name+".png", want); shows != want {
					unlike.Add(1)
					s.say("UNLIKE: an edge shows %s for %s; want %s", shows, name, want)
				}
			}
			if p.hash != "" && !p.void.Load() {
				if !s.agree(base, fmt.Sprint("/avatar/", p.tid), "/avatar/hash/"+p.hash) {
					unlike.Add(1)
					s.say("UNLIKE: an edge shows another picture for texture %d than for its hash", p.tid)
				}
				if shows := s.settled(base, "/textures/"+p.hash, p.hash); shows != p.hash {
					wronged[i].Store(true)
					s.say("LOST: the file %s is shown as %s", p.hash, shows)
				}
			}
		}
		if !p.ended.Load() && (p.done < signedOut || p.void.Load()) {
			return
		}
		for _, core := range s.Cores {
			if status, _, err := call(s.ledger.client, "http://"+core.Setting("CORE_LISTEN"), http.MethodGet, "/api/user", p.Bearer, "", nil); err != nil || status != http.StatusUnauthorized {
				wronged[i].Store(true)
				s.say("LOST: whose session has ended is answered %d, %v", status, err)
			}
		}
	})
	for i := range wronged {
		if wronged[i].Load() {
			s.row.Lost++
		}
	}
	s.row.Unlike = int(unlike.Load())
}

// soon tries for 5 s whether something is so: an edge has a moment to hear of what was
// committed last.
func soon(so func() bool) bool {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); <-tick.C {
		if so() {
			return true
		}
	}
	return false
}

// settled returns what an address shows in the end.
func (s *stage) settled(base, path, want string) (shows string) {
	soon(func() bool { shows = s.show(base, path); return shows == want })
	return shows
}

// agree reports whether a texture's number leads where its hash does: after a restore it
// is another texture's.
func (s *stage) agree(base, byNumber, byHash string) bool {
	return soon(func() bool {
		shows := s.show(base, byHash)
		return len(shows) == 2*sha256.Size && s.show(base, byNumber) == shows
	})
}

// show returns what an address shows now.
func (s *stage) show(base, path string) string {
	status, body, err := call(s.ledger.client, base, http.MethodGet, path, "", "", nil)
	switch digest := sha256.Sum256(body); {
	case err != nil:
		return err.Error()
	case status == http.StatusOK:
		return hex.EncodeToString(digest[:])
	default:
		return fmt.Sprint(status)
	}
}
