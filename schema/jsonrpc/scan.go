package jsonrpc

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// The scan functions take the index at which a piece of JSON must begin, which
// may be len(b), and return the index behind it, or -1 when b holds no such
// piece there.

// skipSpace returns the index of the first byte from b[i] on that is not white
// space, which is len(b) when there is none.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// scanValue scans any value with at most depth arrays and objects inside each
// other.
func scanValue(b []byte, i, depth int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return scanString(b, i)
	case '{':
		return scanObject(b, i, depth)
	case '[':
		return scanArray(b, i, depth)
	case 't':
		return scanLiteral(b, i, "true")
	case 'f':
		return scanLiteral(b, i, "false")
	case 'n':
		return scanLiteral(b, i, "null")
	default:
		return scanNumber(b, i)
	}
}

// scanObject scans the object that b[i] opens.
func scanObject(b []byte, i, depth int) int {
	if depth == 0 {
		return -1
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for done := false; !done; {
		_, value := scanKey(b, i)
		if value < 0 {
			return -1
		}
		if i = scanValue(b, value, depth-1); i < 0 {
			return -1
		}
		if i, done = scanNext(b, i, '}'); i < 0 {
			return -1
		}
	}
	return i
}

// scanArray scans the array that b[i] opens.
func scanArray(b []byte, i, depth int) int {
	if depth == 0 {
		return -1
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for done := false; !done; {
		if i = scanValue(b, i, depth-1); i < 0 {
			return -1
		}
		if i, done = scanNext(b, i, ']'); i < 0 {
			return -1
		}
	}
	return i
}

// scanKey scans the name of an object's member and the colon behind it. It
// returns the end of the name, its quotes included, and the start of the value.
func scanKey(b []byte, i int) (end, value int) {
	if i >= len(b) || b[i] != '"' {
		return -1, -1
	}
	end = scanString(b, i)
	if end < 0 {
		return -1, -1
	}
	i = skipSpace(b, end)
	if i == len(b) || b[i] != ':' {
		return -1, -1
	}
	return end, skipSpace(b, i+1)
}

// scanNext scans what follows a member: a comma, then next is the start of the
// following member; or the closing bracket, then next is the index behind it.
func scanNext(b []byte, i int, closing byte) (next int, done bool) {
	i = skipSpace(b, i)
	switch {
	case i == len(b):
		return -1, false
	case b[i] == ',':
		return skipSpace(b, i+1), false
	case b[i] == closing:
		return i + 1, true
	default:
		return -1, false
	}
}

// scanLiteral scans true, false or null.
func scanLiteral(b []byte, i int, want string) int {
	if len(b)-i < len(want) || string(b[i:i+len(want)]) != want {
		return -1
	}
	return i + len(want)
}

// scanNumber scans a number (RFC 8259, section 6).
func scanNumber(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if i = scanDigits(b, i); i < 0 {
		return -1
	}
	if i < len(b) && b[i] == '.' {
		if i = scanDigits(b, i+1); i < 0 {
			return -1
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		return scanDigits(b, i)
	}
	return i
}

// scanDigits scans one digit or more.
func scanDigits(b []byte, i int) int {
	start := i
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// scanString scans the string that b[i] opens.
func scanString(b []byte, i int) int {
	i++
	for {
		i = skipPlain(b, i)
		if i == len(b) {
			return -1
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i = scanEscape(b, i); i < 0 {
				return -1
			}
		case c < ' ':
			return -1
		default:
			r, n := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && n == 1 {
				return -1
			}
			i += n
		}
	}
}

// scanEscape scans the escape that the backslash at b[i] begins. Half of a
// surrogate pair is let through, as the grammar does.
func scanEscape(b []byte, i int) int {
	if i+1 >= len(b) {
		return -1
	}
	switch b[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if _, ok := hex4(b[i+2:]); ok {
			return i + 6
		}
	}
	return -1
}

// skipPlain returns the index of the first byte from b[i] on that a string may
// not simply go on with: a quote, a backslash, a control byte, or one beyond
// ASCII. It is len(b) when there is none.
//
// Strings are most of a message, so this looks at eight bytes at once. Each term
// of special has the top bit set in the first byte that it looks for, counting
// from the lowest; bytes above that one may be set wrongly, by a borrow.
func skipPlain(b []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; len(b)-i >= 8; i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, backslash := w^(ones*'"'), w^(ones*'\\')
		special := w&tops | // beyond ASCII
			(w-ones*' ')&^w&tops | // below a space
			(quote-ones)&^quote&tops |
			(backslash-ones)&^backslash&tops
		if special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	for i < len(b) && b[i] >= ' ' && b[i] < utf8.RuneSelf && b[i] != '"' && b[i] != '\\' {
		i++
	}
	return i
}
