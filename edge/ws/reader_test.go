package ws_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ommer/ommer/edge/ws"
)

const limit = 70_000

func newReader() *ws.Reader {
	r := ws.NewReader(ws.NewPool(ws.Limits{Message: limit}))
	return &r
}

// The conformance cases follow the groups of the Autobahn test suite: 1 framing,
// 2 pings and pongs, 3 reserved bits, 4 opcodes, 5 fragmentation, 6 UTF-8, 7 close
// handling, 10 limits. Each is fed whole, in single bytes, in threes and cut in
// two at every place.
func TestConformance(t *testing.T) {
	type test struct {
		name string
		in   []byte
		want []string // events
		code ws.Code  // 0: no error
	}
	msg := func(s string) string { return event("text", []byte(s)) }
	bin := func(s string) string { return event("binary", []byte(s)) }
	var tests []test
	add := func(name string, in []byte, code ws.Code, want ...string) {
		tests = append(tests, test{name, in, want, code})
	}

	for _, n := range []int{0, 1, 125, 126, 127, 128, 65535, 65536} {
		s := strings.Repeat("*", n)
		add(fmt.Sprintf("1 text of %d", n), text(s), 0, msg(s))
		add(fmt.Sprintf("1 binary of %d", n), blob(strings.Repeat("\xfe", n)), 0, bin(strings.Repeat("\xfe", n)))
	}
	add("1 several in one read", join(text("one"), blob("two"), text("")), 0, msg("one"), bin("two"), msg(""))
	add("1 unmasked", []byte{0x81, 0x02, 'h', 'i'}, ws.CodeProtocolError)
	add("1 length 125 in two bytes", framed([]byte{0x81, 0xFE, 0, 125}, strings.Repeat("*", 125)), ws.CodeProtocolError)
	add("1 length 0 in two bytes", framed([]byte{0x81, 0xFE, 0, 0}, ""), ws.CodeProtocolError)
	add("1 length 65535 in eight bytes", framed([]byte{0x81, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF}, ""), ws.CodeProtocolError)
	add("1 length 2^63", framed([]byte{0x81, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0}, ""), ws.CodeProtocolError)
	add("1 length 2^64-1", framed([]byte{0x81, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, ""), ws.CodeProtocolError)

	add("2 ping without payload", ping(""), 0, event("ping", nil))
	add("2 ping of 125 bytes", ping(strings.Repeat("\xfe", 125)), 0, event("ping", bytes.Repeat([]byte{0xfe}, 125)))
	add("2 ping of 126 bytes", ping(strings.Repeat("\xfe", 126)), ws.CodeProtocolError)
	add("2 ten pings", bytes.Repeat(ping("payload"), 10), 0, slices.Repeat([]string{event("ping", []byte("payload"))}, 10)...)
	add("2 unsolicited pong", join(pong("x"), text("y")), 0, event("pong", []byte("x")), msg("y"))
	add("2 ping of 1 byte, its length in two bytes", framed([]byte{0x89, 0xFE, 0, 1}, "x"), ws.CodeProtocolError)
	add("2 pong of 126 bytes", pong(strings.Repeat("x", 126)), ws.CodeProtocolError)

	for rsv := byte(1); rsv < 8; rsv++ {
		add(fmt.Sprintf("3 text with bits %03b", rsv), join(text("fine"), frame(fin|rsv<<4|1, "x")), ws.CodeProtocolError, msg("fine"))
		add(fmt.Sprintf("3 ping with bits %03b", rsv), frame(fin|rsv<<4|9, ""), ws.CodeProtocolError)
	}

	for _, op := range []byte{3, 4, 5, 6, 7, 11, 12, 13, 14, 15} {
		add(fmt.Sprintf("4 opcode %d", op), join(text("fine"), frame(fin|op, ""), ping("")), ws.CodeProtocolError, msg("fine"))
	}

	add("5 two fragments", join(begin(ws.OpText, "frag"), end("ment")), 0, msg("fragment"))
	add("5 ping between fragments", join(begin(ws.OpText, "frag"), ping("p"), end("ment")), 0, event("ping", []byte("p")), msg("fragment"))
	add("5 pings and pongs between fragments",
		join(begin(ws.OpBinary, "a"), ping("1"), more("b"), pong("2"), more(""), ping(""), end("c"), text("d")), 0,
		event("ping", []byte("1")), event("pong", []byte("2")), event("ping", nil), bin("abc"), msg("d"))
	add("5 empty fragments", join(begin(ws.OpText, ""), more(""), more(""), end("")), 0, msg(""))
	add("5 empty first fragment", join(begin(ws.OpText, ""), end("whole")), 0, msg("whole"))
	add("5 empty last fragment", join(begin(ws.OpText, "whole"), end("")), 0, msg("whole"))
	add("5 fragmented ping", join(frame(byte(ws.OpPing), "a"), end("b")), ws.CodeProtocolError)
	add("5 fragmented pong", join(frame(byte(ws.OpPong), "a"), end("b")), ws.CodeProtocolError)
	add("5 fragmented close", join(frame(byte(ws.OpClose), ""), end("")), ws.CodeProtocolError)
	add("5 continuation of nothing", join(end("x"), text("y")), ws.CodeProtocolError)
	add("5 open continuation of nothing", join(more("x"), end("y")), ws.CodeProtocolError)
	add("5 continuation after the end", join(begin(ws.OpText, "a"), end("b"), end("c")), ws.CodeProtocolError, msg("ab"))
	add("5 text within a message", join(begin(ws.OpText, "a"), text("b")), ws.CodeProtocolError)
	add("5 binary within a message", join(begin(ws.OpText, "a"), begin(ws.OpBinary, "b")), ws.CodeProtocolError)

	for _, s := range []string{
		"κόσμε", "Hello-µ@ßöäüàá-UTF-8!!", "\x00", "\u0080", "\u0800", "\U00010000", "\u007f", "\u07ff", "\uffff",
		"\U0010ffff", "\ud7ff", "\ue000", "\ufffd", "a\U0010ffff",
	} {
		add(fmt.Sprintf("6 valid %+q", s), text(s), 0, msg(s))
		parts := begin(ws.OpText, s[:1])
		for i := 1; i < len(s); i++ {
			parts = append(parts, more(s[i:i+1])...)
		}
		add(fmt.Sprintf("6 valid %+q in fragments of a byte", s), append(parts, end("")...), 0, msg(s))
	}
	for _, s := range []string{
		"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited", "\x80", "\xbf", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\x80",
		"\xe0\x9f\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5", "\xfe", "\xff", "\xed\xa0\x80", "\xed\xbf\xbf",
		"\xc2", "\xe2\x82", "\xf0\x9f\x92", "a\xc2", "\xc2a", "\xe2\x82a", "\xf0\x9f\x92a", "\xf8\x88\x80\x80\x80",
	} {
		add(fmt.Sprintf("6 invalid %+q", s), text(s), ws.CodeInvalidData)
		add(fmt.Sprintf("6 invalid %+q in fragments", s), join(begin(ws.OpText, s[:1]), ping(""), more(s[1:]), end("")),
			ws.CodeInvalidData, invalidAfterPing(s)...)
		add(fmt.Sprintf("6 bytes %+q are fine in binary", s), blob(s), 0, bin(s))
	}
	add("6 incomplete character at the end of a message, then a good one", join(text("\xe2\x82"), text("\xac")), ws.CodeInvalidData)
	add("6 no state is left from the message before", join(begin(ws.OpBinary, "\xe2"), end("\x82"), text("a")), 0, bin("\xe2\x82"), msg("a"))

	add("7 close without code", join(text("a"), frame(0x88, ""), text("late")), 0, msg("a"), event("close", nil))
	add("7 nothing is read after a close", join(closing(1000, ""), ping(""), []byte{0xFF, 0xFF}), 0, event("close", []byte{3, 232}))
	add("7 close within a message", join(begin(ws.OpText, "a"), closing(1001, "bye"), end("b")), 0, event("close", []byte("\x03\xe9bye")))
	add("7 close with the longest reason", closing(1000, strings.Repeat("x", 123)), 0, event("close", []byte("\x03\xe8"+strings.Repeat("x", 123))))
	add("7 close too long", closing(1000, strings.Repeat("x", 124)), ws.CodeProtocolError)
	add("7 close of one byte", frame(0x88, "\x03"), ws.CodeProtocolError)
	add("7 reason not UTF-8", closing(1000, "\xce\xba\xed\xa0\x80"), ws.CodeInvalidData)
	add("7 reason ends within a character", closing(1000, "\xe2\x82"), ws.CodeInvalidData)
	for _, code := range []int{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3999, 4000, 4999} {
		add(fmt.Sprintf("7 code %d", code), closing(code, ""), 0, event("close", []byte{byte(code >> 8), byte(code)}))
	}
	for _, code := range []int{0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65535} {
		add(fmt.Sprintf("7 code %d", code), closing(code, ""), ws.CodeProtocolError)
	}

	full := strings.Repeat("x", limit)
	add("10 as long as the limit", text(full), 0, msg(full))
	add("10 over the limit", text(full+"x"), ws.CodeTooBig)
	add("10 fragments as long as the limit", join(begin(ws.OpText, full[1:]), end("x")), 0, msg(full))
	add("10 fragments over the limit", join(begin(ws.OpText, full[1:]), ping(""), end("xx")), ws.CodeTooBig, event("ping", nil))
	add("10 a length of 2^63-1", framed([]byte{0x82, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, ""), ws.CodeTooBig)
	add("10 a fragment of 2^63-1 after another", join(begin(ws.OpBinary, "x"), framed([]byte{0x80, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}, "")), ws.CodeTooBig)
	add("10 many long messages", bytes.Repeat(text(full), 3), 0, msg(full), msg(full), msg(full))

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := seen{Events: tt.want, Code: tt.code}
			check := func(how string, ends ...int) {
				t.Helper()
				got := feed(t, newReader(), tt.in, ends...)
				if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(seen{}, "Reason", "At")); diff != "" {
					t.Errorf("fed %s (-want +got):\n%s", how, diff)
				}
			}
			check("whole")
			check("in single bytes", eachByte(len(tt.in))...)
			check("in threes", everyN(len(tt.in), 3)...)
			if len(tt.in) < 1000 {
				for i := 1; i < len(tt.in); i++ {
					check(fmt.Sprintf("cut at %d", i), i)
				}
			}
		})
	}
}

// invalidAfterPing is what is seen of an invalid text whose first byte is followed
// by a ping: nothing when that byte is wrong by itself.
func invalidAfterPing(s string) []string {
	if s[0] >= 0x80 && s[0] < 0xC2 || s[0] > 0xF4 {
		return nil
	}
	return []string{event("ping", nil)}
}

// A client in error is refused at the byte that is wrong, not at the end of the
// frame or the message that has it.
func TestRefusesAtOnce(t *testing.T) {
	const header = 6
	long := strings.Repeat("x", 100)
	tests := []struct {
		name string
		in   []byte
		at   int
		code ws.Code
	}{
		{"reserved bits", frame(0xC1, long), 2, ws.CodeProtocolError},
		{"reserved opcode", frame(0x83, long), 2, ws.CodeProtocolError},
		{"unmasked", []byte{0x81, 0x05, 'h'}, 2, ws.CodeProtocolError},
		{"long control frame", ping(strings.Repeat("x", 126)), 2, ws.CodeProtocolError},
		{"continuation of nothing", end(long), 2, ws.CodeProtocolError},
		{"over the limit", framed([]byte{0x81, 0xFF, 0, 0, 0, 0, 0, 2, 0, 0}, long), 10, ws.CodeTooBig},
		{"long form of a short length", framed([]byte{0x81, 0xFE, 0, 100}, long), 4, ws.CodeProtocolError},
		{"length of 2^63", framed([]byte{0x81, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0}, long), 10, ws.CodeProtocolError},
		{"byte that is never UTF-8", text("ab\xff" + long), header + 3, ws.CodeInvalidData},
		{"lone continuation byte", text("ab\x80" + long), header + 3, ws.CodeInvalidData},
		{"overlong two bytes", text("ab\xc0\xaf" + long), header + 3, ws.CodeInvalidData},
		{"overlong three bytes", text("ab\xe0\x80" + long), header + 4, ws.CodeInvalidData},
		{"surrogate", text("ab\xed\xa0\x80" + long), header + 4, ws.CodeInvalidData},
		{"over U+10FFFF", text("ab\xf4\x90\x80\x80" + long), header + 4, ws.CodeInvalidData},
		{"broken off", text("ab\xe2\x82z" + long), header + 5, ws.CodeInvalidData},
		{"broken off in the next fragment", join(begin(ws.OpText, "\xe2\x82"), more("z"), more(long)), header + 2 + header + 1, ws.CodeInvalidData},
		{"second byte in the next fragment", join(begin(ws.OpText, "\xf4"), more("\x90"), more(long)), header + 1 + header + 1, ws.CodeInvalidData},
		{"incomplete at the end", join(text("ab\xe2\x82"), text(long)), header + 4, ws.CodeInvalidData},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newReader()
			got := feed(t, r, tt.in, eachByte(len(tt.in))...)
			if got.Code != tt.code || got.At != tt.at || got.Events != nil {
				t.Errorf("got code %d at byte %d, events %q; want code %d at byte %d", got.Code, got.At, got.Events, tt.code, tt.at)
			}
			if r.Buffered() != 0 {
				t.Errorf("%d bytes held after the error", r.Buffered())
			}
		})
	}
}

// A Reader lives as long as its connection does.
func TestReaderIsSmall(t *testing.T) {
	if got := unsafe.Sizeof(ws.Reader{}); got > 64 {
		t.Errorf("a Reader takes %d bytes, want at most 64", got)
	}
}

func TestWholeFrameIsNotCopied(t *testing.T) {
	r := newReader()
	for _, in := range [][]byte{text("whole"), ping("whole"), join(begin(ws.OpText, ""), end("whole"))} {
		_, ev, payload, err := r.Next(in)
		if err != nil || string(payload) != "whole" {
			t.Fatalf("got event %d, payload %q, error %v", ev, payload, err)
		}
		if &payload[0] != &in[len(in)-len(payload)] {
			t.Errorf("the payload of event %d was copied", ev)
		}
		if r.Buffered() != 0 {
			t.Errorf("%d bytes held after event %d", r.Buffered(), ev)
		}
	}
}

// What a client makes the server hold is bounded by what it sent.
func TestMemoryFollowsWhatArrived(t *testing.T) {
	const size = 1 << 20
	r := ws.NewReader(ws.NewPool(ws.Limits{}))
	in := text(strings.Repeat("x", size))
	for fed := 0; fed < len(in)-1; {
		piece := min(1+fed/3, len(in)-1-fed) // the last byte is held back
		if n, ev, _, err := r.Next(in[fed : fed+piece]); n != piece || ev != ws.More || err != nil {
			t.Fatalf("after %d bytes: used %d of %d, event %d, error %v", fed, n, piece, ev, err)
		}
		fed += piece
		if got, most := r.Buffered(), max(512, 2*fed); got > most {
			t.Fatalf("%d bytes held after %d arrived, want at most %d", got, fed, most)
		}
	}
	if got := r.Buffered(); got > size {
		t.Errorf("%d bytes held for a message of %d", got, size)
	}
	r.Release()
	if _, ev, payload, err := r.Next(in[len(in)-1:]); ev != ws.Text || err != nil || len(payload) != size {
		t.Fatalf("got event %d of %d bytes, error %v", ev, len(payload), err)
	}
	r.Release()
	if got := r.Buffered(); got != 0 {
		t.Errorf("%d bytes held after the message was handled", got)
	}
}

func TestFloodOfEmptyFragmentsCostsNoMemory(t *testing.T) {
	r := newReader()
	flood := bytes.Repeat(more(""), 10_000)
	feed(t, r, begin(ws.OpText, ""))
	if got := feed(t, r, flood); got.Events != nil || got.Code != 0 {
		t.Fatalf("got %+v", got)
	}
	if got := r.Buffered(); got != 0 {
		t.Errorf("%d bytes held", got)
	}
	if got := feed(t, r, end("x")); !slices.Equal(got.Events, []string{`text "x"`}) {
		t.Errorf("got %+v", got)
	}
}

// A ping that comes in parts between the fragments of a message uses a buffer of
// its own, and Release gives back no more than what was handled.
func TestReleaseKeepsWhatIsUnderWay(t *testing.T) {
	r := newReader()
	half := ping("payload")
	feed(t, r, join(begin(ws.OpText, "frag"), half[:9]))
	held := r.Buffered()
	if held == 0 {
		t.Fatal("nothing held of half a message and half a ping")
	}
	r.Release()
	if got := r.Buffered(); got != held {
		t.Fatalf("%d bytes held after Release, want %d", got, held)
	}
	if got, want := feed(t, r, half[9:]).Events, []string{`ping "payload"`}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if got := r.Buffered(); got == 0 || got >= held {
		t.Errorf("%d bytes held after the ping, want some but fewer than %d", got, held)
	}
	if got, want := feed(t, r, end("ment")).Events, []string{`text "fragment"`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A Reader may be dropped when it is idle and at no other time.
func TestIdle(t *testing.T) {
	half := ping("payload")
	for _, tt := range []struct {
		name string
		in   []byte
		want bool
	}{
		{"new", nil, true},
		{"behind a message", text("a"), true},
		{"behind a message in fragments", join(begin(ws.OpText, "a"), end("")), true},
		{"behind a ping", ping("a"), true},
		{"half a header", text("a")[:1], false},
		{"a header", text("a")[:6], false},
		{"half a frame", text("ab")[:7], false},
		{"an empty fragment", begin(ws.OpText, ""), false},
		{"a fragment", begin(ws.OpText, "a"), false},
		{"half a ping", half[:9], false},
		{"half a ping in a message", join(begin(ws.OpText, "a"), half[:9]), false},
		{"a close", closing(1000, ""), false},
		{"an error", []byte{0x81, 0x00}, false},
		{"an error in a message", join(begin(ws.OpText, "a"), []byte{0x81, 0x00}), false},
	} {
		r := newReader()
		feed(t, r, tt.in)
		if got := r.Idle(); got != tt.want {
			t.Errorf("%s: Idle is %v, want %v", tt.name, got, tt.want)
		}
	}
	// A payload that was collected stays until it is released.
	for name, in := range map[string][]byte{"message": text("ab"), "ping": ping("ab")} {
		r := newReader()
		feed(t, r, in[:7])
		if _, _, payload, _ := r.Next(in[7:]); string(payload) != "ab" || r.Idle() {
			t.Errorf("%s: payload %q, Idle is %v, want it to hold the payload", name, payload, r.Idle())
		}
		if r.Release(); !r.Idle() {
			t.Errorf("%s: not idle after Release", name)
		}
	}
}

// What was collected is given back with the error, without waiting for Release.
func TestErrorDropsWhatIsUnderWay(t *testing.T) {
	for name, in := range map[string][]byte{
		"message":       join(begin(ws.OpText, "never ended"), []byte{0x81, 0x00}),
		"control frame": closing(999, "reason"),
		"both":          join(begin(ws.OpText, "never ended"), closing(999, "reason")),
	} {
		r := newReader()
		feed(t, r, in[:len(in)-1])
		if r.Buffered() == 0 {
			t.Errorf("%s: nothing held before the error", name)
		}
		if _, _, _, err := r.Next(in[len(in)-1:]); err == nil {
			t.Errorf("%s: no error", name)
		}
		if got := r.Buffered(); got != 0 {
			t.Errorf("%s: %d bytes held after the error", name, got)
		}
	}
}

// A message that a close frame cuts short is not kept.
func TestCloseDropsWhatIsUnderWay(t *testing.T) {
	r := newReader()
	if got, want := feed(t, r, join(begin(ws.OpText, "never ended"), frame(0x88, "")), 20).Events, []string{`close ""`}; !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if got := r.Buffered(); got != 0 {
		t.Errorf("%d bytes held after the close", got)
	}
}

// Connections share buffers one after the other; none sees another's bytes.
func TestReadersShareAPool(t *testing.T) {
	pool := ws.NewPool(ws.Limits{})
	var wg sync.WaitGroup
	for id := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(id)))
			r := ws.NewReader(pool)
			letter := string(rune('a' + id))
			for range 200 {
				s := strings.Repeat(letter, rnd.IntN(5000))
				cut := rnd.IntN(len(s) + 1)
				in := join(begin(ws.OpText, s[:cut]), ping(letter), end(s[cut:]))
				want := []string{event("ping", []byte(letter)), event("text", []byte(s))}
				if got := feed(t, &r, in, everyN(len(in), 1+rnd.IntN(700))...).Events; !slices.Equal(got, want) {
					t.Errorf("reader %d saw something else than it was sent", id)
					return
				}
			}
		})
	}
	wg.Wait()
}

// Once the pool has buffers, nothing is allocated, however the messages come.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes sync.Pool forget at random")
	}
	r := ws.NewReader(ws.NewPool(ws.Limits{}))
	short, long := strings.Repeat("x", 120), strings.Repeat("x", 20_000)
	tests := []struct {
		name string
		in   []byte
		read int
	}{
		{"a whole message", text(short), 1 << 20},
		{"a message in two reads", text(short), 70},
		{"a message in fragments with a ping", join(begin(ws.OpText, short), ping("p"), end(short)), 1 << 20},
		{"a ping in two reads", join(ping("payload"), text("")), 10},
		{"a message that grows through many buffers", text(long), 300},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			work := make([]byte, len(tt.in))
			got := testing.AllocsPerRun(200, func() {
				copy(work, tt.in)
				messages := 0
				for rest := work; len(rest) > 0; {
					in := rest[:min(tt.read, len(rest))]
					rest = rest[len(in):]
					for len(in) > 0 {
						n, ev, _, err := r.Next(in)
						if err != nil {
							t.Fatal(err)
						}
						if ev == ws.Text {
							messages++
						}
						in = in[n:]
					}
				}
				r.Release()
				if messages != 1 {
					t.Fatalf("%d messages", messages)
				}
			})
			if got != 0 {
				t.Errorf("%v allocations, want none", got)
			}
		})
	}
}

func TestError(t *testing.T) {
	r := newReader()
	_, _, _, err := r.Next([]byte{0x81, 0x00})
	if err == nil {
		t.Fatal("an unmasked frame was accepted")
	}
	if got, want := err.Error(), "websocket: 1002 frame not masked"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
