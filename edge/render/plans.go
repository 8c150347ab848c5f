package render

import (
	"sync"

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

// plans keeps plans, of which those go first that were not used for longest. It is
// safe for concurrent use.
type plans struct {
	limit int // in bytes

	mu    sync.Mutex
	known map[planKey]*keptPlan
	bytes int    // of all that are finished
	uses  uint64 // so far
}

// keptPlan is a plan that is kept, or in the making.
type keptPlan struct {
	plan  func() *plan // whoever calls first makes it, the others wait
	bytes int          // 0 while it is in the making
	used  uint64       // which of all uses was its last
}

func newPlans(limit int) *plans {
	return &plans{limit: limit, known: make(map[planKey]*keptPlan)}
}

// of returns a plan. One that is not at hand is made, once, however many ask.
func (p *plans) of(key planKey) *plan {
	p.mu.Lock()
	kept := p.known[key]
	if kept == nil {
		kept = &keptPlan{plan: sync.OnceValue(func() *plan { return p.make(key) })}
		p.known[key] = kept
	}
	p.use(kept)
	p.mu.Unlock()
	return kept.plan()
}

// has reports whether a plan is finished.
func (p *plans) has(key planKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.known[key]
	return kept != nil && kept.bytes > 0
}

// use counts a use of a plan.
func (p *plans) use(kept *keptPlan) {
	p.uses++
	kept.used = p.uses
}

// make makes a plan that is known already. If that panics, all who wait panic too,
// but who asks later has it tried again.
func (p *plans) make(key planKey) *plan {
	var made *plan
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if made == nil {
			delete(p.known, key)
		} else {
			p.keep(p.known[key], made.bytes())
		}
	}()
	made = key.plan()
	return made
}

// keep counts a plan that is finished, and forgets others if they have become too
// much together. It counts as used only now: those used while it was in the making
// are no newer.
func (p *plans) keep(kept *keptPlan, bytes int) {
	p.use(kept)
	kept.bytes = bytes
	p.bytes += bytes
	for p.bytes > p.limit {
		p.forgetOldest()
	}
}

// forgetOldest forgets the plan that was not used for longest, of those that are
// finished. There are so few plans that looking at all costs nothing beside making
// one.
func (p *plans) forgetOldest() {
	var oldest planKey
	last := p.uses + 1
	for key, kept := range p.known {
		if kept.bytes > 0 && kept.used < last {
			oldest, last = key, kept.used
		}
	}
	p.bytes -= p.known[oldest].bytes
	delete(p.known, oldest)
}
