package http1

import "math"

// field parses one field line, RFC 9112 section 5, without its CRLF, and adds it
// to r. It looks at this line alone; the rules across fields are in frame.
func (r *Request) field(line []byte) *Error {
	i := 0
	for i < len(line) && classes[line[i]]&isToken != 0 {
		i++
	}
	if i == 0 && (line[0] == ' ' || line[0] == '\t') {
		return refuse(FieldFolded)
	}
	// White space before the colon is the classic of smuggling: section 5.1.
	if i == 0 || i == len(line) || line[i] != ':' {
		return refuse(FieldName)
	}
	name, value := line[:i:i], trim(line[i+1:])
	if !allText(value) {
		return refuse(FieldValue)
	}
	r.Fields = append(r.Fields, Field{name, value})
	return r.note(name, value)
}

// note remembers the fields that concern the message itself.
func (r *Request) note(name, value []byte) *Error {
	s := &r.seen
	switch len(name) {
	case len("host"):
		if fold(name, "host") {
			if !validHost(value) {
				return refuse(HostInvalid)
			}
			s.hosts++
			if !s.authority {
				r.Host = value
			}
		}
	case len("expect"):
		if fold(name, "expect") {
			for e := range elements(value) {
				if fold(e, "100-continue") {
					s.proceed = true
				} else {
					s.otherExpectation = true
				}
			}
		}
	case len("upgrade"): // and trailer
		if fold(name, "upgrade") {
			for e := range elements(value) {
				s.webSocket = s.webSocket || fold(e, "websocket")
			}
		} else if fold(name, "trailer") {
			for e := range elements(value) {
				s.framingTrailer = s.framingTrailer || fold(e, "content-length") ||
					fold(e, "transfer-encoding") || fold(e, "trailer")
			}
		}
	case len("connection"):
		if fold(name, "connection") {
			for e := range elements(value) {
				s.close = s.close || fold(e, "close")
				s.keepAlive = s.keepAlive || fold(e, "keep-alive")
				s.upgrade = s.upgrade || fold(e, "upgrade")
			}
		}
	case len("content-length"):
		if fold(name, "content-length") {
			n, ok := contentLength(value)
			if !ok {
				return refuse(LengthInvalid)
			}
			s.lengths++
			r.ContentLength = n
		}
	case len("transfer-encoding"):
		if fold(name, "transfer-encoding") {
			s.codings++
			s.coding = value
		}
	}
	return nil
}

// contentLength parses a length, RFC 9110 section 8.6: digits and nothing else.
func contentLength(v []byte) (int64, bool) {
	var n int64
	for _, c := range v {
		if !isDigit(c) || n > (math.MaxInt64-int64(c-'0'))/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, len(v) > 0
}

// frame applies the rules that need the whole head: which host, how long the
// body is (RFC 9112 section 6.3), whether the connection stays.
func (r *Request) frame() *Error {
	s := &r.seen
	old := r.Minor == 0
	switch {
	case s.hosts > 1:
		return refuse(HostRepeated)
	case s.hosts == 0 && !old:
		return refuse(HostMissing)
	case s.lengths > 1:
		// Also when they agree, which section 6.3 would allow.
		return refuse(LengthRepeated)
	case s.codings > 1, s.codings == 1 && old:
		// Section 6.1: from HTTP/1.0 the framing must be taken for faulty.
		return refuse(CodingInvalid)
	case s.codings == 1 && s.lengths == 1:
		return refuse(LengthAndCoding)
	case s.codings == 1:
		if !fold(s.coding, "chunked") {
			return refuse(wrongCoding(s.coding))
		}
		if s.framingTrailer {
			return refuse(TrailerForbidden)
		}
		r.Chunked, r.ContentLength = true, -1
	}
	r.Close = s.close || old && !s.keepAlive
	r.KeepAlive = old && !r.Close
	if string(r.Method) == "CONNECT" {
		// A client may send its tunnel's bytes without waiting for the answer.
		// They must not be read as requests.
		r.Close, r.KeepAlive = true, false
	}
	// HTTP/1.0 has neither: RFC 9110 sections 7.8 and 10.1.1.
	r.Upgrade = s.upgrade && s.webSocket && !old
	r.Expect = s.proceed && !old && r.ContentLength != 0
	return nil
}

// wrongCoding tells a coding that is not known from one that is used wrongly,
// such as chunked twice.
func wrongCoding(v []byte) Reason {
	for e := range elements(v) {
		if !fold(e, "chunked") {
			return CodingUnknown
		}
	}
	return CodingInvalid
}
