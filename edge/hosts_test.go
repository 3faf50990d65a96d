package edge_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/schematest"
)

// withNetworks makes an edge one for three networks: block 1 of each has an uncle that is
// its name.
func withNetworks(t *testing.T) func(*edge.Config) {
	t.Helper()
	answers := func(name string) *schematest.Fixed {
		r := schematest.NewFixed(map[schema.Question]string{{Block: schema.Number(1)}: `"` + name + `"`})
		t.Cleanup(r.Stop)
		return r
	}
	return func(c *edge.Config) {
		c.Network, c.Resolver = "first", answers("first")
		c.Others = []edge.Network{
			{Name: "second", Hosts: []string{"second.example", "2.example"}, Resolver: answers("second")},
			{Name: "third", Hosts: []string{"third.example"}, Resolver: answers("third")},
		}
	}
}

// hosts are Host headers and the network that they are for.
var hosts = []struct{ host, network string }{
	{"second.example", "second"},
	{"SECOND.eXample:8443", "second"},
	{"second.example.", "second"},
	{"second.example.:443", "second"},
	{"second.example:", "second"},
	{"2.example", "second"},
	{"third.example", "third"},
	{"first.example", "first"},
	{"example", "first"},
	{"x.second.example", "first"},
	{"second.example.x", "first"},
	{"second.example..", "first"},
	{"[::1]:443", "first"},
	{"", "first"},
	{strings.Repeat("a", 300), "first"},
}

func uncleOf(network string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":%q}`, network)
}

// The Host header says which network a request is for, each request of a connection
// anew, whatever name TLS was asked for.
func TestHostSelectsNetwork(t *testing.T) {
	f := start(t, withNetworks(t))
	transports(t, func(t *testing.T, secure bool) {
		c := f.dial(t, secure)
		r := bufio.NewReader(c)
		ask := func(request, network string) {
			t.Helper()
			io.WriteString(c, request)
			if resp, body := response(t, r); resp.StatusCode != 200 || body != uncleOf(network) {
				t.Errorf("%s %s, want %s", resp.Status, body, uncleOf(network))
			}
		}
		for _, tt := range hosts {
			ask(strings.Replace(post(testKey, lookup(1, 1)), "Host: localhost", "Host: "+tt.host, 1), tt.network)
		}
		// A host in the target outranks the field, RFC 9112 section 3.2.2.
		ask(strings.Replace(post(testKey, lookup(1, 1)), "POST /", "POST http://Third.example:80/", 1), "third")
		// HTTP/1.0 need not say a host.
		ask(strings.NewReplacer("HTTP/1.1", "HTTP/1.0", "Host: localhost\r\n", "Connection: keep-alive\r\n").Replace(post(testKey, lookup(1, 1))), "first")
		ask(strings.NewReplacer("HTTP/1.1", "HTTP/1.0", "localhost", "third.example").Replace(post(testKey, lookup(1, 1))), "third")
	})
}

func TestHostSelectsNetworkOfWebSocket(t *testing.T) {
	f := start(t, withNetworks(t))
	transports(t, func(t *testing.T, secure bool) {
		url, transport := fmt.Sprintf("ws://%s/ws/v3/%s", f.HTTP(), testKey), &http.Transport{}
		if secure {
			url = fmt.Sprintf("wss://%s/ws/v3/%s", f.HTTPS(), testKey)
			transport.TLSClientConfig = &tls.Config{RootCAs: f.roots, ServerName: "localhost"}
		}
		t.Cleanup(transport.CloseIdleConnections)
		for _, tt := range hosts[:8] {
			c, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{Host: tt.host, HTTPClient: &http.Client{Transport: transport}})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				send(t, c, lookup(1, 1))
				if got := receive(t, c); got != uncleOf(tt.network) {
					t.Errorf("%s: %s, want %s", tt.host, got, uncleOf(tt.network))
				}
			}
			send(t, c, "["+lookup(1, 1)+"]")
			if got := receive(t, c); got != "["+uncleOf(tt.network)+"]" {
				t.Errorf("%s: a batch: %s", tt.host, got)
			}
			c.CloseNow()
		}
	})
}

// A key's list of networks is about the one that the request is for.
func TestKeyOfOneNetwork(t *testing.T) {
	registry := prometheus.NewRegistry()
	k := startKeyed(t, func(c *edge.Config) {
		withNetworks(t)(c)
		c.Registerer = registry
	})
	key, id := k.create(t, keys.Settings{Networks: []string{"second"}})
	transports(t, func(t *testing.T, secure bool) {
		c := k.dial(t, secure)
		r := bufio.NewReader(c)
		for _, tt := range hosts[:8] {
			status, want := 403, settingsError("null")
			if tt.network == "second" {
				status, want = 200, uncleOf("second")
			}
			io.WriteString(c, strings.Replace(post(key, lookup(1, 1)), "Host: localhost", "Host: "+tt.host, 1))
			if resp, body := response(t, r); resp.StatusCode != status || body != want {
				t.Errorf("%s: %s %s, want %d %s", tt.host, resp.Status, body, status, want)
			}
		}
	})
	open := func(host string) (*websocket.Conn, error) {
		c, _, err := websocket.Dial(t.Context(), fmt.Sprintf("ws://%s/ws/v3/%s", k.HTTP(), key), &websocket.DialOptions{Host: host})
		return c, err
	}
	if _, err := open("third.example"); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("the key opens a WebSocket on another network: %v", err)
	}
	c, err := open("2.example")
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	send(t, c, lookup(1, 1))
	if got := receive(t, c); got != uncleOf("second") {
		t.Error(got)
	}
	k.set(t, id, func(s *keys.Settings) { s.Networks = []string{"first", "third"} })
	if code := receiveClose(t, c); code != 4403 {
		t.Errorf("closed with %d when the key is for other networks, want 4403", code)
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP ommer_edge_calls_total JSON-RPC calls received, by network and method; invalid requests are other.
# TYPE ommer_edge_calls_total counter
`+series("first", 0)+series("second", 13)+series("third", 0)), "ommer_edge_calls_total"); err != nil {
		t.Error(err)
	}
}

// series are those of a network that was asked for blocks by number.
func series(network string, byNumber int) string {
	return fmt.Sprintf(`ommer_edge_calls_total{method="eth_getUncleByBlockHashAndIndex",network=%[1]q} 0
ommer_edge_calls_total{method="eth_getUncleByBlockNumberAndIndex",network=%[1]q} %[2]d
ommer_edge_calls_total{method="other",network=%[1]q} 0
ommer_edge_calls_total{method="rpc.discover",network=%[1]q} 0
`, network, byNumber)
}
