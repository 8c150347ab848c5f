package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/site"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

// changingUser is a user with one player, changed by one writer only.
type changingUser struct {
	bearer      string
	uid, pid    int64
	names       [2]*resource // the player has one of two names
	nameIndex   int          // index of the current name
	skinIndex   int          // index of the skin; -1 for none
	skinChanges int          // number of skins set so far
	user        *resource
}

// writer changes users, one change after another, through any core.
type writer struct {
	*rand.Rand
	t         *testing.T
	client    *http.Client
	cores     []string // base URLs
	coreIndex int      // index of the core in use, until it fails
	bearer    string   // of a user that is never changed
	tids      []int64  // of the skins
	avatars   []string // what fetch returns for them
	capes     []int64  // of the capes
	recent    *recentChanges
	noiseSeed *atomic.Uint64 // makes every upload different

	users  <-chan *changingUser // of all writers, that were not changed yet; closed
	active []*changingUser

	committed *atomic.Int64
	unknown   int
}

// run makes one change a tick until ctx ends.
func (w *writer) run(ctx context.Context, tick <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		for len(w.active) < 20 { // users between which a writer alternates
			p := <-w.users
			if p == nil {
				break
			}
			w.active = append(w.active, p)
		}
		if len(w.active) == 0 {
			w.t.Errorf("%d users were too few: each change without a response takes one", users)
			return
		}
		i := w.IntN(len(w.active))
		if w.change(ctx, w.active[i]) {
			continue
		}
		// The change may be committed now or later, so the values of this user are unknown
		// until the end. Another core may be reachable.
		w.coreIndex++
		w.unknown++
		w.active = append(w.active[:i], w.active[i+1:]...)
		w.awaitCore(ctx)
	}
}

// change makes a random change and reports whether it was acknowledged.
func (w *writer) change(ctx context.Context, p *changingUser) bool {
	avatarOf := func(index int) string {
		if index < 0 {
			return notFound
		}
		return w.avatars[index]
	}
	player := "/api/players/" + strconv.FormatInt(p.pid, 10)
	// Each user has every skin once before the first comes again, so that old values differ
	// from new ones.
	next := (p.skinChanges + 1) % len(w.tids)
	tid := strconv.FormatInt(w.tids[next], 10)
	switch n := w.IntN(100); {
	case n < 5:
		return w.upload(ctx, p)
	case n < 20:
		p.skinChanges++
		return w.commit(ctx, p, "PUT", "/api/user/avatar", "tid="+tid, map[*resource]string{p.user: avatarOf(next)})
	case n < 32:
		other := 1 - p.nameIndex
		done := w.commit(ctx, p, "PUT", player+"/name", "name="+strings.TrimPrefix(p.names[other].path, playerPath),
			map[*resource]string{p.names[p.nameIndex]: notFound, p.names[other]: avatarOf(p.skinIndex)})
		p.nameIndex = other
		return done
	case n < 40 && p.skinIndex >= 0:
		p.skinIndex = -1
		return w.commit(ctx, p, "DELETE", player+"/textures", "skin=", map[*resource]string{p.names[p.nameIndex]: notFound})
	case n < 45:
		cape := w.capes[w.IntN(len(w.capes))]
		return w.commit(ctx, p, "PUT", player+"/textures", fmt.Sprint("cape=", cape), nil)
	default:
		p.skinChanges++
		p.skinIndex = next
		return w.commit(ctx, p, "PUT", player+"/textures", "skin="+tid, map[*resource]string{p.names[p.nameIndex]: avatarOf(next)})
	}
}

// commit sends a change of resources' values. The effect of a cape is compared at the end only.
func (w *writer) commit(ctx context.Context, p *changingUser, method, path, form string, values map[*resource]string) bool {
	begun := time.Now()
	for s, values := range values {
		s.begin(values, begun)
	}
	committed := w.send(ctx, p.bearer, method, path, formType, []byte(form))
	acked := time.Now()
	for s := range values {
		s.end(committed, acked)
		w.recent.add(s)
	}
	return committed
}

// upload adds a texture. Clients may have requested its URL before. Its picture is compared at
// the end.
func (w *writer) upload(ctx context.Context, p *changingUser) bool {
	form := site.SheetForm("chaos", skin.Classic, skintest.Noise(w.noiseSeed.Add(1), 64, 64))
	return w.send(ctx, p.bearer, "POST", "/api/textures", site.UploadType, form)
}

func (w *writer) api() string { return w.cores[w.coreIndex%len(w.cores)] }

// send tries one core after another until a connection succeeds, and reports whether the response
// was a success.
func (w *writer) send(ctx context.Context, bearer, method, path, contentType string, body []byte) bool {
	for {
		status, _, err := call(w.client, w.api(), method, path, bearer, contentType, body)
		if dialed := (*net.OpError)(nil); errors.As(err, &dialed) && dialed.Op == "dial" {
			w.coreIndex++
			select { // nothing was sent
			case <-time.After(20 * time.Millisecond):
				continue
			case <-ctx.Done():
				return false
			}
		}
		switch {
		case err != nil || status >= http.StatusInternalServerError:
			return false
		case status != http.StatusOK:
			w.t.Errorf("%s %s: status %d", method, path, status)
			return false
		}
		w.committed.Add(1)
		return true
	}
}

// awaitCore waits until a core responds from its database.
func (w *writer) awaitCore(ctx context.Context) {
	for ctx.Err() == nil {
		status, _, err := call(w.client, w.api(), "GET", "/api/user", w.bearer, "", nil)
		if err == nil && status == http.StatusOK {
			return
		}
		w.coreIndex++
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// playerPath is the prefix of the path of a player's avatar.
const playerPath = "/avatar/player/"

// maxStaleness is how long an edge may trust cached mappings without a heartbeat of core.
const maxStaleness = time.Second

// resource is the path of a picture with the history of its expected values.
type resource struct {
	path string

	mu      sync.Mutex
	changes []valueChange
	// uncertain is set once a write may or may not be committed.
	uncertain bool
}

// valueChange is a change of a resource's value.
type valueChange struct {
	value        string    // as fetch returns it
	begun, acked time.Time // acked is zero until core has acknowledged the write
}

func newResource(path, value string) *resource {
	return &resource{path: path, changes: []valueChange{{value: value}}}
}

// begin records that a write begins.
func (r *resource) begin(value string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, valueChange{value: value, begun: now})
}

// end records that the write that was begun last is committed, or may be.
func (r *resource) end(committed bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if committed {
		r.changes[len(r.changes)-1].acked = now
	} else {
		r.uncertain = true
	}
}

// wasValid reports whether a value may have been valid at some time between two moments.
func (r *resource) wasValid(value string, from, to time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.uncertain {
		return true
	}
	for i, w := range r.changes {
		if w.value != value || w.begun.After(to) {
			continue
		}
		if i+1 == len(r.changes) {
			return true
		}
		if next := r.changes[i+1]; next.acked.IsZero() || !next.acked.Before(from) {
			return true
		}
	}
	return false
}

// recentChanges is a ring of the most recently changed resources, which clients request.
type recentChanges struct {
	mu   sync.Mutex
	ring []*resource
	next int
}

func (r *recentChanges) add(s *resource) {
	const recentSize = 1000 // some seconds' worth of changes
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ring) < recentSize {
		r.ring = append(r.ring, s)
		return
	}
	r.ring[r.next%recentSize] = s
	r.next++
}

// pick returns a random entry; nil if there is none.
func (r *recentChanges) pick(draw func(int) int) *resource {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ring) == 0 {
		return nil
	}
	return r.ring[draw(len(r.ring))]
}

func (r *resource) history() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var text strings.Builder
	for _, w := range r.changes[max(0, len(r.changes)-8):] {
		acked := "not acknowledged"
		if !w.acked.IsZero() {
			acked = stamp(w.acked)
		}
		fmt.Fprintf(&text, "\n\t%s from %s, %s", w.value, stamp(w.begun), acked)
	}
	return text.String()
}
