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

// place stands in a view where the hash belongs.
const place = "{hash}"

// ParseViews reads paths of pictures, which are separated by commas and have {hash} in
// the place of a texture's hash.
func ParseViews(text string) ([]string, error) {
	views := strings.Split(text, ",")
	for i, view := range views {
		view = strings.TrimSpace(view)
		if !strings.HasPrefix(view, "/") || strings.Count(view, place) != 1 {
			return nil, fmt.Errorf("%q is no path with %s in it", view, place)
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

// Order is what is to be in an edge's memory.
type Order struct {
	Hashes []skin.Hash
	Views  []string // of every texture, as ParseViews returns them
	// Parallel is how many pictures are asked for at once: few, as each may take a slot
	// that a visitor would have.
	Parallel int
	// Patience bounds the time for which one picture is asked for again that the edge
	// cannot make at the moment.
	Patience time.Duration
}

// Report says what became of the pictures of an order.
type Report struct {
	Made   int // drawn or fetched, or core was asked about the texture
	There  int // in memory already
	None   int // of textures that have no such picture, as capes have no face
	Failed int // all others
	First  error
}

const (
	// answerTimeout bounds one request. The edge's own bounds are shorter.
	answerTimeout = 30 * time.Second
	// hopeless is how many textures must fail in a row, each after all patience, for
	// the rest not to be asked for.
	hopeless = 4

	shortestPause = 250 * time.Millisecond
	longestPause  = 8 * time.Second
)

// Edge carries out an order at the edge with a base URL, as Base returns it.
func Edge(ctx context.Context, base string, order Order) Report {
	transport := &http.Transport{MaxConnsPerHost: order.Parallel, MaxIdleConnsPerHost: order.Parallel}
	defer transport.CloseIdleConnections()
	return carryOut(ctx, base, order, transport)
}

func carryOut(ctx context.Context, base string, order Order, way http.RoundTripper) Report {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	v := &visitor{base: base, order: order, client: &http.Client{Transport: way, Timeout: answerTimeout}, giveUp: giveUp}

	hashes := make(chan skin.Hash)
	var workers sync.WaitGroup
	for range order.Parallel {
		workers.Go(func() {
			for hash := range hashes {
				v.visit(ctx, hash)
			}
		})
	}
	for _, hash := range order.Hashes {
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

	r := v.report
	if all := len(order.Hashes) * len(order.Views); r.None == all && all > 0 {
		r.None, r.First = 0, fmt.Errorf("there are no such pictures of %s", order.Hashes[0])
	}
	// What was not even asked for is not there either.
	r.Failed = len(order.Hashes)*len(order.Views) - r.Made - r.There - r.None
	if r.Failed > 0 && r.First == nil {
		r.First = context.Cause(ctx)
	}
	return r
}

// visitor is who asks an edge.
type visitor struct {
	base   string
	order  Order
	client *http.Client
	giveUp context.CancelFunc

	mu       sync.Mutex
	report   Report
	failures int // textures in a row for which the edge had no time
}

// visit asks for all views of a texture, one after another: the first of them fetches
// what is needed for all.
func (v *visitor) visit(ctx context.Context, hash skin.Hash) {
	var r Report
	for _, view := range v.order.Views {
		if err := v.insist(ctx, strings.Replace(view, place, hash.String(), 1), &r); err != nil {
			r.First = err
			break
		}
	}

	v.mu.Lock()
	defer v.mu.Unlock()
	v.report.Made += r.Made
	v.report.There += r.There
	v.report.None += r.None
	if v.report.First == nil && ctx.Err() == nil {
		v.report.First = r.First
	}
	if _, busy := errors.AsType[*busyError](r.First); !busy {
		v.failures = 0
	} else if v.failures++; v.failures == hopeless {
		v.giveUp()
	}
}

// insist asks for a picture until the edge has time for it, or patience ends.
func (v *visitor) insist(ctx context.Context, path string, r *Report) error {
	until := time.Now().Add(v.order.Patience)
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		err := v.ask(ctx, path, r)
		busy, isBusy := errors.AsType[*busyError](err)
		if !isBusy {
			return err
		}
		// Jitter keeps those apart who were turned away together.
		wait := busy.retryAfter + pause/2 + rand.N(pause/2) //nolint:gosec // not a secret
		if time.Now().Add(wait).After(until) {
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

// ask asks for a picture once, and notes what came of it.
func (v *visitor) ask(ctx context.Context, path string, r *Report) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, v.base+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("User-Agent", "veneer-edge-warm")
	response, err := v.client.Do(request)
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
		hit, ok := fromMemory(response.Header)
		switch {
		case !ok:
			return fmt.Errorf("%s: whoever answers is no edge", path)
		case hit:
			r.There++
		default:
			r.Made++
		}
		return nil
	case http.StatusUnprocessableEntity:
		r.None++
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

// fromMemory reports whether an edge had the answer in memory, as Cache-Status (RFC
// 9211) says. There can be several caches on the way, each with its own words; it is
// not ok if none is an edge.
func fromMemory(header http.Header) (hit, ok bool) {
	for cache := range strings.SplitSeq(strings.Join(header.Values("Cache-Status"), ","), ",") {
		name, words, _ := strings.Cut(cache, ";")
		if strings.TrimSpace(name) != "veneer" {
			continue
		}
		ok = true
		for word := range strings.SplitSeq(words, ";") {
			hit = hit || strings.TrimSpace(word) == "hit"
		}
	}
	return hit, ok
}
