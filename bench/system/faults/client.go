package faults

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/veneer-skins/veneer/bench/system/site"
)

// call sends a request and returns the response. The client has a timeout.
func call(client *http.Client, base, method, path, bearer, contentType string, body []byte) (status int, content []byte, err error) {
	c := site.Client{Base: base, Token: bearer, HTTP: client}
	return c.Try(context.Background(), method, path, contentType, body)
}

// notFound is what fetch returns for a path without a picture or file.
const notFound = "404"

// fetch returns what a path serves now: the SHA-256 of the body in hex, else the status or the
// error; and whether the response is marked as stale.
func fetch(client *http.Client, base, path string) (value string, stale bool) {
	response, err := client.Get(base + path) //nolint:noctx // the client has a timeout
	if err != nil {
		return err.Error(), false
	}
	defer func() { _ = response.Body.Close() }()
	stale = strings.Contains(response.Header.Get("Cache-Status"), "detail=stale")
	digest := sha256.New()
	if _, err := io.Copy(digest, response.Body); err != nil {
		return err.Error(), stale
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Sprint(response.StatusCode), stale
	}
	return hex.EncodeToString(digest.Sum(nil)), stale
}

// isDigest reports whether a value of fetch is a digest, which a response with status 200 has.
func isDigest(value string) bool { return len(value) == 2*sha256.Size }

// await fetches a path until it serves the wanted value, for up to a timeout, and returns the last
// one. Stale responses do not count.
func await(client *http.Client, base, path string, timeout time.Duration, wanted func(value string) bool) (value string) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(timeout); ; <-tick.C {
		var stale bool
		value, stale = fetch(client, base, path)
		if !stale && wanted(value) || time.Now().After(deadline) {
			return value
		}
	}
}

// mismatch is a path at which an edge serves another value than it should.
type mismatch struct {
	edge            int // its index
	path, got, want string
}

// compareEdges compares what edges serve, in the end, with the wanted values by path.
func compareEdges(client *http.Client, edges []string, want map[string]string, timeout time.Duration) (all []mismatch) {
	paths := make([]string, 0, len(want))
	for path := range want {
		paths = append(paths, path)
	}
	var mu sync.Mutex
	atOnce(len(paths)*len(edges), func(i int) {
		edge, path := i%len(edges), paths[i/len(edges)]
		got := await(client, edges[edge], path, timeout, func(value string) bool { return value == want[path] })
		if got != want[path] {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mismatch{edge, path, got, want[path]})
		}
	})
	return all
}

// atOnce calls do with the numbers below n from several goroutines.
func atOnce(n int, do func(int)) {
	var all errgroup.Group
	all.SetLimit(8)
	for i := range n {
		all.Go(func() error { do(i); return nil })
	}
	_ = all.Wait() // no call returns an error
}
