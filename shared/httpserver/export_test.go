package httpserver

import (
	"net"
	"time"
)

// SetWatchdog sets the interval of the watchdog's requests.
func (ls *Listeners) SetWatchdog(interval time.Duration) { ls.watchdog = interval }

// Accept returns the socket of the next connection of a listener.
func Accept(listener net.Listener) (net.Conn, error) {
	accepted, err := listener.Accept()
	if err != nil {
		return nil, err
	}
	return connOf(accepted).Conn, nil
}

// Counts is what a listener's connLimiter counts.
type Counts struct{ Open, Evicted, Networks, Large, Addresses int }

// CountsOf returns the counts of a listener that Listener.Wrap returned.
func CountsOf(listener net.Listener) Counts {
	dl, _ := listener.(*deadlineListener)
	l := dl.connLimiter
	l.mu.Lock()
	defer l.mu.Unlock()
	return Counts{l.open, l.evicted.size + l.aborted.size, len(l.listByNetwork), len(l.overShare), len(l.connsByAddress)}
}
