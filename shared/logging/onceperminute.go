package logging

import (
	"sync/atomic"
	"time"
)

// OncePerMinute bounds how often clients can have something logged. The zero value is ready, and safe for
// concurrent use.
type OncePerMinute struct {
	last atomic.Int64 // Unix second
}

// Allow reports whether it is more than a minute since it last reported true.
func (m *OncePerMinute) Allow() bool {
	now, before := time.Now().Unix(), m.last.Load()
	return now-before >= 60 && m.last.CompareAndSwap(before, now)
}
