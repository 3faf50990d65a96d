package ws_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coder/websocket"
	gobwas "github.com/gobwas/ws"

	"github.com/ommer/ommer/edge/ws"
)

// seeds are inputs that reach every part of the Reader.
func seeds() [][]byte {
	return [][]byte{
		text("hello"), blob("\xff\x00"), text(""), text(strings.Repeat("é", 70)),
		join(begin(ws.OpText, "a\xe2"), ping("p"), more("\x82"), more(""), pong(""), end("\xac"), text("next"), closing(1000, "bye")),
		join(begin(ws.OpBinary, ""), end("x"), frame(0x88, "")),
		text("a\xed\xa0\x80"), text("\xe2\x82"), join(begin(ws.OpText, "\xf4"), end("\x90\x80\x80")),
		closing(1005, ""), closing(1013, "later"), closing(4401, "é"), closing(5000, ""), closing(1000, "\xff"), frame(0x88, "\x03"),
		ping(strings.Repeat("x", 126)), frame(0x09, "x"), frame(0xC1, "x"), frame(0x83, ""), {0x81, 0x02, 'h', 'i'},
		join(begin(ws.OpText, "x"), text("y")), end("x"),
		framed([]byte{0x81, 0xFE, 0, 1}, "x"), framed([]byte{0x8A, 0xFE, 0, 0}, ""), framed([]byte{0x81, 0xFF, 0, 0, 0, 0, 0, 0, 0, 1}, "x"),
		framed([]byte{0x81, 0xFF, 0, 0, 0, 0, 0, 2, 0, 0}, ""), framed([]byte{0x81, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0}, ""),
	}
}

// programs are seeds for compile.
var programs = []string{
	"\x00\x05hello", "\x01\x02he\x06\x01p\x03\x01l\x02\x02lo\x08\x02\x03\xe8", "\x01\xe0\x02\xff\x00\xa1x", "\x00\xc1x",
	"\x01\x01\xe2\x07\x00\x02\x02\x82\xac\x00\x61\x80", "\xf3\x00", "\x00\xff",
}

// compile makes frames out of bytes, most of them right, so that a fuzzer gets
// further than with bytes of its own. Two bytes choose the header: the first its
// first byte, the second how the length is written and the payload's length.
func compile(program []byte) []byte {
	firsts := []byte{0x81, 0x01, 0x80, 0x00, 0x82, 0x02, 0x89, 0x8A, 0x88}
	var out []byte
	for len(program) >= 2 && len(out) < 4*limit {
		first, form, size := program[0], program[1]>>5, int(program[1]&0x1F)
		program = program[2:]
		if first < 0xF0 {
			first = firsts[int(first)%len(firsts)]
		}
		if form == 7 {
			out = append(out, frame(first, strings.Repeat("z", size*4096))...)
			continue
		}
		size = min(size, len(program))
		payload := string(program[:size])
		program = program[size:]
		switch form {
		case 4:
			out = append(out, framed(binary.BigEndian.AppendUint16([]byte{first, 0xFE}, uint16(size)), payload)...)
		case 5:
			out = append(out, framed(binary.BigEndian.AppendUint64([]byte{first, 0xFF}, uint64(size)<<60), payload)...)
		case 6:
			out = append(append(out, first, byte(size)), payload...)
		default:
			out = append(out, frame(first, payload)...)
		}
	}
	return out
}

// FuzzReader holds the Reader against two other servers: the same messages, the
// same verdict, but for the differences that the oracles list.
func FuzzReader(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s, false)
	}
	for _, p := range programs {
		f.Add([]byte(p), true)
	}
	f.Fuzz(func(t *testing.T, in []byte, compiled bool) {
		if compiled {
			in = compile(in)
		}
		compare(t, in)
	})
}

// FuzzSplit: how the bytes are cut into reads changes nothing.
func FuzzSplit(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s, uint64(1), false)
	}
	for _, p := range programs {
		f.Add([]byte(p), uint64(2), true)
	}
	f.Fuzz(func(t *testing.T, in []byte, seed uint64, compiled bool) {
		if compiled {
			in = compile(in)
		}
		want := feed(t, newReader(), in)
		check := func(ends ...int) {
			t.Helper()
			got := feed(t, newReader(), in, ends...)
			if !slices.Equal(got.Events, want.Events) || got.Code != want.Code || got.Reason != want.Reason {
				t.Fatalf("cut at %v: got %+v, want %+v", ends, got, want)
			}
		}
		if len(in) < 4096 {
			check(eachByte(len(in))...)
		}
		for i := 1; i < min(len(in), 1000); i++ {
			check(i)
		}
		rnd := rand.New(rand.NewPCG(seed, 0))
		var ends []int
		for at := rnd.IntN(16); at < len(in); at += 1 + rnd.IntN(1+at) {
			ends = append(ends, at)
		}
		check(ends...)
	})
}

// FuzzAppend: what is appended, a client reads.
func FuzzAppend(f *testing.F) {
	f.Add([]byte("hello"), uint32(1), true, uint16(1000), "bye")
	f.Add([]byte("\xff"), uint32(65535), false, uint16(1005), "")
	f.Add([]byte("x"), uint32(65536), false, uint16(4401), strings.Repeat("é", 80))
	f.Add([]byte(""), uint32(126), true, uint16(1013), "\U00010000")
	f.Fuzz(func(t *testing.T, unit []byte, times uint32, asText bool, status uint16, reason string) {
		payload := bytes.Repeat(unit, int(times%70_000)%(1+200_000/(1+len(unit))))
		op, typ := ws.OpBinary, websocket.MessageBinary
		if asText {
			op, typ = ws.OpText, websocket.MessageText
		}
		code := ws.Code(status)
		sendable := code == ws.CodeNoStatus || code >= 1000 && code <= 1003 || code >= 1007 && code <= 1014 || code >= 3000 && code <= 4999
		if !sendable || !utf8.ValidString(reason) {
			code, reason = ws.CodeNormal, ""
		}
		out := ws.AppendFrame(nil, op, payload)
		message := len(out)
		out = ws.AppendFrame(out, ws.OpPing, payload[:min(len(payload), 125)])
		closeFrame := ws.AppendClose(nil, code, reason)
		out = append(out, closeFrame...)

		c, s := dial(t, out)
		defer func() { _ = c.CloseNow() }()
		gotTyp, got, err := c.Read(t.Context())
		if err != nil || gotTyp != typ || !bytes.Equal(got, payload) {
			t.Fatalf("a client read %d bytes of type %v, error %v; want %d of type %v", len(got), gotTyp, err, len(payload), typ)
		}
		_, _, err = c.Read(t.Context())
		if got := websocket.CloseStatus(err); got != websocket.StatusCode(code) {
			t.Fatalf("a client read %v, want a close with %d", err, code)
		}
		want := []string{event("pong", payload[:min(len(payload), 125)]), event("close", closeFrame[2:])}
		if got := feed(t, newReader(), s.written.Bytes()); !slices.Equal(got.Events, want) || got.Code != 0 {
			t.Fatalf("the client answered %+v, want %q", got, want)
		}

		// A second client, for what the first does not check.
		for in := bytes.NewReader(out); in.Len() > 0; {
			h, err := gobwas.ReadHeader(in)
			if err == nil {
				err = gobwas.CheckHeader(h, gobwas.StateClientSide)
			}
			if err != nil || !h.Fin {
				t.Fatalf("header %+v, error %v", h, err)
			}
			if _, err := in.Seek(h.Length, io.SeekCurrent); err != nil || in.Len() < 0 {
				t.Fatal(err)
			}
		}
		if want := gobwas.HeaderSize(gobwas.Header{Length: int64(len(payload))}) + len(payload); message != want {
			t.Fatalf("the frame of %d bytes takes %d, want %d", len(payload), message, want)
		}
	})
}
