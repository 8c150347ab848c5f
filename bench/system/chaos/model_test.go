package chaos

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// maxStaleness is for how long an edge may believe what it remembers without a word
// from core.
const maxStaleness = time.Second

// missing is what an address shows where there is no picture.
const missing = "404"

// faceless is what an address shows that leads to a cape, of which there is no
// avatar.
const faceless = "422"

// resource is an address of a picture with all that it was to show.
type resource struct {
	path string

	mu     sync.Mutex
	writes []write
	// uncertain is set when nobody knows whether a write was committed, or may be yet.
	uncertain bool
}

// write is a change of what a subject shows: to an entity tag, or to missing.
type write struct {
	value        string
	begun, acked time.Time // acked is zero until core has said that it is committed
}

func newResource(path, value string) *resource {
	return &resource{path: path, writes: []write{{value: value}}}
}

// begin notes that a write begins.
func (s *resource) begin(value string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, write{value: value, begun: now})
}

// end notes that the write that was begun last is committed, or may be.
func (s *resource) end(committed bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if committed {
		s.writes[len(s.writes)-1].acked = now
	} else {
		s.uncertain = true
	}
}

// wasValid reports whether a subject may have shown this at some time from one
// moment to another.
func (s *resource) wasValid(value string, from, to time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uncertain {
		return true
	}
	for i, w := range s.writes {
		if w.value != value || w.begun.After(to) {
			continue
		}
		if i+1 == len(s.writes) {
			return true
		}
		if next := s.writes[i+1]; next.acked.IsZero() || !next.acked.Before(from) {
			return true
		}
	}
	return false
}

// recentChanges is the subjects that visitors look at, those that changed lately above all.
type recentChanges struct {
	mu   sync.Mutex
	ring []*resource // a ring
	next int
}

// recentSize is how many changes it takes until visitors turn away. It is some
// seconds' worth.
const recentSize = 1000

func (c *recentChanges) add(s *resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ring) < recentSize {
		c.ring = append(c.ring, s)
		return
	}
	c.ring[c.next%recentSize] = s
	c.next++
}

// pick returns one of them; nil if there is none.
func (c *recentChanges) pick(draw func(int) int) *resource {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.ring) == 0 {
		return nil
	}
	return c.ring[draw(len(c.ring))]
}

// history tells what a subject was to show of late.
func (s *resource) history() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	for _, w := range s.writes[max(0, len(s.writes)-8):] {
		acked := "not acknowledged"
		if !w.acked.IsZero() {
			acked = stamp(w.acked)
		}
		fmt.Fprintf(&text, "\n\t%s from %s, %s", w.value, stamp(w.begun), acked)
	}
	return text.String()
}
