package edge

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
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
		go func() { _, _, err := pictures.picture(t.Context(), viewOf(1, 8*(i+1))); errs <- err }()
	}
	for range surplus {
		f := fault.Of(<-errs)
		if f.Kind != fault.Unavailable || f.RetryAfter != time.Second {
			t.Errorf("a picture too many: %v, retry after %s; want it unavailable for 1s", f, f.RetryAfter)
		}
	}
	close(finish)
	for range workers + queue {
		if err := <-errs; err != nil {
			t.Errorf("a picture that waited: %v", err)
		}
	}
	if got := s.mostDrawing.Load(); got > workers {
		t.Errorf("%d pictures were rendered at once; want at most %d", got, workers)
	}
}

func TestRejectedPictureIsNotFetched(t *testing.T) {
	t.Parallel()
	drawing, finish := make(chan struct{}), make(chan struct{})
	defer close(finish)
	s := &fakeBackend{draw: func() error { close(drawing); <-finish; return nil }}
	pictures := s.open(t, Config{RenderWorkers: 1, RenderQueueTimeout: time.Hour})
	go func() { _, _, _ = pictures.picture(t.Context(), viewOf(1, 8)) }()
	<-drawing
	for range 3 {
		if _, _, err := pictures.picture(t.Context(), viewOf(2, 8)); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("a picture too many: %v; want it unavailable", err)
		}
	}
	if fetched := s.fetched.Load(); fetched != 1 {
		t.Errorf("%d files were fetched; want 1", fetched)
	}
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
	go func() { _, _, _ = pictures.picture(t.Context(), viewOf(1, 8)) }()
	<-entered
	if _, _, err := pictures.picture(t.Context(), viewOf(2, 8)); err != nil {
		t.Errorf("picture() while another is fetched: %v", err)
	}
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
	if _, _, err := pictures.picture(t.Context(), viewOf(1, 8)); err != nil {
		t.Fatal(err)
	}

	hangs.Store(true)
	const files, atOnce = (1 + 9) / 2, 4
	errs := make(chan error, files)
	for i := range files {
		go func() { _, _, err := pictures.picture(t.Context(), viewOf(byte(i+2), 8)); errs <- err }()
	}
	for range atOnce {
		<-entered
	}
	eventually(t, "the other files are waited for", func() bool { return pictures.workers.state().filesWaiting == files-atOnce })
	if _, _, err := pictures.picture(t.Context(), viewOf(99, 8)); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("picture() of one more texture: %v; want it unavailable", err)
	}
	if _, _, err := pictures.picture(t.Context(), viewOf(1, 16)); err != nil {
		t.Errorf("picture() of a cached texture: %v", err)
	}
	close(stuck)
	for range files {
		if err := <-errs; err != nil {
			t.Errorf("picture() of a texture that came late: %v", err)
		}
	}
}

func TestDecodingTakesAWorker(t *testing.T) {
	t.Parallel()
	drawing, finish := make(chan struct{}), make(chan struct{})
	defer close(finish)
	s := &fakeBackend{draw: func() error { close(drawing); <-finish; return nil }}
	pictures := s.open(t, Config{RenderWorkers: 1, RenderQueuePerWorker: 64, RenderQueueTimeout: time.Second})
	go func() { _, _, _ = pictures.picture(t.Context(), viewOf(1, 8)) }()
	<-drawing
	if _, _, err := pictures.picture(t.Context(), viewOf(2, 8)); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("picture() while the only worker is busy: %v; want it unavailable", err)
	}
	texture, ok := pictures.textureCache.TryGet(append([]byte{2}, make([]byte, 31)...))
	if !ok || texture.decodeCost() == 0 {
		t.Errorf("the second texture was fetched: %t, and decoded; want it fetched only", ok)
	}
}

func TestInvalidFileIsAnInternalError(t *testing.T) {
	t.Parallel()
	pictures := (&fakeBackend{}).open(t, testConfig())
	pictures.files = invalidFiles{}
	if _, _, err := pictures.picture(t.Context(), viewOf(1, 8)); err == nil || fault.KindOf(err) != fault.Internal {
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
			permit, err := s.admit(s.demand(testNetwork))
			if err != nil {
				t.Fatal(err)
			}
			return permit
		}
		const work = 600 * time.Millisecond
		occupy := func() {
			go func() {
				_ = enter().draw(t.Context(), s.demand(testNetwork), time.Millisecond, func() error { <-time.After(work); return nil })
			}()
			synctest.Wait()
		}
		// The time-out is for all waits of a permit together.
		late := enter()
		occupy()
		if err := late.draw(t.Context(), s.demand(testNetwork), time.Millisecond, func() error { return nil }); err != nil {
			t.Errorf("draw() with a worker that is free after %s: %v", work, err)
		}
		occupy()
		start := time.Now()
		if err := late.draw(t.Context(), s.demand(testNetwork), time.Millisecond, func() error { return nil }); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("draw() = %v; want it unavailable", err)
		}
		if waited := time.Since(start); waited != time.Second-work {
			t.Errorf("draw() waited for %s; want %s, as of its second it had waited %s before", waited, time.Second-work, work)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := enter().draw(ctx, s.demand(testNetwork), time.Millisecond, func() error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("draw() = %v; want the end of its context", err)
		}
	})
}

func TestCloseWaitsForThePicturesBeingDrawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newWorkerPool(2, 2, time.Second)
		finish := make(chan struct{})
		permit, err := s.admit(s.demand(testNetwork))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_ = permit.draw(t.Context(), s.demand(testNetwork), time.Millisecond, func() error { <-finish; return nil })
		}()
		synctest.Wait()
		var closed atomic.Bool
		go func() { s.close(); closed.Store(true) }()
		synctest.Wait()
		if closed.Load() {
			t.Error("close returned while a worker was busy")
		}
		start := time.Now()
		if err := permit.draw(t.Context(), s.demand(testNetwork), time.Millisecond, func() error { return nil }); fault.KindOf(err) != fault.Unavailable || time.Since(start) > 0 {
			t.Errorf("draw() after close = %v after %s; want it unavailable at once", err, time.Since(start))
		}
		close(finish)
		synctest.Wait()
		if !closed.Load() {
			t.Error("close waits though every worker is idle")
		}
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
				permit, err := s.admit(s.demand(network))
				if err == nil {
					defer permit.release()
					err = permit.compose(t.Context(), s.demand(network), time.Millisecond, needsFiles, func() error {
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
		if got := making.Load(); got != workers+1 {
			t.Errorf("%d sprites that need files are made at once; want %d", got, workers+1)
		}
		if err := <-results; !errors.Is(err, ErrShed) {
			t.Errorf("the last sprite: %v; want that it is shed", err)
		}
		compose(otherNetwork, true)
		if err := <-results; !errors.Is(err, ErrShed) {
			t.Errorf("a sprite of the busy network: %v; want that it is shed for another network's", err)
		}
		if costs := s.waitingCosts(); len(costs) != 2 || costs[otherNetwork] != 0.001 {
			t.Errorf("waiting costs: %v", costs)
		}
		compose(otherNetwork, false)
		compose(otherNetwork, false)
		if got := making.Load(); got != 2*workers+1 {
			t.Errorf("%d sprites are made at once; want one of cached textures as well", got)
		}
		permit, err := s.admit(s.demand(otherNetwork))
		if err != nil {
			t.Fatal(err)
		}
		defer permit.release()
		if err := permit.draw(t.Context(), s.demand(otherNetwork), time.Millisecond, func() error { return nil }); err != nil {
			t.Errorf("a picture: %v; want that it waits for no sprite", err)
		}
		close(finish)
		for range most + 2 {
			if err := <-results; err != nil {
				t.Error(err)
			}
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
			_, err := p.loadSprite(t.Context(), p.workers.demand(testNetwork), all, &Sprite{Columns: 1, View: render.View{Size: 8}})
			results <- err
		}()
	}
	const made = 2
	eventually(t, "two sprites are made and the others wait", func() bool {
		return p.workers.state().spritesWaiting == sprites-made && backend.fetched.Load() == made*tiles
	})
	close(finish)
	for range sprites {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if got := backend.fetched.Load(); got != sprites*tiles {
		t.Errorf("%d textures are fetched; want %d", got, sprites*tiles)
	}
}

// Workers have a lower priority than all other threads.
func TestWorkersHaveLowPriority(t *testing.T) {
	t.Parallel()
	s := newWorkerPool(1, 0, time.Hour)
	defer s.close()
	permit, err := s.admit(s.demand(testNetwork))
	if err != nil {
		t.Fatal(err)
	}
	priority := func() int {
		p, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		if err != nil {
			t.Error(err)
		}
		return p
	}
	var inside int
	if err := permit.draw(t.Context(), s.demand(testNetwork), time.Millisecond, func() error { inside = priority(); return nil }); err != nil {
		t.Fatal(err)
	}
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

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !isSo(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("this never happened: %s", what)
		}
	}
}
