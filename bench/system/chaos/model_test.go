package chaos

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// maxStaleness is how long an edge may trust cached mappings without a heartbeat of core.
const maxStaleness = time.Second

// missing is the value of a path without a picture.
const missing = "404"

// noHeadStatus is the value of an avatar path that resolves to a cape.
const noHeadStatus = "422"

// resource is the path of a picture with the history of its expected values.
type resource struct {
	path string

	mu     sync.Mutex
	writes []write
	// uncertain is set once a write may or may not be committed.
	uncertain bool
}

// write is a change of a resource's value: to an entity tag, or to missing.
type write struct {
	value        string
	begun, acked time.Time // acked is zero until core has acknowledged the write
}

func newResource(path, value string) *resource {
	return &resource{path: path, writes: []write{{value: value}}}
}

// begin records that a write begins.
func (r *resource) begin(value string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, write{value: value, begun: now})
}

// end records that the write that was begun last is committed, or may be.
func (r *resource) end(committed bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if committed {
		r.writes[len(r.writes)-1].acked = now
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
	for i, w := range r.writes {
		if w.value != value || w.begun.After(to) {
			continue
		}
		if i+1 == len(r.writes) {
			return true
		}
		if next := r.writes[i+1]; next.acked.IsZero() || !next.acked.Before(from) {
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

// recentSize is the size of the ring, some seconds' worth of changes.
const recentSize = 1000

func (r *recentChanges) add(s *resource) {
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

// history describes the last expected values of a resource.
func (r *resource) history() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var text strings.Builder
	for _, w := range r.writes[max(0, len(r.writes)-8):] {
		acked := "not acknowledged"
		if !w.acked.IsZero() {
			acked = stamp(w.acked)
		}
		fmt.Fprintf(&text, "\n\t%s from %s, %s", w.value, stamp(w.begun), acked)
	}
	return text.String()
}
