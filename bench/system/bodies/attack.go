// Package bodies simulates slow-body attacks: hostile clients with uploads that stall or crawl. It
// checks that core and edges keep serving log-ins, uploads and pictures meanwhile.
package bodies

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/veneer-skins/veneer/bench/system/site"
)

const (
	// MaxUploadLength is the length of the largest upload that core accepts: 1 MiB of file and
	// 64 KiB of form, less one byte.
	MaxUploadLength = 1_114_111
	// retryDelay is the time between the end of a client's upload and the start of its next
	// one.
	retryDelay = 3 * time.Second
	// stallTime is the time after its last byte from which a body counts as stalled.
	stallTime = 1500 * time.Millisecond
)

// Target is the server under attack.
type Target struct {
	Base  string // URL without a path
	HTTP2 bool
	From  []netip.Addr // the clients' local addresses, used round-robin
}

// Upload is one hostile upload: InitialBytes of the body at once, then a byte each Interval. If
// Interval is 0, nothing more is sent.
type Upload struct {
	Path, Bearer  string
	ContentLength int64 // Content-Length
	InitialBytes  int
	Interval      time.Duration
}

// Attack is a set of hostile clients. When an upload is ended, its client starts it again 3 s
// later.
type Attack struct {
	ctx     context.Context //nolint:containedctx // ends the clients
	stop    context.CancelFunc
	clients []*http.Client
	wg      sync.WaitGroup

	mu            sync.Mutex
	responses     map[int]int // responses by status; 0 for none
	current, peak int         // open bodies
}

// Start starts a client for each upload. It returns once every body has begun and those without an
// Interval have stalled.
func Start(ctx context.Context, target Target, uploads []Upload) *Attack {
	ctx, stop := context.WithCancel(ctx)
	a := &Attack{ctx: ctx, stop: stop, clients: target.clients(), responses: map[int]int{}}
	var started sync.WaitGroup
	for i, upload := range uploads {
		started.Add(1)
		once := sync.OnceFunc(started.Done)
		a.wg.Go(func() {
			for ctx.Err() == nil {
				a.send(a.clients[i%len(a.clients)], target.Base, upload, once)
				once() // also if the connection failed
				select {
				case <-ctx.Done():
				case <-time.After(retryDelay):
				}
			}
		})
	}
	started.Wait()
	select {
	case <-ctx.Done():
	case <-time.After(stallTime):
	}
	return a
}

// clients returns a client for each local address.
func (t Target) clients() (all []*http.Client) {
	var protocols http.Protocols
	protocols.SetHTTP1(!t.HTTP2)
	protocols.SetUnencryptedHTTP2(t.HTTP2)
	for _, from := range t.From {
		dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
		all = append(all, &http.Client{Transport: &http.Transport{
			Protocols: &protocols, DisableCompression: true, DialContext: dialer.DialContext,
		}})
	}
	return all
}

func (a *Attack) send(client *http.Client, base string, upload Upload, started func()) {
	// haproxy rejects HTTP/2 streams beyond its limit, which a client detects only after its
	// first requests. GetBody lets the transport resend those on another connection.
	var sent []*body
	getBody := func() (io.ReadCloser, error) {
		b := &body{attack: a, initial: upload.InitialBytes, interval: upload.Interval, stalled: started, closed: make(chan struct{})}
		sent = append(sent, b)
		return b, nil
	}
	defer func() { // a response before the end of the body does not unblock Read
		for _, b := range sent {
			_ = b.Close()
		}
	}()
	first, _ := getBody()
	request, err := http.NewRequestWithContext(a.ctx, http.MethodPost, base+upload.Path, first)
	if err != nil {
		return
	}
	request.GetBody = getBody
	request.ContentLength = upload.ContentLength
	request.Header.Set("Authorization", "Bearer "+upload.Bearer)
	request.Header.Set("Content-Type", site.UploadType)
	status := 0
	if response, err := client.Do(request); err == nil {
		status = response.StatusCode
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
	if a.ctx.Err() == nil {
		a.mu.Lock()
		a.responses[status]++
		a.mu.Unlock()
	}
}

// Stop stops all clients and waits for them.
func (a *Attack) Stop() {
	a.stop()
	a.wg.Wait()
	for _, client := range a.clients {
		client.CloseIdleConnections()
	}
}

// String describes the peak number of open uploads and the responses before the end of the attack.
func (a *Attack) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var answers []string
	for _, status := range slices.Sorted(maps.Keys(a.responses)) {
		name := fmt.Sprint(status)
		if status == 0 {
			name = "no answer"
		}
		answers = append(answers, fmt.Sprintf("%s: %d", name, a.responses[status]))
	}
	return fmt.Sprintf("%d concurrent uploads, of which ended (%s)", a.peak, strings.Join(answers, ", "))
}

// body is the body of an upload.
type body struct {
	attack   *Attack
	initial  int
	interval time.Duration
	stalled  func()
	closed   chan struct{}

	counted, ended bool // guarded by attack.mu
}

func (b *body) Read(p []byte) (int, error) {
	if b.initial > 0 {
		n := min(len(p), b.initial)
		b.initial -= n
		return n, nil
	}
	b.count()
	b.stalled()
	var next <-chan time.Time
	if b.interval > 0 {
		next = time.After(b.interval)
	}
	select {
	case <-next:
		return 1, nil
	case <-b.closed:
		return 0, net.ErrClosed
	case <-b.attack.ctx.Done():
		return 0, b.attack.ctx.Err()
	}
}

func (b *body) count() {
	a := b.attack
	a.mu.Lock()
	defer a.mu.Unlock()
	if !b.counted && !b.ended {
		b.counted = true
		a.current++
		a.peak = max(a.peak, a.current)
	}
}

func (b *body) Close() error {
	a := b.attack
	a.mu.Lock()
	defer a.mu.Unlock()
	if b.ended {
		return nil
	}
	b.ended = true
	close(b.closed)
	if b.counted {
		a.current--
	}
	return nil
}
