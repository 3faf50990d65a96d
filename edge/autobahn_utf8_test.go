package edge_test

import (
	"fmt"
	"slices"
	"strings"
)

// kosme is the Greek word that the UTF-8 stress test of Markus Kuhn begins with
// (www.cl.cam.ac.uk/~mgk25/ucs/examples/UTF-8-test.txt), from which Autobahn has its
// sequences.
const kosme = "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5"

// utf8Messages are the cases 6.1 to 6.4.
func (s *suite) utf8Messages() {
	text := func(parts ...string) string { return fragments(opText, parts...) }
	s.add("6.1.1", "empty text", 1000, text(""), eventOf("text", ""))
	s.add("6.1.2", "empty text in three fragments", 1000, text("", "", ""), eventOf("text", ""))
	s.add("6.1.3", "three fragments, the first and the last empty", 1000, text("", "middle frame payload", ""), eventOf("text", "middle frame payload"))

	const hello, world = "Hello-µ@ßöä", "üàá-UTF-8!!"
	s.add("6.2.1", "text in one frame", 1000, text(hello+world), eventOf("text", hello+world))
	s.add("6.2.2", "text in two, cut between characters", 1000, text(hello, world), eventOf("text", hello+world))
	s.add("6.2.3", "text in fragments of a byte", 1000, text(cut(hello+world, 1)...), eventOf("text", hello+world))
	s.add("6.2.4", "text of long characters in fragments of a byte", 1000, text(cut(kosme, 1)...), eventOf("text", kosme))

	const surrogate = kosme + "\xed\xa0\x80edited"
	s.add("6.3.1", "a surrogate", 1007, text(surrogate))
	s.add("6.3.2", "a surrogate, in fragments of a byte", 1007, text(cut(surrogate, 1)...))

	// Fail fast: what follows the wrong byte is never sent. That the good start was
	// taken is seen from a ping where one may come; within a frame none may, and
	// 6.2.4 in single bytes says the same.
	ping, pong := clientFrame(fin|opPing, ""), []string{eventOf("pong", "")}
	s.steps("6.4.1", "good start, then a fragment beyond U+10FFFF", 1007,
		step{clientFrame(opText, kosme) + ping, pong}, step{clientFrame(opMore, "\xf4\x90\x80\x80"), nil})
	s.steps("6.4.2", "good start, then a fragment up to the wrong byte", 1007,
		step{clientFrame(opText, kosme+"\xf4") + ping, pong}, step{clientFrame(opMore, "\x90"), nil})
	whole := clientFrame(fin|opText, kosme+"\xf4\x90\x80\x80edited")
	s.add("6.4.3", "6.4.1 within a frame", 1007, whole[:len(whole)-len("edited")])
	s.add("6.4.4", "6.4.2 within a frame", 1007, whole[:len(whole)-len("\x80\x80edited")])
}

// sequence is bytes that are UTF-8, or are not.
type sequence struct {
	bytes string
	valid bool
}

func good(all ...string) []sequence { return sequences(true, all) }
func bad(all ...string) []sequence  { return sequences(false, all) }

func sequences(valid bool, all []string) (s []sequence) {
	for _, b := range all {
		s = append(s, sequence{b, valid})
	}
	return s
}

// utf8Sequences are the cases 6.5 to 6.23, each a text in one frame.
func (s *suite) utf8Sequences() {
	missing := []string{
		"\xc0", "\xe0\x80", "\xf0\x80\x80", "\xf8\x80\x80\x80", "\xfc\x80\x80\x80\x80",
		"\xdf", "\xef\xbf", "\xf7\xbf\xbf", "\xfb\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf",
	}
	for i, group := range []struct {
		what string
		all  []sequence
	}{
		{"characters of 1 to 4 bytes", good("hello$world", "hello¢world", "hello€world", "hello\U00024b62world", kosme)},
		{"every start of a text", prefixes(kosme)},
		{"first of each length", good("\x00", "\xc2\x80", "\xe0\xa0\x80", "\xf0\x90\x80\x80")},
		{"first of 5 and 6 bytes", bad("\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80")},
		{"last of each length", good("\x7f", "\xdf\xbf", "\xef\xbf\xbf", "\xf4\x8f\xbf\xbf")},
		{"last of 4, 5 and 6 bytes by the scheme", bad("\xf7\xbf\xbf\xbf", "\xfb\xbf\xbf\xbf\xbf", "\xfd\xbf\xbf\xbf\xbf\xbf")},
		{"other borders", slices.Concat(good("\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbd", "\xf4\x8f\xbf\xbf"), bad("\xf4\x90\x80\x80"))},
		{"continuation bytes of nothing", bad("\x80", "\xbf", "\x80\xbf", "\x80\xbf\x80", "\x80\xbf\x80\xbf", "\x80\xbf\x80\xbf\x80", "\x80\xbf\x80\xbf\x80\xbf", span(0x80, 0xbe, ""))},
		{"starts of nothing", bad(span(0xc0, 0xde, " "), span(0xe0, 0xee, " "), span(0xf0, 0xf6, " "), span(0xf8, 0xfa, " "), span(0xfc, 0xfc, " "))},
		{"last byte missing", bad(missing...)},
		{"many of them", bad(strings.Join(missing, ""))},
		{"impossible bytes", bad("\xfe", "\xff", "\xfe\xfe\xff\xff")},
		{"overlong slash", bad("\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xf8\x80\x80\x80\xaf", "\xfc\x80\x80\x80\x80\xaf")},
		{"longest overlong", bad("\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf8\x87\xbf\xbf\xbf", "\xfc\x83\xbf\xbf\xbf\xbf")},
		{"overlong NUL", bad("\xc0\x80", "\xe0\x80\x80", "\xf0\x80\x80\x80", "\xf8\x80\x80\x80\x80", "\xfc\x80\x80\x80\x80\x80")},
		{"single surrogates", bad("\xed\xa0\x80", "\xed\xad\xbf", "\xed\xae\x80", "\xed\xaf\xbf", "\xed\xb0\x80", "\xed\xbe\x80", "\xed\xbf\xbf")},
		{"paired surrogates", pairs([]string{"\xed\xa0\x80", "\xed\xad\xbf", "\xed\xae\x80", "\xed\xaf\xbf"}, []string{"\xed\xb0\x80", "\xed\xbf\xbf"})},
		{"non-characters, which are UTF-8", nonCharacters()},
		{"specials, which are UTF-8", good("\ufff9", "\ufffa", "\ufffb", "\ufffc", "\ufffd", "\ufffe", "\uffff")},
	} {
		for j, q := range group.all {
			id, what := fmt.Sprintf("6.%d.%d", 5+i, j+1), fmt.Sprintf("%s: % x", group.what, q.bytes)
			if q.valid {
				s.add(id, what, 1000, clientFrame(fin|opText, q.bytes), eventOf("text", q.bytes))
			} else {
				s.add(id, what, 1007, clientFrame(fin|opText, q.bytes))
			}
		}
	}
}

// prefixes are those of a text. It is UTF-8 where a character begins or nothing
// follows.
func prefixes(text string) (s []sequence) {
	for n := 1; n <= len(text); n++ {
		s = append(s, sequence{text[:n], n == len(text) || text[n]&0xC0 != 0x80})
	}
	return s
}

// span is the bytes from first to last, each with something behind it.
func span(first, last byte, behind string) string {
	var b strings.Builder
	for c := first; c <= last; c++ {
		b.WriteByte(c)
		b.WriteString(behind)
	}
	return b.String()
}

// pairs are surrogates, each first one with each second one.
func pairs(firsts, seconds []string) (s []sequence) {
	for _, a := range firsts {
		for _, b := range seconds {
			s = append(s, bad(a+b)...)
		}
	}
	return s
}

// nonCharacters are the last two code points of each plane, from U+FFFE on.
func nonCharacters() (s []sequence) {
	for plane := range rune(17) {
		s = append(s, good(string(plane<<16|0xFFFE), string(plane<<16|0xFFFF))...)
	}
	return s
}
