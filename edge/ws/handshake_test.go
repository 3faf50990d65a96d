package ws_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/ommer/ommer/edge/ws"
)

const rfcKey = "dGhlIHNhbXBsZSBub25jZQ==" // RFC 6455 section 1.3

func TestHandshakeCheck(t *testing.T) {
	tests := []struct {
		name   string
		fields string
		status int // 0: accepted
	}{
		{"as browsers send it", "Sec-WebSocket-Key: " + rfcKey + "\nSec-WebSocket-Version: 13", 0},
		{"names in any case", "sec-websocket-KEY: " + rfcKey + "\nSEC-websocket-version: 13", 0},
		{"extensions and protocols are ignored", "Sec-WebSocket-Extensions: permessage-deflate\nSec-WebSocket-Protocol: a, b\n" +
			"Sec-WebSocket-Key: " + rfcKey + "\nSec-WebSocket-Version: 13", 0},
		{"no key", "Sec-WebSocket-Version: 13", 400},
		{"empty key", "Sec-WebSocket-Key: \nSec-WebSocket-Version: 13", 400},
		{"key of 15 bytes", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAA\nSec-WebSocket-Version: 13", 400},
		{"key of 17 bytes", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAAA=\nSec-WebSocket-Version: 13", 400},
		{"key of 18 bytes", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAAAA\nSec-WebSocket-Version: 13", 400},
		{"key without padding", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ\nSec-WebSocket-Version: 13", 400},
		{"key in the alphabet of URLs", "Sec-WebSocket-Key: __hlIHNhbXBsZSBub25jZQ==\nSec-WebSocket-Version: 13", 400},
		{"key is no base64", "Sec-WebSocket-Key: !Ghl IHNhbXBsZSBub25jZQ=\nSec-WebSocket-Version: 13", 400},
		{"two keys", "Sec-WebSocket-Key: " + rfcKey + "\nSec-WebSocket-Key: " + rfcKey + "\nSec-WebSocket-Version: 13", 400},
		{"an empty key before the key", "Sec-WebSocket-Key: \nSec-WebSocket-Key: " + rfcKey + "\nSec-WebSocket-Version: 13", 400},
		{"two versions", "Sec-WebSocket-Key: " + rfcKey + "\nSec-WebSocket-Version: 13\nSec-WebSocket-Version: 13", 400},
		{"no version", "Sec-WebSocket-Key: " + rfcKey, 426},
		{"version 8", "Sec-WebSocket-Key: " + rfcKey + "\nSec-WebSocket-Version: 8", 426},
		{"version 013", "Sec-WebSocket-Key: " + rfcKey + "\nSec-WebSocket-Version: 013", 426},
		{"a list of versions", "Sec-WebSocket-Key: " + rfcKey + "\nSec-WebSocket-Version: 13, 8", 426},
		{"neither", "Host: example.org", 426},
		{"names that only look alike", "Sec-WebSocket-Keys: " + rfcKey + "\nSec-WebSocket-Version: 13", 400},
		{"other names of the same length", "Sec-WebSocket-Yek: " + rfcKey + "\nSec-WebSocket-Version: 13", 400},
		{"names that only fold alike", "Sec-WebSoc\u212aet-Key: " + rfcKey + "\nSec-WebSocket-Version: 13", 400},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var h ws.Handshake
			for line := range strings.SplitSeq(tt.fields, "\n") {
				name, value, _ := strings.Cut(line, ": ")
				h.Field([]byte(name), []byte(value))
			}
			refusal := h.Check()
			if refusal == nil {
				if tt.status != 0 {
					t.Fatalf("accepted, want %d", tt.status)
				}
				if string(h.Key) != rfcKey {
					t.Errorf("got key %q", h.Key)
				}
				return
			}
			if refusal.Status != tt.status {
				t.Fatalf("refused with %d %s, want %d", refusal.Status, refusal.Reason, tt.status)
			}
			if got, want := strings.Contains(refusal.Fields, "Sec-WebSocket-Version: 13\r\n"), tt.status == 426; got != want {
				t.Errorf("names the version: %v, want %v", got, want)
			}
		})
	}
}

func TestAppendUpgrade(t *testing.T) {
	got := string(ws.AppendUpgrade([]byte("before"), []byte(rfcKey)))
	want := "beforeHTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	dst, key := make([]byte, 0, 256), []byte(rfcKey)
	if n := testing.AllocsPerRun(100, func() { dst = ws.AppendUpgrade(dst[:0], key) }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// server is the far end of a client's connection, without a network: it answers
// the handshake with this package and then sends the frames. It keeps what the
// client wrote.
type server struct {
	t       testing.TB
	frames  io.Reader
	written bytes.Buffer
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	var h ws.Handshake
	for name, values := range req.Header {
		for _, v := range values {
			h.Field([]byte(name), []byte(v))
		}
	}
	if refusal := h.Check(); refusal != nil {
		s.t.Fatalf("a real client was refused: %d %s", refusal.Status, refusal.Reason)
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(ws.AppendUpgrade(nil, h.Key))), req)
	if err == nil {
		resp.Body = s
	}
	return resp, err
}

func (s *server) Read(p []byte) (int, error)  { return s.frames.Read(p) }
func (s *server) Write(p []byte) (int, error) { return s.written.Write(p) }
func (s *server) Close() error                { return nil }

// dial returns a real client to which the frames were sent, and the server.
func dial(t testing.TB, frames []byte) (*websocket.Conn, *server) {
	t.Helper()
	s := &server{t: t, frames: bytes.NewReader(frames)}
	c, resp, err := websocket.Dial(t.Context(), "ws://example.org/", &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: s},
		// Asked for, and not granted.
		CompressionMode: websocket.CompressionContextTakeover,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.Header.Get("Sec-WebSocket-Extensions"); got != "" {
		t.Fatalf("an extension was negotiated: %s", got)
	}
	c.SetReadLimit(-1)
	return c, s
}

// A real client upgrades, its messages are read and it reads ours.
func TestRealClient(t *testing.T) {
	out := ws.AppendFrame(nil, ws.OpText, []byte("hello"))
	out = ws.AppendFrame(out, ws.OpPing, []byte("there?"))
	out = ws.AppendFrame(out, ws.OpBinary, bytes.Repeat([]byte{0xFE}, 70_000))
	out = ws.AppendClose(out, ws.CodeGoingAway, "bye")
	c, s := dial(t, out)
	defer func() { _ = c.CloseNow() }()

	if err := c.Write(t.Context(), websocket.MessageText, []byte("question")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := c.Read(t.Context()); err != nil || string(got) != "hello" {
		t.Fatalf("got %q, error %v", got, err)
	}
	if typ, got, err := c.Read(t.Context()); err != nil || typ != websocket.MessageBinary || len(got) != 70_000 {
		t.Fatalf("got %d bytes of type %v, error %v", len(got), typ, err)
	}
	if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Fatalf("got %v, want a close with 1001", err)
	}

	got := feed(t, newReader(), s.written.Bytes())
	want := []string{event("text", []byte("question")), event("pong", []byte("there?")), event("close", []byte("\x03\xe9bye"))}
	if len(got.Events) != len(want) || got.Code != 0 {
		t.Fatalf("got %+v, want %q", got, want)
	}
	for i := range want {
		if got.Events[i] != want[i] {
			t.Errorf("got %s, want %s", got.Events[i], want[i])
		}
	}
}
