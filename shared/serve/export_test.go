package serve

import "net"

// Accept returns the system's end of what a listener accepts next.
func Accept(listener net.Listener) (net.Conn, error) {
	accepted, err := listener.Accept()
	if err != nil {
		return nil, err
	}
	return connOf(accepted).Conn, nil
}
