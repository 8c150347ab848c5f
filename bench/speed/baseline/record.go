package baseline

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/shared/testenv"
)

const etag = "Etag" // as fasthttp writes the name

// Record is the edge's responses to a list of addresses.
type Record struct {
	// Bodies are the distinct bodies.
	Bodies [][]byte
	// Full are the responses to unconditional requests, Unmodified those to requests with
	// If-None-Match.
	Full, Unmodified []Response
}

// Body returns the body of one of the responses.
func (r *Record) Body(a *Response) []byte {
	if a.Status == fasthttp.StatusNotModified {
		return nil
	}
	return r.Bodies[a.Body]
}

// Response is a server's response to one request.
type Response struct {
	Target string
	Status int
	// Headers leaves out those that a server generates for every response.
	Headers []Header
	Body    int // index in Bodies; also for a 304
}

// Header is one header line of a response.
type Header struct{ Name, Value string }

// Value returns the value of a header; empty if there is none.
func (r *Response) Value(name string) string {
	for _, h := range r.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// RecordHits requests every address from the edge until all are hits, and returns the responses.
func RecordHits(tb testing.TB, edge *Server, addresses []string) *Record {
	tb.Helper()
	r := &Record{Full: make([]Response, len(addresses)), Unmodified: make([]Response, len(addresses))}
	for i, address := range addresses {
		r.Full[i].Target = address
	}
	// The first pass renders the pictures and the second finds them cached, except those that
	// the render queue rejected.
	const passes = 5
	for pass, misses := 1, 1; misses > 0; pass++ {
		if pass > passes {
			tb.Fatalf("%d of %d addresses are no hits in the last of %d passes", misses, len(addresses), passes)
		}
		misses = testenv.Must(r.recordPass(tb.Context(), edge))(tb)
	}
	testenv.Do(tb, edge.eachResponse(tb.Context(), edge.Conditional, r.Full, r.Tags(), func(i int, got *fasthttp.Response) error {
		r.Unmodified[i] = Response{Target: r.Full[i].Target, Body: r.Full[i].Body}
		r.Unmodified[i].set(got)
		if got.StatusCode() != fasthttp.StatusNotModified {
			return fmt.Errorf("the edge answers %d to %s with its tag", got.StatusCode(), r.Full[i].Target)
		}
		return nil
	}))
	return r
}

func (r *Record) recordPass(ctx context.Context, edge *Server) (misses int, err error) {
	var mu sync.Mutex
	r.Bodies = nil
	bodyIndex := map[string]int{}
	err = edge.eachResponse(ctx, edge.Address, r.Full, nil, func(i int, got *fasthttp.Response) error {
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

func (r *Response) set(got *fasthttp.Response) {
	r.Status, r.Headers = got.StatusCode(), nil
	got.Header.SetNoDefaultContentType(true) // which the client would add
	for name, value := range got.Header.All() {
		switch string(name) {
		case fasthttp.HeaderDate, fasthttp.HeaderContentLength, fasthttp.HeaderConnection, fasthttp.HeaderServer, "X-Request-Id":
		default:
			r.Headers = append(r.Headers, Header{string(name), string(value)})
		}
	}
}

// Tags returns the entity tags of all responses.
func (r *Record) Tags() []string {
	tags := make([]string, len(r.Full))
	for i := range r.Full {
		tags[i] = r.Full[i].Value(etag)
	}
	return tags
}

// typicalResponse returns the response with the header of median length.
func typicalResponse(responses []Response) Response {
	length := func(a Response) (n int) {
		for _, h := range a.Headers {
			n += len(h.Name) + len(h.Value)
		}
		return n
	}
	sorted := slices.SortedFunc(slices.Values(responses), func(a, b Response) int { return length(a) - length(b) })
	return sorted[len(sorted)/2]
}

// Check checks that a server answers everything as the edge does, and returns its entity tags. With
// OwnTags it may also have additional headers, as long as none of the edge's is missing.
func (s *Server) Check(ctx context.Context, r *Record) (tags []string, err error) {
	tags = r.Tags()
	if s.OwnTags {
		if err := s.eachResponse(ctx, s.Conditional, r.Full, nil, func(i int, got *fasthttp.Response) error {
			tags[i] = string(got.Header.Peek(etag))
			return nil
		}); err != nil {
			return nil, err
		}
	}
	for _, pass := range []struct {
		address   string
		responses []Response
		tags      []string
	}{{s.Address, r.Full, nil}, {s.Conditional, r.Unmodified, tags}} {
		if err := s.eachResponse(ctx, pass.address, pass.responses, pass.tags, func(i int, got *fasthttp.Response) error {
			want := &pass.responses[i]
			var a Response
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

// eachResponse requests everything at one of a server's addresses, over a few connections, and calls
// handle with each response.
func (s *Server) eachResponse(
	ctx context.Context, address string, responses []Response, tags []string, handle func(i int, got *fasthttp.Response) error,
) error {
	const connections, headerBytes = 8, 16 << 10 // a batch has the tags of a hundred players
	client := &fasthttp.HostClient{Addr: address, MaxConns: connections, ReadTimeout: 30 * time.Second, ReadBufferSize: headerBytes, IsTLS: s.TLS}
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
			for i := start; i < len(responses) && ctx.Err() == nil; i += connections {
				request.SetRequestURI(scheme + address + s.Target(&responses[i]))
				if tags != nil {
					request.Header.Set(fasthttp.HeaderIfNoneMatch, tags[i])
				}
				if err := client.Do(&request, &response); err != nil {
					return fmt.Errorf("request %s: %w", responses[i].Target, err)
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
