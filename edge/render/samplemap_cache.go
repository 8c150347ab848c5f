package render

import (
	"sync"

	"github.com/veneer-skins/veneer/shared/sieve"
	"github.com/veneer-skins/veneer/shared/skin"
)

// mapCacheBytes is how much memory kept plans may take. The sizes that a site links to
// are few, and a plan of them for classic sheets takes 0.1 to 1 MB: this holds them
// with room for whatever else is asked for, of which the largest takes 10 MB.
const mapCacheBytes = 64 << 20

// mapKey is what a plan depends on: all of a view that is no matter of colours or
// files, and the scale of the sheet.
type mapKey struct {
	pose  Pose
	model skin.Type
	size  int
	scale int
}

// mapKeyOf returns the key of a view's plan. The head is the same for both models.
func mapKeyOf(view View, scale int) mapKey {
	key := mapKey{view.Pose, view.Type, view.Size, scale}
	if view.Pose == Isometric {
		key.model = skin.Classic
	}
	return key
}

// sampleMap makes the plan.
func (k mapKey) build() *sampleMap { return newSampleMap(k.scene(), k.scale) }

// scene returns what the plan is of.
func (k mapKey) scene() scene {
	if k.pose == Isometric {
		return isometric(k.size)
	}
	return preview(k.model, k.size)
}

// mapCache keeps plans, bounded in bytes. It is safe for concurrent use.
type mapCache struct {
	mu       sync.Mutex
	entries  *sieve.Cache[mapKey, *sampleMap]
	inflight map[mapKey]func() *sampleMap // the first call makes the plan, the others wait
}

func newMapCache(limit int) *mapCache {
	return &mapCache{entries: sieve.New[mapKey, *sampleMap](int64(limit)), inflight: map[mapKey]func() *sampleMap{}}
}

// get returns a plan. One that is not at hand is made, once, however many ask.
func (p *mapCache) get(key mapKey) *sampleMap {
	p.mu.Lock()
	if entry := p.entries.Get(key); entry != nil {
		p.mu.Unlock()
		return *entry
	}
	built := p.inflight[key]
	if built == nil {
		built = sync.OnceValue(func() *sampleMap { return p.build(key) })
		p.inflight[key] = built
	}
	p.mu.Unlock()
	return built()
}

// contains reports whether a plan is finished.
func (p *mapCache) contains(key mapKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.entries.Peek(key) != nil
}

// build makes a plan and keeps it. If that panics, all callers that wait panic too, but a
// later one has it tried again.
func (p *mapCache) build(key mapKey) (built *sampleMap) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.inflight, key)
		if built != nil {
			p.entries.Put(key, built, int64(built.bytes()))
		}
	}()
	return key.build()
}
