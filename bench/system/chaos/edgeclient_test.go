package chaos

import (
	"bufio"
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// edgeClient is a client of an edge's public listener and of its metrics.
type edgeClient struct {
	name                    string
	address, operators      string
	client                  *fasthttp.HostClient
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

func newEdgeClient(name, address, operators string) *edgeClient {
	return &edgeClient{
		name: name, address: address, operators: operators, polled: make(chan struct{}),
		client: &fasthttp.HostClient{Addr: address, MaxConns: 64, ReadTimeout: responseTimeout},
	}
}

// pollMetrics polls the edge until ctx ends.
func (c *edgeClient) pollMetrics(ctx context.Context) {
	client := &fasthttp.HostClient{Addr: c.operators, ReadTimeout: pollInterval * 5}
	for tick := time.NewTicker(pollInterval); ; {
		p := poll{from: time.Now()}
		seconds, err := strconv.ParseFloat(metric(client, "veneer_edge_stream_lag_seconds"), 64)
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
func metric(client *fasthttp.HostClient, name string) string {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI("http://" + client.Addr + "/metrics")
	if client.Do(request, response) != nil {
		return ""
	}
	for lines := bufio.NewScanner(strings.NewReader(string(response.Body()))); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return value
		}
	}
	return ""
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

// fetchTag requests a picture or a file and returns its entity tag, missing or noHeadStatus; stale
// if the answer is marked as such, not ok if it is none of these.
func (c *edgeClient) fetchTag(path string) (value string, stale, ok bool) {
	return c.fetch(path, func(response *fasthttp.Response) string { return string(response.Header.Peek(fasthttp.HeaderETag)) })
}

// fetchBody requests a document and returns its body, otherwise as fetchTag.
func (c *edgeClient) fetchBody(path string) (value string, stale, ok bool) {
	return c.fetch(path, func(response *fasthttp.Response) string { return string(response.Body()) })
}

func (c *edgeClient) fetch(path string, extract func(*fasthttp.Response) string) (value string, stale, ok bool) {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI("http://" + c.address + path)
	if c.client.Do(request, response) != nil {
		return "", false, false
	}
	stale = strings.Contains(string(response.Header.Peek("Cache-Status")), "detail=stale")
	switch response.StatusCode() {
	case fasthttp.StatusOK:
		return extract(response), stale, true
	case fasthttp.StatusNotFound:
		return missing, stale, true
	case fasthttp.StatusUnprocessableEntity:
		return noHeadStatus, stale, true
	default:
		return strconv.Itoa(response.StatusCode()), stale, false
	}
}

// requestInterval is the time between two requests of a client.
const requestInterval = 15 * time.Millisecond

// verify requests recently changed resources in a loop and checks the answers.
//
// An answer that is not marked as stale shows a value that was valid at most a second before the
// request. An edge that has been connected for a second serves nothing older even if it is marked.
func (c *edgeClient) verify(ctx context.Context, t *testing.T, random *rand.Rand, recent *recentChanges) {
	t.Helper()
	for tick := time.NewTicker(requestInterval); ; {
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
		value, stale, ok := c.fetchTag(resource.path)
		received := time.Now()
		c.requests.Add(1)
		switch {
		case !ok:
			c.errors.Add(1)
		case !stale:
			if !resource.wasValid(value, sent.Add(-maxStaleness), received) {
				t.Errorf("%s serves %s at %s, requested at %s, which was out of date for over a second: %s",
					c.name, value, resource.path, stamp(sent), resource.history())
			}
		default:
			c.stale.Add(1)
			since := sent.Add(-maxStaleness)
			if !resource.wasValid(value, since, received) && c.connected(ctx, since, received) {
				t.Errorf("%s is connected, and serves %s at %s, requested at %s, which was out of date for over a second: %s",
					c.name, value, resource.path, stamp(sent), resource.history())
			}
		}
	}
}

func stamp(at time.Time) string { return at.Format("05.000000") }
