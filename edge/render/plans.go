package render

import (
	"sync"

	"github.com/veneer-skins/veneer/shared/sieve"
	"github.com/veneer-skins/veneer/shared/skin"
)

// planBytes is how much memory kept plans may take. The sizes that a site links to
// are few, and a plan of them for classic sheets takes 0.1 to 1 MB: this holds them
// with room for whatever else is asked for, of which the largest takes 10 MB.
const planBytes = 64 << 20

// planKey is what a plan depends on: all of a view that is no matter of colours or
// files, and the scale of the sheet.
type planKey struct {
	pose  Pose
	model skin.Type
	size  int
	scale int
}

// planOf returns the key of a view's plan. The head is the same for both models.
func planOf(view View, scale int) planKey {
	key := planKey{view.Pose, view.Type, view.Size, scale}
	if view.Pose == Isometric {
		key.model = skin.Steve
	}
	return key
}

// plan makes the plan.
func (k planKey) plan() *plan { return newPlan(k.scene(), k.scale) }

// scene returns what the plan is of.
func (k planKey) scene() scene {
	if k.pose == Isometric {
		return isometric(k.size)
	}
	return preview(k.model, k.size)
}

// plans keeps plans, bounded in bytes. It is safe for concurrent use.
type plans struct {
	mu     sync.Mutex
	known  *sieve.Cache[planKey, *plan]
	making map[planKey]func() *plan // the first call makes the plan, the others wait
}

func newPlans(limit int) *plans {
	return &plans{known: sieve.New[planKey, *plan](int64(limit)), making: map[planKey]func() *plan{}}
}

// of returns a plan. One that is not at hand is made, once, however many ask.
func (p *plans) of(key planKey) *plan {
	p.mu.Lock()
	if known := p.known.Get(key); known != nil {
		p.mu.Unlock()
		return *known
	}
	made := p.making[key]
	if made == nil {
		made = sync.OnceValue(func() *plan { return p.make(key) })
		p.making[key] = made
	}
	p.mu.Unlock()
	return made()
}

// has reports whether a plan is finished.
func (p *plans) has(key planKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known.Peek(key) != nil
}

// make makes a plan and keeps it. If that panics, all callers that wait panic too, but a
// later one has it tried again.
func (p *plans) make(key planKey) (made *plan) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.making, key)
		if made != nil {
			p.known.Put(key, made, int64(made.bytes()))
		}
	}()
	return key.plan()
}
