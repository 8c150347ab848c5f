package render

import (
	"sync"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
)

func head32(scale int) planKey { return planKey{Isometric, skin.Steve, 32, scale} }

// However many ask for a plan at once, all get the same.
func TestPlansAreMadeOnce(t *testing.T) {
	t.Parallel()

	kept := newPlans(planBytes)
	var all sync.WaitGroup
	got := make([][]*plan, 8)
	for i := range got {
		all.Go(func() {
			for scale := 1; scale <= 4; scale++ {
				got[i] = append(got[i], kept.of(head32(scale)))
			}
		})
	}
	all.Wait()
	for i := range got {
		for j := range got[i] {
			if got[i][j] != got[0][j] {
				t.Fatalf("the plan for scale %d was made twice", j+1)
			}
		}
	}

	bytes := 0
	for _, p := range got[0] {
		bytes += p.bytes()
	}
	if kept.known.Cost() != int64(bytes) || kept.known.Len() != 4 {
		t.Errorf("%d plans of %d bytes are kept; want 4 of %d", kept.known.Len(), kept.known.Cost(), bytes)
	}
}

// The oldest plan goes first that nothing has used again, and no more than necessary.
func TestOldPlansGo(t *testing.T) {
	t.Parallel()

	var keys []planKey
	limit := -1
	for size := 64; size <= 104; size += 8 {
		keys = append(keys, planKey{Isometric, skin.Steve, size, 1})
	}
	for _, key := range keys {
		limit += key.plan().bytes() // too little for all by one byte
	}
	kept := newPlans(limit)
	var first []*plan
	for _, key := range keys[:5] {
		first = append(first, kept.of(key))
	}
	kept.of(keys[0])
	kept.of(keys[5]) // only the first was used again

	for i, key := range keys[:5] {
		known := kept.known.Peek(key)
		if there := known != nil; there != (i != 1) {
			t.Errorf("plan %d is kept: %t", i, there)
		} else if there && *known != first[i] {
			t.Errorf("plan %d is another", i)
		}
	}
	if kept.known.Cost() > int64(limit) {
		t.Errorf("plans of %d bytes are kept; at most %d may be", kept.known.Cost(), limit)
	}
}

// A plan that is too large to keep is made whenever it is asked for.
func TestLargePlansAreNotKept(t *testing.T) {
	t.Parallel()

	kept := newPlans(head32(1).plan().bytes() - 1)
	one, other := kept.of(head32(1)), kept.of(head32(1))
	if one == nil || one == other || kept.known.Len() != 0 || len(kept.making) != 0 {
		t.Errorf("a large plan is kept: %d plans of %d bytes", kept.known.Len(), kept.known.Cost())
	}
}

// A plan that cannot be made is no plan for those who ask later.
func TestPlansThatPanicAreForgotten(t *testing.T) {
	t.Parallel()

	broken := planKey{Isometric, skin.Steve, -8, 1}
	kept := newPlans(planBytes)
	for range 2 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a picture of -8 pixels has a plan")
				}
			}()
			kept.of(broken)
		}()
		if kept.known.Len() != 0 || len(kept.making) != 0 {
			t.Fatalf("%d plans are kept, %d are in the making", kept.known.Len(), len(kept.making))
		}
	}
}

// Crisp pictures are planned, and smooth ones unless a plan would be too large or take too
// long.
func TestPlanned(t *testing.T) {
	t.Parallel()

	f := func(pose Pose, size, scale int, want bool) {
		t.Helper()
		key := planKey{pose, skin.Steve, size, scale}
		if p := key.plan(); (p.sketch == nil) != want {
			t.Errorf("%s is planned: %t", key, !want)
		}
	}

	f(Isometric, 256, 5, true)
	f(Isometric, 64, 6, false)
	f(Isometric, 512, 8, true) // crisp
	f(Preview, 400, 5, true)
	f(Preview, 448, 5, false)
	f(Preview, 64, 6, false)
	f(Preview, 640, 4, true) // crisp
	f(Preview, 64, skin.MaxScale, false)
}

// Heads have one plan for both models, bodies have two.
func TestPlanOf(t *testing.T) {
	t.Parallel()

	f := func(pose Pose, same bool) {
		t.Helper()
		steve, alex := planOf(View{Pose: pose, Type: skin.Steve, Size: 64}, 1), planOf(View{Pose: pose, Type: skin.Alex, Size: 64, Format: WebP}, 1)
		if (steve == alex) != same {
			t.Errorf("%s: %s and %s", pose, steve, alex)
		}
	}

	f(Isometric, true)
	f(Preview, false)
}
