package load

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestParseResponse(t *testing.T) {
	const good = "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Length: 5\r\nX: y\r\n\r\nhello"
	for n := range len(good) {
		if _, size, plain := parseResponse([]byte(good[:n])); !plain || size != 0 {
			t.Fatalf("of %d bytes: size %d, plain %v", n, size, plain)
		}
	}
	m, size, plain := parseResponse([]byte(good + "HTTP/1.1 200 OK\r\n"))
	if string(m.body) != "hello" || size != len(good) || !plain || m.last || m.zipped {
		t.Errorf("got %+v, %d, %v", m, size, plain)
	}
	m, _, _ = parseResponse([]byte("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"))
	if !m.last || !m.zipped {
		t.Errorf("got %+v", m)
	}
	for name, text := range map[string]string{ // all left to net/http
		"refused":         "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno",
		"no length":       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"negative length": "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"huge length":     "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
		"length in body":  "HTTP/1.1 200 OK\r\n\r\n\r\nContent-Length: 1\r\n",
		"not HTTP":        "SSH-2.0\r\n\r\n",
	} {
		if _, _, plain := parseResponse([]byte(text)); plain {
			t.Errorf("%s is taken for a plain response", name)
		}
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
			if _, size, err := parseFrame(frame[:n]); size != 0 || err != nil {
				t.Fatalf("%d of %d bytes: size %d, %v", n, len(frame), size, err)
			}
		}
		f, size, err := parseFrame(append(frame, 0x81))
		if f.op != opText || !f.fin || string(f.payload) != payload || size != len(frame) || err != nil {
			t.Errorf("payload of %d bytes: got %+v, size %d, %v", len(payload), f, size, err)
		}
	}
	for name, frame := range map[string][]byte{
		"cut ping":   {0x09, 1, 'x'},
		"masked":     {0x81, 0x81, 0, 0, 0, 0, 'x'},
		"reserved":   {0xC1, 1, 'x'},
		"opcode":     {0x83, 1, 'x'},
		"long close": {0x88, 126, 0, 200},
		"huge":       {0x81, 127, 0xff, 0, 0, 0, 0, 0, 0, 0},
	} {
		if _, _, err := parseFrame(frame); err == nil || broken(err).Kind != KindProtocol {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A ping that comes before the answer is answered and does not count as one; a close
// says its code.
func TestControlFrames(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	c := &wsConn{Conn: near, buf: make([]byte, 8), timeout: time.Minute}
	request := appendFrame(nil, opText, []byte("?"))
	ended := make(chan error, 1)
	go func() {
		defer far.Close()
		expect := func(want []byte) error {
			got := make([]byte, len(want))
			if _, err := io.ReadFull(far, got); err != nil || !bytes.Equal(got, want) {
				return fmt.Errorf("%x, %w, want %x", got, err, want)
			}
			return nil
		}
		ended <- func() error {
			if err := expect(request); err != nil {
				return err
			}
			_, _ = far.Write([]byte{finBit | opPing, 2, 'h', 'i', finBit | opText, 3, 'y'})
			if err := expect(appendFrame(nil, opPong, []byte("hi"))); err != nil {
				return err
			}
			_, _ = far.Write([]byte("es"))
			_, _ = far.Write([]byte{finBit | opClose, 4, 0x03, 0xe9, 'n', 'o'})
			return expect(appendFrame(nil, opClose, []byte{0x03, 0xe9}))
		}()
	}()
	if m, err := c.exchange(request); err != nil || string(m.body) != "yes" {
		t.Errorf("got %q, %v", m.body, err)
	}
	if _, err := c.receive(); err == nil || broken(err).Kind != "closed with 1001" {
		t.Errorf("got %v, want the close", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A message may come in several frames, with a ping between them and a time-out.
func TestFragments(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	c := &wsConn{Conn: near, buf: make([]byte, 8), timeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() {
		defer far.Close()
		_, _ = far.Write([]byte{opText, 2, 'o', 'n', finBit | opPing, 0})
		_, _ = io.ReadFull(far, make([]byte, len(appendFrame(nil, opPong, nil))))
		_, _ = far.Write([]byte{opMore, 0, finBit | opMore, 1, 'e', finBit | opText, 1, '2', opText, 1, '3', opText, 1, '4'})
	})
	for _, want := range []string{"one", "2"} {
		if got, err := c.receive(); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if got, err := c.receive(); err == nil || broken(err).Kind != KindProtocol {
		t.Errorf("got %q, %v, want a message within another one to be refused", got, err)
	}
	near.Close()
	serving.Wait()
	c = &wsConn{Conn: near, buf: []byte{finBit | opMore, 1, 'x'}, have: 3}
	if got, err := c.receive(); err == nil || broken(err).Kind != KindProtocol {
		t.Errorf("got %q, %v, want the end of no message to be refused", got, err)
	}
}

// An answer to a request that was given up is none too many; its second one is.
func TestLost(t *testing.T) {
	var s slot
	for id := range uint64(mostLost + 3) {
		s.id = 100 + id
		s.lose()
	}
	for id := range uint64(mostLost + 3) {
		forgotten := id < 3
		if first, second := s.found(100+id), s.found(100+id); !first || second != forgotten {
			t.Errorf("id %d: %v, %v", id, first, second)
		}
	}
	if s.found(200) {
		t.Error("found what was not lost")
	}
}

// Pings that come together are answered together, so that none is left in the buffer; an
// answer that nobody waits for is a failure.
func TestPong(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	c := &wsConn{Conn: near, buf: make([]byte, 64), timeout: time.Minute}
	got := make([]byte, 2*len(appendFrame(nil, opPong, []byte("1"))))
	ended := make(chan error, 1)
	go func() {
		defer far.Close()
		_, _ = far.Write([]byte{finBit | opPing, 1, '1', finBit | opPing, 1, '2'})
		_, err := io.ReadFull(far, got)
		_, _ = far.Write([]byte{finBit | opText, 1, 'x'})
		ended <- err
	}()
	if err := c.pong(); err != nil {
		t.Error(err)
	}
	if err := c.pong(); err == nil || broken(err).Kind != KindProtocol {
		t.Errorf("got %v, want the answer to be refused", err)
	}
	if err := <-ended; err != nil || !bytes.Equal(got, appendFrame(appendFrame(nil, opPong, []byte("1")), opPong, []byte("2"))) {
		t.Errorf("answered %x, %v", got, err)
	}
}

// Ids are written into what was made beforehand, masked or not.
func TestAppendIDs(t *testing.T) {
	qs, err := newQuestions([]Question{{Method: "m", Params: "[1]"}, {Method: "n", Params: "[2]"}}, 2, false)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"jsonrpc":"2.0","id":1234567899,"method":"m","params":[1]},{"jsonrpc":"2.0","id":1234567900,"method":"n","params":[2]}]`
	r := &qs.requests[0]
	if got := r.http.appendTo(nil, 1234567899, false); string(got) != fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(want), want) {
		t.Errorf("got %s", got)
	}
	if got := r.ws.appendTo([]byte("x"), 1234567899, true); !bytes.Equal(got, append([]byte("x"), appendFrame(nil, opText, []byte(want))...)) {
		t.Errorf("got %q", got)
	}
}

// What follows a question on its line is not ignored.
func TestReadQuestions(t *testing.T) {
	if qs, err := ReadQuestions([]byte("[\"0x1\",\"0x0\"]\n\n [\"0x2\",\"0x0\"] \n")); err != nil || len(qs) != 2 {
		t.Errorf("got %v, %v", qs, err)
	}
	for _, line := range []string{`["0x1","0x0"] x`, `["0x1","0x0"]["0x2","0x0"]`, `["0x1","0x0"],`} {
		if qs, err := ReadQuestions([]byte("[\"0x1\",\"0x0\"]\n" + line)); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%s: got %v, %v", line, qs, err)
		}
	}
}

func TestParseURL(t *testing.T) {
	for text, want := range map[string]Endpoint{
		"http://h/v3/abc":             {Addr: "h:80", Path: "/v3/abc"},
		"https://h/v3/abc":            {Addr: "h:443", Path: "/v3/abc", TLS: true},
		"ws://127.0.0.1:8080/ws/v3/a": {Addr: "127.0.0.1:8080", Path: "/ws/v3/a", WS: true},
		"wss://[::1]:8443/ws/v3/a":    {Addr: "[::1]:8443", Path: "/ws/v3/a", WS: true, TLS: true},
		"http://h":                    {Addr: "h:80", Path: "/"},
	} {
		got, err := ParseURL(text)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) || got.Path != want.Path || got.WS != want.WS || got.TLS != want.TLS {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "h/v3/secret", "ftp://h/secret", "http://u@h/secret", "http://h/secret?x", "http://h/secret#x", "http:///secret", "http://h:x/secret"} {
		if _, err := ParseURL(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
	e := Endpoint{Addr: "h:1", Path: "/ws/v3/KEY", WS: true}
	with, ok := e.WithKey("s3cret")
	if !ok || with.Path != "/ws/v3/s3cret" || with.String() != "ws://h:1/ws/v3/****" {
		t.Errorf("got %v, %v", with, ok)
	}
	if _, ok := with.WithKey("x"); ok {
		t.Error("a key was put where no KEY is")
	}
}
