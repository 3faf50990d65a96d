//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// setKey changes the settings of a key.
func (f *fleet) setKey(key string, settings ...string) {
	f.tb.Helper()
	_, stderr, code := f.keys(append([]string{"set", key}, settings...)...)
	if code != 0 || !strings.Contains(stderr, "Changed key") {
		f.tb.Fatalf("keys set %v: exit code %d, %s", settings, code, stderr)
	}
}

// postFrom asks as a page of that origin does, as a program if it is empty.
func postFrom(ctx context.Context, c *httpCaller, origin string, message []byte) (*http.Response, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(string(message)))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// overRate checks that an answer is the error for a rate of 1, and returns its id
// and the seconds to wait.
func overRate(t *testing.T, raw []byte) (id string, backoff int) {
	t.Helper()
	var r response
	if err := strict(raw, &r); err != nil {
		t.Fatal(err)
	}
	var data struct {
		Rate    int `json:"allowed_rps"`
		Backoff int `json:"backoff_seconds"`
	}
	if r.Error == nil || r.Error.Code != -32005 || r.Error.Message != "rate limit exceeded" || json.Unmarshal(r.Error.Data, &data) != nil || data.Rate != 1 {
		t.Fatalf("got %s, want the error for a rate of 1", raw)
	}
	return string(r.ID), data.Backoff
}

// TestKeySettings restricts a key with the operator's commands and feels each
// restriction over HTTPS and on WebSockets that were open before it.
func TestKeySettings(t *testing.T) {
	_, with, _ := sepolia(t)
	q := question{block: &with[0]}
	f, _ := startFleet(t, startNode(t, "").url, size{edges: 1, workers: 1})
	e := f.edges[0]
	key := f.createKey("limited", "--rate", "1", "--burst", "50")
	https := f.httpCaller(e, true, key)
	eventually(t, promised, "the key to be good", func() error { return ask(t.Context(), https, q) })
	wss := f.mustWS(e, true, key)
	if err := ask(t.Context(), wss, q); err != nil {
		t.Fatal(err)
	}

	t.Run("rate", func(t *testing.T) {
		// A batch of a thousand is answered, and paid for later.
		many := make([]question, 1000)
		for i := range many {
			many[i] = q
		}
		if _, err := askAll(t.Context(), []caller{https}, many, len(many)); err != nil {
			t.Fatal(err)
		}
		resp, body, err := postFrom(t.Context(), https, "", q.appendCall(nil, 7))
		if err != nil {
			t.Fatal(err)
		}
		id, backoff := overRate(t, []byte(body))
		if resp.StatusCode != http.StatusTooManyRequests || id != "null" || backoff < 1 || backoff > 1000 || resp.Header.Get("Retry-After") != strconv.Itoa(backoff) {
			t.Errorf("HTTPS: %s, id %s, backoff_seconds %d, Retry-After %s", resp.Status, id, backoff, resp.Header.Get("Retry-After"))
		}
		raw, err := wss.call(t.Context(), q.appendCall(nil, 7))
		if err != nil {
			t.Fatal(err)
		}
		if id, _ := overRate(t, raw); id != "7" {
			t.Errorf("WSS: id %s, want 7", id)
		}
		stdout, _, _ := f.keys("show", "limited")
		if !strings.Contains(stdout, "1 calls/s on each edge, 50 at once") {
			t.Errorf("show: %s", stdout)
		}

		// Lifted, on what is open.
		f.setKey("limited", "--rate", "")
		eventually(t, promised, "the rate to be lifted over HTTPS", func() error { return ask(t.Context(), https, q) })
		eventually(t, promised, "the rate to be lifted over WSS", func() error { return ask(t.Context(), wss, q) })
	})

	rejected := func(c caller) func() error {
		return func() error {
			err := ask(t.Context(), c, q)
			if e, ok := errors.AsType[*statusError](err); ok && e.status == http.StatusForbidden && strings.Contains(e.body, "rejected by the API key's settings") {
				return nil
			}
			if e, ok := errors.AsType[*rpcError](err); ok && e.Code == -32002 && e.Message == "rejected by the API key's settings" {
				return nil
			}
			return fmt.Errorf("got %w, want a rejection", err)
		}
	}
	t.Run("methods", func(t *testing.T) {
		f.setKey("limited", "--methods", "eth_getUncleByBlockHashAndIndex")
		eventually(t, promised, "the method to be refused over HTTPS", rejected(https))
		eventually(t, promised, "the method to be refused over WSS", rejected(wss))
		f.setKey("limited", "--methods", "")
		eventually(t, promised, "the method to be allowed over WSS", func() error { return ask(t.Context(), wss, q) })
	})

	t.Run("connections", func(t *testing.T) {
		f.setKey("limited", "--max-conns", "1")
		eventually(t, promised, "a second WebSocket to be refused", func() error {
			c, err := f.wsCaller(t.Context(), e, true, key)
			if err == nil {
				_ = c.conn.CloseNow()
			}
			if statusOf(err) != http.StatusTooManyRequests {
				return fmt.Errorf("got %w, want status 429", err)
			}
			return nil
		})
		if err := errors.Join(ask(t.Context(), wss, q), ask(t.Context(), https, q)); err != nil {
			t.Errorf("what is open, and HTTPS: %v", err)
		}
		if stdout, _, _ := f.keys("show", "limited"); !strings.Contains(stdout, "1 open on each edge") {
			t.Errorf("show: %s", stdout)
		}
		f.setKey("limited", "--max-conns", "")
		eventually(t, promised, "a second WebSocket", func() error {
			c, err := f.wsCaller(t.Context(), e, true, key)
			if err == nil {
				_ = c.conn.CloseNow()
			}
			return err
		})
	})

	t.Run("origins", func(t *testing.T) {
		f.setKey("limited", "--origins", "https://a.example,https://*.b.example")
		ctx, cancel := context.WithTimeout(t.Context(), promised)
		defer cancel()
		wantClose(ctx, t, "a WebSocket without an origin", wss, websocket.StatusCode(4403))
		if err := rejected(https)(); err != nil {
			t.Error(err)
		}
		if _, err := f.wsCaller(t.Context(), e, true, key); statusOf(err) != http.StatusForbidden {
			t.Errorf("WSS: got %v, want status 403", err)
		}
		for origin, want := range map[string]int{"https://a.example": 200, "https://x.b.example": 200, "https://b.example": 403} {
			resp, body, err := postFrom(t.Context(), https, origin, q.appendCall(nil, 1))
			if err != nil || resp.StatusCode != want {
				t.Errorf("%s: %v %v %s, want %d", origin, err, resp, body, want)
			} else if got := resp.Header.Get("Access-Control-Allow-Origin"); want == 200 && got != origin {
				t.Errorf("%s: Access-Control-Allow-Origin is %s", origin, got)
			}
		}
		f.setKey("limited", "--origins", "")
		eventually(t, promised, "every origin to be allowed", func() error { return ask(t.Context(), https, q) })
	})

	t.Run("networks", func(t *testing.T) {
		wss := f.mustWS(e, true, key)
		f.setKey("limited", "--networks", "mainnet,"+network)
		f.setKey("limited", "--networks", "mainnet")
		ctx, cancel := context.WithTimeout(t.Context(), promised)
		defer cancel()
		wantClose(ctx, t, "a WebSocket of another network", wss, websocket.StatusCode(4403))
		if err := rejected(https)(); err != nil {
			t.Error(err)
		}
	})

	for name, log := range f.logs() {
		if strings.Contains(log, key) {
			t.Errorf("the log of %s has the key", name)
		}
	}
	for _, setting := range []string{"rate", "method", "origin", "network", "max-conns"} {
		if n := e.mustMetric(t, `ommer_edge_settings_rejections_total{setting="`+setting+`"}`); n < 1 {
			t.Errorf("rejections by %s: %v", setting, n)
		}
	}
}
