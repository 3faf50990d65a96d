package http1

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// streams are the seeds of the fuzz targets.
func streams() []string {
	const ws = "GET /ws/v3/k HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAA\r\n\r\n\x81\x80"
	return []string{
		curlPost, browserPost, ws,
		curlPost + browserPost,
		"\r\n" + curlPost,
		"GET / HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET http://u@other:8/a?b#c HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET http://[::1]:8?b HTTP/1.1\r\nHost: h\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost:\r\n\r\n",
		"CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n",
		"CONNECT /a HTTP/1.1\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET /%zz HTTP/1.1\nHost: h\n\n",
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nX : 1\r\n y\r\nTransfer-Encoding: gzip\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n3;e=\"f\"\r\nabc\r\n0A\r\n0123456789\r\n0\r\nA: b\r\nC:d\r\n\r\nGET",
		"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\na\r\n0\n\n",
		"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
		"POST / HTTP/1.1\r\nHost: h, i\r\nPragma: no-cache\r\nX:\xff\ty\r\n\r\n",
	}
}

// FuzzAgainstNetHTTP compares the two on any bytes.
func FuzzAgainstNetHTTP(f *testing.F) {
	for _, s := range streams() {
		f.Add([]byte(s))
	}
	pool := NewPool(Limits{})
	f.Fuzz(func(t *testing.T, in []byte) {
		against(t, pool, in)
	})
}

// FuzzSplits: however a stream is cut (at every byte, in two at each place, in three
// at any two), its events are the same and end at the same bytes, those of further
// requests in it too; and what follows a request is read as if it stood alone.
func FuzzSplits(f *testing.F) {
	for i, s := range streams() {
		f.Add([]byte(s), uint16(17*i), uint16(40*i))
	}
	pool := NewPool(Limits{Line: 100, Header: 300, Fields: 8, Body: 100})
	f.Fuzz(func(t *testing.T, in []byte, a, b uint16) {
		in = in[:min(len(in), 1000)]
		got := driveAll(t, pool, in)
		first, second := min(int(a), len(in)), min(int(b), len(in))
		first, second = min(first, second), max(first, second)
		if diff := cmp.Diff(got, drive(t, pool, in[:first], in[first:second], in[second:])); diff != "" {
			t.Fatalf("cut at %d and %d differs from the whole (-whole +cut):\n%s\n%q", first, second, diff, in)
		}
		for i, o := range got {
			if o.Event != Body || i+1 == len(got) {
				continue
			}
			rest := drive(t, pool, in[o.At:])
			for j := range rest {
				if rest[j].Why == 0 {
					rest[j].At += o.At
				}
			}
			if diff := cmp.Diff(got[i+1:], rest); diff != "" {
				t.Fatalf("behind the request that ends at %d (-pipelined +alone):\n%s\n%q", o.At, diff, in)
			}
		}
	})
}

// FuzzChunks: whatever is encoded in chunks, in any sizes and pieces, is decoded
// to the same bytes.
func FuzzChunks(f *testing.F) {
	f.Add([]byte("body"), []byte{1, 2}, []byte{3, 4})
	f.Add(bytes.Repeat([]byte("0\r\n\r\n"), 300), []byte{255, 9}, []byte{200})
	f.Add([]byte{}, []byte{}, []byte{})
	pool := NewPool(Limits{})
	f.Fuzz(func(t *testing.T, body, sizes, cuts []byte) {
		body = body[:min(len(body), 4<<10)]
		stream := []byte(head("POST / HTTP/1.1", "Transfer-Encoding: chunked"))
		for i, rest := 0, body; len(rest) > 0; i++ {
			n := len(rest)
			if len(sizes) > 0 {
				n = min(n, 1+int(sizes[i%len(sizes)]))
			}
			stream = fmt.Appendf(stream, "%x\r\n%s\r\n", n, rest[:n])
			rest = rest[n:]
		}
		stream = append(stream, "0\r\n\r\n"...)
		var pieces [][]byte
		for i, rest := 0, stream; len(rest) > 0; i++ {
			n := len(rest)
			if len(cuts) > 0 {
				n = min(n, 1+int(cuts[i%len(cuts)]))
			}
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		got := drive(t, pool, pieces...)
		if len(got) != 2 || got[1].Event != Body || got[1].Body != string(body) || got[1].At != len(stream) {
			t.Fatalf("got %v, want a head and %q", got, body)
		}
	})
}
