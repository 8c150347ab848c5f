package edge

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/edge/cache"
	"github.com/veneer-skins/veneer/edge/render"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// Client networks: one with many requests, and two with few.
var (
	busy   = netip.MustParsePrefix("192.0.2.0/24")
	quiet  = netip.MustParsePrefix("198.51.100.0/24")
	quiet6 = netip.MustParsePrefix("2001:db8::/56")
)

// testJob returns a job that networks request.
func testJob(cost time.Duration, networks ...netip.Prefix) *job {
	return &job{requesters: &requesters{networks: networks}, cost: cost, start: make(chan error, 1)}
}

// While several networks wait, each gets the same share of work, whatever the number and the
// cost of its jobs.
func TestQueueSharesByCost(t *testing.T) {
	t.Parallel()
	costs := map[netip.Prefix]time.Duration{busy: 140 * time.Millisecond, quiet: 3 * time.Millisecond, quiet6: 20 * time.Millisecond}
	var q fairQueue
	done := map[netip.Prefix]time.Duration{}
	for network, cost := range costs {
		for range 10 * 140 * time.Millisecond / cost {
			q.push(testJob(cost, network))
		}
	}
	for {
		j := q.pop()
		network := j.requesters.networks[0]
		done[network] += j.cost
		if q.waiting(network) == 0 {
			break
		}
		for other, sum := range done {
			if ahead := sum - done[busy]; other != busy && max(ahead, -ahead) > costs[busy]+costs[other]+quantum {
				t.Fatalf("%v has had %s and %v %s of work", other, sum, busy, done[busy])
			}
		}
	}
	for network, sum := range done {
		testenv.Check(t, sum >= 9*140*time.Millisecond,
			"%v has had %s of work when another had all of its 1.4 s", network, sum)
	}
}

// The jobs of a network do not wait for earlier ones of another network, except for a job that
// runs.
func TestQueueServesNewNetworkNext(t *testing.T) {
	t.Parallel()
	var q fairQueue
	for range 50 {
		q.push(testJob(100*time.Millisecond, busy))
	}
	q.pop()
	for range 3 {
		q.push(testJob(time.Millisecond, quiet))
	}
	for n := range 3 {
		if j := q.pop(); j.requesters.networks[0] != quiet {
			t.Errorf("job %d is one of %v; want the three of %v first", n, j.requesters.networks, quiet)
		}
	}
}

func TestQueueOrderWithinANetwork(t *testing.T) {
	t.Parallel()
	var q fairQueue
	for _, ms := range []int{30, 10, 20, 10, 1000, 5} {
		q.push(testJob(time.Duration(ms)*time.Millisecond, busy))
	}
	var got []string
	for q.count > 0 {
		j := q.pop()
		got = append(got, fmt.Sprint(j.cost, " #", j.order))
	}
	cmptest.Same(t, got, []string{"5ms #6", "10ms #2", "10ms #4", "20ms #3", "30ms #1", "1s #5"}, "the order of jobs")
	testenv.Check(t, len(q.networks) == 0 && q.rounds.Len() == 0,
		"%d networks without jobs are in the queue", len(q.networks))
}

func TestQueueVictim(t *testing.T) {
	t.Parallel()
	var q fairQueue
	testenv.Check(t, q.victim([]netip.Prefix{quiet}) == nil, "a job is shed of an empty queue")
	old, newest := testJob(30*time.Millisecond, busy), testJob(20*time.Millisecond, busy)
	own := testJob(10*time.Millisecond, quiet)
	for _, j := range []*job{old, newest, own} {
		q.push(j)
	}
	f := func(what string, want *job, networks ...netip.Prefix) {
		t.Helper()
		testenv.Equal(t, q.victim(networks), want, "for %s, the victim", what)
	}
	f("a quiet network", newest, quiet6)
	f("a network with less work", newest, quiet)
	f("the busiest network", nil, busy)
	f("the busiest and a quiet one", newest, busy, quiet)
	newest.requesters.networks = append(newest.requesters.networks, quiet)
	f("a quiet network, if another wants the newest", old, quiet6)
}

// blockedPictures are pictures with one worker, which renders a picture of the busy network
// until finish is closed.
type blockedPictures struct {
	*Pictures
	backend *fakeBackend
	begun   chan render.View // receives each view that is rendered
	finish  chan struct{}
}

func block(t *testing.T, queue int) *blockedPictures {
	t.Helper()
	b := &blockedPictures{backend: new(fakeBackend), begun: make(chan render.View, 200), finish: make(chan struct{})}
	b.backend.drawView = func(view render.View) { b.begun <- view; <-b.finish }
	b.Pictures = b.backend.open(t, Config{RenderWorkers: 1, RenderQueuePerWorker: queue, RenderQueueTimeout: time.Hour})
	go func() { _, _, _ = b.picture(WithNetwork(t.Context(), busy), viewOf(0, 1000), ETag{}) }()
	<-b.begun
	return b
}

// ask requests a view. Once that waits to be rendered, it returns a channel for the error.
func (b *blockedPictures) ask(t *testing.T, network netip.Prefix, variant Variant) <-chan error {
	t.Helper()
	before := b.workers.state().waiting
	errs := make(chan error, 1)
	go func() { errs <- b.errorOf(WithNetwork(t.Context(), network), variant) }()
	testenv.Eventually(t, "the picture waits", func() bool { return b.workers.state().waiting > before })
	return errs
}

func isRefused(err error) bool {
	return fault.KindOf(err) == fault.Unavailable && errors.Is(err, ErrShed)
}

// A network that fills the queue does not stop other networks: its own newest pictures are
// shed.
func TestQueueOfOneNetworkIsShedForOthers(t *testing.T) {
	t.Parallel()
	const queue = 5
	b := block(t, queue)
	var waiting []<-chan error
	for i := range queue {
		waiting = append(waiting, b.ask(t, busy, viewOf(0, 800+i)))
	}
	_, _, err := b.picture(WithNetwork(t.Context(), busy), viewOf(0, 900), ETag{})
	testenv.Check(t, isRefused(err), "one more of the network that has filled the queue: %v; want it rejected", err)
	var others []<-chan error
	for i, network := range []netip.Prefix{quiet, quiet6} {
		errs := make(chan error, 1)
		go func() { errs <- b.errorOf(WithNetwork(t.Context(), network), viewOf(0, 8+i)) }()
		if err := <-waiting[queue-1-i]; !isRefused(err) {
			t.Errorf("the newest picture but %d of the network that has filled the queue: %v; want it rejected", i, err)
		}
		others = append(others, errs)
	}
	testenv.Eventually(t, "the others wait", func() bool { return b.workers.state().waiting == queue })
	close(b.finish)
	for _, errs := range append(others, waiting[:queue-2]...) {
		testenv.Is(t, <-errs, nil, "a picture that waited")
	}
	var order []int
	for range queue {
		order = append(order, (<-b.begun).Size)
	}
	testenv.Check(t, slices.Equal(order[:2], []int{8, 9}),
		"pictures were drawn in the order %v; want the other networks' first", order)
}

// A picture that a second network requests as well counts for that network.
func TestCoalescedPictureCountsForTheQuietestNetwork(t *testing.T) {
	t.Parallel()
	b := block(t, 64)
	for i := range 10 {
		b.ask(t, busy, viewOf(0, 100+i))
	}
	shared := viewOf(0, 500)
	first := b.ask(t, busy, shared)
	second := make(chan error, 1)
	go func() { second <- b.errorOf(WithNetwork(t.Context(), quiet), shared) }()
	testenv.Eventually(t, "the second has joined", func() bool { return b.waitingOf(quiet) > 0 })
	b.ask(t, quiet6, viewOf(0, 600))
	close(b.finish)
	if a, b := <-first, <-second; a != nil || b != nil {
		t.Errorf("a picture that two networks wait for: %v, %v", a, b)
	}
	cost := time.Duration(0)
	for size := 0; size != 500; cost += time.Duration(size) * time.Millisecond {
		size = (<-b.begun).Size
	}
	// Both other networks have an equal share in the meantime.
	testenv.Check(t, cost <= 500*time.Millisecond+600*time.Millisecond+600*time.Millisecond,
		"it was drawn after %s of other work; want it to be one of a quiet network", cost-500*time.Millisecond)
}

func (b *blockedPictures) waitingOf(network netip.Prefix) time.Duration {
	b.workers.mu.Lock()
	defer b.workers.mu.Unlock()
	return b.workers.draws.waiting.waiting(network)
}

// hangingStore returns pictures of an object store that hangs. The busy network has requested
// as many files as fit: asked receives the hash of each that is fetched, and answer lets one
// fetch end.
func hangingStore(t *testing.T) (p *Pictures, asked chan skin.Hash, answer chan struct{}, errs []<-chan error) {
	t.Helper()
	asked, answer = make(chan skin.Hash, 64), make(chan struct{}, 64)
	s := &fakeBackend{fetchHash: func(hash skin.Hash) { asked <- hash; <-answer }}
	p = s.open(t, Config{RenderWorkers: 1, RenderQueuePerWorker: 15, RenderQueueTimeout: time.Hour}) // 8 files, of which 6 at once
	for i := range byte(8) {
		result := make(chan error, 1)
		go func() { result <- p.errorOf(WithNetwork(t.Context(), busy), viewOf(i+1, 8)) }()
		errs = append(errs, result)
		if i < 6 {
			<-asked
		} else {
			testenv.Eventually(t, "the file is waited for", func() bool { return p.workers.state().filesWaiting == int(i)-5 })
		}
	}
	return p, asked, answer, errs
}

// A network that occupies all fetches does not stop another network from fetching next.
func TestFetchesAreSharedBetweenNetworks(t *testing.T) {
	t.Parallel()
	p, asked, answer, errs := hangingStore(t)
	defer func() { close(answer) }()
	_, _, err := p.picture(WithNetwork(t.Context(), busy), viewOf(9, 8), ETag{})
	testenv.Check(t, isRefused(err), "a file too many: %v; want it rejected", err)
	result := make(chan error, 1)
	go func() { result <- p.errorOf(WithNetwork(t.Context(), quiet), viewOf(10, 8)) }()
	if err := <-errs[7]; !isRefused(err) {
		t.Errorf("the newest picture of the network that occupies all fetches: %v; want it rejected", err)
	}
	answer <- struct{}{}
	answer <- struct{}{}
	if next := []byte{(<-asked)[0], (<-asked)[0]}; !slices.Contains(next, 10) {
		t.Errorf("the next files are %d; want 10, another network's, to be one of them", next)
	}
	for range 6 {
		answer <- struct{}{}
	}
	testenv.Is(t, <-result, nil, "picture() for another network")
}

// A texture that a second network needs for another picture counts for that network.
func TestCoalescedFileCountsForTheQuietestNetwork(t *testing.T) {
	t.Parallel()
	p, asked, answer, _ := hangingStore(t)
	defer func() { close(answer) }()
	result := make(chan error, 1)
	// Its texture is the newest of the files that the busy network waits for.
	go func() { result <- p.errorOf(WithNetwork(t.Context(), quiet), viewOf(8, 16)) }()
	testenv.Eventually(t, "the second has joined", func() bool {
		p.workers.mu.Lock()
		defer p.workers.mu.Unlock()
		return p.workers.fetches.waiting.waiting(quiet) > 0
	})
	// A third network joins the second's picture.
	third := make(chan error, 1)
	go func() { third <- p.errorOf(WithNetwork(t.Context(), quiet6), viewOf(8, 16)) }()
	testenv.Eventually(t, "the third has joined the file as well", func() bool {
		p.workers.mu.Lock()
		defer p.workers.mu.Unlock()
		for _, n := range p.workers.fetches.waiting.networks {
			for _, j := range n.jobs {
				if slices.Contains(j.requesters.networks, quiet6) {
					return true
				}
			}
		}
		return false
	})
	answer <- struct{}{}
	answer <- struct{}{}
	if next := []byte{(<-asked)[0], (<-asked)[0]}; !slices.Contains(next, 8) {
		t.Errorf("the next files are %d; want 8, which another network needs, to be one of them", next)
	}
	for range 7 {
		answer <- struct{}{}
	}
	for _, result := range []chan error{result, third} {
		testenv.Is(t, <-result, nil, "picture() for another network")
	}
}

// A load that is shed for one network is started again for another network that has just
// joined it.
func TestLoadIsNotShedWithAnotherNetworks(t *testing.T) {
	t.Parallel()
	c := cache.New(cache.Options[string]{
		Name: "test", Bytes: 1 << 20, TypicalSize: 1 << 10, Size: func(text string) int { return len(text) },
		LoadTimeout: time.Minute, Now: time.Now,
	})
	pool := newWorkerPool(1, 1, time.Hour)
	defer pool.close()
	finish := make(chan struct{})
	first := func(context.Context) (string, error) { <-finish; return "", reject(displaced) }
	type result struct {
		value   string
		outcome cache.Outcome
		err     error
	}
	load := func(network netip.Prefix, fetch func(context.Context) (string, error)) <-chan result {
		results := make(chan result, 1)
		go func() {
			value, outcome, err := c.Get(t.Context(), []byte("name"), pool.requesters(network), fetch)
			results <- result{value, outcome, err}
		}()
		return results
	}
	owner := load(busy, first)
	coalesced := func(n uint64) func() bool {
		return func() bool { stats := c.Stats(); return stats.Misses == 1 && stats.Coalesced == n }
	}
	testenv.Eventually(t, "the load has begun", coalesced(0))
	same := load(busy, func(context.Context) (string, error) { return "second", nil })
	testenv.Eventually(t, "another of the network has joined", coalesced(1))
	other := load(quiet, func(context.Context) (string, error) { return "third", nil })
	testenv.Eventually(t, "another network has joined", coalesced(2))
	close(finish)
	if a, b := <-owner, <-same; !isRefused(a.err) || !isRefused(b.err) {
		t.Errorf("the network whose work was shed: %v, %v; want both rejected", a, b)
	}
	if got := <-other; got.value != "third" || got.outcome != cache.Miss || got.err != nil {
		t.Errorf("the other network: %+v; want its own load", got)
	}
}
