package edge_test

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/ommer/ommer/edge"
)

// request is a request for the service with more fields than it needs.
func request(method, path, fields, body string) string {
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s\r\n%s", method, path, fields, body)
}

const (
	pathPost = "/v3/" + testKey
	chunked  = "Transfer-Encoding: chunked\r\n"
)

// hidden is what an attack tries to get past another reader.
var hidden = post(testKey, lookup(666, 0xbad))

func length(of string) string { return fmt.Sprintf("Content-Length: %d\r\n", len(of)) }

// chunk is a chunked body of one chunk and the given trailer section.
func chunk(body, trailer string) string {
	return fmt.Sprintf("%x\r\n%s\r\n0\r\n%s\r\n", len(body), body, trailer)
}

// handshake is a request for a WebSocket.
func handshake(fields string) string {
	return "GET /ws/v3/" + testKey + " HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" + fields + "\r\n"
}

// attack is a stream, and what is answered until the sentinel or the end.
type attack struct{ name, stream, want string }

// attacks are the classics, and what each is answered with.
func attacks() []attack {
	one := lookup(1, 1)
	all := []attack{
		{"nothing", "", "sentinel"},
		{"a request", post(testKey, one), "200 sentinel"},

		// Length and coding: RFC 9112 section 6.3.
		{"CL.TE", request("POST", pathPost, length("0\r\n\r\n"+hidden)+chunked, "0\r\n\r\n"+hidden), "400"},
		{"TE.CL", request("POST", pathPost, chunked+"Content-Length: 4\r\n", chunk(hidden, "")), "400"},
		{"CL.0", request("GET", pathPost, length(hidden), hidden), "405 sentinel"},
		{"CL.0 of a HEAD", request("HEAD", pathPost, length(hidden), hidden), "405 sentinel"},
		{"CL.0 of an OPTIONS", request("OPTIONS", pathPost, length(hidden), hidden), "204 sentinel"},
		{"0.CL", request("POST", pathPost, "", hidden), "200 200 sentinel"}, // there is no body
		{"0.TE", request("GET", pathPost, chunked, chunk(hidden, "")), "405 sentinel"},
		{"CL.CL", request("POST", pathPost, "Content-Length: 0\r\n"+length(hidden), hidden), "400"},
		{"CL.CL, equal", request("POST", pathPost, length(one)+length(one), one), "400"},
		{"CL.CL, in a list", request("POST", pathPost, "Content-Length: 2, 2\r\n", "{}"), "400"},
		{"length shorter than the body", request("POST", pathPost, "Content-Length: 2\r\n", "{}"+hidden), "200 200 sentinel"},
		{"length longer than the body", request("POST", pathPost, "Content-Length: 1000\r\n", one), ""},
		{"length with zeros", request("POST", pathPost, "Content-Length: 0000"+strconv.Itoa(len(one))+"\r\n", one), "200 sentinel"},
		{"TE of HTTP/1.0", "POST " + pathPost + " HTTP/1.0\r\nConnection: keep-alive\r\n" + chunked + "\r\n" + chunk(hidden, ""), "400"},

		// Chunks: section 7.1.
		{"a chunk", request("POST", pathPost, chunked, chunk(one, "")), "200 sentinel"},
		{"a request behind the last chunk", request("POST", pathPost, chunked, "0\r\n\r\n"+hidden), "200 200 sentinel"},
		{"a request for a chunk", request("POST", pathPost, chunked, hidden), "400"},
		{"chunk with an extension", request("POST", pathPost, chunked, "2;a=b;c=\"d\"\r\n{}\r\n0;e\r\n\r\n"), "200 sentinel"},
		{"extension with a bare LF", request("POST", pathPost, chunked, "2;\n{}\r\n0\r\n\r\n"+hidden), "400"},
		{"extension with a bare CR", request("POST", pathPost, chunked, "2;\rx\r\n{}\r\n0\r\n\r\n"+hidden), "400"},
		{"extension that quotes a line end", request("POST", pathPost, chunked, "2;a=\"\r\n{}\r\n0\r\n\r\n"+hidden+"\""), "200 200 400"},
		{"extension without end", request("POST", pathPost, chunked, "2;"+strings.Repeat("a", 1000)), "400"},
		{"chunk data without CRLF", request("POST", pathPost, chunked, "2\r\n{}0\r\n\r\n"+hidden), "400"},
		{"chunk data with a bare LF", request("POST", pathPost, chunked, "2\r\n{}\n0\r\n\r\n"+hidden), "400"},
		{"chunk data too long", request("POST", pathPost, chunked, "1\r\n{}\r\n0\r\n\r\n"+hidden), "400"},
		{"last chunk of many zeros", request("POST", pathPost, chunked, "2\r\n{}\r\n0000\r\n\r\n"), "200 sentinel"},
		{"last chunk without end", request("POST", pathPost, chunked, "2\r\n{}\r\n0\r\n"+hidden), "400"},
		{"last chunk with a bare LF", request("POST", pathPost, chunked, "2\r\n{}\r\n0\r\n\n"+hidden), "400"},
		{"body over the limit", request("POST", pathPost, chunked, "100001\r\n"+hidden), "413"},

		// Trailers: section 7.1.2.
		{"trailer", request("POST", pathPost, chunked, chunk(one, "X: y\r\n")), "200 sentinel"},
		{"trailer with a length", request("POST", pathPost, chunked, chunk(one, length(hidden))+hidden), "200 200 sentinel"},
		{"trailer with a coding", request("POST", pathPost, chunked, chunk(one, chunked)+hidden), "200 200 sentinel"},
		{"trailer with a host and a type", request("POST", pathPost, chunked, chunk(one, "Host: y\r\nContent-Type: x\r\nConnection: close\r\n")), "200 sentinel"},
		{"trailer that is announced to frame", request("POST", pathPost, chunked+"Trailer: Content-Length\r\n", chunk(one, length(hidden))+hidden), "400"},
		{"trailer folded", request("POST", pathPost, chunked, chunk(one, "X: y\r\n z\r\n")), "400"},
		{"trailer with a space before the colon", request("POST", pathPost, chunked, chunk(one, "X : y\r\n")), "400"},
		{"request for a trailer", request("POST", pathPost, chunked, "0\r\n"+hidden), "400"},
		{"trailer without end", request("POST", pathPost, chunked, "0\r\nX: "), "200 400"},

		// Lines: section 2.2 and 5.
		{"an empty line before", "\r\n" + post(testKey, one) + "\r\n", "200 sentinel"},
		{"two empty lines before", "\r\n\r\n" + post(testKey, one), "400"},
		{"bare LF", strings.ReplaceAll(post(testKey, one), "\r\n", "\n"), "400"},
		{"bare LF ends the head", "POST " + pathPost + " HTTP/1.1\r\nHost: x\r\n\n" + hidden, "400"},
		{"bare CR", request("POST", pathPost, "X: y\r"+length(hidden), hidden), "400"},
		{"folded length", request("POST", pathPost, "X: y\r\n "+length(hidden), hidden), "400"},
		{"folded value", request("POST", pathPost, "Content-Length:\r\n 2\r\n", "{}"), "400"},
		{"space before the colon", request("POST", pathPost, "Content-Length : 2\r\n", "{}"), "400"},
		{"NUL in a value", request("POST", pathPost, "X: \x00\r\n", ""), "400"},
		{"NUL in a name", request("POST", pathPost, "X\x00: y\r\n", ""), "400"},
		{"NUL in the target", request("POST", pathPost+"\x00", "", ""), "400"},
		{"a line without colon", request("POST", pathPost, "X\r\n", ""), "400"},
		{"two requests in one line", "POST " + pathPost + " HTTP/1.1 POST / HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
		{"HTTP/0.9", "GET /\r\n", "400"},
		{"preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"},
		{"line too long", "GET /" + strings.Repeat("a", 9000) + " HTTP/1.1\r\n", "414"},
		{"header too large", request("POST", pathPost, "X: "+strings.Repeat("a", 17000)+"\r\n", ""), "431"},
		{"too many fields", request("POST", pathPost, strings.Repeat("X: y\r\n", 101), ""), "431"},

		// Which host: section 3.2.
		{"absolute form with another host", request("POST", "http://other.example"+pathPost, length(one), one), "200 sentinel"},
		{"absolute form with another path in Host", "POST http://x" + pathPost + " HTTP/1.1\r\nHost: x/v3/other\r\n\r\n", "400"},
		{"absolute form with userinfo", request("POST", "http://x@y"+pathPost, length(one), one), "400"},
		{"two hosts", request("POST", pathPost, "Host: y\r\n", ""), "400"},
		{"no host", "POST " + pathPost + " HTTP/1.1\r\n\r\n", "400"},

		// Methods.
		{"HEAD", request("HEAD", pathPost, "", ""), "405 sentinel"},
		{"HEAD of an unknown key", request("HEAD", "/v3/nope-nope", "", ""), "401 sentinel"},
		{"HEAD over the limit", request("HEAD", pathPost, "Content-Length: 1048577\r\n", ""), "405"},
		{"HEAD with a bad chunk", request("HEAD", pathPost, chunked, "x"), "400"},
		{"TRACE", request("TRACE", pathPost, "", ""), "405 sentinel"},
		{"CONNECT", request("CONNECT", "x:443", "", hidden), "404"},
		{"CONNECT to a path", request("CONNECT", pathPost, "", hidden), "400"},
		{"OPTIONS of the server", request("OPTIONS", "*", "", ""), "404 sentinel"},
		{"a response", "HTTP/1.1 100 Continue\r\n\r\n", "400"},

		// What kind of body: RFC 9110 sections 8.3 and 8.4.
		{"content type twice", request("POST", pathPost, "Content-Type: application/json; charset=utf-8\r\n"+length(one), one), "200 sentinel"},
		{"content type with space before its parameters", strings.Replace(post(testKey, one), "/json", "/JSON ; charset=utf-8", 1), "200 sentinel"},
		{"content type of the same length", strings.Replace(post(testKey, one), "/json", "/jsox", 1), "415 sentinel"},
		{"content types that differ", request("POST", pathPost, "Content-Type: text/plain\r\n"+length(one), one), "415 sentinel"},
		{"content types that were joined", strings.Replace(post(testKey, one), "/json", "/json, application/json", 1), "415 sentinel"},
		{"identity", request("POST", pathPost, "Content-Encoding: identity\r\nContent-Encoding: ,Identity\r\n"+length(one), one), "200 sentinel"},
		{"gzip", request("POST", pathPost, "Content-Encoding: gzip\r\n"+length(one), one), "415 sentinel"},
		{"gzip behind identity", request("POST", pathPost, "Content-Encoding: identity\r\nContent-Encoding: identity, gzip\r\n"+length(one), one), "415 sentinel"},

		// What ends a connection, and what does not.
		{"behind 401", post("nope-nope", hidden), "401 sentinel"},
		{"behind 404", request("POST", "/other", length(hidden), hidden), "404 sentinel"},
		{"behind a path with two slashes", request("POST", "/v3//"+testKey, length(hidden), hidden), "404 sentinel"},
		{"behind 404, chunked", request("POST", "/other", chunked, chunk(hidden, "")), "404 sentinel"},
		{"behind 405", request("PUT", pathPost, length(hidden), hidden), "405 sentinel"},
		{"behind 415", strings.Replace(post(testKey, hidden), "application/json", "text/plain", 1), "415 sentinel"},
		{"behind 413", request("POST", pathPost, "Content-Length: 1048577\r\n", hidden), "413"},
		{"behind 413, chunked", request("POST", pathPost, chunked, "200000\r\n"+hidden), "413"},
		{"behind a close", request("POST", pathPost, "Connection: close\r\n"+length(one), one) + hidden, "200"},
		{"behind a close in a list", request("POST", pathPost, "Connection: x, Close\r\n"+length(one), one) + hidden, "200"},
		{"behind HTTP/1.0", strings.Replace(post(testKey, one), "HTTP/1.1", "HTTP/1.0", 1) + hidden, "200"},
		{"behind HTTP/1.0 that stays", strings.Replace(request("POST", pathPost, "Connection: keep-alive\r\n"+length(one), one), "HTTP/1.1", "HTTP/1.0", 1), "200 sentinel"},
		{"behind an expectation", request("POST", pathPost, "Expect: 100-continue\r\n"+length(one), one), "200 sentinel"},
		{"behind an expectation, refused", request("POST", "/v3/nope-nope", "Expect: 100-continue\r\n"+length(hidden), hidden), "401"},
		{"behind an expectation without a body", request("POST", "/v3/nope-nope", "Expect: 100-continue\r\n", ""), "401 sentinel"},
		{"behind another expectation", request("POST", pathPost, "Expect: 100-continue, x\r\n"+length(hidden), hidden), "417"},
		// RFC 9112 section 3: 501 for a method longer than any that is known. It is
		// said before the path is looked at, so it tells nothing about a key.
		{"behind a method without end", request(strings.Repeat("A", 33), pathPost, length(hidden), hidden), "501"},
		{"behind the longest method", request(strings.Repeat("A", 32), "/v3/nope-nope", length(hidden), hidden), "401 sentinel"},

		// WebSockets.
		{"handshake", handshake(""), "101 sentinel"},
		{"handshake and frames", handshake("") + clientFrame(0x81, one) + clientFrame(0x89, "") + clientFrame(0x82, one), "101 sentinel"},
		{"handshake and half a frame", handshake("") + clientFrame(0x82, strings.Repeat(" ", 1000))[:20], "101 cut"},
		{"handshake and a request", handshake("") + hidden, "101 1002"},
		{"handshake and a request in a frame", handshake("") + clientFrame(0x82, hidden), "101 sentinel"},
		{"handshake and an unmasked frame", handshake("") + "\x81\x02{}", "101 1002"},
		{"handshake behind an answer", request("GET", "/other", "", "") + handshake(""), "404 101 sentinel"},
		{"handshake with a length", handshake(length(hidden)) + hidden, "400"},
		{"handshake with a coding", handshake(chunked) + chunk(hidden, ""), "400"},
		{"handshake refused", strings.Replace(handshake(""), ": 13", ": 8", 1) + clientFrame(0x81, one), "426"},
		{"handshake with a bad key", strings.Replace(handshake(""), "==", "=", 1) + clientFrame(0x81, one), "400"},
		{"handshake of an unknown key", strings.Replace(handshake(""), testKey, "nope-nope", 1), "401 sentinel"},
		{"handshake at the other path", strings.Replace(handshake(""), "/ws/v3", "/v3", 1), "405 sentinel"},
		{"handshake of HTTP/1.0", strings.Replace(handshake(""), "HTTP/1.1", "HTTP/1.0", 1), "426"},
		{"handshake by POST", strings.Replace(handshake(""), "GET", "POST", 1), "405 sentinel"},
		{"frames without a handshake", clientFrame(0x81, one), "400"},
		{"h2c", request("GET", pathPost, "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "405 505"},
	}
	for _, v := range []string{
		"+2", "-2", "0x2", "2.0", "2e0", "2 2", "2,", "\"2\"", "", "2\x00", "\xef\xbc\x92", "\v2", "18446744073709551618", "9223372036854775808",
	} {
		all = append(all, attack{fmt.Sprintf("length %q", v), request("POST", pathPost, "Content-Length: "+v+"\r\n", "{}"+hidden), "400"})
	}
	for _, f := range []string{
		"Transfer-Encoding: xchunked", "Transfer-Encoding : chunked", "Transfer-Encoding: chunked, identity", "Transfer-Encoding: identity",
		"Transfer-Encoding: identity, chunked", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: \"chunked\"",
		"Transfer-Encoding: chunked;x", "Transfer-Encoding: \vchunked", "Transfer-Encoding: chunked\v", "Transfer-Encoding: chun\x00ked", "Transfer-Encoding:",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: x", "Transfer-Encoding: x\r\nTransfer-Encoding: chunked", "Transfer-Encoding\r\n : chunked",
		"Transfer-Encoding:\r\n chunked", "X: y\nTransfer-Encoding: chunked", "X: y\rTransfer-Encoding: chunked", " Transfer-Encoding: chunked",
		"\x00Transfer-Encoding: chunked", "Transfer-Encoding: chun\u212aed", "Transfer-Encoding: [chunked]", "Transfer-Encoding: chunked \x85",
	} {
		all = append(all,
			attack{fmt.Sprintf("TE.TE %q", f), request("POST", pathPost, f+"\r\n", "0\r\n\r\n"+hidden), "400"},
			attack{fmt.Sprintf("TE.TE with a length %q", f), request("POST", pathPost, length("0\r\n\r\n"+hidden)+f+"\r\n", "0\r\n\r\n"+hidden), "400"})
	}
	for _, size := range []string{"+2", "-2", "0x2", " 2", "2 ", "2\t", "", "g", "2_", "2,", "2\x00", "\v2", ";", "00000000000000002"} {
		all = append(all, attack{fmt.Sprintf("chunk size %q", size), request("POST", pathPost, chunked, size+"\r\n{}\r\n0\r\n\r\n"+hidden), "400"})
	}
	for _, size := range []string{"10000000000000002", "fffffffffffffffe", "8000000000000002", "7fffffffffffffff", "100000002"} {
		all = append(all, attack{"chunk size " + size, request("POST", pathPost, chunked, size+"\r\n{}\r\n0\r\n\r\n"+hidden), "413"})
	}
	return all
}

// TestSmuggling: each attack gets what is written beside it, however it is cut.
func TestSmuggling(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	transports(t, func(t *testing.T, secure bool) {
		s.secure = secure
		for _, tt := range attacks() {
			t.Run(tt.name, func(t *testing.T) {
				for _, cut := range []int{0, min(len(tt.stream), 2), len(tt.stream) / 2, max(len(tt.stream), 1) - 1} {
					if got := s.provoke(t, tt.stream, cut); got != tt.want {
						t.Errorf("cut at %d: got %q, want %q\n%.300q", cut, got, tt.want, tt.stream)
					}
				}
			})
		}
	})
}

// TestRefusedBodyIsNotHeld: of a body that nobody will look at, nothing is kept.
func TestRefusedBodyIsNotHeld(t *testing.T) {
	f := start(t, func(c *edge.Config) { c.Limits.InputTotal = 1 << 10 })
	body := strings.Repeat("x", 1_000_000)
	for _, tt := range []struct{ name, stream string }{
		{"length", request("POST", "/v3/nope-nope", length(body), body)},
		{"chunks", request("POST", "/v3/nope-nope", chunked, chunk(body, ""))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := f.dial(t, false)
			go io.WriteString(c, tt.stream)
			if resp, _ := response(t, bufio.NewReader(c)); resp.StatusCode != 401 || resp.Close {
				t.Errorf("got %s, closes: %v, want 401 and the connection to stay", resp.Status, resp.Close)
			}
		})
	}
}

// TestHeadHasNoBody: the body of an answer to HEAD would be taken for the start of
// the next answer, RFC 9112 section 6.3.
func TestHeadHasNoBody(t *testing.T) {
	s := newStage(t)
	for _, tt := range []struct{ name, stream, want string }{
		{"refused", request("HEAD", pathPost, "", ""), "405"},
		{"over the limit", request("HEAD", pathPost, "Content-Length: 1048577\r\n", ""), "405"},
		{"refused before the body", request("HEAD", "/v3/nope-nope", "Expect: 100-continue\r\nContent-Length: 1\r\n", ""), "401"},
		{"malformed behind the header", request("HEAD", pathPost, chunked, "x"), "400"},
		{"unknown expectation", request("HEAD", "/other", "Expect: x\r\n", ""), "404"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := string(s.send(t, tt.stream, 0, ""))
			if !strings.HasPrefix(got, "HTTP/1.1 "+tt.want+" ") || strings.Index(got, "\r\n\r\n") != len(got)-4 {
				t.Errorf("got %q, want %s and no body", got, tt.want)
			}
		})
	}
}
