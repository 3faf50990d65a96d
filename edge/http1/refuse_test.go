package http1

import (
	"strings"
	"testing"
)

func TestRefused(t *testing.T) {
	const chunked = "Transfer-Encoding: chunked"
	post := func(lines ...string) string { return head(append([]string{"POST / HTTP/1.1"}, lines...)...) }
	get := func(target string) string { return head("GET " + target + " HTTP/1.1") }
	for _, tt := range []struct {
		name, stream string
		status       int
		why          Reason
	}{
		// The request line.
		{"tls", "\x16\x03\x01", 400, MethodInvalid},
		{"two empty lines", "\r\n\r\nGET / HTTP/1.1\r\n", 400, MethodInvalid},
		{"a bare CR first", "\rGET", 400, MethodInvalid},
		{"a bare LF first", "\nGET", 400, MethodInvalid},
		{"white space first", " GET", 400, MethodInvalid},
		{"ssh", "SSH-2.0-Go\r", 400, MethodInvalid},
		{"endless method", strings.Repeat("A", 33), 501, MethodLong},
		{"no target", "GET \r\n", 400, LineInvalid},
		{"http/0.9", "GET /\r\n", 400, LineInvalid},
		{"two spaces", "GET  / HTTP/1.1\r\n", 400, VersionInvalid},
		{"tab", "GET\t/ HTTP/1.1\r\n", 400, MethodInvalid},
		{"space at the end", "GET / HTTP/1.1 \r\n", 400, VersionInvalid},
		{"lower case version", "GET / http/1.1\r\n", 400, VersionInvalid},
		{"long version", "GET / HTTP/1.10\r\n", 400, VersionInvalid},
		{"version with a letter for its minor", "GET / HTTP/1.x\r\n", 400, VersionInvalid},
		{"version with a letter for its major", "GET / HTTP/x.1\r\n", 400, VersionInvalid},
		{"short version", "GET / HTTP/1\r\n", 400, VersionInvalid},
		{"bare CR at the end", "GET / HTTP/1.1\r\r\n", 400, VersionInvalid},
		{"http/2 preface", "PRI * HTTP/2.0\r\n", 505, VersionUnknown},
		{"http/9.9", "GET / HTTP/9.9\r\n", 505, VersionUnknown},
		{"http/0.9 in words", "GET / HTTP/0.9\r\n", 505, VersionUnknown},
		{"bare LF after the request line", "GET / HTTP/1.1\n", 400, BareLF},

		// The target.
		{"relative", get("a/b"), 400, TargetInvalid},
		{"asterisk for get", get("*"), 400, TargetInvalid},
		{"authority for get", get("h:80"), 400, TargetInvalid},
		{"fragment", get("/a#b"), 400, TargetInvalid},
		{"control byte", get("/a\x01"), 400, TargetInvalid},
		{"NUL", get("/a\x00"), 400, TargetInvalid},
		{"above ASCII", get("/\xc3\xa9"), 400, TargetInvalid},
		{"bare CR", get("/a\rb"), 400, TargetInvalid},
		{"half an escape", get("/%4"), 400, TargetInvalid},
		{"no escape", get("/%zz/"), 400, TargetInvalid},
		{"no escape behind an escape", get("/%41%zz"), 400, TargetInvalid},
		{"other scheme", get("ftp://h/"), 400, TargetInvalid},
		{"no slashes", get("http:/h/"), 400, TargetInvalid},
		{"absolute without host", get("http:///a"), 400, TargetInvalid},
		{"absolute with userinfo", get("http://u@h/"), 400, TargetInvalid},
		{"absolute with a bad port", get("http://h:x/"), 400, TargetInvalid},
		{"absolute with a bad escape", get("http://h/%"), 400, TargetInvalid},
		{"connect without a port", head("CONNECT h HTTP/1.1"), 400, TargetInvalid},
		{"connect without a target", head("CONNECT  HTTP/1.1"), 400, TargetInvalid},
		{"connect to a path", head("CONNECT / HTTP/1.1"), 400, TargetInvalid},

		// Field lines.
		{"space before the colon", post("X : 1"), 400, FieldName},
		{"tab before the colon", post("X\t: 1"), 400, FieldName},
		{"no colon", post("X"), 400, FieldName},
		{"no name", post(": 1"), 400, FieldName},
		{"space in the name", post("X Y: 1"), 400, FieldName},
		{"NUL in the name", post("X\x00: 1"), 400, FieldName},
		{"above ASCII in the name", post("X\xff: 1"), 400, FieldName},
		{"folded", post("X: 1", " 2"), 400, FieldFolded},
		{"folded with a tab", post("X: 1", "\t2"), 400, FieldFolded},
		{"folded at once", "GET / HTTP/1.1\r\n Host: h\r\n", 400, FieldFolded},
		{"NUL", post("X: a\x00b"), 400, FieldValue},
		{"NUL in a long value", post("X: 0123456789\x00abcdefghijkl"), 400, FieldValue},
		{"DEL", post("X: 0123456\x7f"), 400, FieldValue},
		{"bare CR in a value", post("X: a\rY: b"), 400, FieldValue},
		{"bare LF", "GET / HTTP/1.1\r\nHost: h\n", 400, BareLF},
		{"bare LF ends the head", "GET / HTTP/1.1\r\nHost: h\r\n\n", 400, BareLF},

		// Host.
		{"no host", "GET / HTTP/1.1\r\n\r\n", 400, HostMissing},
		{"no host field with an absolute target", "GET http://h/ HTTP/1.1\r\n\r\n", 400, HostMissing},
		{"two hosts", post("Host: h"), 400, HostRepeated},
		{"two hosts by 1.0", head("GET / HTTP/1.0", "host: other"), 400, HostRepeated},
		{"bad host", "GET / HTTP/1.1\r\nHost: a/b\r\n", 400, HostInvalid},

		// Content-Length.
		{"length empty", post("Content-Length:"), 400, LengthInvalid},
		{"length signed", post("Content-Length: +1"), 400, LengthInvalid},
		{"length negative", post("Content-Length: -1"), 400, LengthInvalid},
		{"length hexadecimal", post("Content-Length: 0x1"), 400, LengthInvalid},
		{"length with a space", post("Content-Length: 1 1"), 400, LengthInvalid},
		{"length a list", post("Content-Length: 1, 1"), 400, LengthInvalid},
		{"length of 2^63", post("Content-Length: 9223372036854775808"), 400, LengthInvalid},
		{"length of 2^64+1", post("Content-Length: 18446744073709551617"), 400, LengthInvalid},
		{"length twice, equal", post("Content-Length: 1", "Content-Length: 1"), 400, LengthRepeated},
		{"length twice, different", post("Content-Length: 1", "content-length: 2"), 400, LengthRepeated},
		{"length with coding", post("Content-Length: 1", chunked), 400, LengthAndCoding},
		{"coding with length", post(chunked, "Content-Length: 1"), 400, LengthAndCoding},

		// Transfer-Encoding.
		{"coding empty", post("Transfer-Encoding:"), 400, CodingInvalid},
		{"coding twice", post(chunked, chunked), 400, CodingInvalid},
		{"chunked twice", post("Transfer-Encoding: chunked, chunked"), 400, CodingInvalid},
		{"coding by 1.0", head("POST / HTTP/1.0", chunked), 400, CodingInvalid},
		{"gzip", post("Transfer-Encoding: gzip"), 400, CodingUnknown},
		{"gzip, chunked", post("Transfer-Encoding: gzip, chunked"), 400, CodingUnknown},
		{"identity", post("Transfer-Encoding: identity"), 400, CodingUnknown},
		{"chunked with a parameter", post("Transfer-Encoding: chunked;q=1"), 400, CodingUnknown},
		{"chunked with a vertical tab", post("Transfer-Encoding: \vchunked"), 400, FieldValue},
		{"xchunked", post("Transfer-Encoding: xchunked"), 400, CodingUnknown},
		{"trailer announces a length", post(chunked, "Trailer: X, Content-length"), 400, TrailerForbidden},
		{"trailer announces a coding", post(chunked, "Trailer: transfer-encoding"), 400, TrailerForbidden},
		{"trailer announces a trailer", post(chunked, "Trailer: Trailer"), 400, TrailerForbidden},

		// Chunks.
		{"chunk without size", post(chunked) + "\r\n", 400, ChunkInvalid},
		{"chunk size signed", post(chunked) + "+1\r\n", 400, ChunkInvalid},
		{"chunk size with 0x", post(chunked) + "0x1\r\n", 400, ChunkInvalid},
		{"chunk size after a space", post(chunked) + " 1\r\n", 400, ChunkInvalid},
		{"chunk size before a space", post(chunked) + "1 \r\n", 400, ChunkInvalid},
		{"chunk size of many zeros", post(chunked) + strings.Repeat("0", 17), 400, ChunkInvalid},
		{"chunk size with a bare LF", post(chunked) + "1\n", 400, ChunkInvalid},
		{"chunk size with a bare CR", post(chunked) + "1\rX", 400, ChunkInvalid},
		{"chunk size over 64 bits", post(chunked) + "10000000000000001", 413, BodyLong},
		{"chunk too short", post(chunked) + "2\r\na\r\n", 400, ChunkInvalid},
		{"chunk too long", post(chunked) + "1\r\nab", 400, ChunkInvalid},
		{"chunk ended by LF", post(chunked) + "1\r\na\n", 400, ChunkInvalid},
		{"chunk ended by CR", post(chunked) + "1\r\na\r1", 400, ChunkInvalid},
		{"control byte in an extension", post(chunked) + "1;\x01", 400, ChunkInvalid},
		{"bare LF in an extension", post(chunked) + "1;a\nb", 400, ChunkInvalid},
		{"endless extension", post(chunked) + "1;" + strings.Repeat("a", 300), 400, ChunkInvalid},
		{"many extensions", post(chunked) + strings.Repeat("1;"+strings.Repeat("a", 200)+"\r\na\r\n", 100), 400, ChunkOverhead},

		// Trailers.
		{"trailer with a space before the colon", post(chunked) + "0\r\nX : 1", 400, TrailerInvalid},
		{"trailer without a name", post(chunked) + "0\r\n:", 400, TrailerInvalid},
		{"trailer without a colon", post(chunked) + "0\r\nX\r\n", 400, TrailerInvalid},
		{"trailer folded", post(chunked) + "0\r\nX: 1\r\n 2", 400, TrailerInvalid},
		{"trailer with a control byte", post(chunked) + "0\r\nX: \x00", 400, TrailerInvalid},
		{"trailer with a bare LF", post(chunked) + "0\r\nX: 1\n", 400, TrailerInvalid},
		{"trailer with a bare CR", post(chunked) + "0\r\nX: 1\r2", 400, TrailerInvalid},
		{"end with a bare LF", post(chunked) + "0\r\n\n", 400, TrailerInvalid},
		{"end with a bare CR", post(chunked) + "0\r\n\rX", 400, TrailerInvalid},
		{"endless trailer", post(chunked) + "0\r\nX: " + strings.Repeat("a", 5000), 431, TrailerLong},
		{"many trailers", post(chunked) + "0\r\n" + strings.Repeat("a:\r\n", 101), 431, FieldsMany},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := driveAll(t, NewPool(Limits{}), []byte(tt.stream))
			last := outcome{}
			if len(got) > 0 {
				last = got[len(got)-1]
			}
			if last.Why != tt.why || last.Status != tt.status || last.Event != More {
				t.Errorf("got %v %d %v, want %v %d", got, last.Status, last.Why, tt.status, tt.why)
			}
			for _, o := range got {
				if o.Event == Body {
					t.Errorf("a body was delivered: %v", got)
				}
			}
		})
	}
}

// TestRefusedWithHead has the refusals that leave the caller a choice, because
// the head was sound: its own reasons come first.
func TestRefusedWithHead(t *testing.T) {
	for _, tt := range []struct {
		name, stream string
		status       int
		why          Reason
	}{
		{"length over the limit", head("POST /p HTTP/1.1", "Content-Length: 1048577") + "x", 413, BodyLong},
		{"length near 2^63", head("POST /p HTTP/1.1", "Content-Length: 9223372036854775807"), 413, BodyLong},
		{"expectation", head("POST /p HTTP/1.1", "Expect: 200-ok"), 417, ExpectationUnknown},
		{"expectation in a list", head("POST /p HTTP/1.1", "Expect: 100-continue, x"), 417, ExpectationUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := driveAll(t, NewPool(Limits{}), []byte(tt.stream))
			if len(got) != 1 || got[0].Event != Head || got[0].Why != tt.why || got[0].Status != tt.status {
				t.Fatalf("got %+v, want a head with %d %v and nothing else", got, tt.status, tt.why)
			}
			if got[0].Path != "/p" || got[0].Host != "h" {
				t.Errorf("got path %q and host %q, want the request filled", got[0].Path, got[0].Host)
			}
		})
	}
}

// TestLimits has for each limit the largest that passes, and one more.
func TestLimits(t *testing.T) {
	pool := NewPool(Limits{Line: 64, Header: 256, Fields: 5, Body: 50})
	line := func(n int) string {
		return head("GET /" + strings.Repeat("a", n-len("GET / HTTP/1.1")) + " HTTP/1.1")
	}
	header := func(n int) string {
		const empty = "Host: h\r\nX: \r\n\r\n"
		return "GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("a", n-len(empty)) + "\r\n\r\n"
	}
	fields := func(n int) string {
		return head(append([]string{"GET / HTTP/1.1"}, strings.Fields(strings.Repeat("A: ", n-1))...)...)
	}
	length := func(n string) string { return head("POST / HTTP/1.1", "Content-Length: "+n) + strings.Repeat("a", 50) }
	digits := func(n int) string { return strings.Repeat("0", n-1) + "1" }
	chunks := func(sizes string) string {
		return head("POST / HTTP/1.1", "Transfer-Encoding: chunked") + sizes
	}
	for _, tt := range []struct {
		name, stream string
		status       int
	}{
		{"line", line(64), 0},
		{"line over", line(65), 414},
		{"line without end", "GET /" + strings.Repeat("a", 62), 414},
		{"line over, bare LF", "GET /" + strings.Repeat("a", 61) + "\n", 414},
		{"header", header(256), 0},
		{"header over", header(257), 431},
		{"header without end", "GET / HTTP/1.1\r\nX: " + strings.Repeat("a", 254), 431},
		{"fields", fields(5), 0},
		{"fields over", fields(6), 431},
		{"length", length("50"), 0},
		{"length over", length("51"), 413},
		{"method", head(strings.Repeat("A", maxMethod) + " / HTTP/1.1"), 0},
		{"method over", head(strings.Repeat("A", maxMethod+1) + " / HTTP/1.1"), 501},
		{"method of one byte", head("A / HTTP/1.1"), 0},
		{"chunk digits", chunks("1\r\na\r\n" + digits(maxChunkDigits) + "\r\na\r\n0\r\n\r\n"), 0},
		{"chunk digits over", chunks("1\r\na\r\n" + digits(maxChunkDigits+1) + "\r\na\r\n0\r\n\r\n"), 400},
		{"chunk line", chunks("1;" + strings.Repeat("x", maxChunkLine-2) + "\r\na\r\n0\r\n\r\n"), 0},
		{"chunk line over", chunks("1;" + strings.Repeat("x", maxChunkLine-1) + "\r\na\r\n0\r\n\r\n"), 400},
		{"trailer", chunks("0\r\nX:" + strings.Repeat("x", maxTrailer-6) + "\r\n\r\n"), 0},
		{"trailer over", chunks("0\r\nX:" + strings.Repeat("x", maxTrailer-5) + "\r\n\r\n"), 431},
		{"trailers", chunks("0\r\n" + strings.Repeat("X:\r\n", 5) + "\r\n"), 0},
		{"trailers over", chunks("0\r\n" + strings.Repeat("X:\r\n", 6) + "\r\n"), 431},
		{"chunks", chunks("19\r\n" + strings.Repeat("a", 25) + "\r\n19\r\n" + strings.Repeat("b", 25) + "\r\n0\r\n\r\n"), 0},
		{"chunks over", chunks("19\r\n" + strings.Repeat("a", 25) + "\r\n1a"), 413},
		{"chunk over before its data", chunks("33"), 413},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := driveAll(t, pool, []byte(tt.stream))
			if len(got) == 0 {
				t.Fatal("got nothing, want an answer")
			}
			last := got[len(got)-1]
			if last.Status != tt.status {
				t.Errorf("got %v with status %d, want %d", got, last.Status, tt.status)
			}
			if tt.status == 0 && last.Event != Body {
				t.Errorf("got %v, want a body", got)
			}
		})
	}
}

// TestLineOverHeader: a line that may be longer than the header is no header.
func TestLineOverHeader(t *testing.T) {
	pool := NewPool(Limits{Line: 64, Header: 32})
	got := driveAll(t, pool, []byte(head("GET /"+strings.Repeat("a", 50)+" HTTP/1.1")))
	if len(got) != 2 || got[1].Event != Body {
		t.Errorf("got %v, want a head and a body", got)
	}
}

// TestWaits has streams of which the end is missing: nothing may be reported yet.
func TestWaits(t *testing.T) {
	for _, tt := range []struct{ name, stream string }{
		{"nothing", ""},
		{"an empty line", "\r\n"},
		{"half an empty line", "\r"},
		{"a method", "POST"},
		{"the longest method", strings.Repeat("A", maxMethod)},
		{"a request line without LF", "GET / HTTP/1.1\r"},
		{"a head without its end", "GET / HTTP/1.1\r\nHost: h\r\n\r"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := driveAll(t, NewPool(Limits{}), []byte(tt.stream)); len(got) != 0 {
				t.Errorf("got %v, want nothing", got)
			}
		})
	}
}

func TestReasonsAreNamed(t *testing.T) {
	names := map[string]Reason{}
	for why := Reason(1); why < reasons; why++ {
		err := refuse(why)
		if err.Reason != why || err.Status < 400 || ReasonPhrase(err.Status) == "" {
			t.Errorf("reason %d: got %+v, want its own error with a status that has a phrase", why, *err)
		}
		if other, taken := names[why.String()]; taken || why.String() == "other" {
			t.Errorf("reason %d: name %q is not its own (also %d)", why, why.String(), other)
		}
		names[why.String()] = why
	}
	if got, want := refuse(BodyLong).Error(), "http1: 413 body-long"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := Reason(200).String(), "other"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
