package edge_test

import (
	"fmt"
	"slices"
	"strings"
)

// First bytes of frames.
const (
	fin         = 0x80
	opMore      = 0x0 // continuation
	opText      = 0x1
	opBinary    = 0x2
	opClose     = 0x8
	opPing      = 0x9
	opPong      = 0xA
	closeNormal = "\x03\xe8"
)

// fragments is a message of the given fragments.
func fragments(op byte, parts ...string) string {
	var b strings.Builder
	for i, p := range parts {
		first := byte(opMore)
		if i == 0 {
			first = op
		}
		if i == len(parts)-1 {
			first |= fin
		}
		b.WriteString(clientFrame(first, p))
	}
	return b.String()
}

// cut cuts a payload into parts of n bytes.
func cut(payload string, n int) (parts []string) {
	for part := range slices.Chunk([]byte(payload), n) {
		parts = append(parts, string(part))
	}
	return parts
}

// suite collects the cases. A case of one step is added with what its client sends
// and what comes back before the close frame.
type suite []autobahnCase

func (s *suite) add(id, what string, closed int, send string, want ...string) {
	*s = append(*s, autobahnCase{id: id, what: what, grade: "OK", steps: []step{{send, want}}, closed: closed})
}

func (s *suite) inform(id, what string, closed int, send string, want ...string) {
	s.add(id, what, closed, send, want...)
	(*s)[len(*s)-1].grade = "INFORMATIONAL"
}

func (s *suite) steps(id, what string, closed int, steps ...step) {
	*s = append(*s, autobahnCase{id: id, what: what, grade: "OK", steps: steps, closed: closed})
}

func autobahnCases() []autobahnCase {
	var s suite
	s.framing()
	s.pings()
	s.reservedBits()
	s.opcodes()
	s.fragmentation()
	s.utf8Messages()
	s.utf8Sequences()
	s.closeHandling()
	s.limits()
	return s
}

// framing is group 1.
func (s *suite) framing() {
	for i, n := range []int{0, 125, 126, 127, 128, 65535, 65536, 65536} {
		what, blob := strings.Repeat("*", n), strings.Repeat("\xfe", n)
		s.add(fmt.Sprintf("1.1.%d", i+1), fmt.Sprintf("text of %d bytes", n), 1000, clientFrame(fin|opText, what), eventOf("text", what))
		s.add(fmt.Sprintf("1.2.%d", i+1), fmt.Sprintf("binary message of %d bytes", n), 1000, clientFrame(fin|opBinary, blob), eventOf("binary", blob))
	}
}

// pings is group 2.
func (s *suite) pings() {
	ping := func(p string) string { return clientFrame(fin|opPing, p) }
	pong := func(p string) string { return clientFrame(fin|opPong, p) }
	back := func(p string) string { return eventOf("pong", p) }
	const hello, blob = "Hello, world!", "\x00\xff\xfe\xfd\xfc\xfb\x00\xff"
	longest := strings.Repeat("\xfe", 125)
	var ten string
	var answers []string
	for i := range 10 {
		ten += ping(fmt.Sprintf("payload-%d", i))
		answers = append(answers, back(fmt.Sprintf("payload-%d", i)))
	}
	s.add("2.1", "ping without a payload", 1000, ping(""), back(""))
	s.add("2.2", "ping with a short text", 1000, ping(hello), back(hello))
	s.add("2.3", "ping with bytes that are no text", 1000, ping(blob), back(blob))
	s.add("2.4", "ping of 125 bytes", 1000, ping(longest), back(longest))
	s.add("2.5", "ping of 126 bytes", 1002, ping(longest+"\xfe"))
	s.add("2.6", "ping of 125 bytes, in single ones", 1000, ping(longest), back(longest))
	s.add("2.7", "pong that was not asked for, without a payload", 1000, pong(""))
	s.add("2.8", "the same with a payload", 1000, pong("unsolicited pong payload"))
	s.add("2.9", "the same, then a ping", 1000, pong("unsolicited pong payload")+ping("ping payload"), back("ping payload"))
	s.add("2.10", "ten pings", 1000, ten, answers...)
	s.add("2.11", "ten pings, in single bytes", 1000, ten, answers...)
}

// reservedBits is group 3.
func (s *suite) reservedBits() {
	const hello = "Hello, world!"
	good, echoed := clientFrame(fin|opText, hello), eventOf("text", hello)
	with := func(rsv, op byte, payload string) string { return clientFrame(fin|rsv<<4|op, payload) }
	ping := clientFrame(fin|opPing, "")
	s.add("3.1", "text with reserved bits 1", 1002, with(1, opText, hello))
	s.add("3.2", "text, text with bits 2, ping", 1002, good+with(2, opText, hello)+ping, echoed)
	s.add("3.3", "the same with bits 3, frame by frame", 1002, good+with(3, opText, hello)+ping, echoed)
	s.add("3.4", "the same with bits 4, in single bytes", 1002, good+with(4, opText, hello)+ping, echoed)
	s.add("3.5", "binary message with bits 5", 1002, with(5, opBinary, "\x00\xff\xfe\xfd\xfc\xfb\x00\xff"))
	s.add("3.6", "ping with bits 6", 1002, with(6, opPing, hello))
	s.add("3.7", "close with bits 7", 1002, with(7, opClose, closeNormal))
}

// opcodes is group 4.
func (s *suite) opcodes() {
	const hello = "Hello, world!"
	good, echoed := clientFrame(fin|opText, hello), eventOf("text", hello)
	ping := clientFrame(fin|opPing, "")
	for group, first := range map[string]byte{"4.1": 3, "4.2": 11} {
		for i := range byte(5) {
			op, payload := first+i, ""
			if i == 1 || i >= 3 {
				payload = "reserved opcode payload"
			}
			id, what := fmt.Sprintf("%s.%d", group, i+1), fmt.Sprintf("reserved opcode %d", op)
			if i < 2 {
				s.add(id, what, 1002, clientFrame(fin|op, payload))
			} else {
				s.add(id, what+" between text and ping", 1002, good+clientFrame(fin|op, payload)+ping, echoed)
			}
		}
	}
}

// fragmentation is group 5. Where Autobahn has a case three times, all at once, frame
// by frame and in single bytes, so has the table, though each is run in all ways.
func (s *suite) fragmentation() {
	f := func(first byte, n int) string { return clientFrame(first, fmt.Sprint("fragment", n)) }
	ping, pong := clientFrame(fin|opPing, "ping payload"), eventOf("pong", "ping payload")
	two, echoed := f(opText, 1)+f(fin|opMore, 2), eventOf("text", "fragment1fragment2")
	s.add("5.1", "ping in two fragments", 1002, f(opPing, 1)+f(fin|opMore, 2))
	s.add("5.2", "pong in two fragments", 1002, f(opPong, 1)+f(fin|opMore, 2))
	for _, id := range []string{"5.3", "5.4", "5.5"} {
		s.add(id, "text in two fragments", 1000, two, echoed)
	}
	for _, id := range []string{"5.6", "5.7", "5.8"} {
		s.add(id, "text in two fragments with a ping between them", 1000, f(opText, 1)+ping+f(fin|opMore, 2), pong, echoed)
	}
	whole := clientFrame(fin|opText, "Hello, world!")
	for _, id := range []string{"5.9", "5.10", "5.11"} {
		s.add(id, "last fragment of nothing, then text", 1002, clientFrame(fin|opMore, "non-continuation payload")+whole)
	}
	for _, id := range []string{"5.12", "5.13", "5.14"} {
		s.add(id, "fragment of nothing, not the last, then text", 1002, clientFrame(opMore, "non-continuation payload")+whole)
	}
	s.add("5.15", "text in two fragments, a fragment of nothing, text", 1002, two+f(opMore, 3)+f(fin|opText, 4), echoed)
	s.add("5.16", "twice: fragment of nothing, not the last, text in two", 1002, strings.Repeat(f(opMore, 1)+f(opText, 2)+f(fin|opMore, 3), 2))
	s.add("5.17", "twice: last fragment of nothing, text in two", 1002, strings.Repeat(f(fin|opMore, 1)+f(opText, 2)+f(fin|opMore, 3), 2))
	s.add("5.18", "two fragments that both begin a text", 1002, f(opText, 1)+f(fin|opText, 2))
	for _, id := range []string{"5.19", "5.20"} {
		s.steps(id, "text in five fragments; each ping among them is answered before more is sent", 1000,
			step{f(opText, 1) + f(opMore, 2) + ping, []string{pong}},
			step{f(opMore, 3) + f(opMore, 4) + ping, []string{pong}},
			step{f(fin|opMore, 5), []string{eventOf("text", "fragment1fragment2fragment3fragment4fragment5")}})
	}
}

// closeHandling is group 7.
func (s *suite) closeHandling() {
	closing := func(code int, reason string) string {
		return clientFrame(fin|opClose, string([]byte{byte(code >> 8), byte(code)})+reason)
	}
	text := func(p string) string { return clientFrame(fin|opText, p) }
	const hello = "Hello World!"
	echoed, normal, ping := eventOf("text", hello), closing(1000, ""), clientFrame(fin|opPing, "")
	long := strings.Repeat("BAsd7&jh23", 256<<10/10+1)[:256<<10]
	s.add("7.1.1", "text, close", 1000, text(hello)+normal, echoed)
	s.add("7.1.2", "two close frames", 1000, normal+normal)
	s.add("7.1.3", "close, ping", 1000, normal+ping)
	s.add("7.1.4", "close, text", 1000, normal+text(hello))
	s.add("7.1.5", "fragment, close, last fragment", 1000, clientFrame(opText, "fragment1")+normal+clientFrame(fin|opMore, "fragment2"))
	s.inform("7.1.6", "256 KiB of text, text, close, ping: all before the close is answered", 1000,
		text(long)+text(hello)+normal+ping, eventOf("text", long), echoed)
	s.add("7.3.1", "close without a code", 1005, clientFrame(fin|opClose, ""))
	s.add("7.3.2", "close of one byte", 1002, clientFrame(fin|opClose, "a"))
	s.add("7.3.3", "close with a code", 1000, normal)
	s.add("7.3.4", "close with a code and a reason", 1000, closing(1000, "Hello World!"))
	s.add("7.3.5", "close with the longest reason, 123 bytes", 1000, closing(1000, strings.Repeat("*", 123)))
	s.add("7.3.6", "close with a reason of 124 bytes", 1002, closing(1000, strings.Repeat("*", 124)))
	s.add("7.5.1", "close with a reason that is not UTF-8", 1007, closing(1000, kosme+"\xed\xa0\x80edited"))
	for i, code := range []int{1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999} {
		s.add(fmt.Sprintf("7.7.%d", i+1), fmt.Sprint("close with the code ", code), code, closing(code, ""))
	}
	for i, code := range []int{0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999} {
		s.add(fmt.Sprintf("7.9.%d", i+1), fmt.Sprint("close with ", code, ", which is no code"), 1002, closing(code, ""))
	}
	for i, code := range []int{5000, 65535} {
		s.inform(fmt.Sprintf("7.13.%d", i+1), fmt.Sprint("close with ", code, ", out of every range"), 1002, closing(code, ""))
	}
}

// limits is group 10 and, of group 9, the messages that go up to the limit.
func (s *suite) limits() {
	long := strings.Repeat("*", 65536)
	s.add("10.1.1", "text of 65536 bytes in fragments of 1300", 1000, fragments(opText, cut(long, 1300)...), eventOf("text", long))
	for i, n := range []int{64 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20, 16 << 20} {
		text, blob := strings.Repeat("*", n), strings.Repeat("\xfe", n)
		s.add(fmt.Sprintf("9.1.%d", i+1), fmt.Sprintf("text of %d KiB", n>>10), 1000, clientFrame(fin|opText, text), eventOf("text", text))
		s.add(fmt.Sprintf("9.2.%d", i+1), fmt.Sprintf("binary message of %d KiB", n>>10), 1000, clientFrame(fin|opBinary, blob), eventOf("binary", blob))
	}
}
