package http1

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

const question = `{"jsonrpc":"2.0","id":1,"method":"eth_getUncleByBlockNumberAndIndex","params":["0x29c","0x0"]}`

// curlPost is what curl sends.
var curlPost = "POST /v3/0123456789abcdef0123456789abcdef HTTP/1.1\r\n" +
	"Host: localhost:8545\r\n" +
	"User-Agent: curl/8.5.0\r\n" +
	"Accept: */*\r\n" +
	"Content-Type: application/json\r\n" +
	fmt.Sprintf("Content-Length: %d\r\n\r\n", len(question)) + question

// browserPost is what a browser sends from another origin.
var browserPost = "POST /v3/0123456789abcdef0123456789abcdef HTTP/1.1\r\n" +
	"Host: node.example.org\r\n" +
	"Connection: keep-alive\r\n" +
	fmt.Sprintf("Content-Length: %d\r\n", len(question)) +
	"sec-ch-ua-platform: \"Linux\"\r\n" +
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36\r\n" +
	"sec-ch-ua: \"Google Chrome\";v=\"141\", \"Not?A_Brand\";v=\"8\", \"Chromium\";v=\"141\"\r\n" +
	"Content-Type: application/json\r\n" +
	"sec-ch-ua-mobile: ?0\r\n" +
	"Accept: */*\r\n" +
	"Origin: https://wallet.example.org\r\n" +
	"Sec-Fetch-Site: cross-site\r\n" +
	"Sec-Fetch-Mode: cors\r\n" +
	"Sec-Fetch-Dest: empty\r\n" +
	"Referer: https://wallet.example.org/\r\n" +
	"Accept-Encoding: gzip, deflate, br, zstd\r\n" +
	"Accept-Language: en-US,en;q=0.9,de;q=0.8\r\n\r\n" + question

// serve feeds a stream in which every byte belongs to a request, as a session
// would, and returns the number of requests.
func serve(tb testing.TB, p *Parser, r *Request, in []byte) (requests int) {
	for {
		n, ev, err := p.Next(in, r)
		if err != nil {
			tb.Fatal(err)
		}
		in = in[n:]
		switch ev {
		case Body:
			requests++
		case More:
			if len(in) > 0 {
				tb.Fatalf("%d bytes are left", len(in))
			}
			return requests
		}
	}
}

// TestRequestsAllocateNothing is the budget of the hot path.
func TestRequestsAllocateNothing(t *testing.T) {
	var date Date
	date.Set(time.Unix(0, 0))
	p := NewPool(Limits{}).Parser()
	var r Request
	dst := make([]byte, 0, 4<<10)
	for _, tt := range []struct {
		name   string
		stream string
	}{
		{"curl", curlPost},
		{"browser", browserPost},
		{"pipelined", curlPost + browserPost},
		{"one chunk", head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + "3;a=b\r\nabc\r\n0\r\nX: 1\r\n\r\n"},
		{"handshake", head("GET / HTTP/1.1", "Connection: keep-alive, Upgrade", "Upgrade: websocket")},
		{"absolute", head("GET http://other:80/ HTTP/1.1")},
	} {
		in := []byte(tt.stream)
		if n := testing.AllocsPerRun(100, func() { serve(t, &p, &r, in) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", tt.name, n)
		}
	}
	in := []byte(browserPost)
	if n := testing.AllocsPerRun(100, func() {
		if _, _, err := p.Next(in, &r); err != nil {
			t.Fatal(err)
		}
		if _, ok := r.Get("origin"); !ok || !r.HasToken("accept-encoding", "gzip") {
			t.Fatal("a field is missing")
		}
		p.Discard()
		dst = AppendResponse(dst[:0], Response{Status: 401, ContentType: "application/json", Date: date.Value(), Body: r.Method, Close: true})
		p = p.pool.Parser()
	}); n != 0 {
		t.Errorf("looking at fields and answering: %v allocations, want none", n)
	}
	bad := []byte("GET / HTTP/3.0\r\n")
	if n := testing.AllocsPerRun(100, func() {
		p = p.pool.Parser()
		if _, _, err := p.Next(bad, &r); err == nil {
			t.Fatal("accepted")
		}
	}); n != 0 {
		t.Errorf("refusing: %v allocations, want none", n)
	}
}

func BenchmarkNext(b *testing.B) {
	ones := strings.Repeat("1\r\nx\r\n", 1<<20) + "0\r\n\r\n"
	chunked := head("POST / HTTP/1.1", "Transfer-Encoding: chunked")
	for _, bm := range []struct{ name, stream string }{
		{"curl", curlPost},
		{"browser", browserPost},
		{"16 pipelined", strings.Repeat(curlPost, 16)},
		{"1 MiB in chunks of 1 byte", chunked + ones},
		{"1 MiB in chunks of 16 KiB", chunked + strings.Repeat("4000\r\n"+strings.Repeat("x", 16<<10)+"\r\n", 64) + "0\r\n\r\n"},
	} {
		b.Run(bm.name, func(b *testing.B) {
			p := NewPool(Limits{}).Parser()
			var r Request
			in := []byte(bm.stream)
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				serve(b, &p, &r, in)
			}
		})
	}
}

// BenchmarkBytewise has the splits of an attacker. The time for each byte must
// not depend on how many there are.
func BenchmarkBytewise(b *testing.B) {
	for _, size := range []int{1 << 10, 15 << 10} {
		in := []byte("GET / HTTP/1.1\r\nHost: h\r\n")
		for len(in) < size {
			in = append(in, "X: "+strings.Repeat("y", size/90)+"\r\n"...)
		}
		in = append(in, "\r\n"...)
		b.Run(fmt.Sprintf("header of %d bytes", len(in)), func(b *testing.B) {
			p := NewPool(Limits{}).Parser()
			var r Request
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				for i := range in {
					if _, _, err := p.Next(in[:i+1], &r); err != nil {
						b.Fatal(err)
					}
				}
				serve(b, &p, &r, nil)
			}
		})
	}
	for _, size := range []int{16 << 10, 1 << 20} {
		in := []byte(head("POST / HTTP/1.1", "Transfer-Encoding: chunked"))
		h := len(in)
		in = append(in, strings.Repeat("1\r\nx\r\n", size)+"0\r\n\r\n"...)
		b.Run(fmt.Sprintf("chunks with %d bytes", size), func(b *testing.B) {
			p := NewPool(Limits{}).Parser()
			var r Request
			b.ReportAllocs()
			b.SetBytes(int64(len(in)))
			for b.Loop() {
				if _, ev, err := p.Next(in[:h], &r); ev != Head {
					b.Fatal(err)
				}
				for i := h; i < len(in); i++ {
					if _, _, err := p.Next(in[i:i+1], &r); err != nil {
						b.Fatal(err)
					}
				}
				if len(r.Body) != size {
					b.Fatalf("got %d bytes", len(r.Body))
				}
			}
		})
	}
}

func BenchmarkAppendResponse(b *testing.B) {
	var date Date
	date.Set(time.Unix(0, 0))
	body := bytes.Repeat([]byte("x"), 1500)
	dst := make([]byte, 0, 4<<10)
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendResponse(dst[:0], Response{Status: 200, ContentType: "application/json", Date: date.Value(), Body: body})
	}
}
