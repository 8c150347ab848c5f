// Package warm fills the caches of running edges: it requests pictures from them over HTTP, so
// that later requests of clients are cache hits.
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

// placeholder stands for the hash of a texture in a view.
const placeholder = "{hash}"

// ParseViews parses paths of pictures, separated by commas, in which {hash} stands for the
// hash of a texture.
func ParseViews(text string) ([]string, error) {
	views := strings.Split(text, ",")
	for i, view := range views {
		view = strings.TrimSpace(view)
		if !strings.HasPrefix(view, "/") || strings.Count(view, placeholder) != 1 {
			return nil, fmt.Errorf("%q is not a path that contains %s once", view, placeholder)
		}
		views[i] = view
	}
	return views, nil
}

// Base parses the base URL of an edge. It returns the URL without a slash at its end.
func Base(text string) (string, error) {
	base, err := url.Parse(text)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.Fragment != "" {
		return "", fmt.Errorf("%q does not look like http://host:port or https://host", text)
	}
	return strings.TrimRight(base.String(), "/"), nil
}

// Job is a set of pictures to load into an edge's cache.
type Job struct {
	Hashes []skin.Hash
	Views  []string // of every texture, as ParseViews returns them
	// Parallel is the number of concurrent requests to an edge. Each may occupy a render
	// worker that clients need.
	Parallel int
	// RetryFor is how long a request is retried that the edge rejects as overloaded.
	RetryFor time.Duration
}

// Report counts the pictures of a job by their result.
type Report struct {
	Loaded     int // rendered or fetched, or the texture was looked up at core
	Cached     int // were cached already
	NotFound   int // do not exist for the type of the texture: a cape has no face
	Failed     int // all others
	FirstError error
}

const (
	// requestTimeout bounds one request. The edge's own timeouts are shorter.
	requestTimeout = 30 * time.Second
	// maxFailedTextures is the number of textures that fail in a row, each after all retries,
	// until the job is abandoned.
	maxFailedTextures = 4

	minBackoff = 250 * time.Millisecond
	maxBackoff = 8 * time.Second
)

// Run loads the pictures of a job at the edge with a base URL, as Base returns it.
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
	// Pictures that were not requested count as failed.
	r.Failed = len(job.Hashes)*len(job.Views) - r.Loaded - r.Cached - r.NotFound
	if r.Failed > 0 && r.FirstError == nil {
		r.FirstError = context.Cause(ctx)
	}
	return r
}

// client requests the pictures of a job from an edge.
type client struct {
	base   string
	job    Job
	http   *http.Client
	giveUp context.CancelFunc

	mu       sync.Mutex
	report   Report
	failures int // textures in a row that failed, as the edge was busy
}

// warmTexture requests all views of a texture sequentially: the first one fetches the texture
// for all.
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

// getWithRetry requests a picture, and retries while the edge is busy, for up to RetryFor.
func (c *client) getWithRetry(ctx context.Context, path string, r *Report) error {
	deadline := time.Now().Add(c.job.RetryFor)
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		err := c.get(ctx, path, r)
		busy, ok := errors.AsType[*busyError](err)
		if !ok {
			return err
		}
		// Jitter spreads requests that were rejected together.
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

// busyError is a temporary failure of an edge.
type busyError struct {
	reason     error
	retryAfter time.Duration // of the response
}

func (e *busyError) Error() string { return e.reason.Error() }

// get requests a picture once, and counts the result in the report.
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
	// The body is read to its end, so that the connection can be reused.
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return &busyError{reason: fmt.Errorf("read %s: %w", path, err)}
	}

	switch status := response.StatusCode; status {
	case http.StatusOK:
		hit, ok := cacheHit(response.Header)
		switch {
		case !ok:
			return fmt.Errorf("%s: the server is no edge", path)
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

// cacheHit reports whether a response was a hit in an edge's cache, by Cache-Status (RFC
// 9211). The header may list several caches; it is not ok if none of them is an edge.
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
