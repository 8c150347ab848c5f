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

// site is an edge as its visitors and its operators see it.
type site struct {
	name                string
	address, operators  string
	client              *fasthttp.HostClient
	looks, stale, other atomic.Int64 // answers: all, those that say they may be old, and errors

	mu    sync.Mutex
	polls []poll
	news  chan struct{} // closed, and replaced, with every poll
}

// poll is what an edge says of itself at some time from one moment to another.
type poll struct {
	from, to time.Time
	lag      time.Duration // since its core last vouched for what it remembers
}

// pollEvery is the time between two polls.
const pollEvery = 100 * time.Millisecond

// patience is how long an answer may take: an edge asks core for up to 5 s.
const patience = 8 * time.Second

func newSite(name, address, operators string) *site {
	return &site{
		name: name, address: address, operators: operators, news: make(chan struct{}),
		client: &fasthttp.HostClient{Addr: address, MaxConns: 64, ReadTimeout: patience},
	}
}

// watch polls the edge until ctx ends.
func (s *site) watch(ctx context.Context) {
	client := &fasthttp.HostClient{Addr: s.operators, ReadTimeout: pollEvery * 5}
	for tick := time.NewTicker(pollEvery); ; {
		p := poll{from: time.Now()}
		seconds, err := strconv.ParseFloat(metric(client, "veneer_edge_stream_lag_seconds"), 64)
		p.to, p.lag = time.Now(), time.Duration(seconds*float64(time.Second))
		if err != nil {
			p.lag = time.Hour
		}
		s.mu.Lock()
		s.polls = append(s.polls, p)
		close(s.news)
		s.news = make(chan struct{})
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// metric returns the value of a metric, empty if it cannot be had.
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

// connected reports whether the edge believed what it remembers all the time between
// two moments, as what it says of itself proves. It waits for a poll that begins after
// the later one.
func (s *site) connected(ctx context.Context, from, to time.Time) bool {
	for {
		s.mu.Lock()
		news := s.news
		covered, sure, next := false, true, time.Time{}
		for _, p := range slices.Backward(s.polls) {
			covered = covered || p.from.After(to)
			// Up to the end of the next poll no more time has passed since core vouched
			// than between the two, and what had passed before.
			sure = sure && p.lag < allowance && (next.IsZero() || next.Sub(p.from)+p.lag < allowance)
			next = p.to
			if p.to.Before(from) {
				break
			}
		}
		s.mu.Unlock()
		if covered {
			return sure
		}
		select {
		case <-news:
		case <-ctx.Done():
			return false
		}
	}
}

// look asks for the picture of a subject, or for a file, and returns its entity
// tag, or missing, or faceless; stale if the answer says that it may be old, not ok
// if it is none of these.
func (s *site) look(path string) (shows string, stale, ok bool) {
	return s.ask(path, func(response *fasthttp.Response) string { return string(response.Header.Peek(fasthttp.HeaderETag)) })
}

// read asks for a document and returns it, and the rest as look does.
func (s *site) read(path string) (shows string, stale, ok bool) {
	return s.ask(path, func(response *fasthttp.Response) string { return string(response.Body()) })
}

func (s *site) ask(path string, shown func(*fasthttp.Response) string) (shows string, stale, ok bool) {
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI("http://" + s.address + path)
	if s.client.Do(request, response) != nil {
		return "", false, false
	}
	stale = strings.Contains(string(response.Header.Peek("Cache-Status")), "detail=stale")
	switch response.StatusCode() {
	case fasthttp.StatusOK:
		return shown(response), stale, true
	case fasthttp.StatusNotFound:
		return missing, stale, true
	case fasthttp.StatusUnprocessableEntity:
		return faceless, stale, true
	default:
		return strconv.Itoa(response.StatusCode()), stale, false
	}
}

// lookBetween is the time between two looks of a visitor.
const lookBetween = 15 * time.Millisecond

// visit looks at what changed lately, again and again, and holds what the edge
// answers against what was true.
//
// Whatever happens, an answer that does not say that it may be old shows what was
// true a second before it was asked for, or later. And an edge that has been
// connected for a second shows nothing older, whatever it says.
func (s *site) visit(ctx context.Context, t *testing.T, random *rand.Rand, crowd *crowd) {
	t.Helper()
	for tick := time.NewTicker(lookBetween); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		subject := crowd.pick(random.IntN)
		if subject == nil {
			continue
		}
		asked := time.Now()
		shows, stale, ok := s.look(subject.path)
		answered := time.Now()
		s.looks.Add(1)
		switch {
		case !ok:
			s.other.Add(1)
		case !stale:
			if !subject.wasTrue(shows, asked.Add(-allowance), answered) {
				t.Errorf("%s shows %s at %s, asked at %s, which was over a second before: %s",
					s.name, shows, subject.path, stamp(asked), subject.history())
			}
		default:
			s.stale.Add(1)
			since := asked.Add(-allowance)
			if !subject.wasTrue(shows, since, answered) && s.connected(ctx, since, answered) {
				t.Errorf("%s is connected, and shows %s at %s, asked at %s, which was over a second before: %s",
					s.name, shows, subject.path, stamp(asked), subject.history())
			}
		}
	}
}

func stamp(at time.Time) string { return at.Format("05.000000") }
