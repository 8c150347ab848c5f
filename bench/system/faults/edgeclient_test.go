package faults

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/veneer-skins/veneer/bench/system/stack"
)

// edgeClient is a client of an edge's public listener and of its metrics.
type edgeClient struct {
	name, base, operators   string // base URLs of its listeners
	client                  *http.Client
	requests, stale, errors atomic.Int64 // responses: all, stale ones, and errors

	mu     sync.Mutex
	polls  []poll
	polled chan struct{} // closed and replaced with every poll
}

// poll is the stream lag that an edge reported at some time between two moments.
type poll struct {
	from, to time.Time
	lag      time.Duration // since the last heartbeat of its core
}

// pollInterval is the time between two polls.
const pollInterval = 100 * time.Millisecond

// responseTimeout bounds a response: an edge waits for core for up to 5 s.
const responseTimeout = 8 * time.Second

func newEdgeClient(name string, edge *stack.Process) *edgeClient {
	return &edgeClient{
		name: name, base: "http://" + edge.Setting("EDGE_LISTEN"), operators: "http://" + edge.Setting("EDGE_OPS_LISTEN"), polled: make(chan struct{}),
		client: &http.Client{Timeout: responseTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
}

func (c *edgeClient) pollMetrics(ctx context.Context) {
	client := &http.Client{Timeout: pollInterval * 5, Transport: &http.Transport{}}
	for tick := time.NewTicker(pollInterval); ; {
		p := poll{from: time.Now()}
		seconds, err := strconv.ParseFloat(metric(client, c.operators, "veneer_edge_stream_lag_seconds"), 64)
		p.to, p.lag = time.Now(), time.Duration(seconds*float64(time.Second))
		if err != nil {
			p.lag = time.Hour
		}
		c.mu.Lock()
		c.polls = append(c.polls, p)
		close(c.polled)
		c.polled = make(chan struct{})
		c.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// metric returns the value of a metric, empty on failure.
func metric(client *http.Client, operators, name string) string {
	_, content, _ := call(client, operators, http.MethodGet, "/metrics", "", "", nil)
	_, rest, _ := strings.Cut(string(content), "\n"+name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

// connected reports whether the edge trusted its cached mappings all the time between two moments,
// as its metrics prove. It waits for a poll that begins after the later one.
func (c *edgeClient) connected(ctx context.Context, from, to time.Time) bool {
	for {
		c.mu.Lock()
		polled := c.polled
		covered, certain, next := false, true, time.Time{}
		for _, p := range slices.Backward(c.polls) {
			covered = covered || p.from.After(to)
			// Until the end of the next poll, the lag is at most this one plus the time
			// between the two.
			certain = certain && p.lag < maxStaleness && (next.IsZero() || next.Sub(p.from)+p.lag < maxStaleness)
			next = p.to
			if p.to.Before(from) {
				break
			}
		}
		c.mu.Unlock()
		if covered {
			return certain
		}
		select {
		case <-polled:
		case <-ctx.Done():
			return false
		}
	}
}

// verify requests recently changed resources in a loop and checks the answers.
//
// An answer that is not marked as stale shows a value that was valid at most a second before the
// request. An edge that has been connected for a second serves nothing older even if it is marked.
func (c *edgeClient) verify(ctx context.Context, t *testing.T, random *rand.Rand, recent *recentChanges) {
	t.Helper()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		resource := recent.pick(random.IntN)
		if resource == nil {
			continue
		}
		sent := time.Now()
		value, stale := fetch(c.client, c.base, resource.path)
		received := time.Now()
		c.requests.Add(1)
		if !isDigest(value) && value != notFound && value != noHeadStatus {
			c.errors.Add(1)
			continue
		}
		if stale {
			c.stale.Add(1)
		}
		since := sent.Add(-maxStaleness)
		if !resource.wasValid(value, since, received) && (!stale || c.connected(ctx, since, received)) {
			t.Errorf("%s serves %s at %s (stale: %t), requested at %s, which was out of date for over a second: %s",
				c.name, value, resource.path, stale, stamp(sent), resource.history())
		}
	}
}

// noHeadStatus is the value of an avatar path that resolves to a cape.
const noHeadStatus = "422"

func stamp(at time.Time) string { return at.Format("05.000000") }
