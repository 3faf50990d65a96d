package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// An enemy is sent against a server that says what it is told to.
func meeting(t *testing.T, a *attack, says func(c *net.TCPConn)) result {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Read(make([]byte, 1000))
		says(c.(*net.TCPConn))
	}()
	if a.conduct == nil {
		a.conduct = func(e *enemy) { e.send([]byte("hello")) }
	}
	army := army{attack: a, job: job{Site: site{HTTP: l.Addr().String()}, Sources: []string{"127.0.0.2"}, Enemies: 1, Lasts: 50 * time.Millisecond}}
	army.march(t.Context())
	_ = l.Close()
	<-served
	return army.report.result()
}

func TestEnds(t *testing.T) {
	say := func(text string) func(*net.TCPConn) {
		return func(c *net.TCPConn) { _, _ = io.WriteString(c, text) }
	}
	const upgraded = "HTTP/1.1 101 Switching Protocols\r\n\r\n"
	for name, c := range map[string]struct {
		attack attack
		says   func(*net.TCPConn)
		end    string
		answer string
	}{
		"closed":    {says: say(""), end: endClosed},
		"in answer": {says: say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"), end: endClosed},
		"reset":     {says: func(c *net.TCPConn) { _ = c.SetLinger(0) }, end: endReset},
		"refused":   {says: say("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno"), end: "408"},
		"answered":  {says: say("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno"), end: endClosed, answer: "401"},
		"error": {
			says: say("HTTP/1.1 200 OK\r\nContent-Length: 53\r\n\r\n" + `{"jsonrpc":"2.0","id":1,"error":{"code":-32700,"m":1}}`[:53]),
			end:  endClosed, answer: "200 -32700",
		},
		"continue": {says: say("HTTP/1.1 100 Continue\r\n\r\n"), end: endClosed, answer: "100"},
		"message":  {says: say(upgraded + "\x81\x02[]"), end: endClosed, answer: "message"},
		"pong":     {says: say(upgraded + "\x8A\x7E\x00\x03abc"), end: endClosed, answer: "pong"},
		"code":     {says: say(upgraded + "\x89\x00\x88\x02\x03\xF0"), end: "close 1008"},
		"no code":  {says: say(upgraded + "\x88\x00"), end: "close"},
		"left":     {attack: attack{conduct: (*enemy).reset}, says: func(*net.TCPConn) {}, end: endLeft},
		"open": {
			attack: attack{ends: []string{endOpen}},
			says:   func(c *net.TCPConn) { _, _ = c.Read(make([]byte, 1)) }, end: endOpen,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := meeting(t, &c.attack, c.says)
			if want := map[string]int{c.end: 1}; !maps.Equal(got.Ends, want) {
				t.Errorf("ends %v, want %v", got.Ends, want)
			}
			want := map[string]int{}
			if c.answer != "" {
				want[c.answer] = 1
			}
			if !maps.Equal(got.Answers, want) {
				t.Errorf("answers %v, want %v", got.Answers, want)
			}
		})
	}
}

func TestFrames(t *testing.T) {
	for _, n := range []int{0, 1, 125, 126, 0xFFFF, 0x10000} {
		payload := bytes.Repeat([]byte("p"), n)
		b := frame(opText|fin, payload)
		mask := len(b) - n - 4
		server := append(bytes.Clone(b[:mask]), payload...) // as a server sends it
		server[1] &^= 0x80
		op, got, err := readFrame(bufio.NewReader(bytes.NewReader(append(server, 0x89, 0))))
		if err != nil || op != opText || !bytes.Equal(got, payload[:min(n, lookAt)]) {
			t.Errorf("%d bytes: %v, %d bytes, %v", n, op, len(got), err)
		}
	}
}

// The records that are made by hand are held against crypto/tls: a server reads what
// comes after key updates, and gives up when nothing but updates comes.
func TestKeyUpdates(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2000)) }))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	cfg, err := site{CA: ca}.tls()
	if err != nil {
		t.Fatal(err)
	}
	cfg.ServerName = "example.com" // whom the certificate is for
	dial := func() (net.Conn, *sending) {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		keys, err := takeOver(ctx, conn, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return conn, keys
	}
	conn, keys := dial()
	request := keys.record(recordData, []byte("GET / HTTP/1.1\r\n"))
	request = append(request, keys.updates(3)...)
	request = append(request, keys.record(recordData, []byte("Host: a\r\nConnection: close\r\n\r\n"))...)
	if _, err := conn.Write(request); err != nil {
		t.Fatal(err)
	}
	// The answer is under the server's keys: its length tells that it is one.
	if n, err := io.Copy(io.Discard, conn); err != nil || n < 2000 {
		t.Errorf("%d bytes, %v", n, err)
	}
	conn, keys = dial()
	if _, err := conn.Write(keys.updates(17)); err != nil {
		t.Fatal(err)
	}
	if end := endOf(second(io.Copy(io.Discard, conn))); end != endClosed && end != endReset {
		t.Errorf("17 updates in a row: %s", end)
	}
}

func second[T any](_ T, err error) error { return err }

func TestClientHello(t *testing.T) {
	hello := clientHello(&tls.Config{ServerName: "localhost"})
	if len(hello) < 100 || hello[0] != recordHandshake || len(hello) != 5+int(hello[3])<<8+int(hello[4]) || !strings.Contains(string(hello), "localhost") {
		t.Errorf("%d bytes: %.20x", len(hello), hello)
	}
}
