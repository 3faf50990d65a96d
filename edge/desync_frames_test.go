package edge_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"unicode/utf8"

	gobwas "github.com/gobwas/ws"
)

// clientFrame is a frame as a client masks it, first being its first byte.
func clientFrame(first byte, payload string) string {
	var b bytes.Buffer
	h := gobwas.Header{
		Fin: first&0x80 != 0, Rsv: first >> 4 & 7, OpCode: gobwas.OpCode(first & 0xf),
		Masked: true, Mask: [4]byte{'\r', '\n', 0x80, '{'}, Length: int64(len(payload)),
	}
	_ = gobwas.WriteHeader(&b, h) // which cannot fail: a length like this has a form
	masked := []byte(payload)
	gobwas.Cipher(masked, h.Mask, 0)
	b.Write(masked)
	return b.String()
}

// messages returns what gobwas sees in a client's frames, and what each message
// gets. Delivered says that nothing is wrong with them to their end.
func (s *stage) messages(t testing.TB, frames []byte) (messages []sighting, delivered bool) {
	t.Helper()
	state := gobwas.StateServerSide
	var message []byte
	for r, isText := bytes.NewReader(frames), false; ; {
		h, err := gobwas.ReadHeader(r)
		if errors.Is(err, io.EOF) {
			return messages, !state.Fragmented()
		}
		if err != nil || gobwas.CheckHeader(h, state) != nil || h.Length > int64(r.Len()) {
			return messages, false
		}
		payload := make([]byte, h.Length)
		_, _ = io.ReadFull(r, payload)
		gobwas.Cipher(payload, h.Mask, 0)
		switch {
		case h.OpCode == gobwas.OpClose:
			return messages, false
		case h.OpCode.IsControl():
			continue
		case h.OpCode != gobwas.OpContinuation:
			message, isText = nil, h.OpCode == gobwas.OpText
		}
		message = append(message, payload...)
		if !h.Fin {
			state = state.Set(gobwas.StateFragmented)
			continue
		}
		state = state.Clear(gobwas.StateFragmented)
		if isText && !utf8.Valid(message) {
			return messages, false
		}
		// A message gets what the same text gets on HTTP.
		request, _ := http.NewRequest(http.MethodPost, "/v3/"+testKey, nil)
		request.RequestURI = request.URL.Path
		request.Header.Set("Content-Type", "application/json")
		seen := sighting{request: request, body: message}
		s.alone(t, &seen)
		messages = append(messages, seen)
	}
}

// frames compares the WebSocket part.
func (c *comparison) frames(t testing.TB, r *bufio.Reader, messages []sighting, delivered bool, asked []string) {
	t.Helper()
	var missing, asks []string
	for _, m := range messages {
		if m.want.body != "" {
			missing = append(missing, m.want.body)
		}
		asks = append(asks, m.asks...)
	}
	asks = append(slices.Clone(c.asks), asks...)
	said := "cut"
	for said == "cut" {
		h, err := gobwas.ReadHeader(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || gobwas.CheckHeader(h, gobwas.StateClientSide) != nil {
			t.Fatalf("%q\nthe edge sent a bad frame: %+v, %v", c.stream, h, err)
		}
		payload, err := io.ReadAll(io.LimitReader(r, h.Length))
		if err != nil || int64(len(payload)) < h.Length {
			t.Fatalf("%q\nthe edge sent %d bytes of a frame: %+v, %v", c.stream, len(payload), h, err)
		}
		switch h.OpCode {
		case gobwas.OpText:
			at := slices.Index(missing, string(payload))
			if at < 0 {
				t.Fatalf("%q\ngot %q, want one of %q", c.stream, payload, missing)
			}
			missing = slices.Delete(missing, at, at+1)
		case gobwas.OpClose:
			code, _ := gobwas.ParseCloseFrameData(payload)
			said = strconv.Itoa(int(code))
		}
	}
	if rest, _ := io.ReadAll(r); len(rest) > 0 {
		t.Errorf("%q\nbehind the close frame: %q", c.stream, rest)
	}
	// Answers that were not ready are dropped when the connection ends, so that
	// something may be asked and not answered; never something else.
	if delivered && said == "1000" {
		said = "sentinel"
		if len(missing) > 0 {
			t.Errorf("%q\nno answer %q", c.stream, missing)
		}
		if len(asked) < len(asks) {
			t.Errorf("%q\nasked %q, want %q", c.stream, asked, asks)
		}
	}
	if len(asked) > len(asks) || !slices.Equal(asked, asks[:len(asked)]) {
		t.Errorf("%q\nasked %q, want %q or the start of it", c.stream, asked, asks)
	}
	c.summary = append(c.summary, said)
}
