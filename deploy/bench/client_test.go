package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// answering is a server that answers over HTTP and WebSocket with what answer says.
func answering(t *testing.T, secure bool, answer func(question string) string) endpoint {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			body, err := io.ReadAll(r.Body)
			if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s of %q, %v", r.Method, r.Header.Get("Content-Type"), err)
			}
			_, _ = io.WriteString(w, answer(string(body)))
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
			if err := c.Write(r.Context(), websocket.MessageText, []byte(answer(string(body)))); err != nil {
				return
			}
		}
	}))
	e := endpoint{Path: "/v3/key"}
	if secure {
		s.StartTLS()
		e.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	e.Addr = s.Listener.Addr().String()
	return e
}

// dialerTo is a dialer that trusts the test server, whose certificate has a name of
// its own.
func dialerTo(t *testing.T, e endpoint, qs []question) *dialer {
	t.Helper()
	d, err := newDialer(e, qs)
	if err != nil {
		t.Fatal(err)
	}
	if d.tls != nil {
		d.tls.ServerName = "example.com"
	}
	return d
}

func inAMinute() time.Time { return time.Now().Add(time.Minute) }

// Each kind of client brings questions and answers of any size through a server that
// others wrote.
func TestClients(t *testing.T) {
	qs := []question{{Body: "small"}, {Body: strings.Repeat("x", 125)}, {Body: strings.Repeat("y", 126)}, {Body: strings.Repeat("z", 60_000)}}
	for _, secure := range []bool{false, true} {
		for _, ws := range []bool{false, true} {
			t.Run(fmt.Sprintf("tls=%v,ws=%v", secure, ws), func(t *testing.T) {
				e := answering(t, secure, func(q string) string {
					if !ws { // net/http tells the length of small answers alone
						return "answer to " + q[:min(len(q), 200)]
					}
					return strings.Repeat("answer to "+q, 2)
				})
				e.WS = ws
				c, err := dialerTo(t, e, qs).dial(t.Context(), inAMinute())
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					for i, q := range qs {
						want := strings.Repeat("answer to "+q.Body, 2)
						if !ws {
							want = "answer to " + q.Body[:min(len(q.Body), 200)]
						}
						if got, err := c.ask(i); err != nil || string(got) != want {
							t.Fatalf("question of %d bytes: %d bytes, %v, want %d", len(q.Body), len(got), err, len(want))
						}
					}
				}
				if err := c.close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestParseResponse(t *testing.T) {
	const good = "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Length: 5\r\nX: y\r\n\r\nhello"
	for n := range len(good) {
		if _, size, err := parseResponse([]byte(good[:n])); err != nil || size != 0 {
			t.Fatalf("of %d bytes: size %d, %v", n, size, err)
		}
	}
	for _, more := range []string{"", "HTTP/1.1 200 OK\r\n"} {
		body, size, err := parseResponse([]byte(good + more))
		if string(body) != "hello" || size != len(good) || err != nil {
			t.Errorf("got %q, %d, %v", body, size, err)
		}
	}
	for name, text := range map[string]string{
		"refused":         "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno",
		"no length":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"negative length": "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"huge length":     "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
		"length in body":  "HTTP/1.1 200 OK\r\n\r\n\r\nContent-Length: 1\r\n",
		"not HTTP":        "SSH-2.0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := parseResponse([]byte(text)); !errors.Is(err, errResponse) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestParseFrame(t *testing.T) {
	for _, payload := range []string{"", "x", strings.Repeat("a", 125), strings.Repeat("b", 126), strings.Repeat("c", 1<<16)} {
		frame := []byte{finBit | opText}
		switch n := len(payload); {
		case n < 126:
			frame = append(frame, byte(n))
		case n < 1<<16:
			frame = append(frame, 126, byte(n>>8), byte(n))
		default:
			frame = append(frame, 127, 0, 0, 0, 0, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
		}
		frame = append(frame, payload...)
		for n := range len(frame) {
			if _, _, size, err := parseFrame(frame[:n]); size != 0 || err != nil {
				t.Fatalf("%d of %d bytes: size %d, %v", n, len(frame), size, err)
			}
		}
		op, got, size, err := parseFrame(append(frame, 0x81))
		if op != opText || string(got) != payload || size != len(frame) || err != nil {
			t.Errorf("payload of %d bytes: op %d, %d bytes, size %d, %v", len(payload), op, len(got), size, err)
		}
	}
	for name, frame := range map[string][]byte{
		"close":    {0x88, 2, 3, 0xe8},
		"fragment": {0x01, 1, 'x'},
		"masked":   {0x81, 0x81, 0, 0, 0, 0, 'x'},
		"reserved": {0xC1, 1, 'x'},
		"huge":     {0x81, 127, 0xff, 0, 0, 0, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, _, err := parseFrame(frame); !errors.Is(err, errFrame) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A ping that comes before the answer is answered and does not count as one.
func TestPingBeforeAnswer(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	c := &wsClient{conn: near, requests: [][]byte{appendFrame(nil, opText, []byte("?"))}, buf: make([]byte, 8)}
	ponged := make(chan error, 1)
	go func() {
		err := func() error {
			b := make([]byte, len(c.requests[0]))
			if _, err := io.ReadFull(far, b); err != nil {
				return err
			}
			if _, err := far.Write([]byte{finBit | opPing, 2, 'h', 'i', finBit | opText, 3, 'y'}); err != nil {
				return err
			}
			want := appendFrame(nil, opPong, []byte("hi"))
			got := make([]byte, len(want))
			if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, want) {
				return fmt.Errorf("%x, %w, want %x", got, err, want)
			}
			_, err := far.Write([]byte("es"))
			return err
		}()
		ponged <- err
	}()
	if got, err := c.ask(0); err != nil || string(got) != "yes" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := <-ponged; err != nil {
		t.Error(err)
	}
	if err := c.close(); err != nil {
		t.Error(err)
	}
}

// One connection that fails ends the opening, and none is left open.
func TestDialAllFails(t *testing.T) {
	e := answering(t, false, func(string) string { return "no" })
	bad := errors.New("bad")
	opened := make(chan client, 100)
	d := dialerTo(t, e, []question{{Body: "?"}})
	clients, err := d.dialAll(t.Context(), cap(opened), inAMinute(), func(c client) error {
		if opened <- c; len(opened) > 5 {
			return bad
		}
		return nil
	})
	if !errors.Is(err, bad) || clients != nil {
		t.Errorf("got %d clients, %v", len(clients), err)
	}
	close(opened)
	for c := range opened {
		if _, err := c.ask(0); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a connection was left open: %v", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.dialAll(ctx, 10, inAMinute(), d.try); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
