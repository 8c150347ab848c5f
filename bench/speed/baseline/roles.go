package baseline

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"image/png"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/valyala/fasthttp"
	"golang.org/x/crypto/argon2"
	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/bench/system/stack"
	"github.com/veneer-skins/veneer/shared/testenv"
)

// serveArgon2 is a fasthttp server that answers with the argon2id hash of each request's body, with core's parameters,
// and does nothing else.
func serveArgon2(address string, _ []string) error {
	sem := make(chan struct{}, runtime.GOMAXPROCS(0)) // more at once would only slow each down, and core has the same limit
	return fasthttp.ListenAndServe(address, func(rc *fasthttp.RequestCtx) {
		var salt [16]byte
		_, _ = rand.Read(salt[:]) // it never fails
		sem <- struct{}{}
		const passes, memory, lanes, length = 2, 19 * 1024, 1, 32
		hash := argon2.IDKey(rc.PostBody(), salt[:], passes, memory, lanes, length)
		<-sem
		rc.SetBodyString(hex.EncodeToString(hash))
	})
}

// serveReencode is a fasthttp server that decodes the PNG file in each request's body, encodes it again, writes that to
// a file named by its hash in a directory, and does nothing else.
func serveReencode(address string, args []string) error {
	return fasthttp.ListenAndServe(address, func(rc *fasthttp.RequestCtx) {
		var file bytes.Buffer
		picture, err := png.Decode(bytes.NewReader(rc.PostBody()))
		if err == nil {
			err = png.Encode(&file, picture)
		}
		name := fmt.Sprintf("%x", sha256.Sum256(file.Bytes()))
		if err == nil {
			err = os.WriteFile(filepath.Join(args[0], name), file.Bytes(), 0o600)
		}
		if err != nil {
			rc.Error(err.Error(), fasthttp.StatusBadRequest)
			return
		}
		rc.SetBodyString(name)
	})
}

// StartRecorded starts this program again as a server that does nothing but send recorded responses: Fasthttp is the
// upper limit of that library, Loop of a goroutine for each connection, Epoll of the kernel. It uses TLS, but for Epoll,
// if the files of a certificate and its key are given.
func (p Program) StartRecorded(tb testing.TB, r *Record, chain, key string) *Server {
	tb.Helper()
	record := filepath.Join(tb.TempDir(), "record")
	file := testenv.Must(os.Create(record))(tb)
	testenv.Do(tb, errors.Join(gob.NewEncoder(file).Encode(r), file.Close()))
	s := newServer(tb, p.Name)
	s.TLS, s.Conditional = chain != "", stack.FreeAddress(tb)
	return s.startRole(tb, s.Conditional, record, chain, key)
}

// serveRecord reads a record and serves it: full responses at the first address, responses with status 304 at the second.
func serveRecord(serve func(listener net.Listener, r *Record, responses []Response) error) func(full string, args []string) error {
	return func(full string, args []string) error {
		unmodified, record, chain, key := args[0], args[1], args[2], args[3]
		file, err := os.Open(record)
		if err != nil {
			return err
		}
		var r Record
		if err := errors.Join(gob.NewDecoder(file).Decode(&r), file.Close()); err != nil {
			return fmt.Errorf("read the record: %w", err)
		}
		var certificates []tls.Certificate
		if chain != "" {
			certificate, err := tls.LoadX509KeyPair(chain, key)
			if err != nil {
				return err
			}
			certificates = append(certificates, certificate)
		}
		var servers errgroup.Group
		for address, responses := range map[string][]Response{full: r.Full, unmodified: r.Unmodified} {
			listener, err := net.Listen("tcp", address)
			if err != nil {
				return err
			}
			if certificates != nil {
				listener = tls.NewListener(listener, &tls.Config{Certificates: certificates, MinVersion: tls.VersionTLS12})
			}
			servers.Go(func() error { return serve(listener, &r, responses) })
		}
		return servers.Wait()
	}
}

// serveFasthttp serves responses as fast as fasthttp can.
func serveFasthttp(listener net.Listener, r *Record, responses []Response) error {
	server := &fasthttp.Server{Handler: r.handler(responses), NoDefaultServerHeader: true, NoDefaultContentType: true}
	return server.Serve(listener)
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
