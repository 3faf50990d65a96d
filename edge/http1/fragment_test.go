package http1

import (
	"math/rand/v2"
	"testing"
)

// Fragments of requests, the right ones and the wrong ones. Random bytes seldom
// spell a Transfer-Encoding; random choices from these do.
var (
	methods  = []string{"POST", "GET", "OPTIONS", "CONNECT", "HEAD", "PRI", "post", "P@ST", "", "A-VERY-LONG-METHOD-THAT-NOBODY-KNOWS"}
	targets  = []string{"/", "/v3/k?q=%zz", "//a", "/%41%2F", "/%4", "/a#b", "/\xff", "/\"<>\\^`{|}", "*", "**", "h:1", "h", "http://o", "HTTP://o:1/p?q", "http://o:x/", "http://u@o/", "http:///p", "http:/p", "https://[::1]:5?x/y", "http://[::1", "ftp://o/", "mailto:x", "http://o%41/", "http://o/%", "", "?", "/?", "http://o?", "http://a:1:2/", "http://o\\p/"}
	versions = []string{"HTTP/1.1", "HTTP/1.0", "HTTP/1.9", "HTTP/2.0", "HTTP/0.9", "http/1.1", "HTTP/1.10", "HTTP/1", "HTTP/1,1", "HTTP/ 1.1", "HTTP/1.1 ", ""}
	hosts    = []string{"Host: h", "host:o:1", "Host:", "Host: [::1]:2", "X: no host", "Host: a b", "Host: h:x", "Host: \xff", "Host : h", "Host: h, h", "Host: u@h", "Host: %41", "Host: \""}
	sound    = 16 // so many of the fields are right
	fields   = []string{
		"Transfer-Encoding: chunked", "Transfer-Encoding: CHUNKED\t", "Content-Length: 3", "Connection: close", "Connection: keep-alive", "Connection: x , CLOSE,", "Connection:", "Upgrade: websocket", "Upgrade: h2c", "Trailer: X", "Pragma: no-cache", "Cache-Control: x", "X: y", "X:y ", "X:\t", "X: \xff",

		"Host: h", "Host: o", "Expect: 100-continue", "Expect: x", "Expect:",
		"Content-Length: 0", "Content-Length: +3", "Content-Length: 3,3", "Content-Length: 03", "Content-Length:", "Content-Length: 3 ", "Content-Length: 9223372036854775808", "Content-Length: 0x3", "Content-Length : 3", "Content-Length: \v3", "Content_Length: 3",
		"Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked, chunked", "Transfer-Encoding:", "Transfer-Encoding: chunked;a", "Transfer-Encoding: \"chunked\"", "Transfer-Encoding : chunked", "transfer-encoding:identity", "Transfer-Encoding: chunke\u017f", "Transfer\u2010Encoding: chunked",
		"Connection: clo\u017fe", "Connection: Upgrade, HTTP2-Settings", "Trailer: X, content-length", "Trailer:",
		": y", "X", "X y: z", "X: a\x00", "X: \x7f", "X: a\rb", " folded", "\tfolded", "", "X\x80: y", "(X): y", "X: y\r",
	}
	chunks   = []string{"3", "0", "0A", "00000000000000000", "3;a=b", "3 ;a", "3 ", " 3", "0x3", "+3", "-3", "fffffffffffffffff", ";", "", "3;\x00", "3;a\rb", "3\t", "g"}
	endings  = []string{"\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\n", "\r", "\r\r\n", "\n\r", ""}
	contents = []string{"abc", "abcGET / HTTP/1.1", "a", "", "\r\n", "0123456789", "0\r\n\r\n"}
)

// script spells a stream out of choices, one byte each.
func script(choices []byte) []byte {
	var out []byte
	pick := func(from []string, right int) string {
		if len(choices) == 0 {
			return from[0]
		}
		// Half of the choices are right, or little would ever be accepted.
		c := int(choices[0])
		choices = choices[1:]
		if c < 128 {
			return from[c%right]
		}
		return from[c%len(from)]
	}
	add := func(parts ...string) {
		for _, p := range parts {
			out = append(out, p...)
		}
	}
	for more := true; more; more = len(choices) > 0 && len(out) < 4<<10 {
		add(pick(methods, 2), " ", pick(targets, 3), " ", pick(versions, 2), pick(endings, 1))
		add(pick(hosts, 4), pick(endings, 1))
		for range len(pick(contents, 1)) % 5 {
			add(pick(fields, sound), pick(endings, 1))
		}
		add(pick(endings, 1))
		for range len(pick(contents, 1)) % 5 {
			add(pick(chunks, 1), pick(endings, 1), pick(contents, 1), pick(endings, 1))
		}
		add("0", pick(endings, 1))
		for range len(pick(contents, 4)) % 3 {
			add(pick(fields, sound), pick(endings, 1))
		}
		add(pick(endings, 1))
	}
	return out
}

// FuzzFragments is FuzzAgainstNetHTTP and FuzzSplits on streams that are spelled from
// fragments.
func FuzzFragments(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{128, 129, 130, 131, 132, 133, 134})
	pool := NewPool(Limits{})
	f.Fuzz(func(t *testing.T, choices []byte) {
		stream := script(choices[:min(len(choices), 40)])
		against(t, pool, stream)
		driveAll(t, pool, stream)
	})
}

// TestAgainstNetHTTP runs many such streams, always the same.
func TestAgainstNetHTTP(t *testing.T) {
	pool := NewPool(Limits{})
	random := rand.New(rand.NewPCG(9112, 9110))
	accepted := 0
	for range 10_000 {
		choices := make([]byte, 4+random.IntN(40))
		for i := range choices {
			// Mostly right, so that one thing at a time is wrong.
			choices[i] = byte(random.IntN(128))
			if random.IntN(6) == 0 {
				choices[i] |= 128
			}
		}
		stream := script(choices)
		accepted += against(t, pool, stream)
		if t.Failed() {
			t.Fatal("stopped at the first difference")
		}
	}
	t.Logf("%d requests accepted", accepted)
	if accepted < 1000 {
		t.Errorf("%d requests were accepted, want many: the fragments say little", accepted)
	}
}
