package main

import (
	"encoding/gob"
	"fmt"
	"io"
	"net"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"
)

// record is what the edge answers to every address of the list.
type record struct {
	// Bodies are the different bodies that there are.
	Bodies [][]byte
	// Full are the answers to plain requests, Unmodified those to requests that
	// name the entity tag.
	Full, Unmodified []answer
}

// body returns the body of one of the answers.
func (r *record) body(a *answer) []byte {
	if a.Status == fasthttp.StatusNotModified {
		return nil
	}
	return r.Bodies[a.Body]
}

// answer is what a server says to one request.
type answer struct {
	Target string
	Status int
	// Headers leaves out those that a server makes anew for every answer.
	Headers []header
	Body    int // which of the bodies it has, or would have in full
}

type header struct{ Name, Value string }

// value returns the value of a header; empty if there is none.
func (a *answer) value(name string) string {
	for _, h := range a.Headers {
		if h.Name == name {
			return h.Value
		}
	}
	return ""
}

// serveBare reads a record and answers as it says, as fast as fasthttp can: full
// answers at the first address, those of 304 at the second.
func serveBare(in io.Reader, full, unmodified string) error {
	var r record
	if err := gob.NewDecoder(in).Decode(&r); err != nil {
		return fmt.Errorf("read the record: %w", err)
	}
	var servers errgroup.Group
	for address, answers := range map[string][]answer{full: r.Full, unmodified: r.Unmodified} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		server := &fasthttp.Server{Handler: r.bare(answers), NoDefaultServerHeader: true, NoDefaultContentType: true}
		servers.Go(func() error { return server.Serve(listener) })
	}
	return servers.Wait()
}

// bare returns a handler that does nothing but look up a request's target and
// send what was made beforehand.
func (r *record) bare(answers []answer) fasthttp.RequestHandler {
	type pair struct{ name, value []byte }
	type ready struct {
		status  int
		headers []pair
		body    []byte
	}
	// Most values are those of many answers. They are kept once, as the edge has them.
	known := map[string][]byte{}
	keep := func(text string) []byte {
		if known[text] == nil {
			known[text] = []byte(text)
		}
		return known[text]
	}
	byTarget := make(map[string]*ready, len(answers))
	for i := range answers {
		a := &answers[i]
		made := &ready{status: a.Status, body: r.body(a)}
		for _, h := range a.Headers {
			made.headers = append(made.headers, pair{keep(h.Name), keep(h.Value)})
		}
		byTarget[a.Target] = made
	}
	return func(rc *fasthttp.RequestCtx) {
		found := byTarget[string(rc.RequestURI())]
		if found == nil {
			rc.SetStatusCode(fasthttp.StatusNotFound)
			return
		}
		for i := range found.headers {
			rc.Response.Header.SetCanonical(found.headers[i].name, found.headers[i].value)
		}
		rc.SetStatusCode(found.status)
		rc.Response.SetBodyRaw(found.body)
	}
}
