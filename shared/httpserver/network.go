package httpserver

import "net/netip"

// ClientNetwork returns the network by which scarce resources are shared between clients: the
// /24 of an IPv4 address, the /56 of an IPv6 one. An access provider gives one customer up to
// that many addresses, so ClientPrefix would be no bound.
func ClientNetwork(client netip.Addr) netip.Prefix {
	bits := 56
	if client.Is4() {
		bits = 24
	}
	return netip.PrefixFrom(client, bits).Masked()
}
