package render

import (
	"sync"
	"testing"

	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/skin/skintest"
)

func head32(scale int) mapKey { return newMapKey(Isometric, skin.Classic, 32, scale) }

// Concurrent calls for a sample map get the same one.
func TestSampleMapsAreBuiltOnce(t *testing.T) {
	t.Parallel()

	cache := newMapCache(mapCacheBytes)
	var all sync.WaitGroup
	got := make([][]*sampleMap, 8)
	for i := range got {
		all.Go(func() {
			for scale := 1; scale <= 4; scale++ {
				got[i] = append(got[i], cache.get(head32(scale)))
			}
		})
	}
	all.Wait()
	for i := range got {
		for j := range got[i] {
			if got[i][j] != got[0][j] {
				t.Fatalf("the map for scale %d was built twice", j+1)
			}
		}
	}

	bytes := 0
	for _, p := range got[0] {
		bytes += p.bytes()
	}
	if cache.entries.Cost() != int64(bytes) || cache.entries.Len() != 4 {
		t.Errorf("%d maps of %d bytes are cached; want 4 of %d", cache.entries.Len(), cache.entries.Cost(), bytes)
	}
}

// The oldest map that was not used again is evicted first, and no more than necessary.
func TestMapCacheEvicts(t *testing.T) {
	t.Parallel()

	var keys []mapKey
	limit := -1
	for size := 64; size <= 104; size += 8 {
		keys = append(keys, newMapKey(Isometric, skin.Classic, size, 1))
	}
	for _, key := range keys {
		limit += key.build().bytes() // too little for all by one byte
	}
	cache := newMapCache(limit)
	var first []*sampleMap
	for _, key := range keys[:5] {
		first = append(first, cache.get(key))
	}
	cache.get(keys[0])
	cache.get(keys[5]) // only the first was used again

	for i, key := range keys[:5] {
		entry := cache.entries.Peek(key)
		if cached := entry != nil; cached != (i != 1) {
			t.Errorf("map %d is cached: %t", i, cached)
		} else if cached && *entry != first[i] {
			t.Errorf("map %d is another one", i)
		}
	}
	if cache.entries.Cost() > int64(limit) {
		t.Errorf("maps of %d bytes are cached; want at most %d", cache.entries.Cost(), limit)
	}
}

// A map larger than the cache is built for every call.
func TestLargeMapsAreNotCached(t *testing.T) {
	t.Parallel()

	cache := newMapCache(head32(1).build().bytes() - 1)
	one, other := cache.get(head32(1)), cache.get(head32(1))
	if one == nil || one == other || cache.entries.Len() != 0 || len(cache.inflight) != 0 {
		t.Errorf("a large map is cached: %d maps of %d bytes", cache.entries.Len(), cache.entries.Cost())
	}
}

// A panic while building is not cached.
func TestPanicIsNotCached(t *testing.T) {
	t.Parallel()

	broken := newMapKey(Isometric, skin.Classic, -8, 1)
	cache := newMapCache(mapCacheBytes)
	for range 2 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a picture of -8 pixels has a map")
				}
			}()
			cache.get(broken)
		}()
		if cache.entries.Len() != 0 || len(cache.inflight) != 0 {
			t.Fatalf("%d maps are cached, %d in flight", cache.entries.Len(), len(cache.inflight))
		}
	}
}

// Crisp pictures have full maps, and smooth ones unless a map would be too large or too slow.
func TestIsMapped(t *testing.T) {
	t.Parallel()

	f := func(mode Mode, size, scale int, want bool) {
		t.Helper()
		key := newMapKey(mode, skin.Classic, size, scale)
		if p := key.build(); (p.scanned == nil) != want {
			t.Errorf("%s is mapped: %t", key, !want)
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

// Heads have one map for both models, previews have two.
func TestMapKeyOf(t *testing.T) {
	t.Parallel()

	f := func(mode Mode, same bool) {
		t.Helper()
		steve, alex := mapKeyOf(View{Mode: mode, Type: skin.Classic, Size: 64}, scales{skin: 1}), mapKeyOf(View{Mode: mode, Type: skin.Slim, Size: 64, Format: WebP}, scales{skin: 1})
		if (steve == alex) != same {
			t.Errorf("%s: %s and %s", mode, steve, alex)
		}
	}

	f(Isometric, true)
	f(Preview, false)
	f(Bust, false)
	f(Body, false)
}

// Only the default attitude and pose have cached maps, and pictures without layers or light share them.
func TestOtherAttitudesAreNotMapped(t *testing.T) {
	t.Parallel()

	r := New(new(NativeEncoder), nil)
	sheet := skintest.Noise(1, 64, 64)
	drawWorn := func(worn skin.Sheet, view View) {
		t.Helper()
		view.Mode, view.Type, view.Size = Body, skin.Classic, 64
		if _, err := r.Draw(sheet, worn, view); err != nil {
			t.Fatal(err)
		}
	}
	draw := func(attitude Attitude, omit Omissions) {
		t.Helper()
		drawWorn(skin.Sheet{}, View{Attitude: attitude, Omit: omit})
	}
	for attitude := Attitude(1); attitude < attitudeCount; attitude++ {
		draw(attitude, 0)
	}
	for pose := Walk; pose < PoseCount; pose++ {
		drawWorn(skintest.Noise(2, 64, 32), View{Pose: pose, Wear: WearCape})
	}
	if n := r.sampleMaps.entries.Len(); n != 0 {
		t.Errorf("%d maps of other attitudes and poses are cached", n)
	}
	for omit := range Body.Omissible() + 1 {
		draw(0, omit)
	}
	if n := r.sampleMaps.entries.Len(); n != 1 {
		t.Errorf("%d maps are cached; want one for all that is left out", n)
	}
	for k := 1; k <= 2; k++ {
		for wear := WearCape; wear <= WearElytra; wear++ {
			drawWorn(skintest.Noise(2, 64*k, 32*k), View{Wear: wear})
		}
	}
	if n := r.sampleMaps.entries.Len(); n != 5 {
		t.Errorf("%d maps are cached; want four more for capes and elytra of two scales", n)
	}
}

// Every turn and tilt of a mode has an attitude of its own, and the default one is 0.
func TestAttitudes(t *testing.T) {
	t.Parallel()

	for mode := range Mode(ModeCount) {
		seen := map[Attitude]bool{}
		for turn := range TurnCount {
			for tilt := range Tilt(tiltCount) {
				attitude := mode.Attitude(turn, tilt)
				seen[attitude] = true
				if gotTurn, gotTilt := attitude.turnAndTilt(mode); gotTurn != turn || gotTilt != tilt || attitude >= attitudeCount {
					t.Errorf("%s: turn %d and tilt %d are %d, which is turn %d and tilt %d", mode, turn, tilt, attitude, gotTurn, gotTilt)
				}
			}
		}
		if turn, tilt := mode.DefaultAttitude(); len(seen) != attitudeCount || mode.Attitude(turn, tilt) != 0 {
			t.Errorf("%s: %d attitudes, and the default one is %d; want %d and 0", mode, len(seen), mode.Attitude(turn, tilt), attitudeCount)
		}
	}
}
