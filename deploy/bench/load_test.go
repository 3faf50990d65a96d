package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/ommer/ommer/deploy/load"
)

// answering is a server that answers over HTTP and WebSocket with what answer says of
// the parameters.
func answering(t *testing.T, answer func(params string) string) endpoint {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			body, _ := io.ReadAll(r.Body)
			_, _ = w.Write(reply(t, body, answer))
			return
		}
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.CloseNow()
		for {
			_, body, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), websocket.MessageText, reply(t, body, answer)) != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	return endpoint{Addr: s.Listener.Addr().String(), Path: "/v3/key"}
}

// reply answers a call.
func reply(t *testing.T, body []byte, answer func(params string) string) []byte {
	var call struct{ ID, Params json.RawMessage }
	if err := json.Unmarshal(body, &call); err != nil {
		t.Errorf("%s: %v", body, err)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, call.ID, answer(string(call.Params)))
}

// asked are questions with answers that a test can give.
func asked(n int) (qs []question, answer func(string) string) {
	hashes := map[string]string{}
	for i := range n {
		q := question{Method: "m", Params: fmt.Sprintf("[%d]", i), Hash: fmt.Sprintf("0x%064x", i)}
		qs = append(qs, q)
		hashes[q.Params] = q.Hash
	}
	return qs, func(params string) string { return `{"hash":"` + hashes[params] + `"}` }
}

func dialerTo(t *testing.T, e endpoint, qs []question) *load.Dialer {
	t.Helper()
	d, err := newDialer(e, qs)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestLoad(t *testing.T) {
	qs, answer := asked(7)
	var served atomic.Int64
	e := answering(t, func(params string) string {
		served.Add(1)
		return answer(params)
	})
	readings := []cpu{{Edge: time.Second, NATS: 2, Load: 5}, {Edge: 3 * time.Second, NATS: 4, Worker: 6, Geth: 8, Load: 10}}
	const duration = 100 * time.Millisecond
	c, err := measure(t.Context(), dialerTo(t, e, qs), 5, duration, func() (c cpu, err error) {
		c, readings = readings[0], readings[1:]
		return c, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if c.Requests == 0 || int64(c.Requests) >= served.Load() {
		t.Errorf("counted %d of %d: what warms up must not count", c.Requests, served.Load())
	}
	if want := (cpu{Edge: 2 * time.Second, NATS: 2, Worker: 6, Geth: 8, Load: 5}); c.CPU != want {
		t.Errorf("CPU is %+v, want %+v", c.CPU, want)
	}
	if c.Took < duration || c.P50 <= 0 || c.P99 < c.P50 {
		t.Errorf("took %v, p50 %v, p99 %v", c.Took, c.P50, c.P99)
	}
}

func noCPU() (cpu, error) { return cpu{}, nil }

// A single wrong answer among many fails the run.
func TestLoadWrongAnswer(t *testing.T) {
	qs, answer := asked(7)
	var served atomic.Int64
	e := answering(t, func(params string) string {
		if served.Add(1) == 200 {
			params = "[8]" // which has no hash
		}
		return answer(params)
	})
	if c, err := measure(t.Context(), dialerTo(t, e, qs), 3, time.Hour, noCPU); !errors.Is(err, errFailed) {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestLoadCanceled(t *testing.T) {
	qs, answer := asked(1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e := answering(t, func(params string) string {
		cancel()
		return answer(params)
	})
	if c, err := measure(ctx, dialerTo(t, e, qs), 3, time.Hour, noCPU); !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v", c, err)
	}
}

// The holding process says when every connection had its exchange, and ends with
// its input.
func TestHold(t *testing.T) {
	qs, answer := asked(2)
	var served atomic.Int64
	e := answering(t, func(q string) string {
		served.Add(1)
		return answer(q)
	})
	e.WS = true
	what, err := json.Marshal(holding{Endpoint: e, Questions: qs, Conns: 40})
	if err != nil {
		t.Fatal(err)
	}
	in, toHolder := io.Pipe()
	fromHolder, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := hold(in, out)
		_ = out.Close()
		ended <- err
	}()
	if _, err := toHolder.Write(what); err != nil {
		t.Fatal(err)
	}
	var said held
	if err := json.NewDecoder(fromHolder).Decode(&said); err != nil || !said.All || said.Open != 40 {
		t.Fatalf("%+v, %v", said, err)
	}
	if got := served.Load(); got != 40 {
		t.Errorf("%d exchanges, want 40", got)
	}
	select {
	case err := <-ended:
		t.Fatalf("ended before its input: %v", err)
	default:
	}
	if err := toHolder.Close(); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, fromHolder)
	if err := <-ended; err != nil {
		t.Error(err)
	}

	qs[0].Hash = qs[1].Hash
	what, _ = json.Marshal(holding{Endpoint: e, Questions: qs, Conns: 1})
	if err := hold(strings.NewReader(string(what)), io.Discard); kindOf(err) != load.KindWrong {
		t.Errorf("with a wrong answer: %v", err)
	}
}

func kindOf(err error) string {
	if f, ok := errors.AsType[*load.Failure](err); ok {
		return f.Kind
	}
	return fmt.Sprint(err)
}
