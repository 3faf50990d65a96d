package edge_test

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	gobwas "github.com/gobwas/ws"
	"github.com/google/go-cmp/cmp"
)

// The Autobahn test suite (github.com/crossbario/autobahn-testsuite, version 25) is
// what WebSocket servers are measured by. It runs on Python 2 only, so that its cases
// are written again here, under its numbers, against a node that echoes: over real
// sockets, plain and with TLS, each case in one piece and in single bytes, where with
// TLS each piece is a record and so arrives by itself.
//
// Autobahn grants OK, NON-STRICT (what was sent before an error may go unanswered, an
// error may be noticed late) and INFORMATIONAL (the RFC does not say). Of all that it
// grants the table has one outcome, the strictest, and nothing else passes.

// autobahnCase is a case of the suite.
type autobahnCase struct {
	id   string
	what string
	// grade is what Autobahn calls this outcome: OK or INFORMATIONAL.
	grade string
	// steps are what is said and what has to come back before the next is said.
	steps []step
	// closed is the code of the close frame that the server answers with: 1000, ours
	// back, where nothing is wrong; 1005 for one without a code. What the server has
	// to refuse by itself it refuses without a close frame of ours.
	closed int
}

// step is what a client sends and then waits for.
type step struct {
	send string
	want []string
}

// autobahnExcluded are the cases that are not run, and why.
var autobahnExcluded = []struct {
	ids    string
	cases  int
	reason string
}{
	{"9.3-9.8", 42, "measurements without a pass or a fail of their own; the long messages of 9.1 and 9.2 are run for the limit, fragments and small messages are in groups 1, 5 and 10"},
	{"12.*, 13.*", 216, "permessage-deflate is never negotiated (package ws says why), for which Autobahn grants UNIMPLEMENTED"},
}

// autobahnTotal is how many cases Autobahn has.
const autobahnTotal = 517

func TestAutobahn(t *testing.T) {
	t.Parallel()
	all := autobahnCases()
	left, seen, grades := autobahnTotal-len(all), map[string]bool{}, map[string]int{}
	for _, x := range autobahnExcluded {
		left -= x.cases
	}
	for _, tt := range all {
		if seen[tt.id] {
			t.Errorf("%s is there twice", tt.id)
		}
		seen[tt.id] = true
		grades[tt.grade]++
	}
	if left != 0 {
		t.Errorf("%d cases are neither run nor excluded", left)
	}

	t.Logf("%d of %d cases, each over TCP and TLS: %v", len(all), autobahnTotal, grades)

	f := startEcho(t)
	transports(t, func(t *testing.T, secure bool) {
		for _, tt := range all {
			t.Run(tt.id, func(t *testing.T) {
				for _, piece := range []int{echoLimit, 1} {
					if piece == 1 && tt.length() > 4<<10 {
						piece = 997 // a prime, as in Autobahn, for what is long
					}
					f.play(t, tt, secure, piece)
				}
			})
		}
	})
}

// length is how much a client sends.
func (c autobahnCase) length() (n int) {
	for _, s := range c.steps {
		n += len(s.send)
	}
	return n
}

// play runs a case, sending pieces of the given size.
func (f *fixture) play(t *testing.T, c autobahnCase, secure bool, piece int) {
	t.Helper()
	conn, r := f.openEcho(t, secure)
	defer conn.Close()
	steps := c.steps
	if c.closed == 1000 && !strings.HasPrefix(c.id, "7.") { // group 7 sends its own
		steps = append(steps[:len(steps):len(steps)], step{send: clientFrame(0x88, "\x03\xe8")})
	}
	var before chan struct{} // closed when the step before was sent
	for i, s := range steps {
		after, sent := before, make(chan struct{})
		before = sent
		go func() { // beside the reading: what is echoed may fill the sockets
			defer close(sent)
			if after != nil {
				<-after // nothing may have come back that shows it
			}
			for rest := s.send; len(rest) > 0; {
				n := min(piece, len(rest))
				if _, err := io.WriteString(conn, rest[:n]); err != nil {
					return // the server may end the connection before it has all
				}
				rest = rest[n:]
			}
		}()
		want := s.want
		if i == len(steps)-1 {
			want = append(want[:len(want):len(want)], fmt.Sprint("close ", c.closed), "end")
		}
		var got []string
		for range want {
			got = append(got, nextEvent(r))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s\nstep %d in pieces of %d (-want +got):\n%s", c.what, i+1, piece, diff)
		}
	}
}

// openEcho opens a WebSocket whose frames the test writes itself.
func (f *fixture) openEcho(t *testing.T, secure bool) (net.Conn, *bufio.Reader) {
	t.Helper()
	c := f.dial(t, secure)
	io.WriteString(c, "GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n")
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, &http.Request{Method: "GET"})
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 101 || resp.Header.Get("Sec-WebSocket-Extensions") != "" {
		t.Fatalf("%s %v", resp.Status, resp.Header)
	}
	return c, r
}

// nextEvent is what a client sees next: a message, a pong, a close frame, or the end
// of the connection. A server's frames must themselves be as the RFC wants them.
func nextEvent(r *bufio.Reader) string {
	h, err := gobwas.ReadHeader(r)
	if errors.Is(err, io.EOF) {
		return "end"
	}
	if err == nil {
		err = gobwas.CheckHeader(h, gobwas.StateClientSide)
	}
	if err != nil {
		return "error: " + err.Error()
	}
	payload := make([]byte, h.Length)
	if _, err := io.ReadFull(r, payload); err != nil {
		return "error: " + err.Error()
	}
	switch {
	case !h.Fin:
		return "a fragment, which the server never sends"
	case h.OpCode == gobwas.OpText && !utf8.Valid(payload):
		return fmt.Sprintf("text that is not UTF-8: %q", payload)
	case h.OpCode == gobwas.OpText:
		return eventOf("text", string(payload))
	case h.OpCode == gobwas.OpBinary:
		return eventOf("binary", string(payload))
	case h.OpCode == gobwas.OpPong:
		return eventOf("pong", string(payload))
	case h.OpCode == gobwas.OpClose && len(payload) == 0:
		return "close 1005"
	case h.OpCode == gobwas.OpClose && len(payload) >= 2:
		code, _ := gobwas.ParseCloseFrameData(payload)
		return fmt.Sprint("close ", code)
	default:
		return fmt.Sprintf("frame %+v", h)
	}
}

// eventOf names a frame. Long payloads are told apart by a checksum.
func eventOf(kind, payload string) string {
	if len(payload) > 256 {
		return fmt.Sprintf("%s of %d bytes, %08x", kind, len(payload), crc32.ChecksumIEEE([]byte(payload)))
	}
	return fmt.Sprintf("%s %q", kind, payload)
}
