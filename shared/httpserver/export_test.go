package httpserver

import "net"

// Accept returns the system's end of what a listener accepts next.
func Accept(listener net.Listener) (net.Conn, error) {
	accepted, err := listener.Accept()
	if err != nil {
		return nil, err
	}
	return connOf(accepted).Conn, nil
}

// Counts is what a listener counts of its connections.
type Counts struct{ Open, Evicted, Networks, Large, Addresses int }

// CountsOf returns what a listener that Listener.Keep returned counts.
func CountsOf(listener net.Listener) Counts {
	dl, _ := listener.(*deadlineListener)
	l := dl.connLimiter
	l.mu.Lock()
	defer l.mu.Unlock()
	return Counts{l.open, l.evicted.size + l.aborted.size, len(l.listByNetwork), len(l.overShare), len(l.connsByAddress)}
}
