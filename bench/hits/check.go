package main

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/bench/load"
)

// Headers by their names as fasthttp writes them.
const (
	etag = "Etag"
	// requestID is in the few answers that the edge logs.
	requestID = "X-Request-Id"
)

// rival is a server that is measured, or the edge, which all are measured beside.
type rival struct {
	name string
	*process
	// full is where plain requests go, unmodified where those go that name the tag.
	full, unmodified string
	// target returns what the server is asked for in the place of an address.
	target func(*answer) string
	// ownTags says that the server's entity tags are not the edge's.
	ownTags bool
}

// recordEdge asks the edge for every address until all are hits, and returns its
// answers.
func recordEdge(ctx context.Context, edge *rival, addresses []string) (*record, error) {
	r := &record{Full: make([]answer, len(addresses)), Unmodified: make([]answer, len(addresses))}
	for i, address := range addresses {
		r.Full[i].Target = address
	}
	// The first pass makes the pictures and the second finds them in memory, but for
	// those that were too many to be drawn in time.
	const passes = 5
	for pass, misses := 1, 1; misses > 0; pass++ {
		if pass > passes {
			return nil, fmt.Errorf("%d of %d addresses are no hits in the last of %d passes", misses, len(addresses), passes)
		}
		var err error
		if misses, err = r.pass(ctx, edge); err != nil {
			return nil, err
		}
	}
	return r, eachAnswer(ctx, edge.unmodified, r.Full, edge.target, r.tags(), func(i int, got *fasthttp.Response) error {
		r.Unmodified[i] = answer{Target: r.Full[i].Target, Body: r.Full[i].Body}
		r.Unmodified[i].note(got)
		if got.StatusCode() != fasthttp.StatusNotModified {
			return fmt.Errorf("the edge answers %d to %s with its tag", got.StatusCode(), r.Full[i].Target)
		}
		return nil
	})
}

// pass records the edge's answers and returns how many of them are no hits.
func (r *record) pass(ctx context.Context, edge *rival) (misses int, err error) {
	var mu sync.Mutex
	r.Bodies = nil
	known := map[string]int{}
	err = eachAnswer(ctx, edge.full, r.Full, edge.target, nil, func(i int, got *fasthttp.Response) error {
		mu.Lock()
		defer mu.Unlock()
		a := &r.Full[i]
		a.note(got)
		switch status := got.StatusCode(); {
		case status != fasthttp.StatusOK && status != fasthttp.StatusServiceUnavailable:
			return fmt.Errorf("the edge answers %d to %s: %s", status, a.Target, got.Body())
		case status != fasthttp.StatusOK || !strings.HasPrefix(a.value("Cache-Status"), "veneer; hit"):
			misses++
		}
		body, ok := known[string(got.Body())]
		if !ok {
			body = len(r.Bodies)
			known[string(got.Body())] = body
			r.Bodies = append(r.Bodies, slices.Clone(got.Body()))
		}
		a.Body = body
		return nil
	})
	return misses, err
}

// note notes the status and the headers of an answer.
func (a *answer) note(got *fasthttp.Response) {
	a.Status, a.Headers = got.StatusCode(), nil
	got.Header.SetNoDefaultContentType(true) // which the client would make up
	for name, value := range got.Header.All() {
		switch string(name) {
		case fasthttp.HeaderDate, fasthttp.HeaderContentLength, fasthttp.HeaderConnection, fasthttp.HeaderServer, requestID:
		default:
			a.Headers = append(a.Headers, header{string(name), string(value)})
		}
	}
}

// tags returns the entity tags of all answers.
func (r *record) tags() []string {
	tags := make([]string, len(r.Full))
	for i := range r.Full {
		tags[i] = r.Full[i].value(etag)
	}
	return tags
}

// typical returns the answer whose headers are about as long as they are on
// average.
func typical(answers []answer) *answer {
	length := func(a *answer) (n int) {
		for _, h := range a.Headers {
			n += len(h.Name) + len(h.Value)
		}
		return n
	}
	lengths := make([]int, len(answers))
	sum := 0
	for i := range answers {
		lengths[i] = length(&answers[i])
		sum += lengths[i]
	}
	nearest := 0
	for i := range answers {
		if distance(lengths[i], sum/len(answers)) < distance(lengths[nearest], sum/len(answers)) {
			nearest = i
		}
	}
	return &answers[nearest]
}

func distance(a, b int) int { return max(a-b, b-a) }

// check makes sure that a server answers to everything as the edge does, and
// returns its entity tags. With tags of its own it may also have headers of its
// own, as long as none of the edge's is missing.
func (s *rival) check(ctx context.Context, r *record) (tags []string, err error) {
	tags = r.tags()
	if s.ownTags {
		if err := eachAnswer(ctx, s.unmodified, r.Full, s.target, nil, func(i int, got *fasthttp.Response) error {
			tags[i] = string(got.Header.Peek(etag))
			return nil
		}); err != nil {
			return nil, err
		}
	}
	for _, pass := range []struct {
		address string
		answers []answer
		tags    []string
	}{{s.full, r.Full, nil}, {s.unmodified, r.Unmodified, tags}} {
		if err := eachAnswer(ctx, pass.address, pass.answers, s.target, pass.tags, func(i int, got *fasthttp.Response) error {
			want := &pass.answers[i]
			var a answer
			a.note(got)
			body := r.body(want)
			switch {
			case a.Status != want.Status:
				return fmt.Errorf("%s answers %d to %s; the edge %d", s.name, a.Status, want.Target, want.Status)
			case string(got.Body()) != string(body):
				return fmt.Errorf("%s answers %d bytes to %s, and not the %d of the edge", s.name, len(got.Body()), want.Target, len(body))
			}
			if same := slices.Equal(a.Headers, want.Headers); !same && !s.ownTags {
				return fmt.Errorf("%s answers %q to %s; the edge %q", s.name, a.Headers, want.Target, want.Headers)
			}
			for _, h := range want.Headers {
				if a.value(h.Name) == "" {
					return fmt.Errorf("%s answers no %s to %s", s.name, h.Name, want.Target)
				}
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return tags, nil
}

// eachAnswer asks a server for everything, over a few connections, and hands on
// what it answers.
func eachAnswer(
	ctx context.Context, address string, answers []answer, target func(*answer) string, tags []string, answered func(i int, got *fasthttp.Response) error,
) error {
	const connections = 8
	client := &fasthttp.HostClient{Addr: address, MaxConns: connections, ReadTimeout: patience}
	defer client.CloseIdleConnections()
	all, ctx := errgroup.WithContext(ctx)
	for start := range connections {
		all.Go(func() error {
			var request fasthttp.Request
			var response fasthttp.Response
			for i := start; i < len(answers) && ctx.Err() == nil; i += connections {
				request.SetRequestURI("http://" + address + target(&answers[i]))
				if tags != nil {
					request.Header.Set(fasthttp.HeaderIfNoneMatch, tags[i])
				}
				if err := client.Do(&request, &response); err != nil {
					return fmt.Errorf("ask for %s: %w", answers[i].Target, err)
				}
				if err := answered(i, &response); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return all.Wait()
}

// replay returns the load of requests for a list of answers; tags makes them
// conditional.
func (s *rival) replay(address string, cpu int, r *record, answers []answer, tags []string) (load.Replay, error) {
	parsed, err := netip.ParseAddrPort(address)
	if err != nil {
		return load.Replay{}, err
	}
	questions := make([]load.Question, len(answers))
	for i := range answers {
		a := &answers[i]
		request := "GET " + s.target(a) + " HTTP/1.1\r\nHost: 127.0.0.1\r\n"
		if tags != nil {
			request += "If-None-Match: " + tags[i] + "\r\n"
		}
		questions[i] = load.Question{Bytes: []byte(request + "\r\n"), Status: a.Status, Length: len(r.body(a))}
	}
	return load.Replay{Address: parsed, Connections: connections, CPU: cpu, Questions: questions}, nil
}
