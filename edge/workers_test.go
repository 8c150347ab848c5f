package edge

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
)

func TestDrawingIsBounded(t *testing.T) {
	t.Parallel()
	finish := make(chan struct{})
	s := &fakeBackend{draw: func() error { <-finish; return nil }}
	pictures := s.open(t, Config{RenderWorkers: 2, RenderQueuePerWorker: 3, RenderQueueTimeout: time.Hour})

	const workers, queue, surplus = 2, 2 * 3, 5
	errs := make(chan error, workers+queue+surplus)
	for i := range workers + queue + surplus {
		// All of one texture, since fetching is bounded separately.
		go func() { errs <- pictures.errorOf(t.Context(), viewOf(1, 8*(i+1))) }()
	}
	for range surplus {
		f := fault.Of(<-errs)
		testenv.Check(t, f.Kind == fault.Unavailable && f.RetryAfter == time.Second,
			"a picture too many: %v, retry after %s; want it unavailable for 1s", f, f.RetryAfter)
	}
	close(finish)
	for range workers + queue {
		testenv.Is(t, <-errs, nil, "a picture that waited")
	}
	got := s.mostDrawing.Load()
	testenv.Check(t, got <= workers, "%d pictures were rendered at once; want at most %d", got, workers)
}

func TestRejectedPictureIsNotFetched(t *testing.T) {
	t.Parallel()
	drawing, finish := make(chan struct{}), make(chan struct{})
	defer close(finish)
	s := &fakeBackend{draw: func() error { close(drawing); <-finish; return nil }}
	pictures := s.open(t, Config{RenderWorkers: 1, RenderQueueTimeout: time.Hour})
	go func() { _, _, _ = pictures.picture(t.Context(), viewOf(1, 8), ETag{}) }()
	<-drawing
	for range 3 {
		wantUnavailable(t, pictures.errorOf(t.Context(), viewOf(2, 8)), "a picture too many")
	}
	testenv.Equal(t, s.fetched.Load(), 1, "files were fetched")
}

func TestFetchingTakesNoWorker(t *testing.T) {
	t.Parallel()
	stuck, entered := make(chan struct{}), make(chan struct{})
	defer close(stuck)
	var slow atomic.Bool
	slow.Store(true)
	s := &fakeBackend{fetch: func(context.Context) error {
		if slow.Swap(false) {
			close(entered)
			<-stuck
		}
		return nil
	}}
	pictures := s.open(t, Config{RenderWorkers: 1, RenderQueuePerWorker: 3, RenderQueueTimeout: time.Hour})
	go func() { _, _, _ = pictures.picture(t.Context(), viewOf(1, 8), ETag{}) }()
	<-entered
	testenv.Is(t, pictures.errorOf(t.Context(), viewOf(2, 8)), nil, "picture() while another is fetched")
}

func TestHangingStoreLeavesCapacityForCachedTextures(t *testing.T) {
	t.Parallel()
	stuck, entered := make(chan struct{}), make(chan struct{}, 5)
	var hangs atomic.Bool
	s := &fakeBackend{fetch: func(context.Context) error {
		if hangs.Load() {
			entered <- struct{}{}
			<-stuck
		}
		return nil
	}}
	pictures := s.open(t, Config{RenderWorkers: 1, RenderQueuePerWorker: 9, RenderQueueTimeout: time.Hour})
	testenv.Do(t, pictures.errorOf(t.Context(), viewOf(1, 8)))

	hangs.Store(true)
	const files, atOnce = (1 + 9) / 2, 4
	errs := make(chan error, files)
	for i := range files {
		go func() { errs <- pictures.errorOf(t.Context(), viewOf(byte(i+2), 8)) }()
	}
	for range atOnce {
		<-entered
	}
	testenv.Eventually(t, "the other files are waited for", func() bool { return pictures.workers.state().filesWaiting == files-atOnce })
	wantUnavailable(t, pictures.errorOf(t.Context(), viewOf(99, 8)), "picture() of one more texture")
	testenv.Is(t, pictures.errorOf(t.Context(), viewOf(1, 16)), nil, "picture() of a cached texture")
	close(stuck)
	for range files {
		testenv.Is(t, <-errs, nil, "picture() of a texture that came late")
	}
}

func TestDecodingTakesAWorker(t *testing.T) {
	t.Parallel()
	drawing, finish := make(chan struct{}), make(chan struct{})
	defer close(finish)
	s := &fakeBackend{draw: func() error { close(drawing); <-finish; return nil }}
	pictures := s.open(t, Config{RenderWorkers: 1, RenderQueuePerWorker: 64, RenderQueueTimeout: time.Second})
	go func() { _, _, _ = pictures.picture(t.Context(), viewOf(1, 8), ETag{}) }()
	<-drawing
	wantUnavailable(t, pictures.errorOf(t.Context(), viewOf(2, 8)), "picture() while the only worker is busy")
	texture, ok := pictures.textureCache.TryGet(append([]byte{2}, make([]byte, 31)...))
	testenv.Check(t, ok && texture.decodeCost() != 0,
		"the second texture was fetched: %t, and decoded; want it fetched only", ok)
}

func TestInvalidFileIsAnInternalError(t *testing.T) {
	t.Parallel()
	pictures := (&fakeBackend{}).open(t, testConfig())
	pictures.files = invalidFiles{}
	if _, _, err := pictures.picture(t.Context(), viewOf(1, 8), ETag{}); err == nil || fault.KindOf(err) != fault.Internal {
		t.Errorf("picture() of what is no texture: %v; want it internal", err)
	}
}

// invalidFiles is an object store of files that are no textures.
type invalidFiles struct{}

func (invalidFiles) File(context.Context, skin.Hash) ([]byte, error) { return []byte("rubbish"), nil }

func TestQueueTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newWorkerPool(1, 64, time.Second)
		defer s.close()
		enter := func() *permit {
			t.Helper()
			return testenv.Must(s.admit(s.requesters(testNetwork)))(t)
		}
		const work = 600 * time.Millisecond
		occupy := func() {
			go func() {
				_ = enter().draw(t.Context(), s.requesters(testNetwork), time.Millisecond, func() error { <-time.After(work); return nil })
			}()
			synctest.Wait()
		}
		// The time-out is for all waits of a permit together.
		late := enter()
		occupy()
		if err := late.draw(t.Context(), s.requesters(testNetwork), time.Millisecond, func() error { return nil }); err != nil {
			t.Errorf("draw() with a worker that is free after %s: %v", work, err)
		}
		occupy()
		start := time.Now()
		err := late.draw(t.Context(), s.requesters(testNetwork), time.Millisecond, func() error { return nil })
		wantUnavailable(t, err, "draw()")
		testenv.Equal(t, time.Since(start), time.Second-work,
			"draw(), which had waited %s of its second before, waited", work)

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := enter().draw(ctx, s.requesters(testNetwork), time.Millisecond, func() error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("draw() = %v; want the end of its context", err)
		}
	})
}

func TestCloseWaitsForThePicturesBeingDrawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newWorkerPool(2, 2, time.Second)
		finish := make(chan struct{})
		permit := testenv.Must(s.admit(s.requesters(testNetwork)))(t)
		go func() {
			_ = permit.draw(t.Context(), s.requesters(testNetwork), time.Millisecond, func() error { <-finish; return nil })
		}()
		synctest.Wait()
		var closed atomic.Bool
		go func() { s.close(); closed.Store(true) }()
		synctest.Wait()
		testenv.Check(t, !closed.Load(), "close returned while a worker was busy")
		start := time.Now()
		if err := permit.draw(t.Context(), s.requesters(testNetwork), time.Millisecond, func() error { return nil }); fault.KindOf(err) != fault.Unavailable || time.Since(start) > 0 {
			t.Errorf("draw() after close = %v after %s; want it unavailable at once", err, time.Since(start))
		}
		close(finish)
		synctest.Wait()
		testenv.Check(t, closed.Load(), "close waits though every worker is idle")
	})
}

// One sprite of cached textures is made at once for each worker, and one more of those that need files. The others
// wait and are shed like pictures, and hold up no pictures.
func TestFewSpritesAreMadeAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const workers, queue = 1, 63
		otherNetwork := netip.MustParsePrefix("198.51.100.0/24")
		s := newWorkerPool(workers, queue, time.Second)
		defer s.close()
		finish := make(chan struct{})
		var making atomic.Int64
		results := make(chan error, queue)
		compose := func(network netip.Prefix, needsFiles bool) {
			go func() {
				permit, err := s.admit(s.requesters(network))
				if err == nil {
					defer permit.release()
					err = permit.runSprite(t.Context(), s.requesters(network), time.Millisecond, needsFiles, func() error {
						making.Add(1)
						<-finish
						return nil
					})
				}
				results <- err
			}()
			synctest.Wait()
		}
		const most = (workers + queue) / 4
		for range most + 1 {
			compose(testNetwork, true)
		}
		testenv.Equal(t, making.Load(), workers+1, "sprites that need files are made at once")
		testenv.Is(t, <-results, ErrShed, "the last sprite")
		compose(otherNetwork, true)
		testenv.Is(t, <-results, ErrShed, "a sprite of the busy network, shed for another network's")
		costs := s.waitingCosts()
		testenv.Check(t, len(costs) == 2 && costs[otherNetwork] == 0.001, "waiting costs: %v", costs)
		compose(otherNetwork, false)
		compose(otherNetwork, false)
		testenv.Equal(t, making.Load(), 2*workers+1, "sprites are made at once, one of cached textures as well")
		permit := testenv.Must(s.admit(s.requesters(otherNetwork)))(t)
		defer permit.release()
		if err := permit.draw(t.Context(), s.requesters(otherNetwork), time.Millisecond, func() error { return nil }); err != nil {
			t.Errorf("a picture: %v; want that it waits for no sprite", err)
		}
		close(finish)
		for range most + 2 {
			testenv.Is(t, <-results, nil, "draw()")
		}
	})
}

// Sprites that wait for others load nothing.
func TestWaitingSpritesLoadNothing(t *testing.T) {
	t.Parallel()
	finish := make(chan struct{})
	backend := &fakeBackend{fetch: func(context.Context) error { <-finish; return nil }}
	p := backend.open(t, Config{RenderWorkers: 1, RenderQueuePerWorker: 127, RenderQueueTimeout: time.Hour})
	const sprites, tiles = 20, 4
	results := make(chan error, sprites)
	for i := range sprites {
		all := make([]spriteTile, tiles)
		for j := range all {
			all[j] = spriteTile{skin.Hash{byte(i), byte(j)}, skin.Classic}
		}
		go func() {
			_, err := p.newLoader(t.Context(), Variant{View: render.View{Size: 8}}, ETag{}).loadSprite(t.Context(), all, 1)
			results <- err
		}()
	}
	const made = 2
	testenv.Eventually(t, "two sprites are made and the others wait", func() bool {
		return p.workers.state().spritesWaiting == sprites-made && backend.fetched.Load() == made*tiles
	})
	close(finish)
	for range sprites {
		testenv.Is(t, <-results, nil, "draw()")
	}
	testenv.Equal(t, backend.fetched.Load(), sprites*tiles, "textures are fetched")
}

// Workers have a lower priority than all other threads.
func TestWorkersHaveLowPriority(t *testing.T) {
	t.Parallel()
	s := newWorkerPool(1, 0, time.Hour)
	defer s.close()
	permit := testenv.Must(s.admit(s.requesters(testNetwork)))(t)
	priority := func() int {
		p, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		testenv.Is(t, err, nil, "Getpriority()")
		return p
	}
	var inside int
	work := func() error { inside = priority(); return nil }
	testenv.Do(t, permit.draw(t.Context(), s.requesters(testNetwork), time.Millisecond, work))
	if usual := priority(); inside >= usual && usual > 1 {
		t.Errorf("a worker has the priority %d; want less than %d, that of other threads", inside, usual)
	}
}

// poolState is the state of a pool that tests wait for.
type poolState struct{ admitted, filesWaiting, waiting, spritesWaiting int }

func (p *workerPool) state() poolState {
	p.mu.Lock()
	defer p.mu.Unlock()
	return poolState{p.admitted, p.fetches.waiting.count, p.draws.waiting.count, p.fetchingSprites.waiting.count}
}
