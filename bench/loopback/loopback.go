// Package loopback finds free ports of this machine for servers.
package loopback

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// reserved holds a socket for each port that was returned, which the kernel closes when the process
// ends. A port is free until its server listens, which for PostgreSQL takes seconds, and tests of
// other packages, each a process, look for ports at the same time.
var reserved sync.Map

// FreeAddress returns a loopback address at which nothing listens, for a server that listens later.
// Its port is below the kernel's ephemeral range: a client of another test could take it otherwise.
// No two processes get the same one.
func FreeAddress() (string, error) {
	for {
		port := strconv.Itoa(20000 + rand.IntN(12000))
		name, err := net.Listen("unix", "@veneer-port-"+port) // an abstract socket of Linux, so without a file
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

// FreeAddresses returns two free addresses.
func FreeAddresses() (first, second string, err error) {
	if first, err = FreeAddress(); err != nil {
		return "", "", err
	}
	second, err = FreeAddress()
	return first, second, err
}
