package jsonrpc

import "bytes"

// Call is one member of a message: a call, a notification, or something that is
// neither and is answered with Err.
type Call struct {
	// ID is the raw JSON of the id: a string, a number or null. It is nil when
	// the member has none that may be echoed.
	ID []byte
	// Method is the name without quotes and escapes. It aliases the message
	// unless it was written with escapes.
	Method []byte
	// Params is the raw JSON of the parameters, nil when there are none. It is
	// valid JSON and nothing more is known about it.
	Params []byte
	// Err is not nil when the member is no valid request. It is the answer to it,
	// with ID as its id; the other fields mean nothing then.
	Err *Error
}

// Notification says that nobody waits for an answer: the member is a valid
// request without an id (JSON-RPC 2.0, section 4.1).
func (c *Call) Notification() bool { return c.Err == nil && c.ID == nil }

// MaxMethod is the length in bytes of the longest method name that a call may
// have, as in go-ethereum (rpc/json.go, maxMethodNameLength).
const MaxMethod = 2048

// version is the only value of the jsonrpc member that section 4 allows.
const version = "2.0"

// request holds the raw values of a request's members. Where a name is repeated
// the last value stands, as in encoding/json and go-ethereum.
type request struct {
	version, id, method, params []byte
}

// parse reads the value at msg[i] as a request and returns the index behind it,
// or -1 when the value is not valid JSON.
func (c *Call) parse(msg []byte, i, depth int) int {
	if i == len(msg) || msg[i] != '{' {
		c.Err = errInvalidRequest
		return scanValue(msg, i, depth)
	}
	var r request
	end := r.parse(msg, i, depth)
	if end > 0 {
		c.take(&r)
	}
	return end
}

// parse reads the object at msg[i] and returns the index behind it, or -1.
func (r *request) parse(msg []byte, i, depth int) int {
	if depth == 0 {
		return -1
	}
	i = skipSpace(msg, i+1)
	if i < len(msg) && msg[i] == '}' {
		return i + 1
	}
	for done := false; !done; {
		keyEnd, value := scanKey(msg, i)
		if value < 0 {
			return -1
		}
		end := scanValue(msg, value, depth-1)
		if end < 0 {
			return -1
		}
		if member := r.member(msg[i+1 : keyEnd-1]); member != nil {
			*member = msg[value:end:end]
		}
		if i, done = scanNext(msg, end, '}'); i < 0 {
			return -1
		}
	}
	return i
}

// maxEscapedName is the length of the longest member name that a request knows
// ("jsonrpc") when each of its letters is written as a \u escape.
const maxEscapedName = len("jsonrpc") * len(`\u0000`)

// member returns where the value of the named member belongs, nil when a request
// has no such member. The name is what stands between the quotes. Names match
// exactly, once their escapes are resolved.
func (r *request) member(name []byte) *[]byte {
	if bytes.IndexByte(name, '\\') < 0 {
		return r.named(name)
	}
	if len(name) > maxEscapedName {
		return nil
	}
	var buf [maxEscapedName]byte
	return r.named(appendUnescaped(buf[:0], name))
}

func (r *request) named(name []byte) *[]byte {
	switch string(name) {
	case "jsonrpc":
		return &r.version
	case "id":
		return &r.id
	case "method":
		return &r.method
	case "params":
		return &r.params
	default:
		return nil
	}
}

// take fills c from the members of a request, and Err if they make none.
func (c *Call) take(r *request) {
	if len(r.id) > 0 {
		switch r.id[0] {
		case '{', '[', 't', 'f':
			// Nothing that section 4 allows as an id, so it cannot be echoed.
			c.Err = errInvalidRequest
			return
		}
		c.ID = r.id
	}
	if !isVersion(r.version) || len(r.method) <= len(`""`) || r.method[0] != '"' {
		c.Err = errInvalidRequest
		return
	}
	name := r.method[1 : len(r.method)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name = appendUnescaped(make([]byte, 0, len(name)), name)
	}
	// A notification is not answered, whatever its name.
	if len(name) > MaxMethod && c.ID != nil {
		c.Err = methodTooLong(len(name))
		return
	}
	c.Method, c.Params = name, r.params
}

// isVersion says whether a raw value is the string "2.0", however it is escaped.
func isVersion(raw []byte) bool {
	if string(raw) == `"`+version+`"` {
		return true
	}
	const maxEscaped = len(`""`) + len(version)*len(`\u0000`)
	if len(raw) < len(`""`) || len(raw) > maxEscaped || raw[0] != '"' {
		return false
	}
	var buf [maxEscaped]byte
	return string(appendUnescaped(buf[:0], raw[1:len(raw)-1])) == version
}
