package edge_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ommer/ommer/edge"
)

const unknownKey = `{"jsonrpc":"2.0","id":null,"error":{"code":-32002,"message":"invalid API key"}}`

func TestRefusals(t *testing.T) {
	f := start(t, func(c *edge.Config) { c.Limits.Body = 1000 })
	long := strings.Repeat("x", 1001)
	for _, tt := range []struct {
		name, request string
		status        int
		body          string   // a part of it
		header        []string // "Name: value"
		closed        bool
	}{
		{"unknown key", post("nope-nope", lookup(1, 1)), 401, unknownKey, nil, false},
		{"no key", "POST /v3/ HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 401, unknownKey, nil, false},
		{"no key, no slash", "POST /v3 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 401, unknownKey, nil, false},
		{"the key comes before the verb", "GET /v3/nope-nope HTTP/1.1\r\nHost: x\r\n\r\n", 401, unknownKey, nil, false},
		{"the key comes before the size", "POST /v3/nope-nope HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n", 401, unknownKey, nil, true},
		{"other path", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 404, "/v3/<API_KEY>", nil, false},
		{"path below the key", "POST /v3/" + testKey + "/x HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 404, "", nil, false},
		{"path that begins alike", "POST /v3x/" + testKey + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 404, "", nil, false},
		{"verb", "GET /v3/" + testKey + " HTTP/1.1\r\nHost: x\r\n\r\n", 405, "POST", []string{"Allow: POST, OPTIONS"}, false},
		{"HEAD has no body", "HEAD /v3/" + testKey + " HTTP/1.1\r\nHost: x\r\n\r\n", 405, "", []string{"Allow: POST, OPTIONS"}, false},
		{"preflight", "OPTIONS /v3/" + testKey + " HTTP/1.1\r\nHost: x\r\nOrigin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n\r\n", 204, "",
			[]string{"Access-Control-Allow-Origin: *", "Access-Control-Allow-Methods: POST, OPTIONS", "Access-Control-Allow-Headers: Content-Type, *"}, false},
		{"content type", "POST /v3/" + testKey + " HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", 415, "invalid content type, only application/json is supported", nil, false},
		{"no content type", "POST /v3/" + testKey + " HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", 415, "invalid content type", nil, false},
		{"content encoding", "POST /v3/" + testKey + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", 415,
			"unsupported content encoding, only identity is supported", []string{"Accept-Encoding: identity"}, false},
		{"over the limit, from a page", "POST /v3/" + testKey + " HTTP/1.1\r\nHost: x\r\nOrigin: https://a.example\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n", 413,
			"", []string{"Access-Control-Allow-Origin: *"}, true},
		{"known length over the limit", post(testKey, long), 413, "", []string{"Connection: close"}, true},
		{"chunked over the limit", "POST /v3/" + testKey + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + long + "\r\n0\r\n\r\n", 413, "", nil, true},
		{"length and coding", "POST /v3/" + testKey + " HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, "", []string{"Connection: close"}, true},
		{"bare LF", "POST /v3/" + testKey + " HTTP/1.1\nHost: x\n\n", 400, "", nil, true},
		{"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "", nil, true},
		{"expectation", "POST /v3/" + testKey + " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: wonders\r\nContent-Length: 2\r\n\r\n{}", 417, "", nil, true},
		{"refused instead of continued", "POST /v3/nope-nope HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 20\r\n\r\n", 401, unknownKey, []string{"Connection: close"}, true},
		{"WebSocket path without upgrade", "GET /ws/v3/" + testKey + " HTTP/1.1\r\nHost: x\r\n\r\n", 426, "", []string{"Upgrade: websocket"}, false},
		{"WebSocket with a bad key", "GET /ws/v3/nope-nope HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", 401, unknownKey, nil, false},
		{"WebSocket of another version", "GET /ws/v3/" + testKey + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", 426, "", []string{"Sec-WebSocket-Version: 13"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			transports(t, func(t *testing.T, secure bool) {
				c := f.dial(t, secure)
				io.WriteString(c, tt.request)
				r := bufio.NewReader(c)
				method, _, _ := strings.Cut(tt.request, " ")
				resp, err := http.ReadResponse(r, &http.Request{Method: method})
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				if resp.StatusCode != tt.status || !strings.Contains(string(body), tt.body) {
					t.Errorf("got %s %q, want %d and %q", resp.Status, body, tt.status, tt.body)
				}
				for _, h := range tt.header {
					name, value, _ := strings.Cut(h, ": ")
					if !strings.EqualFold(name, "connection") && resp.Header.Get(name) != value || strings.EqualFold(name, "connection") && !resp.Close {
						t.Errorf("header %s: got %q, want %q", name, resp.Header.Get(name), value)
					}
				}
				// What follows is answered as itself or the connection is closed.
				io.WriteString(c, post(testKey, lookup(9, 9)))
				resp, err = http.ReadResponse(r, nil)
				switch {
				case tt.closed && err == nil:
					t.Errorf("the connection went on after it: %s", resp.Status)
				case tt.closed:
				case err != nil:
					t.Errorf("the next request: %v", err)
				default:
					if body, _ := io.ReadAll(resp.Body); string(body) != answer(9, 9) {
						t.Errorf("the next request got %s", body)
					}
				}
			})
		})
	}
	if f.resolver.Asked() == 0 {
		t.Error("no request was let through")
	}
}

// RFC 9110 section 9.3.2: whatever is wrong with a HEAD, its answer has no body.
func TestNoBodyForHEAD(t *testing.T) {
	f := start(t, nil)
	for name, request := range map[string]string{
		"verb":     "HEAD /v3/" + testKey + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		"no host":  "HEAD /v3/" + testKey + " HTTP/1.1\r\n\r\n",
		"bad line": "HEAD /v3/" + testKey + " HTTP/1.1\r\nBad field\r\n\r\n",
		"version":  "HEAD / HTTP/7.0\r\n\r\n",
		"too long": "HEAD /" + strings.Repeat("x", 10_000) + " HTTP/1.1\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := f.dial(t, false)
			io.WriteString(c, request)
			got, err := io.ReadAll(c)
			if !strings.HasPrefix(string(got), "HTTP/1.1 4") && !strings.HasPrefix(string(got), "HTTP/1.1 5") || !strings.HasSuffix(string(got), "\r\n\r\n") || err != nil {
				t.Errorf("got %q %v", got, err)
			}
		})
	}
}

func TestMessages(t *testing.T) {
	f := start(t, nil)
	for _, tt := range []struct{ name, body, want string }{
		{"call", lookup(1, 3), answer(1, 3)},
		{"empty body", "", ""},
		{"white space", " \n", ""},
		{"notification", `{"jsonrpc":"2.0","method":"eth_getUncleByBlockNumberAndIndex","params":["0x3","0x0"]}`, ""},
		{"parse error", `{"jsonrpc":`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`},
		{"empty batch", `[]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"empty batch"}}`},
		{"batch of notifications", `[{"jsonrpc":"2.0","method":"x"}]`, ""},
		{
			"batch in order, each with its own fate",
			`[` + lookup(1, 3) + `,{"jsonrpc":"2.0","id":"a","method":"eth_nope"},1,{"jsonrpc":"2.0","method":"x"},` + lookup(2, 4) + `]`,
			`[` + answer(1, 3) + `,{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"message":"the method eth_nope does not exist/is not available"}},` +
				`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}},` + answer(2, 4) + `]`,
		},
		{"parameters", `{"jsonrpc":"2.0","id":1,"method":"eth_getUncleByBlockNumberAndIndex","params":["0x03","0x0"]}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid argument 0: hex number with leading zero digits"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := f.dial(t, false)
			io.WriteString(c, post(testKey, tt.body))
			resp, body := response(t, bufio.NewReader(c))
			if resp.StatusCode != 200 || body != tt.want {
				t.Errorf("got %s %s\nwant %s", resp.Status, body, tt.want)
			}
		})
	}
}

func TestLargeBatch(t *testing.T) {
	f := start(t, nil)
	var in, out strings.Builder
	for i := range 1000 {
		in.WriteString("," + lookup(i, i))
		out.WriteString("," + answer(i, i))
	}
	transports(t, func(t *testing.T, secure bool) {
		c := f.dial(t, secure)
		r := bufio.NewReader(c)
		go io.WriteString(c, post(testKey, "["+in.String()[1:]+"]"))
		if _, body := response(t, r); body != "["+out.String()[1:]+"]" {
			t.Errorf("wrong answer of %d bytes", len(body))
		}
		go io.WriteString(c, post(testKey, "["+lookup(-1, 0)+in.String()+"]"))
		want := `[{"jsonrpc":"2.0","id":-1,"error":{"code":-32600,"message":"batch too large"}}]`
		if _, body := response(t, r); body != want {
			t.Errorf("got %.200s\nwant %s", body, want)
		}
	})
}

func TestResponseLimit(t *testing.T) {
	f := start(t, func(c *edge.Config) { c.Limits.Response = 100 })
	c := f.dial(t, false)
	io.WriteString(c, post(testKey, "["+lookup(1, 1)+","+lookup(2, 2)+","+lookup(3, 3)+"]"))
	_, body := response(t, bufio.NewReader(c))
	tooLarge := `{"jsonrpc":"2.0","id":%d,"error":{"code":-32003,"message":"response too large"}}`
	want := "[" + answer(1, 1) + "," + answer(2, 2) + "," + fmt.Sprintf(tooLarge, 3) + "]"
	if body != want {
		t.Errorf("got %s\nwant %s", body, want)
	}
}

func TestContinue(t *testing.T) {
	f := start(t, nil)
	c := f.dial(t, false)
	body := lookup(1, 3)
	fmt.Fprintf(c, "POST /v3/%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", testKey, len(body))
	r := bufio.NewReader(c)
	if line, err := r.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q %v", line, err)
	}
	r.ReadString('\n')
	io.WriteString(c, body)
	if _, got := response(t, r); got != answer(1, 3) {
		t.Error(got)
	}
}

func TestHalfClosedClientIsAnswered(t *testing.T) {
	f := start(t, nil)
	f.resolver.Hold()
	c := f.dial(t, false)
	io.WriteString(c, post(testKey, lookup(1, 3)))
	_ = c.(interface{ CloseWrite() error }).CloseWrite()
	eventually(t, "the question", func() bool { return len(f.resolver.Waiting()) == 1 })
	f.resolver.Release()
	r := bufio.NewReader(c)
	if _, body := response(t, r); body != answer(1, 3) {
		t.Error(body)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("the connection stays: %v", err)
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	short := func(c *edge.Config) {
		c.Timeouts.Header, c.Timeouts.Body, c.Timeouts.Idle = 300*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond
	}
	f := start(t, short)
	head := post(testKey, lookup(1, 1))
	for _, tt := range []struct{ name, sent, want string }{
		{"nothing sent", "", ""},
		{"half a header", head[:20], "HTTP/1.1 408 Request Timeout"},
		{"half a body", head[:len(head)-5], "HTTP/1.1 408 Request Timeout"},
		{"between requests", head, "HTTP/1.1 200 OK"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			transports(t, func(t *testing.T, secure bool) {
				t.Parallel()
				steadily(t, func() (wrong string) {
					c := f.dial(t, secure)
					io.WriteString(c, tt.sent)
					got, err := io.ReadAll(c) // until it is closed
					if line, _, _ := strings.Cut(string(got), "\r\n"); line != tt.want || err != nil {
						return fmt.Sprintf("got %q %v, want %q", line, err, tt.want)
					}
					return ""
				})
			})
		})
	}
	t.Run("a byte at a time", func(t *testing.T) {
		t.Parallel()
		steadily(t, func() (wrong string) {
			c := f.dial(t, false)
			go func() {
				for i := range head {
					if _, err := c.Write([]byte{head[i]}); err != nil {
						return
					}
					time.Sleep(20 * time.Millisecond) // the slow client
				}
			}()
			got, _ := io.ReadAll(c)
			if !strings.HasPrefix(string(got), "HTTP/1.1 408 ") {
				return fmt.Sprintf("got %q", got)
			}
			return ""
		})
	})
}

// Header and body have a time each.
func TestTimeoutOfEachPart(t *testing.T) {
	t.Parallel()
	head := post(testKey, lookup(1, 1))
	for _, tt := range []struct {
		name, sent   string
		header, body time.Duration
	}{
		{"header", head[:20], 300 * time.Millisecond, time.Hour},
		{"body", head[:len(head)-5], time.Hour, 300 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := start(t, func(c *edge.Config) { c.Timeouts.Header, c.Timeouts.Body = tt.header, tt.body })
			steadily(t, func() (wrong string) {
				c := f.dial(t, false)
				io.WriteString(c, tt.sent)
				if got, err := io.ReadAll(c); !strings.HasPrefix(string(got), "HTTP/1.1 408 ") || err != nil {
					return fmt.Sprintf("got %q %v, want 408", got, err)
				}
				return ""
			})
		})
	}
}

func TestStopAnswersWhatIsInFlight(t *testing.T) {
	f := start(t, nil)
	f.resolver.Hold()
	busy, idle := f.dial(t, true), f.dial(t, false)
	r, ri := bufio.NewReader(busy), bufio.NewReader(idle)
	io.WriteString(busy, post(testKey, lookup(1, 1)))
	io.WriteString(idle, post("bad-key-1", ""))
	response(t, ri)
	eventually(t, "the question", func() bool { return len(f.resolver.Waiting()) == 1 })
	f.stop()
	if _, err := ri.ReadByte(); err != io.EOF {
		t.Errorf("an idle connection is not closed: %v", err)
	}
	f.resolver.Release()
	resp, body := response(t, r)
	if body != answer(1, 1) || !resp.Close {
		t.Errorf("%v %s: want the answer with Connection: close", resp.Header, body)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		t.Errorf("the connection stays: %v", err)
	}
}

// An unread answer must not cost others anything, and must not stay for ever.
func TestClientThatDoesNotRead(t *testing.T) {
	t.Parallel()
	f := start(t, func(c *edge.Config) { c.Timeouts.Write = 500 * time.Millisecond })
	c := f.dial(t, false)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for request := post(testKey, lookup(1, 1)); ; {
			if _, err := io.WriteString(c, request); err != nil {
				return
			}
		}
	}()
	other := f.dial(t, false)
	r := bufio.NewReader(other)
	for waiting := true; waiting; {
		io.WriteString(other, post(testKey, lookup(2, 2)))
		if _, body := response(t, r); body != answer(2, 2) {
			t.Fatal(body)
		}
		select {
		case <-gone:
			waiting = false
		default:
		}
	}
}
