// Package loopback finds addresses of this machine for servers.
package loopback

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// reserved holds a socket for each port that was returned, which the kernel closes when the
// process ends. A port is free until its server listens, which for PostgreSQL takes seconds,
// and tests of other packages, each a process, look for ports at the same time.
var reserved sync.Map

// FreeAddress returns an address of loopback at which nothing listens, for a server that
// listens later. Its port is below those that the kernel gives to clients: a client of
// another test would else take it in between. No process gets one that another has.
func FreeAddress() (string, error) {
	for {
		port := strconv.Itoa(20000 + rand.IntN(12000))
		name, err := net.Listen("unix", "@veneer-port-"+port) // in Linux's abstract names, so without a file
		if err == nil {
			reserved.Store(port, name)
			var listener net.Listener
			if listener, err = net.Listen("tcp", "127.0.0.1:"+port); err == nil {
				return listener.Addr().String(), listener.Close()
			}
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return "", err
		}
	}
}

// FreeAddresses returns two of them.
func FreeAddresses() (first, second string, err error) {
	if first, err = FreeAddress(); err != nil {
		return "", "", err
	}
	second, err = FreeAddress()
	return first, second, err
}
