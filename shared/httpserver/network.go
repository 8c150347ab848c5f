package httpserver

import "net/netip"

// ClientNetwork returns the network between whose clients what is scarce is shared: the
// /24 of an IPv4 address, the /56 of an IPv6 one. An access provider gives one customer
// up to so many addresses, so that the Network of a single address would be no bound.
func ClientNetwork(client netip.Addr) netip.Prefix {
	bits := 56
	if client.Is4() {
		bits = 24
	}
	return netip.PrefixFrom(client, bits).Masked()
}
