package origin

import (
	"sync/atomic"
	"time"
)

// pace allows so much a second, and after a rest what has come together, for
// burst at most.
type pace struct {
	every time.Duration // distance of what is allowed; 0 allows everything
	born  time.Time
	// spent is the moment up to which all has been given away, since born.
	spent atomic.Int64
}

const burst = 2 * time.Second

func newPace(perSecond int) *pace {
	p := &pace{born: time.Now()}
	if perSecond > 0 {
		p.every = time.Second / time.Duration(perSecond)
	}
	p.spent.Store(int64(-burst))
	return p
}

func (p *pace) allow() bool {
	now := time.Since(p.born)
	for {
		spent := p.spent.Load()
		next := max(spent, int64(now-burst)) + int64(p.every)
		if next > int64(now) {
			return false
		}
		if p.spent.CompareAndSwap(spent, next) {
			return true
		}
	}
}
