package chaos

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// allowance is for how long an edge may believe what it remembers without a word
// from core.
const allowance = time.Second

// missing is what an address shows where there is no picture.
const missing = "404"

// faceless is what an address shows that leads to a cape, of which there is no
// avatar.
const faceless = "422"

// subject is an address of a picture with all that it was to show.
type subject struct {
	path string

	mu     sync.Mutex
	writes []write
	// loose is set when nobody knows whether a write was committed, or may be yet.
	loose bool
}

// write is a change of what a subject shows: to an entity tag, or to missing.
type write struct {
	shows        string
	begun, acked time.Time // acked is zero until core has said that it is committed
}

func newSubject(path, shows string) *subject {
	return &subject{path: path, writes: []write{{shows: shows}}}
}

// begin notes that a write begins.
func (s *subject) begin(shows string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, write{shows: shows, begun: now})
}

// end notes that the write that was begun last is committed, or may be.
func (s *subject) end(committed bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if committed {
		s.writes[len(s.writes)-1].acked = now
	} else {
		s.loose = true
	}
}

// wasTrue reports whether a subject may have shown this at some time from one
// moment to another.
func (s *subject) wasTrue(shows string, from, to time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loose {
		return true
	}
	for i, w := range s.writes {
		if w.shows != shows || w.begun.After(to) {
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

// crowd is the subjects that visitors look at, those that changed lately above all.
type crowd struct {
	mu     sync.Mutex
	lately []*subject // a ring
	next   int
}

// lookLately is how many changes it takes until visitors turn away. It is some
// seconds' worth.
const lookLately = 1000

func (c *crowd) changed(s *subject) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lately) < lookLately {
		c.lately = append(c.lately, s)
		return
	}
	c.lately[c.next%lookLately] = s
	c.next++
}

// pick returns one of them; nil if there is none.
func (c *crowd) pick(draw func(int) int) *subject {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lately) == 0 {
		return nil
	}
	return c.lately[draw(len(c.lately))]
}

// history tells what a subject was to show of late.
func (s *subject) history() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var text strings.Builder
	for _, w := range s.writes[max(0, len(s.writes)-8):] {
		acked := "not acknowledged"
		if !w.acked.IsZero() {
			acked = stamp(w.acked)
		}
		fmt.Fprintf(&text, "\n\t%s from %s, %s", w.shows, stamp(w.begun), acked)
	}
	return text.String()
}
