package serve

import (
	"net"

	"github.com/valyala/fasthttp"
)

// Keep returns a listener that keeps a server's limits of time, as Run's do.
func Keep(server *fasthttp.Server, listener net.Listener, peers *Peers) net.Listener {
	return keep(server, listener, peers)
}

// Accept returns the system's end of what a listener accepts next.
func Accept(listener net.Listener) (net.Conn, error) {
	accepted, err := listener.Accept()
	if err != nil {
		return nil, err
	}
	return connOf(accepted).Conn, nil
}
