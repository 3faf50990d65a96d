package jsonrpc

import (
	"unicode/utf16"
	"unicode/utf8"
)

// appendUnescaped appends what raw, the inside of a valid JSON string, stands
// for. Half of a surrogate pair becomes U+FFFD, as in encoding/json. The result
// is never longer than raw.
func appendUnescaped(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			dst = append(dst, c)
			i++
			continue
		}
		switch c = raw[i+1]; c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r, _ := hex4(raw[i+2:])
			i += len(`\u0000`)
			if utf16.IsSurrogate(r) {
				low := rune(utf8.RuneError)
				if len(raw)-i >= 2 && raw[i] == '\\' && raw[i+1] == 'u' {
					low, _ = hex4(raw[i+2:])
				}
				if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
					i += len(`\u0000`)
				}
			}
			dst = utf8.AppendRune(dst, r)
			continue
		}
		// A quote, a backslash and a slash stand for themselves.
		dst = append(dst, c)
		i += 2
	}
	return dst
}

// hex4 reads the four hex digits that b begins with.
func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendQuoted appends s as a JSON string, byte for byte as encoding/json writes
// it: <, > and & are escaped too, because an error repeats what a stranger sent
// and a browser may be shown it.
func appendQuoted(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' {
			i++
			continue
		}
		if c < utf8.RuneSelf {
			dst = append(dst, s[start:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\b':
				dst = append(dst, `\b`...)
			case '\f':
				dst = append(dst, `\f`...)
			case '\n':
				dst = append(dst, `\n`...)
			case '\r':
				dst = append(dst, `\r`...)
			case '\t':
				dst = append(dst, `\t`...)
			default:
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(dst, s[start:i]...)
			dst = append(dst, `\ufffd`...)
			start = i + n
		case r == '\u2028' || r == '\u2029':
			// Line ends in JavaScript, though not in JSON.
			dst = append(dst, s[start:i]...)
			dst = append(dst, `\u202`...)
			dst = append(dst, hex[r&15])
			start = i + n
		}
		i += n
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}
