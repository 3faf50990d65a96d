package http1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// head is a request's head with a Host; lines are joined with CRLF.
func head(lines ...string) string {
	return strings.Join(append(lines[:1:1], append([]string{"Host: h"}, lines[1:]...)...), "\r\n") + "\r\n\r\n"
}

func TestAccepted(t *testing.T) {
	for _, tt := range []struct {
		name, stream string
		want         []outcome
	}{
		{
			name:   "post with a length",
			stream: "POST /v3/KEY?x=1?y HTTP/1.1\r\nHost: node.example:8545\r\nContent-Type:application/json\r\nContent-Length: 2\r\n\r\n{}",
			want: []outcome{
				{
					Event: Head, At: 106, Method: "POST", Path: "/v3/KEY", Query: "x=1?y", Host: "node.example:8545",
					Minor: 1, ContentLength: 2,
					Fields: []string{"Host: node.example:8545", "Content-Type: application/json", "Content-Length: 2"},
				},
				{Event: Body, At: 108, Body: "{}"},
			},
		},
		{
			name:   "no body",
			stream: head("GET / HTTP/1.1"),
			want: []outcome{
				{Event: Head, At: 27, Method: "GET", Path: "/", Host: "h", Minor: 1, Fields: []string{"Host: h"}},
				{Event: Body, At: 27},
			},
		},
		{
			name:   "one empty line first",
			stream: "\r\nGET / HTTP/1.1\r\nHost:\r\n\r\n",
			want: []outcome{
				{Event: Head, At: 27, Method: "GET", Path: "/", Minor: 1, Fields: []string{"Host: "}},
				{Event: Body, At: 27},
			},
		},
		{
			name: "pipelined, each with an empty line before it",
			stream: "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nGET \r\n" +
				"POST /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" +
				"\r\nGET /c HTTP/1.1\r\nHost: h\r\n\r\n",
			want: []outcome{
				{Event: Head, At: 48, Method: "POST", Path: "/a", Host: "h", Minor: 1, ContentLength: 4, Fields: []string{"Host: h", "Content-Length: 4"}},
				{Event: Body, At: 52, Body: "GET "},
				{Event: Head, At: 111, Method: "POST", Path: "/b", Host: "h", Minor: 1, Chunked: true, ContentLength: -1, Fields: []string{"Host: h", "Transfer-Encoding: chunked"}},
				{Event: Body, At: 124, Body: "abc"},
				{Event: Head, At: 154, Method: "GET", Path: "/c", Host: "h", Minor: 1, Fields: []string{"Host: h"}},
				{Event: Body, At: 154},
			},
		},
		{
			name: "chunks with extensions and trailers",
			stream: head("POST / HTTP/1.1", "transfer-encoding: Chunked") +
				"3;a=b\r\nabc\r\n00A;q=\"x;\xc3\xa9\"\r\n0123456789\r\n0;last\r\nX-Sum: 1\r\nY:\r\n\r\n",
			want: []outcome{
				{Event: Head, At: 56, Method: "POST", Path: "/", Host: "h", Minor: 1, Chunked: true, ContentLength: -1, Fields: []string{"Host: h", "transfer-encoding: Chunked"}},
				{Event: Body, At: 118, Body: "abc0123456789"},
			},
		},
		{
			name:   "white space around values, bytes above ASCII",
			stream: "GET / HTTP/1.1\r\nHost: \t h \t\r\nX:\ta \xff\tb \r\nY:  \r\n\r\n",
			want: []outcome{
				{Event: Head, At: 48, Method: "GET", Path: "/", Host: "h", Minor: 1, Fields: []string{"Host: h", "X: a \xff\tb", "Y: "}},
				{Event: Body, At: 48},
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := driveAll(t, NewPool(Limits{}), []byte(tt.stream))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if end := tt.want[len(tt.want)-1].At; end != len(tt.stream) {
				t.Errorf("want ends at %d of %d bytes", end, len(tt.stream))
			}
		})
	}
}

func TestTargets(t *testing.T) {
	for _, tt := range []struct{ name, method, target, path, query, host string }{
		{"origin", "GET", "/a/b", "/a/b", "", "h"},
		{"two slashes", "GET", "//a/b", "//a/b", "", "h"},
		{"escapes stay", "GET", "/%41%2f?%zz", "/%41%2f", "%zz", "h"},
		{"asterisk", "OPTIONS", "*", "*", "", "h"},
		{"authority", "CONNECT", "other:443", "", "", "other:443"},
		{"authority with an address", "CONNECT", "[::1]:443", "", "", "[::1]:443"},
		{"absolute", "POST", "http://Other:80/v3/k?q", "/v3/k", "q", "Other:80"},
		{"absolute, any case", "POST", "HTTPS://other/", "/", "", "other"},
		{"absolute without path", "GET", "http://other", "/", "", "other"},
		{"absolute with query only", "GET", "http://other?a/b", "/", "a/b", "other"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := driveAll(t, NewPool(Limits{}), []byte(head(tt.method+" "+tt.target+" HTTP/1.1")))
			if len(got) != 2 || got[0].Event != Head {
				t.Fatalf("got %v, want a head and a body", got)
			}
			if o := got[0]; o.Path != tt.path || o.Query != tt.query || o.Host != tt.host {
				t.Errorf("got path %q, query %q, host %q; want %q, %q, %q", o.Path, o.Query, o.Host, tt.path, tt.query, tt.host)
			}
		})
	}
}

func TestFlags(t *testing.T) {
	const ws = "Upgrade: websocket"
	for _, tt := range []struct {
		name   string
		stream string
		want   string
	}{
		{"1.1 stays", head("GET / HTTP/1.1"), ""},
		{"1.7 is 1.1", head("GET / HTTP/1.7"), ""},
		{"1.1 close", head("GET / HTTP/1.1", "Connection: foo , Close"), "close"},
		{"1.1 close in the second field", head("GET / HTTP/1.1", "Connection: keep-alive", "Connection: close"), "close"},
		{"1.1 close is a whole word", head("GET / HTTP/1.1", "Connection: closed"), ""},
		{"1.0 closes", head("GET / HTTP/1.0"), "close"},
		{"1.0 needs no host", "GET / HTTP/1.0\r\n\r\n", "close"},
		{"1.0 keeps alive", head("GET / HTTP/1.0", "Connection: Keep-Alive"), "keep-alive"},
		{"1.0 close wins", head("GET / HTTP/1.0", "Connection: keep-alive, close"), "close"},
		{"connect closes", head("CONNECT h:1 HTTP/1.1"), "close"},
		{"upgrade", head("GET / HTTP/1.1", "Connection: keep-alive, Upgrade", "Upgrade: h2c, WebSocket"), "upgrade"},
		{"upgrade without connection", head("GET / HTTP/1.1", ws), ""},
		{"upgrade to another protocol", head("GET / HTTP/1.1", "Connection: upgrade", "Upgrade: h2c"), ""},
		{"upgrade by 1.0", head("GET / HTTP/1.0", "Connection: upgrade, keep-alive", ws), "keep-alive"},
		{"expect with a length", head("POST / HTTP/1.1", "Expect: 100-Continue", "Content-Length: 1") + "x", "expect"},
		{"expect with chunks", head("POST / HTTP/1.1", "Expect: 100-continue", "Transfer-Encoding: chunked") + "0\r\n\r\n", "expect"},
		{"expect without a body", head("POST / HTTP/1.1", "Expect: 100-continue", "Content-Length: 0"), ""},
		{"expect by 1.0", head("POST / HTTP/1.0", "Expect: 100-continue", "Content-Length: 1") + "x", "close"},
		{"expect nothing", head("POST / HTTP/1.1", "Expect: ,"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := driveAll(t, NewPool(Limits{}), []byte(tt.stream))
			if len(got) != 2 || got[0].Event != Head {
				t.Fatalf("got %v, want a head and a body", got)
			}
			var flags []string
			for name, set := range map[string]bool{
				"close": got[0].Close, "keep-alive": got[0].KeepAlive, "expect": got[0].Expect, "upgrade": got[0].Upgrade,
			} {
				if set {
					flags = append(flags, name)
				}
			}
			if f := strings.Join(flags, " "); f != tt.want {
				t.Errorf("got %q, want %q", f, tt.want)
			}
		})
	}
}

func TestHosts(t *testing.T) {
	for _, tt := range []struct {
		host string
		want bool
	}{
		{"", true},
		{"node.example", true},
		{"node_1.example.:8545", true},
		{"192.0.2.1:1", true},
		{"h:", true},
		{"h:65535", true},
		{"[2001:db8::1]", true},
		{"[::1]:80", true},
		{"[::ffff:192.0.2.1]", true},
		{"h:65536", false},
		{"h:000080", false},
		{"h:+80", false},
		{"h:8o", false},
		{"h:80:80", false},
		{":80", false},
		{"2001:db8::1", false},
		{"[::1", false},
		{"[::1]80", false},
		{"[::1%25eth0]", false},
		{"[::1%eth0]", false},
		{"[192.0.2.1]", false},
		{"[v1.x]", false},
		{"a[::1]", false},
		{"user@h", false},
		{"user:pw@h", false},
		{"a,b", false},
		{"a b", false},
		{"a/b", false},
		{"a?b", false},
		{"a#b", false},
		{`a\b`, false},
		{"a%2fb", false},
		{"h\xc3\xa9", false},
		{"http://h", false},
	} {
		if got := validHost([]byte(tt.host)); got != tt.want {
			t.Errorf("host %q: got %v, want %v", tt.host, got, tt.want)
		}
	}
}

func TestRequestFields(t *testing.T) {
	r := Request{Fields: []Field{
		{[]byte("Accept-Encoding"), []byte("gzip;q=0.5, ,br")},
		{[]byte("X"), []byte("1")},
		{[]byte("accept-ENCODING"), []byte("Zstd")},
	}}
	if v, ok := r.Get("accept-encoding"); !ok || string(v) != "gzip;q=0.5, ,br" {
		t.Errorf("Get: got %q, %v, want the first field", v, ok)
	}
	if v, ok := r.Get("accept"); ok {
		t.Errorf("Get of an absent field: got %q", v)
	}
	var all, list []string
	for v := range r.All("accept-encoding") {
		all = append(all, string(v))
	}
	for v := range r.Elements("accept-encoding") {
		list = append(list, string(v))
	}
	if diff := cmp.Diff([]string{"gzip;q=0.5, ,br", "Zstd"}, all); diff != "" {
		t.Errorf("All (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"gzip;q=0.5", "br", "Zstd"}, list); diff != "" {
		t.Errorf("Elements (-want +got):\n%s", diff)
	}
	if !r.HasToken("accept-encoding", "zstd") || r.HasToken("accept-encoding", "gzip") {
		t.Error("HasToken: want zstd and not gzip, which has a weight")
	}
}
