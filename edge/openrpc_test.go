package edge_test

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/schema"
)

func discover(id int, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"rpc.discover"%s}`, id, params)
}

func discovered(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, schema.OpenRPC())
}

// The document is there for everyone, for a browser's page of any origin too.
func TestOpenRPCDocument(t *testing.T) {
	f := start(t, nil)
	const cors = "Access-Control-Allow-Origin: *"
	document, refused := string(schema.OpenRPC()), "method not allowed: the OpenRPC document is read with GET\n"
	for _, tt := range []struct {
		name, method, path, fields string
		status                     int
		body                       string
		header                     []string
	}{
		{"GET", "GET", "/openrpc.json", "", 200, document, []string{"Content-Type: application/json", "Cache-Control: public, max-age=3600", cors}},
		{"from a page", "GET", "/openrpc.json", "Origin: https://a.example\r\n", 200, document, []string{cors}},
		{"with a query", "GET", "/openrpc.json?x=1", "", 200, document, nil},
		{"with a body", "GET", "/openrpc.json", "Content-Length: 0\r\n", 200, document, nil},
		{"HEAD", "HEAD", "/openrpc.json", "", 200, "", []string{fmt.Sprintf("Content-Length: %d", len(document)), "Content-Type: application/json", cors}},
		{"preflight", "OPTIONS", "/openrpc.json", "Origin: https://a.example\r\nAccess-Control-Request-Method: GET\r\n", 204, "",
			[]string{cors, "Access-Control-Allow-Methods: GET, HEAD, OPTIONS", "Allow: GET, HEAD, OPTIONS"}},
		{"POST", "POST", "/openrpc.json", "Origin: https://a.example\r\nContent-Length: 0\r\n", 405, refused, []string{"Allow: GET, HEAD, OPTIONS", cors}},
		{"below it", "GET", "/openrpc.json/", "", 404, "not found: the service is at /v3/<API_KEY> and /ws/v3/<API_KEY>\n", nil},
		{"under another name", "GET", "/OpenRPC.json", "", 404, "not found: the service is at /v3/<API_KEY> and /ws/v3/<API_KEY>\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			transports(t, func(t *testing.T, secure bool) {
				c := f.dial(t, secure)
				r := bufio.NewReader(c)
				for range 2 { // the connection stays
					fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: x\r\n%s\r\n", tt.method, tt.path, tt.fields)
					resp, err := http.ReadResponse(r, &http.Request{Method: tt.method})
					if err != nil {
						t.Fatal(err)
					}
					body, err := io.ReadAll(resp.Body)
					if err != nil || resp.StatusCode != tt.status || string(body) != tt.body {
						t.Errorf("got %s %.100q %v, want %d %.100q", resp.Status, body, err, tt.status, tt.body)
					}
					for _, h := range tt.header {
						name, value, _ := strings.Cut(h, ": ")
						if got := resp.Header.Values(name); len(got) != 1 || got[0] != value {
							t.Errorf("header %s: got %q, want %q once", name, got, value)
						}
					}
				}
			})
		})
	}
}

// rpc.discover is answered like any call, and nobody is asked.
func TestDiscover(t *testing.T) {
	reg := prometheus.NewRegistry()
	f := start(t, func(c *edge.Config) { c.Registerer = reg })
	refused := func(id int, message string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32602,"message":%q}}`, id, message)
	}
	const tooMany, nonArray = "too many arguments, want at most 0", "non-array args"
	conversations := []struct{ name, message, want string }{
		{"alone", discover(1, ""), discovered(1)},
		{"no parameters", discover(2, `,"params":[]`), discovered(2)},
		{"null", discover(3, `,"params":null`), discovered(3)},
		{"a parameter", discover(4, `,"params":["x"]`), refused(4, tooMany)},
		{"named parameters", discover(5, `,"params":{}`), refused(5, nonArray)},
		{"in a batch", "[" + lookup(6, 6) + "," + discover(7, "") + `,{"jsonrpc":"2.0","method":"rpc.discover"},` + discover(8, `,"params":[1]`) + "]",
			"[" + answer(6, 6) + "," + discovered(7) + "," + refused(8, tooMany) + "]"},
	}
	transports(t, func(t *testing.T, secure bool) {
		c, w := f.dial(t, secure), f.open(t, secure)
		r := bufio.NewReader(c)
		for _, tt := range conversations {
			t.Run(tt.name, func(t *testing.T) {
				io.WriteString(c, post(testKey, tt.message))
				if resp, body := response(t, r); resp.StatusCode != 200 || body != tt.want {
					t.Errorf("HTTP: %s %.200s, want %.200s", resp.Status, body, tt.want)
				}
				send(t, w, tt.message)
				if got := receive(t, w); got != tt.want {
					t.Errorf("WebSocket: %.200s, want %.200s", got, tt.want)
				}
			})
		}
	})
	if got, want := f.resolver.Asked(), 4; got != want { // one in each batch
		t.Errorf("%d questions were asked, want %d", got, want)
	}
	want := `
# HELP ommer_edge_calls_total JSON-RPC calls received, by network and method; invalid requests are other.
# TYPE ommer_edge_calls_total counter
ommer_edge_calls_total{method="eth_getUncleByBlockHashAndIndex",network=""} 0
ommer_edge_calls_total{method="eth_getUncleByBlockNumberAndIndex",network=""} 4
ommer_edge_calls_total{method="other",network=""} 16
ommer_edge_calls_total{method="rpc.discover",network=""} 16
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "ommer_edge_calls_total"); err != nil {
		t.Error(err)
	}
}

// A short call has a long answer: the limits on answers hold for it.
func TestDiscoverIsBounded(t *testing.T) {
	size := len(schema.OpenRPC())
	f := start(t, func(c *edge.Config) {
		c.Limits.Batch, c.Limits.Response, c.Limits.InFlight, c.Limits.Unread = 10, 5*size, 1, 2*size
	})
	var in, out []string
	for i := range 10 {
		in = append(in, discover(i, ""))
		if i < 4 {
			out = append(out, discovered(i))
		} else {
			out = append(out, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32003,"message":"response too large"}}`, i))
		}
	}
	batch, want := "["+strings.Join(in, ",")+"]", "["+strings.Join(out, ",")+"]"
	c, w := f.dial(t, false), f.open(t, false)
	// More than may be unread, on one connection: each is answered all the same.
	const messages = 50
	go io.WriteString(c, strings.Repeat(post(testKey, batch), messages))
	r := bufio.NewReader(c)
	for i := range messages {
		if _, body := response(t, r); body != want {
			t.Fatalf("HTTP, %d: got %d bytes, want %d", i, len(body), len(want))
		}
	}
	for range messages {
		send(t, w, batch)
	}
	for i := range messages {
		if got := receive(t, w); got != want {
			t.Fatalf("WebSocket, %d: got %d bytes, want %d", i, len(got), len(want))
		}
	}
}

// The servers that the document names, with their variables filled in, are those of
// the edge.
func TestOpenRPCServers(t *testing.T) {
	f := start(t, nil)
	var doc struct {
		Servers []struct{ Name, URL string }
	}
	if err := json.Unmarshal(schema.OpenRPC(), &doc); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(f.HTTPS().String())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: f.roots}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var reached []string
	for _, s := range doc.Servers {
		url := strings.NewReplacer("${host}", "localhost:"+port, "${apiKey}", testKey).Replace(s.URL)
		switch {
		case strings.HasPrefix(url, "https:"):
			resp, err := client.Post(url, "application/json", strings.NewReader(lookup(1, 3)))
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(body) != answer(1, 3) {
				t.Errorf("%s: %s %s", s.URL, resp.Status, body)
			}
		case strings.HasPrefix(url, "wss:"):
			c, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{HTTPClient: client})
			if err != nil {
				t.Fatal(err)
			}
			send(t, c, lookup(1, 3))
			if got := receive(t, c); got != answer(1, 3) {
				t.Errorf("%s: %s", s.URL, got)
			}
			c.CloseNow()
		}
		reached = append(reached, s.Name)
	}
	if len(reached) != 2 {
		t.Errorf("servers %q, want HTTPS and WebSocket", reached)
	}
}
