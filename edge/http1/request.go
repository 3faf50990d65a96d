package http1

import "iter"

// Field is one header field. Both slices alias the input; Value is without the
// white space around it.
type Field struct {
	Name, Value []byte
}

// Request is what a parser found. All slices alias the input, or the parser's
// buffer in the case of Body, and are valid until the next call of the parser or
// until the caller changes the input. The zero value is ready to be filled; a
// Request that was used before is used best, because it keeps its slice of fields.
type Request struct {
	// Method is as sent: methods are case-sensitive.
	Method []byte
	// Path is the path of the target as sent, not decoded, and starts with '/'.
	// It is "*" for OPTIONS of the whole server and empty for CONNECT.
	Path []byte
	// Query is what follows the first '?' of the target, empty if there is none.
	Query []byte
	// Host is the host with its port: from the target where that has one, or
	// else from the Host field. It may be empty.
	Host []byte
	// Minor is the digit after "HTTP/1.". All from 1 on are treated as HTTP/1.1.
	Minor int
	// Close says that the connection ends with the answer to this request.
	Close bool
	// KeepAlive says that the answer must have "Connection: keep-alive", or else
	// the client, which speaks HTTP/1.0, will wait for the end of the connection.
	KeepAlive bool
	// Expect says that the client may wait for "100 Continue" before it sends the
	// body.
	Expect bool
	// Upgrade says that the client asks to go on with the WebSocket protocol:
	// Connection has upgrade, Upgrade has websocket, and it speaks HTTP/1.1. The
	// method and the rest of the handshake are for the caller to check.
	Upgrade bool
	// Chunked says that the length of the body is not known in advance.
	Chunked bool
	// ContentLength is the length of the body in bytes, 0 without one and -1 if
	// Chunked.
	ContentLength int64
	// Fields holds every header field in the order in which they came.
	Fields []Field
	// Body is the complete, decoded body, set by a Body event. That event leaves
	// the other members as the caller passed them in.
	Body []byte

	seen seen
}

// seen is what the rules across fields need to know, RFC 9112 section 6.
type seen struct {
	hosts, lengths, codings int
	coding                  []byte // the value of Transfer-Encoding
	authority               bool   // the target has a host, which outranks the field
	close, keepAlive        bool   // in Connection
	upgrade                 bool   // in Connection
	webSocket               bool   // in Upgrade
	proceed                 bool   // Expect: 100-continue
	otherExpectation        bool
	framingTrailer          bool // Trailer announces what may not be a trailer
}

// reset empties r for the next head and keeps its slice of fields.
func (r *Request) reset() { *r = Request{Fields: r.Fields[:0]} }

// Get returns the value of the first field of that name, which is given in lower
// case.
func (r *Request) Get(lowerName string) ([]byte, bool) {
	for i := range r.Fields {
		if fold(r.Fields[i].Name, lowerName) {
			return r.Fields[i].Value, true
		}
	}
	return nil, false
}

// All yields the value of every field of that name, which is given in lower case.
func (r *Request) All(lowerName string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := range r.Fields {
			if fold(r.Fields[i].Name, lowerName) && !yield(r.Fields[i].Value) {
				return
			}
		}
	}
}

// Elements yields the members of a list in all fields of that name, which is
// given in lower case: "gzip;q=0.5" and "br" of "Accept-Encoding: gzip;q=0.5, br".
// It does not know quoted strings and cuts at a comma within one.
func (r *Request) Elements(lowerName string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for v := range r.All(lowerName) {
			for e := range elements(v) {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// HasToken reports whether the list in the fields of that name has the token in
// any case; both are given in lower case.
func (r *Request) HasToken(lowerName, lowerToken string) bool {
	for e := range r.Elements(lowerName) {
		if fold(e, lowerToken) {
			return true
		}
	}
	return false
}
