package api

import (
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/breaker"
	"github.com/veneer-skins/veneer/shared/httpserver"
)

// transport sends requests to core. fasthttp's own transport reads the response only when it
// has sent the whole body, so it loses an earlier one, such as 413 Content Too Large.
type transport struct{ limits httpserver.Limits }

// RoundTrip sends a request and reads the response, at the same time if the body is a stream.
func (t transport) RoundTrip(client *fasthttp.HostClient, request *fasthttp.Request, response *fasthttp.Response) (retry bool, err error) {
	body, ok := request.BodyStream().(*httpserver.Body)
	if !ok {
		return fasthttp.DefaultTransport.RoundTrip(client, request, response)
	}
	pooled, err := client.AcquireConn(request.GetTimeOut(), false)
	if err != nil {
		return false, err
	}
	conn := pooled.Conn()
	reuse := false
	defer func() {
		if reuse {
			client.ReleaseConn(pooled)
		} else {
			client.CloseConn(pooled)
		}
	}()
	if err := conn.SetDeadline(time.Now().Add(request.GetTimeOut())); err != nil {
		return false, err
	}

	type outcome struct {
		err   error // of sending
		fault error // of the body, if that is the cause
	}
	sent := make(chan outcome, 1)
	var interrupted atomic.Bool
	go func() {
		o := outcome{err: t.send(client, conn, request)}
		if o.err != nil && !interrupted.Load() {
			if o.fault = body.Err(); o.fault != nil {
				_ = conn.SetDeadline(time.Unix(1, 0)) // ends the read: no response will come
			}
		}
		sent <- o
	}()
	reader := client.AcquireReader(conn)
	defer client.ReleaseReader(reader)
	response.SkipBody = response.SkipBody || request.Header.IsHead()
	err = response.ReadLimitBody(reader, client.MaxResponseBodySize)
	if err != nil || !body.IsComplete() { // core has responded before the end of the body, or is unreachable
		interrupted.Store(true)
		_ = body.Interrupt()
		_ = conn.Close()
	}
	o := <-sent
	if err != nil && o.fault != nil {
		return false, errors.Join(o.fault, breaker.ErrNotAttempted)
	}
	reuse = err == nil && o.err == nil && !interrupted.Load() && !response.ConnectionClose()
	return false, err
}

// send sends a request. Core's time limit counts from the end of it.
func (t transport) send(client *fasthttp.HostClient, conn net.Conn, request *fasthttp.Request) error {
	// The struct hides ReadFrom, for which net.TCPConn would allocate a buffer of 32 KiB.
	writer := client.AcquireWriter(struct{ net.Conn }{conn})
	defer client.ReleaseWriter(writer)
	if err := request.Write(writer); err != nil {
		return err
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	return conn.SetReadDeadline(time.Now().Add(t.limits.WorkTimeout))
}
