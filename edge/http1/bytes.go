package http1

import (
	"bytes"
	"encoding/binary"
	"iter"
)

// class is a set of roles that a byte can play in a head.
type class uint8

const (
	isToken  class = 1 << iota // tchar, RFC 9110 section 5.6.2
	isText                     // a byte of a field value: VCHAR, SP, HTAB, obs-text
	isTarget                   // VCHAR but '#': a target has no fragment
	isHost                     // a byte of a registered name
	isHex                      // HEXDIG
)

// classes is read only. Registered names are RFC 3986's without two of its
// bytes: '%', because an encoded host only serves to be read in two ways, and
// ',', because it is what a repeated field looks like once somebody joined it.
var classes = func() (t [256]class) {
	mark := func(c class, set string) {
		for i := range len(set) {
			t[set[i]] |= c
		}
	}
	const alnum = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	mark(isToken, alnum+"!#$%&'*+-.^_`|~")
	mark(isHost, alnum+"-._~!$&'()*+;=")
	mark(isHex, "0123456789abcdefABCDEF")
	for c := 0x21; c < 0x7f; c++ {
		t[c] |= isTarget | isText
	}
	t['#'] &^= isTarget
	for c := 0x80; c < 0x100; c++ {
		t[c] |= isText
	}
	mark(isText, " \t")
	return t
}()

// all reports whether every byte of b is of class c.
func all(b []byte, c class) bool {
	for _, x := range b {
		if classes[x]&c == 0 {
			return false
		}
	}
	return true
}

// allText is all(b, isText), eight bytes at a time. Values are most of a head.
func allText(b []byte) bool {
	if len(b) < 8 {
		return all(b, isText)
	}
	for i := 0; i+8 < len(b); i += 8 {
		if !eightText(b[i:]) {
			return false
		}
	}
	return eightText(b[len(b)-8:]) // some of which may have been seen
}

// eightText is all(b[:8], isText).
func eightText(b []byte) bool {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	x := binary.LittleEndian.Uint64(b)
	del := x ^ 0x7f*ones
	// A high bit is set for a byte below 0x20, and for one that is 0x7f. HTAB is
	// below 0x20 and rare, so the table decides.
	return ((x-0x20*ones)&^x|(del-ones)&^del)&highs == 0 || all(b[:8], isText)
}

// trim removes optional white space, RFC 9110 section 5.6.3, from both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// fold reports whether b is lower, which is in lower case, in any case.
func fold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// elements yields the members of a comma-separated list, RFC 9110 section 5.6.1,
// without the empty ones.
func elements(list []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for more := true; more; {
			var e []byte
			e, list, more = bytes.Cut(list, []byte{','})
			if e = trim(e); len(e) > 0 && !yield(e) {
				return
			}
		}
	}
}

// digit returns the value of a hexadecimal digit, which c must be.
func digit(c byte) int {
	if c <= '9' {
		return int(c - '0')
	}
	return int(c|0x20-'a') + 10
}
