package http1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http/httpguts"
)

// stricter lists the reasons for which a request may be refused that net/http
// serves: why that is right, and an example. Any other such refusal is a bug.
var stricter = map[Reason]struct{ why, example string }{
	MethodLong: {
		"RFC 9112 section 3: longer than any method that is implemented",
		head(strings.Repeat("A", 33) + " / HTTP/1.1"),
	},
	LineLong: {
		"ours: 8 KiB",
		head("GET /" + strings.Repeat("a", 8<<10) + " HTTP/1.1"),
	},
	HeaderLong: {
		"ours: 16 KiB, net/http 1 MiB",
		head("GET / HTTP/1.1", "X: "+strings.Repeat("a", 16<<10)),
	},
	FieldsMany: {
		"ours: 100 fields",
		head("GET / HTTP/1.1", strings.Repeat("X:\r\n", 100)+"X:"),
	},
	BodyLong: {
		"ours: 1 MiB, net/http leaves it to the handler",
		head("GET / HTTP/1.1", "Content-Length: 1048577") + strings.Repeat("a", 1<<20+1),
	},
	ExpectationUnknown: {
		"net/http answers 417 too, but after ReadRequest",
		head("GET / HTTP/1.1", "Expect: x"),
	},
	BareLF: {
		"RFC 9112 section 2.2 permits it, and two readers may then see two requests",
		head("GET / HTTP/1.1", "X: y\nZ: z"),
	},
	FieldFolded: {
		"RFC 9112 section 5.2: reject or replace",
		head("GET / HTTP/1.1", "X: y", " z"),
	},
	HostMissing: {
		"net/http forgives CONNECT",
		"CONNECT h:1 HTTP/1.1\r\n\r\n",
	},
	HostInvalid: {
		"net/http looks only at the set of bytes",
		"GET / HTTP/1.1\r\nHost: h:port\r\n\r\n",
	},
	TargetInvalid: {
		"net/http takes fragments, bytes above ASCII, userinfo, other schemes, '*' for any method, paths for CONNECT",
		head("GET http://user@h/ HTTP/1.1"),
	},
	LengthRepeated: {
		"RFC 9112 section 6.3 permits equal ones",
		head("GET / HTTP/1.1", "Content-Length: 0", "Content-Length: 0"),
	},
	LengthAndCoding: {
		"RFC 9112 section 6.1: might be smuggling, ought to be handled as an error",
		head("GET / HTTP/1.1", "Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n",
	},
	CodingInvalid: {
		"RFC 9112 section 6.1: HTTP/1.0 with Transfer-Encoding is faulty; net/http ignores the field",
		head("GET / HTTP/1.0", "Transfer-Encoding: chunked"),
	},
	ChunkInvalid: {
		"white space behind the size, control bytes in extensions, long extensions",
		head("GET / HTTP/1.1", "Transfer-Encoding: chunked") + "0 \r\n\r\n",
	},
	TrailerInvalid: {
		"what BareLF, FieldFolded and FieldName are in a header",
		head("GET / HTTP/1.1", "Transfer-Encoding: chunked") + "0\r\nX : y\r\n\r\n",
	},
}

// TestStricter: the list has no line that is not true.
func TestStricter(t *testing.T) {
	pool := NewPool(Limits{})
	for why, s := range stricter {
		got := driveAll(t, pool, []byte(s.example))
		if last := got[len(got)-1]; last.Why != why {
			t.Errorf("%v: got %v", why, got)
		}
		if _, err := netHTTP([]byte(s.example)); err != nil {
			t.Errorf("%v: net/http refuses it too: %v", why, err)
		}
	}
}

// lenient lists what net/http refuses and this package does not: one thing.
// RFC 9112 section 2.2 asks servers to ignore an empty line before the request
// line; net/http does so after a POST only, outside of ReadRequest.
func lenient(in []byte) []byte { return bytes.TrimPrefix(in, []byte("\r\n")) }

// theirs is what net/http's server makes of the first request in the stream.
type theirs struct {
	Method, Path, Query, Host string
	Close                     bool
	Fields                    []string // sorted
	Body, Rest                string
}

func netHTTP(in []byte) (*theirs, error) {
	r := bufio.NewReader(bytes.NewReader(in))
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil, err
	}
	// What the server checks beyond ReadRequest: net/http/server.go,
	// (*conn).readRequest. ReadRequest takes fields away, Host for one.
	again := textproto.NewReader(bufio.NewReader(bytes.NewReader(in)))
	if _, err := again.ReadLine(); err != nil {
		return nil, err
	}
	header, err := again.ReadMIMEHeader()
	if err != nil {
		return nil, err
	}
	hosts, has := header["Host"]
	switch {
	case req.ProtoMajor != 1:
		return nil, errors.New("unsupported protocol version")
	case !has && req.ProtoAtLeast(1, 1) && req.Method != http.MethodConnect:
		return nil, errors.New("missing required Host header")
	case has && !httpguts.ValidHostHeader(hosts[0]):
		return nil, errors.New("malformed Host header")
	}
	for name, values := range header {
		if !httpguts.ValidHeaderFieldName(name) {
			return nil, errors.New("invalid header name")
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return nil, errors.New("invalid header value")
			}
		}
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	rest, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	t := &theirs{
		Method: req.Method, Path: req.URL.Path, Query: req.URL.RawQuery, Host: req.Host,
		// Bytes behind a CONNECT may be a tunnel's: nothing to compare.
		Close: req.Close || req.Method == http.MethodConnect,
		Body:  string(body), Rest: string(rest),
	}
	if t.Path == "" && req.Method != http.MethodConnect {
		t.Path = "/" // of an absolute target
	}
	for name, values := range header {
		for _, v := range values {
			t.Fields = append(t.Fields, name+": "+v)
		}
	}
	slices.Sort(t.Fields)
	return t, nil
}

// ours is the same of this package, in the same form.
func ours(t *testing.T, got []outcome, in []byte) *theirs {
	h, b := got[0], got[1]
	path, err := url.PathUnescape(h.Path)
	if err != nil {
		t.Fatal(err)
	}
	o := &theirs{
		Method: h.Method, Path: path, Query: h.Query, Host: h.Host, Close: h.Close,
		Body: b.Body, Rest: string(in[b.At:]),
	}
	for _, f := range h.Fields {
		name, value, _ := strings.Cut(f, ": ")
		o.Fields = append(o.Fields, http.CanonicalHeaderKey(name)+": "+value)
	}
	slices.Sort(o.Fields)
	return o
}

// against holds a stream against net/http, request by request: what net/http
// refuses is refused; what both accept means the same and ends at the same byte;
// what only this package refuses it refuses for a reason in the list. It returns
// how many requests both accepted.
func against(t *testing.T, pool *Pool, in []byte) (accepted int) {
	t.Helper()
	for got, at := drive(t, pool, in), 0; ; accepted++ {
		one := got[:min(len(got), 2)]
		got = got[len(one):]
		rest := in[at:]
		want, err := netHTTP(lenient(rest))
		refused := slices.IndexFunc(one, func(o outcome) bool { return o.Why != 0 })
		switch {
		case refused >= 0 && err == nil:
			if why := one[refused].Why; stricter[why].why == "" {
				t.Errorf("refused for %v, which net/http accepts:\n%q", why, rest)
			}
			return accepted
		case refused >= 0:
			return accepted
		case len(one) < 2 && err == nil:
			t.Errorf("waits for more, net/http does not:\n%q", rest)
			return accepted
		case len(one) < 2:
			return accepted
		case err != nil:
			t.Errorf("accepted, net/http says %v:\n%q", err, rest)
			return accepted
		}
		if diff := cmp.Diff(want, ours(t, one, in)); diff != "" {
			t.Errorf("read differently (-net/http +ours):\n%s\n%q", diff, rest)
		}
		at = one[1].At
	}
}

// TestChunkOverhead: chunk lines may cost as much as net/http lets them.
func TestChunkOverhead(t *testing.T) {
	pool := NewPool(Limits{})
	for _, extension := range []int{0, 13, 14, 15, 50, 200} {
		for _, data := range []int{1, 2, 30} {
			line := fmt.Sprintf("%x", data)
			if extension > 0 {
				line += ";" + strings.Repeat("x", extension-1)
			}
			chunk := line + "\r\n" + strings.Repeat("a", data) + "\r\n"
			// Around the number of chunks from which on net/http refuses.
			for n := range 25 {
				if excess := len(line) + 2 - 16 - 2*data; excess > 0 {
					n += 16<<10/excess - 12
				}
				// The first chunk has room left, which must not be kept for the others.
				in := head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + "0a\r\n0123456789\r\n" + strings.Repeat(chunk, n) + "0\r\n\r\n"
				_, err := netHTTP([]byte(in))
				got := drive(t, pool, []byte(in))
				if last := got[len(got)-1]; (last.Why == ChunkOverhead) != (err != nil) || last.Event != Body && err == nil {
					t.Errorf("%d chunks %q: got %v, net/http says %v", n, line, last, err)
				}
			}
		}
	}
}

// TestChunkSizes has each digit in each place, in either case.
func TestChunkSizes(t *testing.T) {
	pool := NewPool(Limits{})
	for size := range 0x100 {
		for _, format := range []string{"%02x", "%02X"} {
			in := head("POST / HTTP/1.1", "Transfer-Encoding: chunked") +
				fmt.Sprintf(format, size) + "\r\n" + strings.Repeat("a", size) + "\r\n0\r\n\r\n"
			if size == 0 {
				in = strings.TrimSuffix(in, "\r\n0\r\n\r\n") + "\r\n"
			}
			if against(t, pool, []byte(in)) != 1 {
				t.Errorf("refused: %q", in)
			}
		}
	}
}
