package edge_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/schema"
)

// keyed is an edge whose keys are in a registry.
type keyed struct {
	*fixture
	registry *keys.Registry
	known    *keys.Directory
}

func startKeyed(t *testing.T, change func(*edge.Config)) *keyed {
	t.Helper()
	nats, err := embedded.New(embedded.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nats.Close)
	link, err := bus.Dial(bus.LinkConfig{Name: "edge", URLs: []string{nats.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(link.Close)
	k := &keyed{}
	if k.registry, err = keys.Open(t.Context(), keys.RegistryConfig{Link: link}); err != nil {
		t.Fatal(err)
	}
	var node atomic.Pointer[edge.Node]
	k.known, err = keys.NewDirectory(keys.DirectoryConfig{Link: link, OnChange: func(*keys.Entry) { node.Load().KeysChanged() }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.known.Close)
	k.fixture = start(t, func(c *edge.Config) {
		c.Keys, c.Network = k.known, "sepolia"
		if change != nil {
			change(c)
		}
	})
	node.Store(k.Node)
	return k
}

// create makes a key and waits until the edge knows it.
func (k *keyed) create(t *testing.T, s keys.Settings) (key, id string) {
	t.Helper()
	key, rec, err := k.registry.Create(t.Context(), "x", s)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the key", func() bool { return k.known.Lookup([]byte(key)) != nil })
	return key, rec.ID
}

func (k *keyed) set(t *testing.T, id string, change func(*keys.Settings)) {
	t.Helper()
	if _, err := k.registry.Set(t.Context(), id, change); err != nil {
		t.Fatal(err)
	}
}

// openFrom opens a WebSocket from a page, from none if origin is empty. It returns
// the status of the handshake.
func (k *keyed) openFrom(t *testing.T, secure bool, key, origin string) (*websocket.Conn, int) {
	t.Helper()
	c := k.dial(t, secure) // raw, so that the status of a refusal is seen
	fmt.Fprintf(c, "GET /ws/v3/%s HTTP/1.1\r\nHost: x\r\n%s\r\n", key, originField(origin)+upgradeFields)
	resp, body := response(t, bufio.NewReader(c))
	_ = c.Close()
	if resp.StatusCode != 101 {
		if want := settingsError("null"); resp.StatusCode == 403 && body != want {
			t.Errorf("refused with %s, want %s", body, want)
		}
		return nil, resp.StatusCode
	}
	header := http.Header{}
	if origin != "" {
		header.Set("Origin", origin)
	}
	ws, _, err := websocket.Dial(t.Context(), fmt.Sprintf("ws://%s/ws/v3/%s", k.HTTP(), key), &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		t.Fatal(err)
	}
	ws.SetReadLimit(-1)
	t.Cleanup(func() { ws.CloseNow() })
	return ws, 101
}

const upgradeFields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

func originField(origin string) string {
	if origin == "" {
		return ""
	}
	return "Origin: " + origin + "\r\n"
}

// settingsError is the answer to what the settings of a key refuse.
func settingsError(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"rejected by the API key's settings"}}`, id)
}

func TestOrigins(t *testing.T) {
	k := startKeyed(t, nil)
	free, _ := k.create(t, keys.Settings{})
	bound, _ := k.create(t, keys.Settings{Origins: []string{"https://a.example", "https://*.b.example"}})
	anyone, _ := k.create(t, keys.Settings{Origins: []string{"*"}})
	for _, tt := range []struct {
		name, key, origin string
		allowed           string // the value of Access-Control-Allow-Origin, empty for none
		ok                bool
	}{
		{"no settings, no browser", free, "", "", true},
		{"no settings", free, "https://evil.example", "*", true},
		{"any, no browser", anyone, "", "", true},
		{"any", anyone, "https://evil.example", "*", true},
		{"listed", bound, "https://a.example", "https://a.example", true},
		{"subdomain", bound, "https://x.y.b.example", "https://x.y.b.example", true},
		{"other", bound, "https://evil.example", "*", false},
		{"null", bound, "null", "*", false},
		{"domain of the subdomains", bound, "https://b.example", "*", false},
		{"two, one listed", bound, "https://a.example\r\nOrigin: https://evil.example", "*", false},
		{"no browser", bound, "", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			transports(t, func(t *testing.T, secure bool) {
				c := k.dial(t, secure)
				r := bufio.NewReader(c)
				for _, verb := range []string{"OPTIONS", "POST"} { // a browser's preflight first
					request := strings.Replace(post(tt.key, lookup(1, 7)), "\r\n\r\n", "\r\n"+originField(tt.origin)+"\r\n", 1)
					want, status := answer(1, 7), 200
					if verb == "OPTIONS" {
						want, status = "", 204
						request = fmt.Sprintf("OPTIONS /v3/%s HTTP/1.1\r\nHost: x\r\n%sAccess-Control-Request-Method: POST\r\n\r\n", tt.key, originField(tt.origin))
					}
					if !tt.ok {
						want, status = settingsError("null"), 403
					}
					io.WriteString(c, request)
					resp, body := response(t, r)
					if resp.StatusCode != status || body != want {
						t.Errorf("%s: %s %s, want %d %s", verb, resp.Status, body, status, want)
					}
					allowed, vary := tt.allowed, ""
					if verb == "OPTIONS" && tt.ok && tt.origin == "" {
						allowed = "*" // whoever asks what may be done is told all of it
					}
					if allowed != "" {
						vary = "Origin"
					}
					if got := resp.Header.Values("Access-Control-Allow-Origin"); strings.Join(got, "|") != allowed || resp.Header.Get("Vary") != vary {
						t.Errorf("%s: allowed origin %q, Vary %q, want %q", verb, got, resp.Header.Get("Vary"), allowed)
					}
					if got := resp.Header.Get("Access-Control-Allow-Methods"); (got != "") != (verb == "OPTIONS" && tt.ok) {
						t.Errorf("%s: allowed methods %q", verb, got)
					}
				}
				if _, status := k.openFrom(t, secure, tt.key, tt.origin); status != map[bool]int{true: 101, false: 403}[tt.ok] && !strings.Contains(tt.origin, "\r\n") {
					t.Errorf("the WebSocket's handshake is answered with %d", status)
				}
			})
		})
	}
}

func TestNetworks(t *testing.T) {
	registry := prometheus.NewRegistry()
	k := startKeyed(t, func(c *edge.Config) { c.Registerer = registry })
	here, _ := k.create(t, keys.Settings{Networks: []string{"mainnet", "sepolia"}})
	elsewhere, _ := k.create(t, keys.Settings{Networks: []string{"mainnet"}})
	transports(t, func(t *testing.T, secure bool) {
		c := k.dial(t, secure)
		r := bufio.NewReader(c)
		for _, tt := range []struct {
			key, body string
			status    int
		}{{here, answer(1, 1), 200}, {elsewhere, settingsError("null"), 403}, {here, answer(1, 1), 200}} {
			io.WriteString(c, post(tt.key, lookup(1, 1)))
			if resp, body := response(t, r); resp.StatusCode != tt.status || body != tt.body {
				t.Errorf("%s %s, want %d %s", resp.Status, body, tt.status, tt.body)
			}
		}
		if _, status := k.openFrom(t, secure, elsewhere, ""); status != 403 {
			t.Errorf("WebSocket: %d, want 403", status)
		}
		if _, status := k.openFrom(t, secure, here, ""); status != 101 {
			t.Errorf("WebSocket: %d, want 101", status)
		}
	})
	wantRejections(t, registry, 0, 4, 0, 0)
}

// wantRejections compares what was counted.
func wantRejections(t *testing.T, from prometheus.Gatherer, method, network, origin, rate int) {
	t.Helper()
	if err := testutil.GatherAndCompare(from, strings.NewReader(fmt.Sprintf(`
# HELP ommer_edge_settings_rejections_total What the settings of its key have refused: requests and messages by origin, network or rate, calls by method, handshakes by max-conns, the edge's own limit included.
# TYPE ommer_edge_settings_rejections_total counter
ommer_edge_settings_rejections_total{setting="max-conns"} 0
ommer_edge_settings_rejections_total{setting="method"} %d
ommer_edge_settings_rejections_total{setting="network"} %d
ommer_edge_settings_rejections_total{setting="origin"} %d
ommer_edge_settings_rejections_total{setting="rate"} %d
`, method, network, origin, rate)), "ommer_edge_settings_rejections_total"); err != nil {
		t.Error(err)
	}
}

func TestMethods(t *testing.T) {
	registry := prometheus.NewRegistry()
	k := startKeyed(t, func(c *edge.Config) { c.Registerer = registry })
	key, id := k.create(t, keys.Settings{Methods: []string{schema.UncleByNumber.String()}})
	const byHash = `{"jsonrpc":"2.0","id":"h","method":"eth_getUncleByBlockHashAndIndex","params":["nonsense"]}`
	const unknown = `{"jsonrpc":"2.0","id":"u","method":"eth_call"}`
	const notFound = `{"jsonrpc":"2.0","id":"u","error":{"code":-32601,"message":"the method eth_call does not exist/is not available"}}`
	messages := []struct {
		name, sent, want string
		status           int // on HTTP
	}{
		{"allowed", lookup(1, 1), answer(1, 1), 200},
		{"not allowed", byHash, settingsError(`"h"`), 403},
		{"unknown", unknown, notFound, 200},
		{"batch", "[" + byHash + "," + lookup(2, 2) + "," + unknown + "]", "[" + settingsError(`"h"`) + "," + answer(2, 2) + "," + notFound + "]", 200},
		{"batch of one", "[" + byHash + "]", "[" + settingsError(`"h"`) + "]", 200},
		{"notification", strings.Replace(byHash, `"id":"h",`, "", 1), "", 200},
	}
	transports(t, func(t *testing.T, secure bool) {
		c := k.dial(t, secure)
		r := bufio.NewReader(c)
		for _, m := range messages {
			io.WriteString(c, post(key, m.sent))
			if resp, body := response(t, r); resp.StatusCode != m.status || body != m.want {
				t.Errorf("%s: %s %s, want %d %s", m.name, resp.Status, body, m.status, m.want)
			}
		}
	})
	ws, _ := k.openFrom(t, false, key, "")
	for _, m := range messages {
		send(t, ws, m.sent)
		if m.want == "" {
			continue
		}
		if got := receive(t, ws); got != m.want {
			t.Errorf("%s: %s, want %s", m.name, got, m.want)
		}
	}
	wantRejections(t, registry, 9, 0, 0, 0)

	// What is open feels a change.
	k.set(t, id, func(s *keys.Settings) { s.Methods = nil })
	eventually(t, "the method to be allowed", func() bool {
		send(t, ws, byHash)
		return strings.Contains(receive(t, ws), "-32602")
	})
}

// batchOf is a batch that is paid for no sooner than a test ends.
func batchOf(n int) string {
	return "[" + strings.Repeat(lookup(1, 1)+",", n-1) + lookup(1, 1) + "]"
}

var overRate = regexp.MustCompile(`"error":\{"code":-32005,"message":"rate limit exceeded","data":\{"allowed_rps":1,"backoff_seconds":([0-9]+)\}\}`)

// wantOverRate checks an answer with the error for the rate in the place of %, and
// returns its backoff.
func wantOverRate(t *testing.T, got, want string) int {
	t.Helper()
	backoff := 0
	if m := overRate.FindStringSubmatch(got); m != nil {
		backoff, _ = strconv.Atoi(m[1])
	}
	if backoff < 900 || backoff > 1000 {
		t.Errorf("%s: backoff_seconds %d, want what a thousand calls take", got, backoff)
	}
	if got = overRate.ReplaceAllString(got, "%"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	return backoff
}

func TestRate(t *testing.T) {
	k := startKeyed(t, func(c *edge.Config) { c.Limits.Body = 200_000 })
	transports(t, func(t *testing.T, secure bool) {
		key, id := k.create(t, keys.Settings{Rate: 1, Burst: 3})
		c := k.dial(t, secure)
		r := bufio.NewReader(c)
		ask := func(body string) (*http.Response, string) {
			t.Helper()
			io.WriteString(c, post(key, body))
			return response(t, r)
		}
		// Two calls and a batch use up the burst; the batch is answered as a whole.
		for range 2 {
			if resp, body := ask(lookup(1, 1)); resp.StatusCode != 200 || body != answer(1, 1) {
				t.Fatalf("%s %s", resp.Status, body)
			}
		}
		if resp, body := ask(batchOf(1000)); resp.StatusCode != 200 || strings.Count(body, `"result"`) != 1000 {
			t.Fatalf("%s %.200s", resp.Status, body)
		}
		asked := k.resolver.Asked()
		for name, body := range map[string]string{"a call": lookup(1, 1), "a batch": batchOf(2), "no JSON": "{", "nothing": ""} {
			resp, got := ask(body)
			if resp.StatusCode != 429 || resp.Header.Get("Content-Type") != "application/json" || resp.Close {
				t.Errorf("%s: %s %v", name, resp.Status, resp.Header)
			}
			backoff := wantOverRate(t, got, `{"jsonrpc":"2.0","id":null,%}`)
			if after := resp.Header.Get("Retry-After"); after != strconv.Itoa(backoff) {
				t.Errorf("%s: Retry-After %s, backoff_seconds %d", name, after, backoff)
			}
		}
		if k.resolver.Asked() != asked {
			t.Error("something was looked up")
		}
		// Before the rate come the key, the verb, the header and the size.
		io.WriteString(c, strings.Replace(post(key, "{}"), "application/json", "text/plain", 1))
		if resp, _ := response(t, r); resp.StatusCode != 415 {
			t.Errorf("content type: %s", resp.Status)
		}
		io.WriteString(c, strings.Replace(post(key, ""), "POST", "OPTIONS", 1))
		if resp, _ := response(t, r); resp.StatusCode != 204 {
			t.Errorf("preflight: %s", resp.Status)
		}
		large := k.dial(t, secure)
		io.WriteString(large, post(key, strings.Repeat(" ", 200_001)))
		if resp, _ := response(t, bufio.NewReader(large)); resp.StatusCode != 413 {
			t.Errorf("size: %s", resp.Status)
		}
		// A page may read how long to wait.
		io.WriteString(c, strings.Replace(post(key, lookup(1, 1)), "\r\n\r\n", "\r\nOrigin: https://a.example\r\n\r\n", 1))
		if resp, _ := response(t, r); resp.StatusCode != 429 || resp.Header.Get("Access-Control-Allow-Origin") != "*" || resp.Header.Get("Access-Control-Expose-Headers") != "Retry-After" {
			t.Errorf("%s %v", resp.Status, resp.Header)
		}
		// Another rate begins without debts, on the same connection.
		k.set(t, id, func(s *keys.Settings) { *s = keys.Settings{} })
		eventually(t, "the rate to be lifted", func() bool { resp, _ := ask(lookup(1, 1)); return resp.StatusCode == 200 })
	})
}

func TestRateOnWebSocket(t *testing.T) {
	registry := prometheus.NewRegistry()
	k := startKeyed(t, func(c *edge.Config) { c.Registerer = registry })
	key, id := k.create(t, keys.Settings{Rate: 1})
	c, _ := k.openFrom(t, false, key, "")
	send(t, c, batchOf(1000))
	if got := receive(t, c); strings.Count(got, `"result"`) != 1000 {
		t.Fatalf("%.200s", got)
	}
	asked := k.resolver.Asked()
	notification := strings.Replace(lookup(1, 1), `"id":1,`, "", 1)
	for _, m := range []struct{ name, sent, want string }{
		{"call", lookup(7, 1), `{"jsonrpc":"2.0","id":7,%}`},
		{"batch", "[" + lookup(7, 1) + "," + notification + "," + lookup(8, 1) + "]", `[{"jsonrpc":"2.0","id":7,%},{"jsonrpc":"2.0","id":8,%}]`},
		{"no request", `{"id":5}`, `{"jsonrpc":"2.0","id":5,%}`},
		{"unknown method", `{"jsonrpc":"2.0","id":5,"method":"eth_nope"}`, `{"jsonrpc":"2.0","id":5,%}`},
		{"no JSON", "{", `{"jsonrpc":"2.0","id":null,%}`},
		{"empty batch", "[]", `{"jsonrpc":"2.0","id":null,%}`},
		{"notification", notification, ""},
		{"batch of notifications", "[" + notification + "]", ""},
		{"empty", "", ""},
		{"last", lookup(9, 1), `{"jsonrpc":"2.0","id":9,%}`}, // those without an answer were silent
	} {
		send(t, c, m.sent)
		if m.want != "" {
			wantOverRate(t, receive(t, c), m.want)
		}
	}
	if k.resolver.Asked() != asked {
		t.Error("something was looked up")
	}
	wantRejections(t, registry, 0, 0, 0, 10)
	k.set(t, id, func(s *keys.Settings) { s.Rate = 0 })
	eventually(t, "the rate to be lifted", func() bool {
		send(t, c, lookup(1, 1))
		return receive(t, c) == answer(1, 1)
	})
}

// TestWebSocketsFollowSettings: one that could not be opened any more is closed, the
// others of the key stay.
func TestWebSocketsFollowSettings(t *testing.T) {
	k := startKeyed(t, nil)
	key, id := k.create(t, keys.Settings{})
	a, _ := k.openFrom(t, false, key, "https://a.example")
	b, _ := k.openFrom(t, false, key, "https://b.example")
	none, _ := k.openFrom(t, false, key, "")
	k.set(t, id, func(s *keys.Settings) { s.Origins = []string{"https://a.example"} })
	for _, c := range []*websocket.Conn{b, none} {
		if got := receiveClose(t, c); got != 4403 {
			t.Errorf("closed with %v, want 4403", got)
		}
	}
	send(t, a, lookup(1, 1))
	if got := receive(t, a); got != answer(1, 1) {
		t.Error(got)
	}
	k.set(t, id, func(s *keys.Settings) { s.Networks = []string{"mainnet"} })
	if got := receiveClose(t, a); got != 4403 {
		t.Errorf("closed with %v, want 4403", got)
	}
	k.set(t, id, func(s *keys.Settings) { *s = keys.Settings{} })
	var c *websocket.Conn
	eventually(t, "the key to be good again", func() bool { c, _ = k.openFrom(t, false, key, ""); return c != nil })
	if _, err := k.registry.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if got := receiveClose(t, c); got != 4401 {
		t.Errorf("closed with %v, want 4401", got)
	}
}

// TestRevokedKeyShowsNoSettings: whoever asks with a key that is not good learns the
// same of all of them, to the byte.
func TestRevokedKeyShowsNoSettings(t *testing.T) {
	k := startKeyed(t, nil)
	key, id := k.create(t, keys.Settings{Rate: 1, Origins: []string{"https://a.example"}, Networks: []string{"mainnet"}})
	if _, err := k.registry.Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the revocation", func() bool { return k.known.Lookup([]byte(key)) == nil })
	date := regexp.MustCompile(`Date: [^\r]*`)
	for _, origin := range []string{"", "https://a.example", "https://b.example"} {
		var got [2]string
		for i, tried := range []string{key, keys.New()} {
			c := k.dial(t, false)
			io.WriteString(c, strings.Replace(post(tried, lookup(1, 1)), "\r\n\r\n", "\r\nConnection: close\r\n"+originField(origin)+"\r\n", 1))
			raw, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			got[i] = date.ReplaceAllString(string(raw), "")
		}
		if got[0] != got[1] || !strings.HasPrefix(got[0], "HTTP/1.1 401 ") {
			t.Errorf("origin %q: revoked %q, unknown %q", origin, got[0], got[1])
		}
	}
}

// TestSettingsAllocateNothing: a call under a key with settings costs no more
// allocations than one under a key without, answer to a page included.
func TestSettingsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	k := startKeyed(t, nil)
	free, _ := k.create(t, keys.Settings{})
	bound, _ := k.create(t, keys.Settings{
		Rate: keys.MaxRate, Origins: []string{"https://b.example", "https://a.example"},
		Networks: []string{"sepolia"}, Methods: []string{schema.UncleByNumber.String()},
	})
	cost := func(key string) float64 {
		c := k.dial(t, false)
		request := []byte(strings.Replace(post(key, lookup(1, 1)), "\r\n\r\n", "\r\nOrigin: https://a.example\r\n\r\n", 1))
		reply := make([]byte, 4096)
		return testing.AllocsPerRun(2000, func() {
			if _, err := c.Write(request); err != nil {
				t.Fatal(err)
			}
			if n, err := c.Read(reply); err != nil || !strings.HasSuffix(string(reply[:n]), "}") || string(reply[9:12]) != "200" {
				t.Fatalf("%q %v", reply[:n], err)
			}
		})
	}
	// AllocsPerRun rounds down: what others in the process allocate is far below one
	// for each call.
	without, with := cost(free), cost(bound)
	t.Logf("allocations for each request: %v without settings, %v with", without, with)
	if with > without {
		t.Errorf("settings cost %v allocations for each request", with-without)
	}
}
