package edge_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// echoLimit is what suites send at most, in a body or a message.
const echoLimit = 16 << 20

func TestEchoHTTP(t *testing.T) {
	f := startEcho(t)
	long := strings.Repeat("long ", echoLimit/5)
	transports(t, func(t *testing.T, secure bool) {
		c := f.dial(t, secure)
		r := bufio.NewReader(c)
		for _, tt := range []struct {
			name, request string
			status        int
			body          string
		}{
			{"GET", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 200, "OK"},
			{"GET with a query and a body", "GET /?a=b HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody", 200, "OK"},
			{"POST", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nb\x00\xff\r\ny", 200, "b\x00\xff\r\ny"},
			{"POST in chunks", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n", 200, "body"},
			{"PUT of the longest body", fmt.Sprintf("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(long), long), 200, long},
			{"DELETE without a body", "DELETE / HTTP/1.1\r\nHost: x\r\n\r\n", 200, ""},
			{"a method of one's own", "BREW / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\ntea", 200, "tea"},
			{"another path", "POST /v3/key HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", 404, ""},
			{"the WebSocket without an upgrade", "GET /echo HTTP/1.1\r\nHost: x\r\n\r\n", 426, ""},
			{"the WebSocket with POST", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 405, ""},
			{"a body over the limit", fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", echoLimit+1), 413, ""},
		} {
			go io.WriteString(c, tt.request)
			resp, body := response(t, r)
			if resp.StatusCode != tt.status || tt.status == 200 && (body != tt.body || resp.ContentLength != int64(len(tt.body))) {
				t.Fatalf("%s: %s %v %.100q, want %d %.100q", tt.name, resp.Status, resp.Header, body, tt.status, tt.body)
			}
		}
		if _, err := r.ReadByte(); err != io.EOF {
			t.Errorf("the connection stays after the refusal: %v", err)
		}
	})
}

// Answers to pipelined requests leave in order, and a HEAD has no body.
func TestEchoPipeline(t *testing.T) {
	f := startEcho(t)
	transports(t, func(t *testing.T, secure bool) {
		c := f.dial(t, secure)
		const n = 50
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, "HEAD / HTTP/1.1\r\nHost: x\r\n\r\nPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n%04d", i)
		}
		io.WriteString(c, all.String())
		r := bufio.NewReader(c)
		for i := range n {
			resp, err := http.ReadResponse(r, &http.Request{Method: "HEAD"})
			if err != nil || resp.StatusCode != 200 || resp.ContentLength != 2 {
				t.Fatalf("HEAD %d: %v %v", i, resp, err)
			}
			if _, body := response(t, r); body != fmt.Sprintf("%04d", i) {
				t.Fatalf("answer %d: %q", i, body)
			}
		}
	})
}
