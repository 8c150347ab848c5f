package baseline

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"
)

// Headers by their names as fasthttp writes them.
const (
	etag = "Etag"
	// requestID is another one in every answer.
	requestID = "X-Request-Id"
)

// Record is what the edge answers to every address of the list.
type Record struct {
	// Bodies are the different bodies that there are.
	Bodies [][]byte
	// Full are the answers to plain requests, Unmodified those to requests that
	// name the entity tag.
	Full, Unmodified []Answer
}

// Body returns the body of one of the answers.
func (r *Record) Body(a *Answer) []byte {
	if a.Status == fasthttp.StatusNotModified {
		return nil
	}
	return r.Bodies[a.Body]
}

// Answer is what a server says to one request.
type Answer struct {
	Target string
	Status int
	// Headers leaves out those that a server makes anew for every answer.
	Headers []Header
	Body    int // which of the bodies it has, or would have in full
}

// Header is one line of an answer's headers.
type Header struct{ Name, Value string }

// Value returns the value of a header; empty if there is none.
func (a *Answer) Value(name string) string {
	for _, h := range a.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// RecordHits asks the edge for every address until all are hits, and returns its
// answers.
func RecordHits(ctx context.Context, edge *Server, addresses []string) (*Record, error) {
	r := &Record{Full: make([]Answer, len(addresses)), Unmodified: make([]Answer, len(addresses))}
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
		if misses, err = r.recordPass(ctx, edge); err != nil {
			return nil, err
		}
	}
	return r, edge.eachAnswer(ctx, edge.Conditional, r.Full, r.Tags(), func(i int, got *fasthttp.Response) error {
		r.Unmodified[i] = Answer{Target: r.Full[i].Target, Body: r.Full[i].Body}
		r.Unmodified[i].set(got)
		if got.StatusCode() != fasthttp.StatusNotModified {
			return fmt.Errorf("the edge answers %d to %s with its tag", got.StatusCode(), r.Full[i].Target)
		}
		return nil
	})
}

// recordPass records the edge's answers and returns how many of them are no hits.
func (r *Record) recordPass(ctx context.Context, edge *Server) (misses int, err error) {
	var mu sync.Mutex
	r.Bodies = nil
	bodyIndex := map[string]int{}
	err = edge.eachAnswer(ctx, edge.Address, r.Full, nil, func(i int, got *fasthttp.Response) error {
		mu.Lock()
		defer mu.Unlock()
		a := &r.Full[i]
		a.set(got)
		switch status := got.StatusCode(); {
		case status != fasthttp.StatusOK && status != fasthttp.StatusServiceUnavailable:
			return fmt.Errorf("the edge answers %d to %s: %s", status, a.Target, got.Body())
		case status != fasthttp.StatusOK || !strings.HasPrefix(a.Value("Cache-Status"), "veneer; hit"):
			misses++
		}
		body, ok := bodyIndex[string(got.Body())]
		if !ok {
			body = len(r.Bodies)
			bodyIndex[string(got.Body())] = body
			r.Bodies = append(r.Bodies, slices.Clone(got.Body()))
		}
		a.Body = body
		return nil
	})
	return misses, err
}

// set notes the status and the headers of an answer.
func (a *Answer) set(got *fasthttp.Response) {
	a.Status, a.Headers = got.StatusCode(), nil
	got.Header.SetNoDefaultContentType(true) // which the client would make up
	for name, value := range got.Header.All() {
		switch string(name) {
		case fasthttp.HeaderDate, fasthttp.HeaderContentLength, fasthttp.HeaderConnection, fasthttp.HeaderServer, requestID:
		default:
			a.Headers = append(a.Headers, Header{string(name), string(value)})
		}
	}
}

// Tags returns the entity tags of all answers.
func (r *Record) Tags() []string {
	tags := make([]string, len(r.Full))
	for i := range r.Full {
		tags[i] = r.Full[i].Value(etag)
	}
	return tags
}

// typicalAnswer returns the answer whose headers are about as long as they are on
// average.
func typicalAnswer(answers []Answer) *Answer {
	length := func(a *Answer) (n int) {
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
		if absDiff(lengths[i], sum/len(answers)) < absDiff(lengths[nearest], sum/len(answers)) {
			nearest = i
		}
	}
	return &answers[nearest]
}

func absDiff(a, b int) int { return max(a-b, b-a) }

// Check makes sure that a server answers to everything as the edge does, and
// returns its entity tags. With tags of its own it may also have headers of its
// own, as long as none of the edge's is missing.
func (s *Server) Check(ctx context.Context, r *Record) (tags []string, err error) {
	tags = r.Tags()
	if s.OwnTags {
		if err := s.eachAnswer(ctx, s.Conditional, r.Full, nil, func(i int, got *fasthttp.Response) error {
			tags[i] = string(got.Header.Peek(etag))
			return nil
		}); err != nil {
			return nil, err
		}
	}
	for _, pass := range []struct {
		address string
		answers []Answer
		tags    []string
	}{{s.Address, r.Full, nil}, {s.Conditional, r.Unmodified, tags}} {
		if err := s.eachAnswer(ctx, pass.address, pass.answers, pass.tags, func(i int, got *fasthttp.Response) error {
			want := &pass.answers[i]
			var a Answer
			a.set(got)
			body := r.Body(want)
			switch {
			case a.Status != want.Status:
				return fmt.Errorf("%s answers %d to %s; the edge %d", s.Name, a.Status, want.Target, want.Status)
			case string(got.Body()) != string(body):
				return fmt.Errorf("%s answers %d bytes to %s, and not the %d of the edge", s.Name, len(got.Body()), want.Target, len(body))
			}
			if same := slices.Equal(a.Headers, want.Headers); !same && !s.OwnTags {
				return fmt.Errorf("%s answers %q to %s; the edge %q", s.Name, a.Headers, want.Target, want.Headers)
			}
			for _, h := range want.Headers {
				if a.Value(h.Name) == "" {
					return fmt.Errorf("%s answers no %s to %s", s.Name, h.Name, want.Target)
				}
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return tags, nil
}

// eachAnswer asks a server for everything at one of its addresses, over a few connections,
// and hands on what it answers.
func (s *Server) eachAnswer(
	ctx context.Context, address string, answers []Answer, tags []string, handle func(i int, got *fasthttp.Response) error,
) error {
	const connections = 8
	client := &fasthttp.HostClient{Addr: address, MaxConns: connections, ReadTimeout: startTimeout, IsTLS: s.TLS}
	scheme := "http://"
	if s.TLS {
		scheme, client.TLSConfig = "https://", &tls.Config{InsecureSkipVerify: true}
	}
	defer client.CloseIdleConnections()
	all, ctx := errgroup.WithContext(ctx)
	for start := range connections {
		all.Go(func() error {
			var request fasthttp.Request
			var response fasthttp.Response
			for i := start; i < len(answers) && ctx.Err() == nil; i += connections {
				request.SetRequestURI(scheme + address + s.Target(&answers[i]))
				if tags != nil {
					request.Header.Set(fasthttp.HeaderIfNoneMatch, tags[i])
				}
				if err := client.Do(&request, &response); err != nil {
					return fmt.Errorf("ask for %s: %w", answers[i].Target, err)
				}
				if err := handle(i, &response); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return all.Wait()
}
