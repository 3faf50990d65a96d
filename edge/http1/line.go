package http1

import "bytes"

// checkMethod refuses what cannot become a request line by its first bytes, so
// that other protocols are not listened to. in may end anywhere.
func checkMethod(in []byte) *Error {
	for i, c := range in[:min(len(in), maxMethod+1)] {
		switch {
		case classes[c]&isToken != 0:
		case c == ' ' && i > 0:
			return nil
		default:
			return refuse(MethodInvalid)
		}
	}
	if len(in) > maxMethod {
		return refuse(MethodLong)
	}
	return nil
}

// requestLine parses a request line, RFC 9112 section 3, without its CRLF, of
// which checkMethod has approved.
func (r *Request) requestLine(line []byte) *Error {
	method, rest, _ := bytes.Cut(line, []byte{' '})
	target, version, found := bytes.Cut(rest, []byte{' '})
	if !found {
		return refuse(LineInvalid)
	}
	r.Method = method
	if len(version) != len("HTTP/1.1") || string(version[:5]) != "HTTP/" || version[6] != '.' ||
		!isDigit(version[5]) || !isDigit(version[7]) {
		return refuse(VersionInvalid)
	}
	if version[5] != '1' {
		return refuse(VersionUnknown)
	}
	r.Minor = int(version[7] - '0')
	if !r.target(target) {
		return refuse(TargetInvalid)
	}
	return nil
}

// target parses a request target in one of its four forms, RFC 9112 section 3.2.
func (r *Request) target(t []byte) bool {
	if len(t) == 0 || !all(t, isTarget) {
		return false
	}
	if string(r.Method) == "CONNECT" {
		// Authority-form, where the port is mandatory. net/http also takes
		// origin-form, for the sake of net/rpc.
		r.Host, r.seen.authority = t, true
		return validHost(t) && isDigit(t[len(t)-1]) && bytes.IndexByte(t, ':') > 0
	}
	switch {
	case t[0] == '/': // origin-form
		r.Path, r.Query, _ = bytes.Cut(t, []byte{'?'})
	case string(t) == "*":
		r.Path = t
		return string(r.Method) == "OPTIONS"
	default:
		return r.absolute(t)
	}
	return validEscapes(r.Path)
}

// absolute parses a target in absolute-form. Its host outranks the Host field,
// RFC 9112 section 3.2.2. Other schemes are for proxies, which this is not.
func (r *Request) absolute(t []byte) bool {
	i := bytes.Index(t, []byte("://"))
	if i < 0 || !fold(t[:i], "http") && !fold(t[:i], "https") {
		return false
	}
	rest, query, _ := bytes.Cut(t[i+3:], []byte{'?'})
	r.Query, r.seen.authority = query, true
	if slash := bytes.IndexByte(rest, '/'); slash >= 0 {
		r.Host, r.Path = rest[:slash], rest[slash:]
	} else {
		// An empty path is the same as "/", RFC 9110 section 4.2.3. The input
		// has one to point to.
		r.Host, r.Path = rest, t[i+2:i+3]
	}
	return len(r.Host) > 0 && validHost(r.Host) && validEscapes(r.Path)
}

// validEscapes reports whether each '%' is followed by two hexadecimal digits.
// Queries are not checked, neither here nor in net/url.
func validEscapes(path []byte) bool {
	for {
		i := bytes.IndexByte(path, '%')
		if i < 0 {
			return true
		}
		if i+2 >= len(path) || !all(path[i+1:i+3], isHex) {
			return false
		}
		path = path[i+3:]
	}
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
