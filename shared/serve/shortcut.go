package serve

import (
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/veneer-skins/veneer/shared/limit"
)

// Shortcut answers plain requests in the place of a server, and spares them the server's
// work. It sees each request before the server does, and whatever it leaves alone the
// server gets as it came.
type Shortcut struct {
	answer func(*Plain) bool
	most   int     // bytes of a request
	traces bool    // what whoever sends it traces, and so leaves it to the server
	sample float64 // share of requests that are logged, and so left to the server
	log    *slog.Logger

	proxies *Proxies
	// panics bounds the lines about them, and refusals those of the server about 503s on
	// the shortcut's connections.
	panics, refusals *limit.Limiter[struct{}]
}

// Shortcut returns a shortcut that has requests answered out of memory. answer reports
// whether it does; it must wait for nothing, and keep nothing of the request. The body
// must stay as it is until the next request, or for ever if it is large.
//
// There is none, nil, where requests are limited by address, as it does not look for
// the client's.
func (d Door) Shortcut(answer func(*Plain) bool) *Shortcut {
	if d.Limits.AddressRequests > 0 {
		return nil
	}
	return &Shortcut{
		answer: answer, most: min(batchBytes, d.Limits.HeaderBytes), sample: d.Sample, traces: d.Tracer != nil,
		log: d.Log, proxies: d.Proxies, panics: limit.New[struct{}](1, time.Minute, 1), refusals: limitRefusals(),
	}
}

// try has a request answered. Should that panic, the server answers instead.
func (s *Shortcut) try(p *Plain) (answered bool) {
	defer func() {
		if caught := recover(); caught != nil {
			answered = false
			if s.panics.Take(struct{}{}, p.At).Wait == 0 {
				s.log.Error("panic on the shortcut", "panic", fmt.Sprint(caught), "stack", string(debug.Stack()))
			}
		}
	}()
	return s.answer(p)
}

// batch is what it takes to answer plain requests that have arrived together.
type batch struct {
	in      [batchBytes]byte
	control [64]byte
	Plain
	out   []byte // answers that are not sent yet
	parts [2][]byte
	shard int // where they are counted
}

// batchBytes bounds plain requests, and answers that are sent in one piece.
const batchBytes = 4096

// batches are kept to be used again: nobody needs one to wait. As records do, they
// count in shards of their own.
var batches = func() *sync.Pool {
	var made atomic.Int64
	return &sync.Pool{New: func() any { return &batch{shard: int(made.Add(1) % shards)} }}
}()

// express is the part of a connection that is for a shortcut.
type express struct {
	shortcut *Shortcut
	raw      syscall.RawConn
	ready    func(fd uintptr) (done bool)
	state    atomic.Int32
	lot      lot    // of the request that is left to the server
	batch    *batch // has left and rest, nil if there is neither
	left     []byte // for the server
	rest     []byte // comes behind that, and is looked at when the server is done
	err      error
}

// lot says whether chance wants a request logged.
type lot uint8

const (
	undrawn lot = iota
	blank
	prize
)

// draw draws the lot of a request.
func draw(sample float64) lot {
	if sample > 0 && rand.Float64() < sample { //nolint:gosec // who guesses which requests are logged has won nothing
		return prize
	}
	return blank
}

// What a connection is doing, as whoever closes it from outside has to know: what has
// been read must be answered.
const (
	waiting int32 = iota
	answering
	closing
)

// tcpINQ is TCP_INQ of Linux: as an option, and then as what comes with what is read, it
// tells how much more there is. The end of the connection counts as one byte.
const tcpINQ = 36

// hasten prepares a connection for a shortcut.
func (c *conn) hasten(shortcut *Shortcut) {
	tcp, ok := c.Conn.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	// Where that is unknown, each connection is read until there is nothing more.
	_ = raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpINQ, 1) })
	c.express = &express{shortcut: shortcut, raw: raw, ready: c.answerWhatCame}
}

// readNext reads what follows an answer, when that is not for the shortcut.
//
// The system waits in a call that is made anew only when something was left to the
// server. So a request costs it one call to read, where asking first and waiting then
// would cost two, and a connection that waits has no buffer.
func (c *conn) readNext(p []byte) (int, error) {
	if err := c.express.raw.Read(c.express.ready); err != nil {
		return 0, err
	}
	if err := c.express.err; err != nil {
		return 0, err
	}
	return c.readLeft(p), nil
}

// readLeft reads what the shortcut has left.
func (c *conn) readLeft(p []byte) int {
	x := c.express
	n := copy(p, x.left)
	if x.left = x.left[n:]; len(x.left) == 0 {
		x.left = nil
		x.release()
	}
	return n
}

// release puts the batch back unless something is in it.
func (x *express) release() {
	if x.batch != nil && x.left == nil && x.rest == nil {
		batches.Put(x.batch)
		x.batch = nil
	}
}

// answerWhatCame is called when something may have arrived, until it reports that it
// is done: something is left, or there was an error.
func (c *conn) answerWhatCame(fd uintptr) (done bool) {
	x := c.express
	if !x.state.CompareAndSwap(waiting, answering) {
		x.err = net.ErrClosed
		return true
	}
	if x.batch == nil {
		x.batch, _ = batches.Get().(*batch)
	}
	done, x.err = c.answerAll(x.batch, int(fd))
	x.release()
	if x.left != nil {
		return true // still answering, until the server begins to
	}
	if !x.state.CompareAndSwap(answering, waiting) && x.err == nil {
		x.err = net.ErrClosed
	}
	return done || x.err != nil
}

// answerAll reads and answers until nothing more is there, or something for the server.
func (c *conn) answerAll(b *batch, fd int) (done bool, err error) {
	x := c.express
	in, more := x.rest, true
	x.rest = nil
	for {
		if len(in) == 0 {
			var n int
			n, more, err = b.receive(fd, x.shortcut.most)
			switch {
			case err == syscall.EINTR: //nolint:errorlint // it is none but this one
				continue
			case err == syscall.EAGAIN: //nolint:errorlint // it is none but this one
				return false, nil
			case err != nil:
				return true, err
			case n == 0:
				return true, io.EOF
			}
			in = b.in[:n]
		}
		taken, next, err := c.answerPlain(b, fd, in)
		if err != nil {
			return true, err
		}
		if in = in[taken:]; len(in) > 0 {
			if next == 0 || next == len(in) {
				x.left = in
			} else {
				x.left, x.rest = in[:next], in[next:]
			}
			return true, nil
		}
		if !more {
			return false, nil
		}
	}
}

// receive reads what there is, up to a size, and tells whether there is more. The system
// tells of a connection only when something arrives; whoever stops reading too early is
// not told again.
func (b *batch) receive(fd, most int) (n int, more bool, err error) {
	n, size, _, _, err := syscall.Recvmsg(fd, b.in[:most], b.control[:], 0)
	start := syscall.CmsgLen(0)
	more = size < start+4 || binary.NativeEndian.Uint32(b.control[start:]) != 0
	return n, more, err
}

// answerPlain answers requests until one is not for the shortcut, and returns how many
// bytes it has answered, and how many that one has, 0 if nobody knows. They are not
// counted as in flight: nobody could see it.
func (c *conn) answerPlain(b *batch, fd int, in []byte) (taken, next int, err error) {
	s, p := c.express.shortcut, &b.Plain
	p.At, p.refusals, p.peer, p.proxies = time.Now(), s.refusals, c.RemoteAddr(), s.proxies
	b.out, c.express.lot = b.out[:0], undrawn
	for taken < len(in) && !c.keeper.draining.Load() {
		if next = p.read(in[taken:]); next == 0 {
			break
		}
		// Lines of the log are the server's, and so are traces.
		if c.express.lot = draw(s.sample); c.express.lot == prize || s.traces && p.traced || !s.try(p) {
			break
		}
		c.express.lot = undrawn
		taken, next = taken+next, 0
		took := time.Since(p.At)
		p.Route.counts.count(b.shard, p.Status, took)
		b.out = p.appendHead(b.out)
		p.At = p.At.Add(took) // so long the next one has waited
		if len(b.out)+len(p.Body) <= batchBytes {
			b.out = append(b.out, p.Body...)
		} else if err = c.send(b, fd, p.Body); err != nil {
			break
		}
	}
	if err == nil && len(b.out) > 0 {
		err = c.send(b, fd, nil)
	}
	p.Body = nil
	if err == nil {
		c.reads.begin()
		err = c.reads.bound(c.opened, p.At.Sub(c.opened), c.keeper.idle)
	}
	return taken, next, err
}

// send sends what is to be sent, and a body behind it. If that takes long, At is when it
// has ended.
func (c *conn) send(b *batch, fd int, body []byte) error {
	out := b.out
	b.out = b.out[:0]
	if len(body) == 0 {
		n, err := syscall.Write(fd, out)
		switch {
		case n == len(out):
			return nil
		case n > 0:
			out = out[n:]
		case err != syscall.EAGAIN && err != syscall.EINTR:
			return err
		}
	}
	c.writes.begin()
	if err := c.writes.bound(c.opened, b.At.Sub(c.opened), c.keeper.write); err != nil {
		return err
	}
	b.parts = [2][]byte{out, body}
	c.parts = b.parts[:]
	_, err := c.parts.WriteTo(c.Conn)
	c.parts = nil // or it would keep b alive
	b.parts = [2][]byte{}
	b.At = time.Now()
	return err
}

// takeLot returns, once, the lot of a request that was left to the server.
func (x *express) takeLot() lot {
	drawn := x.lot
	x.lot = undrawn
	return drawn
}
