package baseline

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/bench/loopback"
)

// StartFasthttp starts this program again as a fasthttp server that does nothing but send recorded
// responses: the upper limit for a server written in Go. It uses TLS if a certificate is given.
func StartFasthttp(ctx context.Context, env Env, r *Record, certificate Certificate) (*Server, error) {
	version, err := fasthttpProgram.Version(ctx)
	if err != nil {
		return nil, err
	}
	full, unmodified, err := loopback.FreeAddresses()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	name := "bare"
	if certificate.Chain != "" {
		name += ", TLS"
	}
	p, err := Run(env, name, in, nil, self, fasthttpRole, full, unmodified, certificate.Chain, certificate.Key)
	if err = errors.Join(err, in.Close()); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	err = errors.Join(gob.NewEncoder(out).Encode(r), out.Close())
	if err != nil {
		p.Stop()
		return nil, fmt.Errorf("send the record to the bare server: %w", err)
	}
	return (&Server{Name: name, Version: version, Process: p, Address: full, Conditional: unmodified, TLS: certificate.Chain != ""}).awaitListening(ctx)
}

// serveFasthttp reads a record and serves it as fast as fasthttp can: full responses at the first
// address, those of 304 at the second.
func serveFasthttp(in io.Reader, full, unmodified, chain, key string) error {
	var r Record
	if err := gob.NewDecoder(in).Decode(&r); err != nil {
		return fmt.Errorf("read the record: %w", err)
	}
	var servers errgroup.Group
	for address, responses := range map[string][]Response{full: r.Full, unmodified: r.Unmodified} {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		server := &fasthttp.Server{Handler: r.handler(responses), NoDefaultServerHeader: true, NoDefaultContentType: true}
		servers.Go(func() error {
			if chain != "" {
				return server.ServeTLS(listener, chain, key)
			}
			return server.Serve(listener)
		})
	}
	return servers.Wait()
}

// handler returns a handler that does nothing but look up a request's target and send a prepared
// response.
func (r *Record) handler(responses []Response) fasthttp.RequestHandler {
	type pair struct{ name, value []byte }
	type ready struct {
		status  int
		headers []pair
		body    []byte
	}
	// Most values occur in many responses. They are stored once, as in the edge.
	interned := map[string][]byte{}
	intern := func(text string) []byte {
		if interned[text] == nil {
			interned[text] = []byte(text)
		}
		return interned[text]
	}
	byTarget := make(map[string]*ready, len(responses))
	for i := range responses {
		a := &responses[i]
		prepared := &ready{status: a.Status, body: r.Body(a)}
		for _, h := range a.Headers {
			prepared.headers = append(prepared.headers, pair{intern(h.Name), intern(h.Value)})
		}
		byTarget[a.Target] = prepared
	}
	return func(rc *fasthttp.RequestCtx) {
		prepared := byTarget[string(rc.RequestURI())]
		if prepared == nil {
			rc.SetStatusCode(fasthttp.StatusNotFound)
			return
		}
		for i := range prepared.headers {
			rc.Response.Header.SetCanonical(prepared.headers[i].name, prepared.headers[i].value)
		}
		rc.SetStatusCode(prepared.status)
		rc.Response.SetBodyRaw(prepared.body)
	}
}
