// Package warm asks running edges for pictures before visitors do, so that those
// find them in memory.
package warm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/veneer-skins/veneer/shared/skin"
)

// CommonViews are what visitors ask for most, in the form that ParseViews reads.
const CommonViews = "/textures/{hash},/avatar/hash/{hash},/avatar/hash/{hash}?png,/avatar/hash/{hash}?3d,/preview/hash/{hash}"

// placeholder stands in a view where the hash belongs.
const placeholder = "{hash}"

// ParseViews reads paths of pictures, which are separated by commas and have {hash} in
// the place of a texture's hash.
func ParseViews(text string) ([]string, error) {
	views := strings.Split(text, ",")
	for i, view := range views {
		view = strings.TrimSpace(view)
		if !strings.HasPrefix(view, "/") || strings.Count(view, placeholder) != 1 {
			return nil, fmt.Errorf("%q is no path with %s in it", view, placeholder)
		}
		views[i] = view
	}
	return views, nil
}

// Base returns the base URL of an edge without a slash at its end. The error says what
// one looks like.
func Base(text string) (string, error) {
	base, err := url.Parse(text)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.Fragment != "" {
		return "", fmt.Errorf("%q does not look like http://host:port or https://host", text)
	}
	return strings.TrimRight(base.String(), "/"), nil
}

// Job is what is to be in an edge's memory.
type Job struct {
	Hashes []skin.Hash
	Views  []string // of every texture, as ParseViews returns them
	// Parallel is how many pictures are asked for at once: few, as each may take a slot
	// that a visitor would have.
	Parallel int
	// RetryFor bounds the time for which one picture is asked for again that the edge
	// cannot make at the moment.
	RetryFor time.Duration
}

// Report says what became of the pictures of an order.
type Report struct {
	Loaded     int // drawn or fetched, or core was asked about the texture
	Cached     int // in memory already
	NotFound   int // of textures that have no such picture, as capes have no face
	Failed     int // all others
	FirstError error
}

const (
	// requestTimeout bounds one request. The edge's own bounds are shorter.
	requestTimeout = 30 * time.Second
	// maxFailedTextures is how many textures must fail in a row, each after all patience, for
	// the rest not to be asked for.
	maxFailedTextures = 4

	minBackoff = 250 * time.Millisecond
	maxBackoff = 8 * time.Second
)

// Run carries out an order at the edge with a base URL, as Base returns it.
func Run(ctx context.Context, base string, job Job) Report {
	transport := &http.Transport{MaxConnsPerHost: job.Parallel, MaxIdleConnsPerHost: job.Parallel}
	defer transport.CloseIdleConnections()
	return run(ctx, base, job, transport)
}

func run(ctx context.Context, base string, job Job, transport http.RoundTripper) Report {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	c := &client{base: base, job: job, http: &http.Client{Transport: transport, Timeout: requestTimeout}, giveUp: giveUp}

	hashes := make(chan skin.Hash)
	var workers sync.WaitGroup
	for range job.Parallel {
		workers.Go(func() {
			for hash := range hashes {
				c.warmTexture(ctx, hash)
			}
		})
	}
	for _, hash := range job.Hashes {
		if ctx.Err() != nil {
			break
		}
		select {
		case hashes <- hash:
		case <-ctx.Done():
		}
	}
	close(hashes)
	workers.Wait()

	r := c.report
	if all := len(job.Hashes) * len(job.Views); r.NotFound == all && all > 0 {
		r.NotFound, r.FirstError = 0, fmt.Errorf("there are no such pictures of %s", job.Hashes[0])
	}
	// What was not even asked for is not there either.
	r.Failed = len(job.Hashes)*len(job.Views) - r.Loaded - r.Cached - r.NotFound
	if r.Failed > 0 && r.FirstError == nil {
		r.FirstError = context.Cause(ctx)
	}
	return r
}

// client is who asks an edge.
type client struct {
	base   string
	job    Job
	http   *http.Client
	giveUp context.CancelFunc

	mu       sync.Mutex
	report   Report
	failures int // textures in a row for which the edge had no time
}

// warmTexture asks for all views of a texture, one after another: the first of them fetches
// what is needed for all.
func (c *client) warmTexture(ctx context.Context, hash skin.Hash) {
	var r Report
	for _, view := range c.job.Views {
		if err := c.getWithRetry(ctx, strings.Replace(view, placeholder, hash.String(), 1), &r); err != nil {
			r.FirstError = err
			break
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Loaded += r.Loaded
	c.report.Cached += r.Cached
	c.report.NotFound += r.NotFound
	if c.report.FirstError == nil && ctx.Err() == nil {
		c.report.FirstError = r.FirstError
	}
	if _, busy := errors.AsType[*busyError](r.FirstError); !busy {
		c.failures = 0
	} else if c.failures++; c.failures == maxFailedTextures {
		c.giveUp()
	}
}

// getWithRetry asks for a picture until the edge has time for it, or patience ends.
func (c *client) getWithRetry(ctx context.Context, path string, r *Report) error {
	deadline := time.Now().Add(c.job.RetryFor)
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		err := c.get(ctx, path, r)
		busy, isBusy := errors.AsType[*busyError](err)
		if !isBusy {
			return err
		}
		// Jitter keeps those apart who were turned away together.
		wait := busy.retryAfter + backoff/2 + rand.N(backoff/2) //nolint:gosec // not a secret
		if time.Now().Add(wait).After(deadline) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// busyError says that an edge could not answer at the moment.
type busyError struct {
	reason     error
	retryAfter time.Duration // what the edge asks for
}

func (e *busyError) Error() string { return e.reason.Error() }

// get asks for a picture once, and notes what came of it.
func (c *client) get(ctx context.Context, path string, r *Report) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "veneer-edge-warm")
	response, err := c.http.Do(request)
	if err != nil {
		return &busyError{reason: err}
	}
	defer func() { _ = response.Body.Close() }()
	// Read to its end, or the connection could not be used again.
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return &busyError{reason: fmt.Errorf("read %s: %w", path, err)}
	}

	switch status := response.StatusCode; status {
	case http.StatusOK:
		hit, ok := cacheHit(response.Header)
		switch {
		case !ok:
			return fmt.Errorf("%s: whoever answers is no edge", path)
		case hit:
			r.Cached++
		default:
			r.Loaded++
		}
		return nil
	case http.StatusUnprocessableEntity:
		r.NotFound++
		return nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
		if err != nil {
			seconds = 0
		}
		return &busyError{reason: fmt.Errorf("%s: %s", path, response.Status), retryAfter: time.Duration(max(0, seconds)) * time.Second}
	default:
		return fmt.Errorf("%s: %s", path, response.Status)
	}
}

// cacheHit reports whether an edge had the answer in memory, as Cache-Status (RFC
// 9211) says. There can be several caches on the way, each with its own words; it is
// not ok if none is an edge.
func cacheHit(header http.Header) (hit, ok bool) {
	for cache := range strings.SplitSeq(strings.Join(header.Values("Cache-Status"), ","), ",") {
		name, params, _ := strings.Cut(cache, ";")
		if strings.TrimSpace(name) != "veneer" {
			continue
		}
		ok = true
		for param := range strings.SplitSeq(params, ";") {
			hit = hit || strings.TrimSpace(param) == "hit"
		}
	}
	return hit, ok
}
