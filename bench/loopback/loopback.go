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

var given sync.Map

// FreeAddress returns an address of loopback at which nothing listens, for a server that
// listens later. Its port is below those that the kernel gives to clients: a client of
// another test would else take it in between. It returns none twice.
func FreeAddress() (string, error) {
	for {
		address := "127.0.0.1:" + strconv.Itoa(20000+rand.IntN(12000))
		if _, known := given.LoadOrStore(address, true); known {
			continue
		}
		listener, err := net.Listen("tcp", address)
		if err == nil {
			return address, listener.Close()
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
