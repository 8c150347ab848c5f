package httpserver

import (
	"errors"
	"io"
	"math"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/fault"
	"github.com/veneer-skins/veneer/shared/httpserver/clientip"
)

const (
	// smallBody is the largest body that takes nothing of the budget: 8 KiB. Nearly all
	// requests and most skins are smaller, so a full budget does not stop them.
	smallBody = 8 << 10

	// stalledRate is the rate in bytes a second below which a body is stalled. It is half of
	// what a phone sends over EDGE. At that rate the largest upload, 1 MiB and its form,
	// takes 68 s and would not arrive within UPLOAD_TIMEOUT.
	stalledRate = 16 << 10
	// stalledGrace is how far a body may fall behind stalledRate. It also caps the credit of
	// a fast body, so that one that stops is stalled a second later.
	stalledGrace = time.Second
	// notWaiting is Body.stalledAt while no read waits for the body.
	notWaiting = math.MaxInt64
)

// pastDeadline ends a read that another goroutine waits in.
var pastDeadline = time.Unix(1, 0)

var (
	byListener = []string{"listener"}

	bodyBytes      = promauto.NewGaugeVec(prometheus.GaugeOpts{Name: "veneer_body_bytes", Help: "Bytes of the budget that request bodies have reserved."}, byListener)
	bodiesAborted  = promauto.NewCounterVec(prometheus.CounterOpts{Name: "veneer_bodies_ended_total", Help: "Stalled request bodies aborted to free their bytes for others."}, byListener)
	bodiesRejected = promauto.NewCounterVec(prometheus.CounterOpts{Name: "veneer_bodies_rejected_total", Help: "Request bodies rejected, since the budget was used up."}, byListener)
)

// budget bounds the bytes that the request bodies of a listener take.
type budget struct {
	limit                       int64
	networkLimit                int64 // bound of the bodies of one client network, if it has more than one
	usedGauge                   prometheus.Gauge
	abortedTotal, rejectedTotal prometheus.Counter

	mu            sync.Mutex
	used          int64
	usedByNetwork map[netip.Prefix]int64
	arriving      map[*Body]struct{} // bodies with reserved bytes that are still arriving
}

func newBudget(listener string, limit int64) *budget {
	return &budget{
		limit:         limit,
		networkLimit:  limit / 4 * 3,
		usedGauge:     bodyBytes.WithLabelValues(listener),
		abortedTotal:  bodiesAborted.WithLabelValues(listener),
		rejectedTotal: bodiesRejected.WithLabelValues(listener),
		usedByNetwork: map[netip.Prefix]int64{},
		arriving:      map[*Body]struct{}{},
	}
}

var (
	errStalled      = fault.New(fault.Timeout, "The body arrived too slowly while others waited. Please try again.")
	errBodiesBudget = &fault.Error{
		Kind: fault.Unavailable, Message: "Too much is being uploaded at the moment. Please try again.", RetryAfter: time.Second,
	}
)

// reserve reserves n more bytes for a body. If they are not free, the slowest stalled bodies
// are aborted until they are; if none is stalled, it returns an Unavailable fault. If they
// would exceed the limit of the body's client network, only bodies of that network are
// aborted.
func (b *budget) reserve(body *Body, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if body.aborted {
		return errStalled
	}
	for {
		networkUsed := b.usedByNetwork[body.network]
		isOverShare := networkUsed > body.reserved && networkUsed+n > b.networkLimit
		if !isOverShare && b.used+n <= b.limit {
			break
		}
		slowest := b.slowest(func(other *Body) bool { return !isOverShare || other.network == body.network })
		if slowest == nil {
			b.rejectedTotal.Inc()
			return errBodiesBudget
		}
		b.abort(slowest)
	}
	b.add(body, n)
	b.arriving[body] = struct{}{}
	return nil
}

// slowest returns the stalled body that is furthest behind stalledRate of those that mayAbort
// allows, nil if none is stalled. Only a body that a read waits for can be stalled: time in
// which the server does not read does not count against the client.
func (b *budget) slowest(mayAbort func(*Body) bool) (slowest *Body) {
	earliest := int64(time.Since(processStart))
	for body := range b.arriving {
		if stalledAt := body.stalledAt.Load(); stalledAt < earliest && mayAbort(body) {
			slowest, earliest = body, stalledAt
		}
	}
	return slowest
}

// abort releases what a body has reserved, and ends the read that waits for it.
func (b *budget) abort(body *Body) {
	body.aborted = true
	b.release(body)
	b.abortedTotal.Inc()
	_ = body.Interrupt() // if that fails, the connection is closed
}

func (b *budget) release(body *Body) {
	delete(b.arriving, body)
	b.add(body, -body.reserved)
}

// add changes the reservation of a body by n bytes.
func (b *budget) add(body *Body, n int64) {
	body.reserved += n
	b.used += n
	b.usedGauge.Add(float64(n))
	if b.usedByNetwork[body.network] += n; b.usedByNetwork[body.network] == 0 {
		delete(b.usedByNetwork, body.network)
	}
}

// processStart is the origin of the times in Body.
var processStart = time.Now()

// Body is the body of a request while it arrives. It is valid until the request ends. All
// methods but Interrupt and IsComplete are for one goroutine at a time.
type Body struct {
	budget        *budget
	network       netip.Prefix // of the client; unset for small bodies
	conn          net.Conn
	stream        io.Reader // nil: not opened
	contentLength int       // Content-Length, -1 if it is chunked
	received      int
	buffered      []byte // what ReadSmall has read and Read has not returned
	err           error  // why no more arrives: io.EOF after the whole body, else a fault
	complete      atomic.Bool
	credit        time.Duration // time by which the body is ahead of stalledRate; at most stalledGrace
	stalledAt     atomic.Int64  // when a waiting Read has used up credit, in nanoseconds since processStart

	// Guarded by budget.mu.
	reserved int64
	aborted  bool
}

// OpenBody returns the body of a request, nil if there is none or it has been read. The body
// must arrive within timeout from now; 0 stands for the rest of READ_TIMEOUT.
func OpenBody(rc *fasthttp.RequestCtx, timeout time.Duration) (*Body, error) {
	r := stateOf(rc)
	if r == nil || !rc.Request.IsBodyStream() || rc.Request.Header.ContentLength() == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	b := &r.body
	b.open(r.instr.budget, rc.Conn(), rc.RequestBodyStream(), rc.Request.Header.ContentLength())
	if b.isChunked() || b.contentLength >= smallBody {
		b.network = clientip.Network(r.instr.Proxies.ClientIP(rc))
	}
	return b, b.extendDeadline(timeout)
}

func (b *Body) open(g *budget, conn net.Conn, stream io.Reader, contentLength int) {
	b.budget, b.conn, b.stream, b.contentLength = g, conn, stream, contentLength
	b.credit = stalledGrace
	b.stalledAt.Store(notWaiting)
}

// ReadBody reads the body of a request if its route accepts one, within the bounds of
// Route.AcceptBody. rc.PostBody returns it until the request ends. For other routes it reads
// nothing.
func ReadBody(rc *fasthttp.RequestCtx) error {
	r := stateOf(rc)
	if r == nil || !r.route.acceptsBody {
		return nil
	}
	b, err := OpenBody(rc, r.route.bodyTimeout)
	if b == nil || err != nil {
		return err
	}
	complete, err := b.readAll(r.route.maxBody)
	if err != nil {
		return err
	}
	rc.Request.SetBodyRaw(complete)
	return nil
}

// TooLarge returns the fault of a body of more than limit bytes.
func TooLarge(limit int) *fault.Error {
	return fault.New(fault.TooLarge, "The body is larger than the %d bytes that are accepted here.", limit)
}

// readAll returns the whole body, of at most limit bytes; 0 stands for the whole budget. It
// takes memory for what has arrived, at most twice as much, not for Content-Length.
func (b *Body) readAll(limit int) ([]byte, error) {
	if limit == 0 || int64(limit) > b.budget.limit {
		limit = int(b.budget.limit)
	}
	if b.contentLength > limit {
		return nil, TooLarge(limit)
	}
	largest := b.contentLength
	if b.isChunked() {
		largest = limit + 1
	}
	buffer, err := b.readFirst()
	for err == nil { // while the body is larger than the buffer
		if b.received > limit {
			return nil, TooLarge(limit)
		}
		larger := min(2*len(buffer), largest)
		// The byte that detects the end of a chunked body as large as the budget is not
		// counted.
		if err = b.reserve(min(int64(larger), b.budget.limit) - b.reserved); err != nil {
			return nil, err
		}
		buffer = append(make([]byte, 0, larger), buffer...)[:larger]
		err = b.fill(buffer)
	}
	switch {
	case b.received > limit:
		return nil, TooLarge(limit)
	case err != io.EOF: //nolint:errorlint // receive wraps nothing
		return nil, err
	default:
		return buffer[:b.received], b.finish()
	}
}

// ReadSmall reads a body of up to 8 KiB. rc.PostBody returns it then, until the request ends.
// For a larger body it returns false; use Stream for that.
func (b *Body) ReadSmall(rc *fasthttp.RequestCtx) (complete bool, err error) {
	buffer, err := b.readFirst()
	switch err {
	case nil:
		b.buffered = buffer
		return false, nil
	case io.EOF: //nolint:errorlint // receive wraps nothing
		rc.Request.SetBodyRaw(buffer[:b.received])
		return true, nil
	default:
		return false, err
	}
}

// Stream prepares a body to be read with Read, which buffers nothing. It reserves share bytes
// of the budget, the cost of passing a body on. The rest of the body must arrive within
// timeout.
func (b *Body) Stream(share int64, timeout time.Duration) error {
	if err := b.extendDeadline(timeout); err != nil {
		return err
	}
	return b.reserve(share)
}

// Size returns Content-Length, -1 if the body is chunked.
func (b *Body) Size() int { return b.contentLength }

// Read reads the body from its beginning. Errors other than io.EOF are faults.
func (b *Body) Read(p []byte) (int, error) {
	if len(b.buffered) > 0 {
		n := copy(p, b.buffered)
		b.buffered = b.buffered[n:]
		return n, nil
	}
	n, err := b.receive(p)
	if err == io.EOF { //nolint:errorlint // receive wraps nothing
		if err := b.finish(); err != nil {
			return n, err
		}
	}
	return n, err
}

// Err returns the fault that ended the body, nil if there is none.
func (b *Body) Err() error {
	if b.err == io.EOF { //nolint:errorlint // receive wraps nothing
		return nil
	}
	return b.err
}

// IsComplete reports whether the whole body has arrived. Any goroutine may call it.
func (b *Body) IsComplete() bool { return b.complete.Load() }

// Interrupt ends a Read that another goroutine waits in, and all later ones.
func (b *Body) Interrupt() error { return b.conn.SetReadDeadline(pastDeadline) }

func (b *Body) isChunked() bool { return b.contentLength < 0 }

// extendDeadline gives the rest of the body until timeout from now.
func (b *Body) extendDeadline(timeout time.Duration) error {
	if timeout == 0 {
		return nil
	}
	return b.conn.SetReadDeadline(time.Now().Add(timeout))
}

// readFirst reads up to 8 KiB. The error is nil if there is more.
func (b *Body) readFirst() ([]byte, error) {
	size := min(b.contentLength, smallBody)
	if b.isChunked() {
		size = smallBody + 1 // one byte more detects the end of a body of 8 KiB
	}
	buffer := make([]byte, size)
	return buffer, b.fill(buffer)
}

// fill reads until the bytes received fill buffer.
func (b *Body) fill(buffer []byte) error {
	for b.received < len(buffer) {
		if _, err := b.receive(buffer[b.received:]); err != nil {
			return err
		}
	}
	return nil
}

// receive reads from the connection, and keeps the account of credit.
func (b *Body) receive(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	began := time.Since(processStart)
	b.stalledAt.Store(int64(began + b.credit))
	n, err := b.stream.Read(p)
	b.stalledAt.Store(notWaiting)
	b.received += n
	waited := time.Since(processStart) - began
	b.credit = min(b.credit-waited+time.Duration(n)*time.Second/stalledRate, stalledGrace)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF) && (b.isChunked() || b.received == b.contentLength):
		b.err = io.EOF
		b.complete.Store(true)
	case errors.Is(err, io.EOF): // the client closed the connection
		b.err = readFault(io.ErrUnexpectedEOF)
	case b.isAborted():
		b.err = errStalled
	default:
		b.err = readFault(err)
	}
	return n, b.err
}

func (b *Body) reserve(n int64) error { return b.budget.reserve(b, n) }

// finish marks the body as arrived. It keeps its reservation, but cannot be aborted any more.
func (b *Body) finish() error {
	if b.received < smallBody {
		return nil
	}
	b.budget.mu.Lock()
	defer b.budget.mu.Unlock()
	if b.aborted {
		b.err = errStalled
		return errStalled
	}
	delete(b.budget.arriving, b)
	return nil
}

func (b *Body) isAborted() bool {
	b.budget.mu.Lock()
	defer b.budget.mu.Unlock()
	return b.aborted
}

// release releases the reservation, and resets the body for another request.
func (b *Body) release() {
	if b.stream == nil {
		return
	}
	if b.received >= smallBody {
		b.budget.mu.Lock()
		b.budget.release(b)
		b.budget.mu.Unlock()
	}
	b.budget, b.conn, b.stream, b.buffered, b.err = nil, nil, nil, nil, nil
	b.network, b.contentLength, b.received, b.reserved, b.aborted = netip.Prefix{}, 0, 0, 0, false
	b.complete.Store(false)
}
