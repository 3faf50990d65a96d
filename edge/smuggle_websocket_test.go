package edge_test

import (
	"encoding/binary"
	"strings"
	"testing"
)

// raw is a frame whose header says whatever it likes.
func raw(header, payload string) string { return header + "\x00\x00\x00\x00" + payload }

func long(first byte, n uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte{first, 0xff}, n))
}

// frameAttacks are what a client may send after a good handshake.
func frameAttacks() []attack {
	one := lookup(1, 1)
	inner := clientFrame(0x81, lookup(666, 0xbad))
	all := []attack{
		{"a message", clientFrame(0x81, one), "sentinel"},
		{"two messages, one of them binary", clientFrame(0x82, one) + clientFrame(0x81, lookup(2, 2)), "sentinel"},
		{"a batch", clientFrame(0x81, "["+one+","+one+"]"), "sentinel"},
		{"silence", clientFrame(0x81, "") + clientFrame(0x82, "") + clientFrame(0x81, `{"jsonrpc":"2.0","method":"x"}`), "sentinel"},
		{"no JSON", clientFrame(0x81, "{"), "sentinel"},
		{"a frame in a message", clientFrame(0x82, inner), "sentinel"},
		{"a frame in a ping", clientFrame(0x89, inner), "sentinel"},
		{"a request in a message", clientFrame(0x81, "POST / HTTP/1.1\r\n\r\n"), "sentinel"},
		{"many pings", strings.Repeat(clientFrame(0x89, "x"), 100), "sentinel"},
		{"a pong", clientFrame(0x8a, "x"), "sentinel"},
		{"a mask of zeros", raw("\x81\x80", ""), "sentinel"},
		{"fragments", clientFrame(0x01, one[:9]) + clientFrame(0x89, inner) + clientFrame(0x00, one[9:]) + clientFrame(0x80, ""), "sentinel"},
		{"empty fragments", clientFrame(0x02, "") + strings.Repeat(clientFrame(0x00, ""), 50) + clientFrame(0x80, one), "sentinel"},

		{"a message within another", clientFrame(0x01, one), "1002"},
		{"a continuation of nothing", clientFrame(0x80, one), "1002"},
		{"a continuation of an answered message", clientFrame(0x81, one) + clientFrame(0x80, one), "1002"},
		{"a request", hidden, "1002"},
		{"another handshake", handshake(""), "1002"},
		{"TLS", "\x16\x03\x01\x02\x00\x01", "1002"},
		{"an unmasked message", "\x81\x5c" + one, "1002"},
		{"reserved bits", clientFrame(0xc1, inner), "1002"},
		{"a reserved opcode", clientFrame(0x83, inner), "1002"},
		{"a reserved control opcode", clientFrame(0x8b, inner), "1002"},
		{"a fragmented ping", clientFrame(0x09, "x"), "1002"},
		{"a long ping", clientFrame(0x89, strings.Repeat("x", 126)), "1002"},
		{"a short length in the middle form", raw("\x81\xfe\x00\x02", "{}"), "1002"},
		{"a short length in the long form", raw(long(0x81, 2), "{}"), "1002"},
		{"a middle length in the long form", raw(long(0x81, 0xffff), strings.Repeat(" ", 0xffff)), "1002"},
		{"a length of 2^63", raw(long(0x81, 1<<63), inner), "1002"},
		{"a length of 2^64-1", raw(long(0x81, 1<<64-1), inner), "1002"},
		{"a length of 2^63-1", raw(long(0x81, 1<<63-1), inner), "1009"},
		{"a length that wraps around with the fragment before", clientFrame(0x02, "x") + raw(long(0x80, 1<<63-1), inner), "1009"},
		{"a message over the limit", raw(long(0x82, 1<<20+1), inner), "1009"},
		{"no UTF-8", clientFrame(0x81, "\"\xed\xa0\x80\""), "1007"},
		{"no UTF-8 across fragments", clientFrame(0x01, "\"\xe2") + clientFrame(0x80, "\x82\""), "1007"},
		{"no UTF-8, but binary", clientFrame(0x82, "\"\xff\""), "sentinel"},
		{"a message longer than what is left", raw(long(0x82, 1<<19), inner), "cut"},
		{"half a header", "\x81\xfe\x01", "1007"}, // the sentinel is masked with itself

		{"a close", clientFrame(0x88, "\x03\xe8") + inner, "1000"},
		{"a close within a message", clientFrame(0x01, one) + clientFrame(0x88, "\x03\xe9bye") + clientFrame(0x80, ""), "1001"},
		{"a close of the application", clientFrame(0x88, "\x11\x31") + inner, "4401"},
		{"a close of one byte", clientFrame(0x88, "\x03") + inner, "1002"},
		{"a close with a code that is not for the wire", clientFrame(0x88, "\x03\xed") + inner, "1002"},
		{"a close with a reason that is no text", clientFrame(0x88, "\x03\xe8\xff") + inner, "1007"},
	}
	for i := range all {
		all[i].stream, all[i].want = handshake("")+all[i].stream, "101 "+all[i].want
	}
	return all
}

// TestWebSocketSmuggling is TestSmuggling for what comes behind a handshake, together
// with it or later.
func TestWebSocketSmuggling(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	transports(t, func(t *testing.T, secure bool) {
		s.secure = secure
		for _, tt := range frameAttacks() {
			t.Run(tt.name, func(t *testing.T) {
				for _, cut := range []int{0, len(handshake("")) - 1, len(handshake("")), len(handshake("")) + 1, len(tt.stream)} {
					if got := s.provoke(t, tt.stream, cut); got != tt.want {
						t.Errorf("cut at %d: got %q, want %q\n%.300q", cut, got, tt.want, tt.stream)
					}
				}
			})
		}
	})
}
