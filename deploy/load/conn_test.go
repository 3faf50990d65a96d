package load_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"github.com/ommer/ommer/deploy/load"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answering is a server that others wrote. It answers with the results that answer
// gives for parameters, over HTTP and WebSocket, single calls and batches.
func answering(t *testing.T, secure bool, answer func(params string) string) load.Endpoint {
	t.Helper()
	reply := func(body []byte) []byte {
		type call struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Params  json.RawMessage `json:"params,omitempty"`
			Result  json.RawMessage `json:"result"`
		}
		var one call
		if json.Unmarshal(body, &one) == nil {
			return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, one.ID, answer(string(one.Params)))
		}
		var list []call
		if err := json.Unmarshal(body, &list); err != nil {
			t.Errorf("%.100s: %v", body, err)
		}
		for i := range list {
			list[i].Result, list[i].Params = json.RawMessage(answer(string(list[i].Params))), nil
		}
		out, err := json.Marshal(list)
		if err != nil {
			t.Error(err)
		}
		return out
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			body, err := io.ReadAll(r.Body)
			if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s of %q, %v", r.Method, r.Header.Get("Content-Type"), err)
			}
			_, _ = w.Write(reply(body))
			return
		}
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(-1)
		for {
			_, body, err := c.Read(r.Context())
			if err != nil {
				return
			}
			if err := c.Write(r.Context(), websocket.MessageText, reply(body)); err != nil {
				return
			}
		}
	}))
	e := load.Endpoint{Path: "/v3/key"}
	if secure {
		s.StartTLS()
		e.TLS, e.CA = true, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	e.Addr = s.Listener.Addr().String()
	return e
}

func newDialer(t *testing.T, c load.DialerConfig) *load.Dialer {
	t.Helper()
	if c.Timeout == 0 {
		c.Timeout = 20 * time.Second
	}
	d, err := load.NewDialer(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// each runs a test over every transport.
func each(t *testing.T, test func(t *testing.T, secure, ws bool)) {
	for _, secure := range []bool{false, true} {
		for _, ws := range []bool{false, true} {
			t.Run(fmt.Sprintf("tls=%v,ws=%v", secure, ws), func(t *testing.T) { test(t, secure, ws) })
		}
	}
}

// Each kind of connection brings questions and answers of any size, single and in
// batches, through a server that others wrote. What net/http sends in chunks is among
// them.
func TestConns(t *testing.T) {
	var qs []load.Question
	for _, n := range []int{0, 1, 10, 100, 3000, 70_000} {
		qs = append(qs, load.Question{Method: "m", Params: `["` + strings.Repeat("x", n) + `"]`})
	}
	each(t, func(t *testing.T, secure, ws bool) {
		e := answering(t, secure, func(params string) string { return `{"hash":"","asked":` + params + `}` })
		e.WS = ws
		for _, batch := range []int{0, 1, 2, 4} {
			d := newDialer(t, load.DialerConfig{Endpoints: []load.Endpoint{e}, Questions: qs, Batch: batch})
			c, err := d.Dial(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				for i := range d.Requests() {
					got, err := c.Ask(i)
					if err != nil {
						t.Fatalf("batch of %d, request %d: %v", batch, i, err)
					}
					if want := `"asked":` + qs[i*max(batch, 1)].Params + `}`; !strings.Contains(string(got), want) {
						t.Fatalf("batch of %d, request %d: %.100s", batch, i, got)
					}
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// One connection that fails ends the opening, and none is left open.
func TestDialAllFails(t *testing.T) {
	e := answering(t, false, func(string) string { return `{"hash":"0x1"}` })
	d := newDialer(t, load.DialerConfig{
		Endpoints: []load.Endpoint{e},
		Questions: []load.Question{{Method: "m", Params: "[]"}, {Method: "m", Params: "[]", Hash: "0x2"}},
	})
	fine := func(*load.Conn) error { return nil }
	conns, err := d.DialAll(t.Context(), 100, fine)
	if kindOf(err) != load.KindWrong || conns != nil {
		t.Errorf("got %d connections, %v", len(conns), err)
	}
	refused := errors.New("not that one")
	if _, err := d.DialAll(t.Context(), 1, func(*load.Conn) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.DialAll(ctx, 10, fine); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func kindOf(err error) string {
	if f, ok := errors.AsType[*load.Failure](err); ok {
		return f.Kind
	}
	return fmt.Sprint(err)
}

// What a server may do wrong is told apart.
func TestFailures(t *testing.T) {
	const good = `{"jsonrpc":"2.0","id":1000000000,"result":{"hash":"0x1"}}`
	length := func(status, body string) string {
		return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
	}
	for _, tt := range []struct{ name, response, want string }{
		{"right", length("200 OK", good), "<nil>"},
		{"members in another order", length("200 OK", `{"id": 1000000000, "result":{"hash":"0x1"}, "jsonrpc":"2.0"}`), "<nil>"},
		{"chunked", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3d\r\n" + good + "    \r\n0\r\n\r\n", "<nil>"},
		{"lower-case field", strings.Replace(length("200 OK", good), "Content-Length", "content-length", 1), "<nil>"},
		{"status", length("429 Too Many Requests", "slow down, key"), "HTTP status 429"},
		{"error", length("200 OK", `{"jsonrpc":"2.0","id":1000000000,"error":{"code":-32005,"message":"limit exceeded"}}`), "JSON-RPC error -32005"},
		{"error of nobody", length("200 OK", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`), "JSON-RPC error -32700"},
		{"another id", length("200 OK", `{"jsonrpc":"2.0","id":1000000001,"result":{"hash":"0x1"}}`), load.KindID},
		{"an id as a string", length("200 OK", `{"jsonrpc":"2.0","id":"1000000000","result":{"hash":"0x1"}}`), load.KindID},
		{"no JSON", length("200 OK", `<html>`), load.KindForm},
		{"cut off", length("200 OK", good[:30]), load.KindForm},
		{"result and error", length("200 OK", `{"jsonrpc":"2.0","id":1000000000,"error":{"code":1},"result":1}`), load.KindForm},
		{"another uncle", length("200 OK", `{"jsonrpc":"2.0","id":1000000000,"result":{"hash":"0x11"}}`), load.KindWrong},
		{"the parent", length("200 OK", `{"jsonrpc":"2.0","id":1000000000,"result":{"parentHash":"0x1"}}`), load.KindWrong},
		{"null", length("200 OK", `{"jsonrpc":"2.0","id":1000000000,"result":null}`), load.KindWrong},
		{"no HTTP", "SSH-2.0-OpenSSH\r\n\r\n", load.KindProtocol},
		{"two responses", length("200 OK", good) + "HTTP/1.1 200 OK\r\n", load.KindProtocol},
		{"closed", "", load.KindClosed},
		{"closed within", length("200 OK", good)[:60], load.KindClosed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := load.Endpoint{Addr: raw(t, tt.response), Path: "/v3/key"}
			d := newDialer(t, load.DialerConfig{Endpoints: []load.Endpoint{e}, Questions: []load.Question{{Method: "m", Params: "[]", Hash: "0x1"}}})
			c, err := d.Dial(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Ask(0)
			if got, want := c.Closed(), tt.want == load.KindProtocol || tt.want == load.KindClosed; got != want {
				t.Errorf("closed: %v, want %v", got, want)
			}
			c.Close()
			if got := kindOf(err); got != tt.want {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			excusable := tt.want == load.KindClosed || strings.HasPrefix(tt.want, "HTTP status") || strings.HasPrefix(tt.want, "JSON-RPC error")
			if f, ok := errors.AsType[*load.Failure](err); ok && f.Wrong() == excusable {
				t.Errorf("wrong: %v, want %v", f.Wrong(), !excusable)
			}
			if err != nil && strings.Contains(err.Error(), "key") {
				t.Errorf("the key is in %q", err)
			}
		})
	}
}

// Without knowing which uncle it should be, an answer is still held to be one, or null.
func TestNeitherNullNorBlock(t *testing.T) {
	for result, want := range map[string]string{
		`null`: "<nil>", `{"hash":"0x1"}`: "<nil>", `{}`: load.KindWrong, `"0x1"`: load.KindWrong, `[]`: load.KindWrong, `["hash"]`: load.KindWrong, `7`: load.KindWrong, `false`: load.KindWrong,
	} {
		e := answering(t, false, func(string) string { return result })
		d := newDialer(t, load.DialerConfig{Endpoints: []load.Endpoint{e}, Questions: []load.Question{{Method: "m", Params: "[]"}}})
		c, err := d.Dial(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Ask(0)
		c.Close()
		if got := kindOf(err); got != want {
			t.Errorf("%s: got %v, want %s", result, err, want)
		}
	}
}

// A batch is checked call by call, and refused as a whole.
func TestBatchFailures(t *testing.T) {
	right := func(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":null}`, id) }
	const first = 1000000000
	for _, tt := range []struct{ name, body, want string }{
		{"right", "[" + right(first) + "," + right(first+1) + "]", "<nil>"},
		{"spaced", "[ " + right(first) + " , " + right(first+1) + " ]", "<nil>"},
		{"exchanged", "[" + right(first+1) + "," + right(first) + "]", load.KindID},
		{"one missing", "[" + right(first) + "]", load.KindForm},
		{"refused", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}`, "JSON-RPC error -32600"},
		{"refused in an array", `[{"jsonrpc":"2.0","id":1000000000,"error":{"code":-32600,"message":"batch too large"}}]`, "JSON-RPC error -32600"},
		{"one error", "[" + right(first) + `,{"jsonrpc":"2.0","id":1000000001,"error":{"code":4444,"message":"gone"}}]`, "JSON-RPC error 4444"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := load.Endpoint{Addr: raw(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(tt.body), tt.body)), Path: "/"}
			d := newDialer(t, load.DialerConfig{Endpoints: []load.Endpoint{e}, Batch: 2, Questions: []load.Question{{Method: "m", Params: "[]"}}})
			c, err := d.Dial(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Ask(0)
			c.Close()
			if got := kindOf(err); got != tt.want {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// Connections that cannot be opened say why.
func TestDialFailures(t *testing.T) {
	refused := raw(t, "")
	secure := answering(t, true, func(string) string { return "null" })
	for _, tt := range []struct {
		name string
		e    load.Endpoint
		want string
	}{
		{"nobody listens", load.Endpoint{Addr: "127.0.0.1:1"}, load.KindRefused},
		{"no TLS", load.Endpoint{Addr: refused, TLS: true}, load.KindTLS},
		{"unknown authority", load.Endpoint{Addr: secure.Addr, TLS: true}, load.KindCertificate},
		{"refused handshake", load.Endpoint{Addr: raw(t, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"), WS: true, Path: "/ws/v3/key"}, "handshake status 401"},
		{"no WebSocket", load.Endpoint{Addr: raw(t, "HTTP/1.1 101 Switching Protocols\r\n\r\n"), WS: true, Path: "/"}, load.KindProtocol},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDialer(t, load.DialerConfig{Endpoints: []load.Endpoint{tt.e}, Questions: []load.Question{{Method: "m", Params: "[]"}}})
			if _, err := d.Dial(t.Context(), 0); kindOf(err) != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}
