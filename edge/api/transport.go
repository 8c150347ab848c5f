package api

import (
	"errors"
	"net"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/veneer-skins/veneer/shared/breaker"
	"github.com/veneer-skins/veneer/shared/serve"
)

// transport sends requests to core. fasthttp's own reads an answer when it has sent the whole
// body, so an answer that core gives earlier, as that the body is too large, would be lost.
type transport struct{ limits serve.Limits }

// RoundTrip sends a request. While its body arrives, it waits for the answer.
func (t transport) RoundTrip(client *fasthttp.HostClient, request *fasthttp.Request, response *fasthttp.Response) (retry bool, err error) {
	body, ok := request.BodyStream().(*serve.Body)
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

	sent := make(chan error, 1)
	go func() {
		err := t.send(client, conn, request)
		sent <- err
		if err != nil && body.Err() != nil {
			_ = conn.SetDeadline(time.Unix(1, 0)) // no answer will come
		}
	}()
	reader := client.AcquireReader(conn)
	defer client.ReleaseReader(reader)
	response.SkipBody = response.SkipBody || request.Header.IsHead()
	err = response.ReadLimitBody(reader, client.MaxResponseBodySize)
	if err == nil && body.IsWhole() {
		reuse = <-sent == nil && !response.ConnectionClose()
		return false, nil
	}
	select {
	case <-sent:
		if fault := body.Err(); err != nil && fault != nil {
			return false, errors.Join(fault, breaker.ErrNotTried)
		}
	default:
		_ = body.Interrupt()
		_ = conn.Close()
		<-sent
	}
	return false, err
}

// send sends a request, and allows core the time of its work from then on.
func (t transport) send(client *fasthttp.HostClient, conn net.Conn, request *fasthttp.Request) error {
	// Without ReadFrom, for which the system's connection would make a buffer of 32 KiB.
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
