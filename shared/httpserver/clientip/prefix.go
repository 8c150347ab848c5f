package clientip

import "net/netip"

// Prefix returns the prefix by which rate limits count a client: the address itself for
// IPv4, and the /64 for IPv6, since every IPv6 host has a whole /64.
func Prefix(client netip.Addr) netip.Prefix {
	bits := 64
	if client.Is4() {
		bits = 32
	}
	return netip.PrefixFrom(client, bits).Masked()
}

// Network returns the network by which scarce resources are shared between clients: the /24
// of an IPv4 address, the /56 of an IPv6 one. An access provider gives one customer up to
// that many addresses, so Prefix would be no bound.
func Network(client netip.Addr) netip.Prefix {
	bits := 56
	if client.Is4() {
		bits = 24
	}
	return netip.PrefixFrom(client, bits).Masked()
}
