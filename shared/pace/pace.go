// Package pace lets so much happen a second.
package pace

import (
	"sync/atomic"
	"time"
)

// Pace allows so much a second and, after a rest, at once what the rest has left
// unused.
type Pace struct {
	every, burst time.Duration
	born         time.Time
	// spent is the moment up to which all has been given away, since born.
	spent atomic.Int64
}

// New returns a pace that allows so much a second, 0 for everything, and after a
// rest at once as much as it allows in burst.
func New(perSecond int, burst time.Duration) *Pace {
	p := &Pace{burst: burst, born: time.Now()}
	if perSecond > 0 {
		p.every = time.Second / time.Duration(perSecond)
	}
	p.spent.Store(int64(-burst))
	return p
}

// Allow reports whether one more may happen, and counts it if so.
func (p *Pace) Allow() bool {
	for {
		spent := p.spent.Load()
		next, ok := p.after(spent)
		if !ok || p.spent.CompareAndSwap(spent, next) {
			return ok
		}
	}
}

// Allows reports whether one more might happen, and counts nothing.
func (p *Pace) Allows() bool {
	_, ok := p.after(p.spent.Load())
	return ok
}

// after returns what is spent once one more has happened, unless that is too much.
func (p *Pace) after(spent int64) (next int64, ok bool) {
	now := time.Since(p.born)
	next = max(spent, int64(now-p.burst)) + int64(p.every)
	return next, next <= int64(now)
}
