package http1

import (
	"bytes"
	"net/netip"
)

// validHost reports whether h is a host with an optional port, RFC 9110 section
// 7.2: a registered name, an IPv4 address, or an IPv6 address in brackets. Empty
// is valid, a port alone is not. Userinfo, zones and encoded bytes are refused.
func validHost(h []byte) bool {
	if len(h) == 0 {
		return true
	}
	if h[0] == '[' {
		end := bytes.IndexByte(h, ']')
		if end < 0 {
			return false
		}
		a, err := netip.ParseAddr(string(h[1:end]))
		return err == nil && a.Is6() && a.Zone() == "" && validPort(h[end+1:])
	}
	colon := bytes.IndexByte(h, ':')
	if colon < 0 {
		colon = len(h)
	}
	return colon > 0 && all(h[:colon], isHost) && validPort(h[colon:])
}

// validPort reports whether p is empty or a colon with a port, which may be
// empty too, RFC 3986 section 3.2.3.
func validPort(p []byte) bool {
	if len(p) == 0 {
		return true
	}
	if p[0] != ':' || len(p) > len(":65535") {
		return false
	}
	port := 0
	for _, c := range p[1:] {
		if !isDigit(c) {
			return false
		}
		port = port*10 + int(c-'0')
	}
	return port <= 65535
}
