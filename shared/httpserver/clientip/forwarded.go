package clientip

import (
	"bytes"
	"net/netip"
	"slices"
)

// parseForwarded returns the address of the "for" parameter in an element of Forwarded (RFC
// 7239, section 4). ok is false if there is no such parameter, or more than one.
func parseForwarded(element []byte) (address netip.Addr, ok bool) {
	hasFor := false
	for rest := element; len(rest) > 0; {
		var pair []byte
		if rest, pair = cutLast(rest, ';'); len(pair) == 0 {
			continue
		}
		name, value, hasValue := bytes.Cut(pair, []byte("="))
		if !hasValue || !bytes.EqualFold(name, []byte("for")) {
			continue
		}
		if hasFor {
			return netip.Addr{}, false
		}
		hasFor = true
		if value, ok = unquote(value); !ok {
			return netip.Addr{}, false
		}
		if address, ok = parseNode(value); !ok {
			return netip.Addr{}, false
		}
	}
	return address, hasFor
}

// parseNode returns the address of a node: an IP address, with an optional port, and with
// brackets if it is IPv6 (RFC 7239, section 6). ok is false for "unknown" and for obfuscated
// identifiers, which begin with "_".
func parseNode(node []byte) (address netip.Addr, ok bool) {
	host, port := node, []byte(nil)
	switch colon := bytes.LastIndexByte(node, ':'); {
	case len(node) > 0 && node[0] == '[':
		end := bytes.IndexByte(node, ']')
		if end < 0 {
			return netip.Addr{}, false
		}
		host, port = node[1:end], node[end+1:]
		if bytes.IndexByte(host, ':') < 0 {
			return netip.Addr{}, false // an IPv4 address in brackets
		}
	case colon >= 0 && bytes.IndexByte(node, ':') == colon: // an IPv6 address has more colons
		host, port = node[:colon], node[colon:]
	}
	address, err := netip.ParseAddr(string(host))
	if err != nil || len(port) > 0 && !isPort(port) {
		return netip.Addr{}, false
	}
	return unmapped(address), true
}

// isPort reports whether a text is a colon and a port, which may be obfuscated.
func isPort(text []byte) bool {
	if text[0] != ':' || len(text) == 1 {
		return false
	}
	if text[1] == '_' {
		return isObfuscated(text[2:])
	}
	return len(bytes.Trim(text[1:], "0123456789")) == 0 && len(text) <= len(":65535")
}

// isObfuscated reports whether a text is the rest of an obfuscated identifier.
func isObfuscated(text []byte) bool {
	const maxLength = 64
	for _, c := range text {
		isAlphanumeric := '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !isAlphanumeric && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return 0 < len(text) && len(text) <= maxLength
}

// unquote returns the text of a quoted string, or a token unchanged.
func unquote(value []byte) (text []byte, ok bool) {
	if len(value) == 0 || value[0] != '"' {
		return value, true
	}
	if len(value) == 1 || value[len(value)-1] != '"' {
		return nil, false
	}
	value = value[1 : len(value)-1]
	if bytes.IndexByte(value, '\\') < 0 {
		return value, true
	}
	for i := 0; i < len(value); i++ {
		if value[i] == '\\' {
			if i++; i == len(value) {
				return nil, false
			}
		}
		text = append(text, value[i])
	}
	return text, true
}

// cutLast cuts a list at the last separator outside quotes, and trims the member after it. It
// scans from the end, so that an unclosed quote of a client cannot hide what a proxy added.
func cutLast(list []byte, separator byte) (before, member []byte) {
	quoted := false
	for i, c := range slices.Backward(list) {
		switch {
		case c == '"':
			escapes := 0
			for quoted && i-escapes > 0 && list[i-escapes-1] == '\\' {
				escapes++
			}
			if escapes%2 == 0 {
				quoted = !quoted
			}
		case c == separator && !quoted:
			return list[:i], bytes.Trim(list[i+1:], " \t")
		}
	}
	return nil, bytes.Trim(list, " \t")
}
