package httpserver

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"syscall"

	"github.com/veneer-skins/veneer/shared/config"
)

// Address is where a listener listens: an IP address or a host name, and a port. Without a
// host it is every interface, and port 0 is any free port.
type Address string

// hostname matches host names. A last label of digits would be a part of an IP address (RFC
// 3696, section 2).
var hostname = regexp.MustCompile(`^([A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?\.)*[A-Za-z0-9_-]*[A-Za-z_-][A-Za-z0-9_-]*\.?$`)

// UnmarshalText parses an address. The error has the text and what it must be.
func (a *Address) UnmarshalText(text []byte) error {
	host, port, err := net.SplitHostPort(string(text))
	if err != nil {
		return fmt.Errorf("is %.100q, but must be an address and a port, as in 127.0.0.1:8080 or [::1]:8080", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("is %.100q, but its port must be a number from 0 to 65535", text)
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && !hostname.MatchString(host) {
		return fmt.Errorf("is %.100q, but %.100q is neither an IP address nor a name", text, host)
	}
	*a = Address(text)
	return nil
}

// port returns the port, 0 for any.
func (a Address) port() int {
	_, text, _ := net.SplitHostPort(string(a))
	port, _ := strconv.Atoi(text)
	return port
}

// nextPort returns the same host with a port that is probably free.
func (a Address) nextPort() Address {
	const distance = 100
	host, _, _ := net.SplitHostPort(string(a))
	port := a.port() + distance
	if port > 1<<16-1 {
		port -= 2 * distance
	}
	return Address(net.JoinHostPort(host, strconv.Itoa(port)))
}

// describeListenError explains to operators why a socket cannot be opened; others are the
// listeners with open sockets. The error that has an
// example already is no config.Error, to which callers add one.
func (l Listener) describeListenError(err error, others []Listener) error {
	_, unknown := errors.AsType[*net.DNSError](err)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		for _, other := range others {
			if other.Address.port() == l.Address.port() {
				return config.Errorf(l.Setting, "is %s, which is taken by %s=%s: each needs an address of its own", l.Address, other.Setting, other.Address)
			}
		}
		return fmt.Errorf("%s is %s, which is taken by another program: stop it, or choose another address, as in %[1]s=%[3]s", l.Setting, l.Address, l.Address.nextPort())
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return config.Errorf(l.Setting, "is %s, but no interface of this machine has that address", l.Address)
	case errors.Is(err, fs.ErrPermission):
		return config.Errorf(l.Setting, "is %s, but this user may not open that port: choose one from 1024 on", l.Address)
	case unknown:
		return config.Errorf(l.Setting, "is %s, but that name has no address", l.Address)
	default:
		return config.Errorf(l.Setting, "is %s, where nothing can be opened: %w", l.Address, err)
	}
}
