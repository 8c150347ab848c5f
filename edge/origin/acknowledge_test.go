package origin_test

import (
	"context"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/edge/origin"
	"github.com/veneer-skins/veneer/edge/origin/origintest"
	"github.com/veneer-skins/veneer/shared/edgeproto"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// slowFollower is a follower that applies a change only after a value from release.
type slowFollower struct {
	recorder
	started, release chan struct{}
}

func (s *slowFollower) Apply(event edgeproto.Event, asOf time.Time) error {
	if len(event.Keys) > 0 {
		s.started <- struct{}{}
		<-s.release
	}
	return s.recorder.Apply(event, asOf)
}

func TestAcknowledge(t *testing.T) {
	t.Parallel()
	server := origintest.Start(t)
	server.Stream = "a-stream"
	core, follower := newCore(t, origin.Config{URL: server.URL}, nil), &slowFollower{started: make(chan struct{}), release: make(chan struct{})}
	background(t, func(ctx context.Context) { core.Follow(ctx, follower) })
	applied := func(revision int64) func() bool {
		return func() bool { return server.Applied() == edgeproto.Cursor{Epoch: "first", Revision: revision} }
	}

	testenv.Eventually(t, "the start is acknowledged", applied(100))
	server.Set(map[edgeproto.Key]edgeproto.Mapping{"name:a": texture(1)})
	<-follower.started
	if !applied(100)() {
		t.Errorf("%+v is acknowledged before it is applied", server.Applied())
	}
	follower.release <- struct{}{}
	testenv.Eventually(t, "the change is acknowledged", applied(101))

	// While core rejects acknowledgements, each heartbeat retries.
	server.SetAcknowledgementsRejected(true)
	server.Set(map[edgeproto.Key]edgeproto.Mapping{"name:b": texture(1)})
	<-follower.started
	follower.release <- struct{}{}
	taken := server.Acknowledgements.Load()
	server.SetAcknowledgementsRejected(false)
	testenv.Eventually(t, "the change is acknowledged once core accepts it", applied(102))
	got := server.Acknowledgements.Load()
	testenv.Check(t, got == taken+1, "%d acknowledgements for one change", got-taken)

	// Acknowledgements continue on another stream and in another epoch.
	server.Restore("second")
	testenv.Eventually(t, "the new epoch is acknowledged", func() bool { return server.Applied() == edgeproto.Cursor{Epoch: "second", Revision: 1} })
}

// One acknowledgement covers many changes.
func TestAcknowledgementsAreCoalesced(t *testing.T) {
	t.Parallel()
	server := origintest.Start(t)
	server.Stream = "a-stream"
	core, r := newCore(t, origin.Config{URL: server.URL}, nil), &recorder{}
	background(t, func(ctx context.Context) { core.Follow(ctx, r) })
	testenv.Eventually(t, "the start is acknowledged", func() bool { return server.Applied().Revision == 100 })
	for range 2000 {
		server.Set(map[edgeproto.Key]edgeproto.Mapping{"name:a": texture(1)})
	}
	testenv.Eventually(t, "all are acknowledged", func() bool { return server.Applied().Revision == 2100 })
	got := server.Acknowledgements.Load()
	testenv.Check(t, got <= 500, "%d acknowledgements of 2000 changes", got)
}

// Without a name of the stream, no acknowledgements are sent.
func TestNoAcknowledgementsUnlessAsked(t *testing.T) {
	t.Parallel()
	server := origintest.Start(t)
	core, r := newCore(t, origin.Config{URL: server.URL}, nil), &recorder{}
	background(t, func(ctx context.Context) { core.Follow(ctx, r) })
	server.Set(map[edgeproto.Key]edgeproto.Mapping{"name:a": texture(1)})
	testenv.Eventually(t, "heartbeats arrive", r.holds(func() bool { return r.heartbeats > 3 }))
	testenv.Equal(t, server.Acknowledgements.Load(), 0, "acknowledgements that were sent")
}
