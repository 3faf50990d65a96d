package edge_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// choices spell a stream: each takes one byte. Half of the bytes choose among what
// is right, or nearly everything would end with the first request.
type choices []byte

func (c *choices) pick(right, wrong []string) string {
	if len(*c) == 0 {
		return right[0]
	}
	n := int((*c)[0])
	*c = (*c)[1:]
	if n < 128 || len(wrong) == 0 {
		return right[n%len(right)]
	}
	return wrong[n%len(wrong)]
}

// requests spells requests that look alike to one reader and not to another.
func (c choices) requests() string {
	var out strings.Builder
	for more := true; more; more = len(c) > 0 && out.Len() < 4<<10 {
		body := c.pick([]string{lookup(1, 1), "", hidden, "[" + lookup(2, 2) + "," + lookup(3, 3) + "]", "{}"},
			[]string{"0\r\n\r\n" + hidden, "\r\n", "{", clientFrame(0x81, lookup(4, 4)), "\xff"})
		end := c.pick([]string{"\r\n"}, []string{"\r\n", "\r\n", "\r\n", "\n", "\r", "\r\r\n", "\r\n ", ""})
		out.WriteString(c.pick([]string{"POST ", "POST ", "GET ", "HEAD ", "OPTIONS ", "PUT "}, []string{"CONNECT ", "post ", "", "PRI ", strings.Repeat("A", 33) + " "}))
		out.WriteString(c.pick([]string{pathPost, pathPost, "/v3/nope-nope", "/", "http://y" + pathPost, "/ws" + pathPost}, []string{"*", "x:1", "/v3", pathPost + "/", "/%2fv3", "http://y", pathPost + "?a b"}))
		out.WriteString(c.pick([]string{" HTTP/1.1", " HTTP/1.1", " HTTP/1.0"}, []string{" HTTP/1.2", " HTTP/2.0", " HTTP/0.9", "", "  HTTP/1.1"}))
		out.WriteString("\r\n" + c.pick([]string{"Host: x\r\n"}, []string{"", "Host: x\r\nHost: y\r\n", "Host: x/y\r\n", "Host : x\r\n", "Host:\r\n"}))
		out.WriteString(c.pick([]string{"Content-Type: application/json\r\n"}, []string{"", "Content-Type: text/plain\r\n", "Content-Type: application/json\r\nContent-Type: x\r\n", "Content-Encoding: gzip\r\n"}))
		for range len(c.pick([]string{"", ".", ".."}, []string{"..."})) {
			out.WriteString(c.pick([]string{"X: y", "Connection: keep-alive", "Origin: y", "Expect: 100-continue", "Trailer: X"}, []string{
				"Connection: close", "Connection: x, close", "X : y", "X: \x00", " X: y", "X", "X: y\r", "Expect: x", "Upgrade: h2c", "Connection: Upgrade\r\nUpgrade: websocket",
				"Trailer: Content-Length", "Transfer-Encoding : chunked", "Transfer-Encoding: x", "Content-Length: +1", "Content-Length: 0", "Content-Length: 1, 1",
			}) + end)
		}
		switch framing := c.pick([]string{"length", "chunked", "chunks"}, []string{"both", "short", "long", "twice", "none", "ended", "1.0"}); framing {
		case "length":
			out.WriteString(length(body) + "\r\n" + body)
		case "chunked":
			out.WriteString(chunked + "\r\n" + chunk(body, c.pick([]string{"", "X: y\r\n"}, []string{length(hidden), "X : y\r\n", " x\r\n", "X: y\n"})))
		case "chunks":
			out.WriteString(chunked + "\r\n")
			for len(body) > 0 {
				n := min(len(body), 1+len(c.pick([]string{strings.Repeat("x", 50)}, []string{"", "x", strings.Repeat("x", 20)})))
				line := c.pick([]string{"%x", "%X", "0%x", "%x;a=b"}, []string{"+%x", "0x%x", "%x ", " %x", "-%x", "%x;\n", "1%x", "%xg", "%x;\"\r\n"})
				fmt.Fprintf(&out, line+"%s%s%s", n, c.pick([]string{"\r\n"}, []string{"\r\n", "\r\n", "\n"}), body[:n], c.pick([]string{"\r\n"}, []string{"\r\n", "\r\n", "\n", "", "x\r\n"}))
				body = body[n:]
			}
			out.WriteString("0\r\n\r\n")
		case "both":
			out.WriteString(length(body) + chunked + "\r\n" + body)
		case "short":
			out.WriteString(length(body+"x") + "\r\n" + body)
		case "long":
			out.WriteString(length("") + "\r\n" + body)
		case "twice":
			out.WriteString(length(body) + length("") + "\r\n" + body)
		case "none":
			out.WriteString("\r\n" + body)
		case "ended":
			out.WriteString(chunked + "\r\n0\r\n\r\n" + body)
		case "1.0":
			out.WriteString("Connection: keep-alive\r\n\r\n")
		}
	}
	return out.String()
}

// frames spells what may follow a handshake.
func (c choices) frames() string {
	out := handshake("")
	for len(c) > 0 && len(out) < 4<<10 {
		payload := c.pick([]string{lookup(1, 1), "", "[" + lookup(2, 2) + "," + lookup(3, 3) + "]", "{}", "é"},
			[]string{hidden, "\xe2\x82", clientFrame(0x81, lookup(666, 0xbad)), strings.Repeat("x", 126), "\x03\xe8", "\x03", "\x07\xd0"})
		switch form := c.pick([]string{"text", "text", "binary", "ping", "pong", "fragments"}, []string{"close", "open", "rest", "unmasked", "middle", "long", "reserved", "lie"}); form {
		case "text":
			out += clientFrame(0x81, payload)
		case "binary":
			out += clientFrame(0x82, payload)
		case "ping":
			out += clientFrame(0x89, payload)
		case "pong":
			out += clientFrame(0x8a, payload)
		case "fragments":
			out += clientFrame(0x01, payload[:len(payload)/2]) + clientFrame(0x89, "") + clientFrame(0x80, payload[len(payload)/2:])
		case "close":
			out += clientFrame(0x88, payload)
		case "open":
			out += clientFrame(0x01, payload)
		case "rest":
			out += clientFrame(0x80, payload)
		case "unmasked":
			out += "\x81" + string(rune(len(payload)&0x7f)) + payload
		case "middle":
			out += raw(string([]byte{0x82, 0xfe, byte(len(payload) >> 8), byte(len(payload))}), payload)
		case "long":
			out += raw(long(0x82, uint64(len(payload))), payload)
		case "reserved":
			out += clientFrame(0xc1, payload)
		case "lie":
			out += raw("\x82\xff", payload)
		}
	}
	return out
}

// FuzzSmuggling holds the edge against net/http, and behind a handshake against
// gobwas, on any stream and any way to cut it in two.
func FuzzSmuggling(f *testing.F) {
	for i, a := range append(attacks(), frameAttacks()...) {
		if i%4 == 0 { // TestSmuggling has all of them
			f.Add([]byte(a.stream), byte(0), uint16(i))
		}
	}
	f.Add([]byte{1, 128, 130, 7, 200, 90, 5, 129}, byte(1), uint16(100))
	f.Add([]byte{1, 128, 130, 7, 200, 90, 5, 129}, byte(2), uint16(180))
	s := newStage(f)
	f.Fuzz(func(t *testing.T, in []byte, form byte, cut uint16) {
		stream := string(in[:min(len(in), 16<<10)])
		switch form % 4 {
		case 1:
			stream = choices(in).requests()
		case 2:
			stream = choices(in).frames()
		case 3:
			stream = handshake("") + stream
		}
		s.secure = form&4 != 0
		s.provoke(t, stream, min(int(cut), len(stream)))
	})
}

// TestSmugglingOfManyKinds tries many such streams, always the same.
func TestSmugglingOfManyKinds(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	random := rand.New(rand.NewPCG(9112, 6455))
	for _, kind := range []struct {
		name  string
		spell func(choices) string
	}{{"requests", choices.requests}, {"frames", choices.frames}} {
		t.Run(kind.name, func(t *testing.T) {
			survived := 0
			const streams = 400
			for i := range streams {
				c := make(choices, random.IntN(60))
				for j := range c {
					if c[j] = byte(random.IntN(128)); random.IntN(20) == 0 {
						c[j] |= 128
					}
				}
				stream := kind.spell(c)
				s.secure = i%8 == 0
				if strings.HasSuffix(s.provoke(t, stream, random.IntN(len(stream)+1)), "sentinel") {
					survived++
				}
				if t.Failed() {
					t.Fatal("stopped at the first difference")
				}
			}
			t.Logf("%d of %d sentinels were answered", survived, streams)
			if survived < streams/10 || survived > streams*9/10 {
				t.Errorf("%d of %d sentinels were answered: the streams say little", survived, streams)
			}
		})
	}
}
