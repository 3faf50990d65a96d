package edge_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/schema"
)

// large is a result that is worth compressing.
var large = `{"hash":"0x29c","logsBloom":"0x` + strings.Repeat("0", 1200) + `"}`

func startLarge(t *testing.T, change func(*edge.Config)) *fixture {
	f := start(t, change)
	for n := range uint64(10) {
		f.resolver.Set(schema.Question{Block: schema.Number(n)}, schema.Answer{Result: []byte(large)})
	}
	return f
}

func postAccepting(coding, body string) string {
	return strings.Replace(post(testKey, body), "Host:", "Accept-Encoding: "+coding+"\r\nHost:", 1)
}

// gunzip reads the one member that a body is.
func gunzip(t *testing.T, body string) string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

// TestCompression: with gzip and without, the answer is the same to the byte.
func TestCompression(t *testing.T) {
	f := startLarge(t, func(c *edge.Config) { c.Limits.Response = 12_000 })
	batch := func(calls int, number int) string {
		var b []string
		for i := range calls {
			b = append(b, lookup(i, number))
		}
		return "[" + strings.Join(b, ",") + "]"
	}
	for _, tt := range []struct {
		name, body string
		gzip       bool
		atMost     int // bytes, compressed
	}{
		{"uncle", lookup(1, 3), true, 250},
		{"null", lookup(1, 5000), false, 0},
		{"empty", " ", false, 0},
		{"error", `{`, false, 0},
		{"uncles and everything else", "[" + lookup(1, 3) + `,{"jsonrpc":"2.0","id":[]},` + lookup(2, 5000) + "," + lookup(3, 4) + `,{"jsonrpc":"2.0","method":"x"}]`, true, 500},
		{"few nulls", batch(10, 5000), false, 0},
		{"many nulls", batch(100, 5000), true, 1000},
		{"too large in the middle", batch(50, 3), true, 2500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			transports(t, func(t *testing.T, secure bool) {
				c := f.dial(t, secure)
				r := bufio.NewReader(c)
				io.WriteString(c, post(testKey, tt.body)+postAccepting("deflate, gzip;q=0.5", tt.body))
				resp, want := response(t, r)
				if got := resp.Header.Get("Content-Encoding"); got != "" {
					t.Errorf("not asked for, Content-Encoding: %s", got)
				}
				resp, body := response(t, r)
				coding := ""
				if tt.gzip {
					coding = "gzip"
					if len(body) > tt.atMost {
						t.Errorf("%d bytes of %d", len(body), len(want))
					}
					body = gunzip(t, body)
				}
				if got := resp.Header.Get("Content-Encoding"); got != coding {
					t.Errorf("Content-Encoding: %q, want %q", got, coding)
				}
				if body != want || resp.Header.Get("Content-Type") != "application/json" {
					t.Errorf("got  %.300s\nwant %.300s", body, want)
				}
			})
		})
	}
}

// TestCompressedPipeline: what a request may be answered with is its own affair.
func TestCompressedPipeline(t *testing.T) {
	f := startLarge(t, nil)
	f.resolver.Hold()
	c := f.dial(t, false)
	for i, coding := range []string{"gzip", "identity", "gzip", "br"} {
		io.WriteString(c, postAccepting(coding, lookup(i, 3)))
	}
	eventually(t, "the questions", func() bool { return len(f.resolver.Waiting()) == 4 })
	f.resolver.Release()
	r := bufio.NewReader(c)
	for i, coding := range []string{"gzip", "", "gzip", ""} {
		resp, body := response(t, r)
		if got := resp.Header.Get("Content-Encoding"); got != coding {
			t.Fatalf("answer %d: Content-Encoding %q, want %q", i, got, coding)
		}
		if coding != "" {
			body = gunzip(t, body)
		}
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, i, large); body != want {
			t.Errorf("answer %d: %.200s", i, body)
		}
	}
}

// A browser reads only what its origin may, compressed or not.
func TestCompressionForBrowsers(t *testing.T) {
	f := startLarge(t, nil)
	c := f.dial(t, true)
	io.WriteString(c, strings.Replace(postAccepting("gzip, br", lookup(1, 3)), "Host:", "Origin: https://a.example\r\nHost:", 1))
	resp, body := response(t, bufio.NewReader(c))
	if resp.Header.Get("Content-Encoding") != "gzip" || resp.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%v", resp.Header)
	}
	if !bytes.Contains([]byte(gunzip(t, body)), []byte("0x29c")) {
		t.Error("no uncle")
	}
}

// The OpenRPC document is compressed like anything else, both ways of asking for it.
func TestCompressedOpenRPC(t *testing.T) {
	f := start(t, nil)
	c := f.dial(t, false)
	r := bufio.NewReader(c)
	for _, tt := range []struct{ name, request, want string }{
		{"document", "GET /openrpc.json HTTP/1.1\r\nHost: x\r\nOrigin: https://a.example\r\nAccept-Encoding: gzip\r\n\r\n", string(schema.OpenRPC())},
		{"call", postAccepting("gzip", discover(1, "")), discovered(1)},
		{"batch", postAccepting("gzip", "["+discover(1, "")+","+discover(2, "")+"]"), "[" + discovered(1) + "," + discovered(2) + "]"},
	} {
		io.WriteString(c, tt.request)
		resp, body := response(t, r)
		if got := resp.Header.Get("Content-Encoding"); got != "gzip" || len(body) > len(tt.want)/2 {
			t.Fatalf("%s: Content-Encoding %q, %d bytes of %d", tt.name, got, len(body), len(tt.want))
		}
		if gunzip(t, body) != tt.want {
			t.Errorf("%s: another text", tt.name)
		}
		if vary := resp.Header.Get("Vary"); tt.name == "document" && vary != "Accept-Encoding" {
			t.Errorf("%s: Vary %q", tt.name, vary)
		}
	}
}
