package origin_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/edge"
	"github.com/veneer-skins/veneer/edge/origin"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// Look-ups of keys that are not known to exist do not delay those of known keys.
func TestUnknownKeysDoNotDelayKnownKeys(t *testing.T) {
	t.Parallel()
	server := origintest.Start(t)
	core := startCore(t, origin.Config{URL: server.URL}, nil)
	lookUpTextures(t, core, server, 1)
	release, entered := make(chan struct{}), make(chan struct{}, 100)
	server.SetOnLookup(func(keys []edgeproto.Key) {
		if keys[0] != edgeproto.TIDKey(0) {
			entered <- struct{}{}
			<-release
		}
	})
	defer close(release)

	ctx, cancel := context.WithCancel(t.Context())
	var unknownLookups sync.WaitGroup
	defer unknownLookups.Wait()
	defer cancel()
	lookUp := func(from, to int) {
		for i := from; i < to; i++ {
			unknownLookups.Go(func() { _, _, _ = core.Lookup(ctx, edgeproto.NameKey(fmt.Sprintf("unknown%d", i))) })
		}
	}
	lookUp(0, 1)
	<-entered
	lookUp(1, 2)
	<-entered
	lookUp(2, 1000)
	for range 10 {
		got, _, err := core.Lookup(t.Context(), edgeproto.TIDKey(0))
		testenv.Check(t, err == nil && got.Texture != nil, "Lookup of a known texture = %+v, %v", got, err)
	}
	results := make(chan error, 2)
	err := core.StartLookups(t.Context(), []edgeproto.Key{edgeproto.TIDKey(0), "name:made_up"}, func(_ int, _ edgeproto.Mapping, _ edgeproto.Cursor, err error) {
		results <- err
	})
	testenv.Do(t, err)
	for range cap(results) { // a list with a known key does not wait either
		testenv.Is(t, <-results, nil, "a list of a known and a made-up key")
	}
	n := len(entered)
	testenv.Check(t, n == 0, "%d look-ups of unknown keys were in flight; want 2", n+2)
}

func TestUnknownKeysAreLimited(t *testing.T) {
	t.Parallel()
	server := origintest.Start(t)
	const rate = 10
	core := startCore(t, origin.Config{URL: server.URL, UnknownKeysPerSecond: rate}, nil)
	lookUpUnknown := func(i int) error {
		_, _, err := core.Lookup(t.Context(), edgeproto.NameKey(fmt.Sprintf("unknown%d", i)))
		return err
	}
	began, lookups := time.Now(), 0
	for i := range 500 {
		switch err := lookUpUnknown(i); {
		case err == nil:
			lookups++
		case fault.KindOf(err) != fault.Unavailable || fault.Of(err).RetryAfter == 0 || !errors.Is(err, edge.ErrShed):
			t.Fatalf("Lookup() = %v; want ErrShed with a Retry-After", err)
		}
	}
	// The burst, the network's share of the reserve, and what is added to both meanwhile.
	const least = 10*rate + rate
	most := least + 1 + int(1.1*rate*time.Since(began).Seconds()) + 1
	testenv.Check(t, lookups >= least && lookups <= most,
		"core got %d of 500 unknown keys; want %d to %d", lookups, least, most)
	testenv.Equal(t, server.Keys.Load(), int64(lookups), "keys that core got")
}

// A network that floods the edge with made-up names leaves the other networks their shares.
func TestUnknownKeysAreLimitedByNetwork(t *testing.T) {
	t.Parallel()
	server := origintest.Start(t)
	const rate = 10
	core := startCore(t, origin.Config{URL: server.URL, UnknownKeysPerSecond: rate}, nil)
	lookups := 0
	from := func(network string) error {
		lookups++
		_, _, err := core.Lookup(edge.WithNetwork(t.Context(), netip.MustParsePrefix(network)), edgeproto.NameKey(fmt.Sprintf("unknown%d", lookups)))
		return err
	}
	const flooding = "203.0.113.0/24"
	for from(flooding) == nil {
	}
	for i := range 9 {
		network := fmt.Sprintf("198.51.%d.0/24", i)
		for range rate {
			for range 10 {
				_ = from(flooding) // the flood continues
			}
			if err := from(network); err != nil {
				t.Fatalf("Lookup for the network %s during the flood of another: %v", network, err)
			}
		}
	}
}

// Look-ups of known keys are not limited.
func TestKnownKeysAreNotCounted(t *testing.T) {
	t.Parallel()
	server := origintest.Start(t)
	core := startCore(t, origin.Config{URL: server.URL, UnknownKeysPerSecond: 1}, nil)
	lookUpTextures(t, core, server, 1)
	for range 100 {
		_, _, err := core.Lookup(t.Context(), edgeproto.TIDKey(0))
		testenv.Do(t, err)
	}
}

// A new edge may look up any number of keys that exist.
func TestExistingKeysAreNotCounted(t *testing.T) {
	t.Parallel()
	server := origintest.Start(t)
	core := startCore(t, origin.Config{URL: server.URL, UnknownKeysPerSecond: 1}, nil)
	for i := range int64(30) {
		server.Set(map[edgeproto.Key]edgeproto.Mapping{edgeproto.TIDKey(i): texture(i)})
		if _, _, err := core.Lookup(t.Context(), edgeproto.TIDKey(i)); err != nil {
			t.Fatalf("Lookup of the new key %d: %v", i, err)
		}
	}
}

// Keys in changes are known to exist, even before their first look-up.
func TestKeysOfChangesAreNotCounted(t *testing.T) {
	t.Parallel()
	server := origintest.Start(t)
	core := startCore(t, origin.Config{URL: server.URL, UnknownKeysPerSecond: 1}, nil)
	follower := new(recorder)
	background(t, func(ctx context.Context) { core.Follow(ctx, follower) })
	testenv.Eventually(t, "the stream is live", follower.holds(func() bool { return follower.heartbeats > 0 }))
	exhaustUnknownLimit(t, core)
	newest := map[edgeproto.Key]edgeproto.Mapping{}
	for i := range int64(30) {
		newest[edgeproto.TIDKey(i)] = texture(i)
	}
	server.Set(newest)
	testenv.Eventually(t, "the change arrives", follower.holds(func() bool { return len(follower.keys) == len(newest) }))
	for key := range newest {
		if _, _, err := core.Lookup(t.Context(), key); err != nil {
			t.Fatalf("Lookup of %s, which a change named: %v", key, err)
		}
	}
}

// exhaustUnknownLimit looks up unknown keys until one is rejected, and returns their number.
func exhaustUnknownLimit(t *testing.T, core *origin.Core) (lookups int) {
	t.Helper()
	for {
		_, _, err := core.Lookup(t.Context(), edgeproto.NameKey(fmt.Sprintf("unknown%d", lookups)))
		if errors.Is(err, edge.ErrShed) {
			return lookups
		}
		testenv.Do(t, err)
		lookups++
	}
}

// A look-up that fails is refunded, since its key may exist.
func TestFailuresAreNotCounted(t *testing.T) {
	t.Parallel()
	server := origintest.Start(t)
	const perSecond, burst = 1, 10
	core := startCore(t, origin.Config{URL: server.URL, UnknownKeysPerSecond: perSecond, Timeout: 300 * time.Millisecond}, nil)
	began := time.Now()
	release := make(chan struct{})
	server.SetOnLookup(func([]edgeproto.Key) { <-release })
	var all sync.WaitGroup
	for i := range burst {
		all.Go(func() { _, _, _ = core.Lookup(t.Context(), edgeproto.NameKey(fmt.Sprintf("late%d", i))) })
	}
	all.Wait()
	close(release)
	server.SetOnLookup(nil)
	testenv.Eventually(t, "core is available again", func() bool {
		_, _, err := core.Lookup(t.Context(), edgeproto.NameKey("first"))
		return err == nil
	})
	if lookups := 1 + exhaustUnknownLimit(t, core); lookups < burst {
		t.Errorf("after %d failures and %s core got %d unknown keys; want %d", burst, time.Since(began), lookups, burst)
	}
}

// A probe bypasses the limit of unknown keys.
func TestProbe(t *testing.T) {
	t.Parallel()
	server := origintest.Start(t)
	core := startCore(t, origin.Config{URL: server.URL, UnknownKeysPerSecond: 1, Timeout: 100 * time.Millisecond}, nil)
	exhaustUnknownLimit(t, core)
	probe := func() error {
		outcome := make(chan error, 1)
		core.Probe(func(err error) { outcome <- err })
		return <-outcome
	}
	testenv.Is(t, probe(), nil, "Probe of a core that answers")
	release := make(chan struct{})
	defer close(release)
	server.SetOnLookup(func([]edgeproto.Key) { <-release })
	if err := probe(); fault.KindOf(err) != fault.Unavailable || errors.Is(err, edge.ErrShed) {
		t.Errorf("Probe of a core that hangs: %v; want it unavailable", err)
	}
	server.SetOnLookup(nil)
	testenv.Eventually(t, "core is available again", func() bool { return probe() == nil })
}
