package edge_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/schema"
)

// Two readers of one stream who disagree on where a request ends see different
// requests: that is request smuggling. Here the edge is held against net/http.
// Whatever a client sends, each answer must be the one that the request net/http
// sees at that place would get alone; the edge may be stricter, but then it ends
// the connection with a refusal. Behind the stream comes a sentinel, a lookup that
// nobody could guess. It is answered as itself, or not at all.

// witness is a Resolver whose answer is the question, and who remembers it.
type witness struct {
	mu    sync.Mutex
	asked []string
}

func spell(q schema.Question) string { return fmt.Sprintf("%v/%#x", q.Block, q.Index) }

// Resolve implements schema.Resolver.
func (w *witness) Resolve(q schema.Question, _ time.Time, to schema.Receiver) {
	w.mu.Lock()
	w.asked = append(w.asked, spell(q))
	w.mu.Unlock()
	to.Answered(schema.Answer{Result: []byte(`"` + spell(q) + `"`)})
}

// take returns what was asked since it was last called.
func (w *witness) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := w.asked
	w.asked = nil
	return asked
}

// stage is an edge that is watched.
type stage struct {
	*fixture
	witness   *witness
	sentinels int
	secure    bool
}

func newStage(t testing.TB) *stage {
	w := new(witness)
	return &stage{witness: w, fixture: start(t, func(c *edge.Config) { c.Resolver = w })}
}

// sentinel returns a lookup whose id and block no other has, and its answer.
func (s *stage) sentinel() (call, answer string) {
	s.sentinels++
	id, block := fmt.Sprintf(`"sentinel-%x"`, 0x9e3779b97f4a7c15*uint64(s.sentinels)), 1<<40+s.sentinels
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"eth_getUncleByBlockNumberAndIndex","params":["%#x","0x0"]}`, id, block),
		fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":"%#x/0x0"}`, id, block)
}

// sighting is a request that net/http sees in a stream.
type sighting struct {
	request *http.Request
	body    []byte
	want    reply    // what it gets
	asks    []string // what is asked for it
}

// opens says whether the request asks for a WebSocket. Whether it is a good
// handshake is not looked at; a bad one must be refused.
func (s *sighting) opens() bool {
	h := s.request.Header
	return s.request.Method == http.MethodGet && s.request.URL.Path == "/ws/v3/"+testKey && s.request.ProtoAtLeast(1, 1) &&
		httpguts.HeaderValuesContainsToken(h["Connection"], "upgrade") && httpguts.HeaderValuesContainsToken(h["Upgrade"], "websocket")
}

// sightings returns what net/http sees in a stream. Sound says that there is nothing
// else in it. What follows the request for a WebSocket is frames.
func sightings(stream string) (seen []sighting, frames []byte, sound bool) {
	for r := bufio.NewReader(strings.NewReader(stream)); ; {
		// RFC 9112 section 2.2: an empty line before a request is ignored. The edge
		// does so before any, net/http only behind a POST.
		if line, _ := r.Peek(2); string(line) == "\r\n" {
			_, _ = r.Discard(2)
		}
		request, err := http.ReadRequest(r)
		if err != nil {
			return seen, nil, errors.Is(err, io.EOF)
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return seen, nil, false
		}
		s := sighting{request: request, body: body}
		seen = append(seen, s)
		if s.opens() {
			frames, _ = io.ReadAll(r)
			return seen, frames, true
		}
		if request.Close || request.Method == http.MethodConnect {
			return seen, nil, true // nothing behind it is a request
		}
	}
}

// reply is a response.
type reply struct {
	status int
	body   string // decoded
	closes bool
}

// readReply reads the answer to a request of the given method. A body that ends too
// early is left as it is.
func readReply(r *bufio.Reader, method string) (reply, error) {
	for {
		if _, err := r.Peek(1); err != nil {
			return reply{}, err // io.EOF; from within a response it is another
		}
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		switch {
		case err != nil:
			return reply{}, err
		case resp.StatusCode == http.StatusContinue:
			continue
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return reply{status: resp.StatusCode}, nil
		}
		body, _ := io.ReadAll(resp.Body)
		if resp.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				return reply{}, err
			}
			body, _ = io.ReadAll(z)
		}
		return reply{resp.StatusCode, string(body), resp.Close}, nil
	}
}

// alone finds out what a request gets that has a connection to itself and is
// written as plainly as can be.
func (s *stage) alone(t testing.TB, seen *sighting) {
	t.Helper()
	if seen.opens() {
		seen.want.status = http.StatusSwitchingProtocols
		return
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n",
		seen.request.Method, seen.request.RequestURI, len(seen.body))
	for _, name := range []string{"Content-Type", "Content-Encoding"} {
		for _, value := range seen.request.Header[name] {
			fmt.Fprintf(&b, "%s: %s\r\n", name, value)
		}
	}
	b.WriteString("\r\n")
	b.Write(seen.body)
	got, err := readReply(bufio.NewReader(bytes.NewReader(s.send(t, b.String(), 0, ""))), seen.request.Method)
	if err != nil {
		t.Fatalf("alone: %v\n%q", err, b.Bytes())
	}
	seen.want, seen.asks = got, s.witness.take()
}

// send sends a stream, cut in two, and returns all that comes back. The client ends
// its side at once or, if it waits for something, with a close frame after that.
func (s *stage) send(t testing.TB, stream string, cut int, until string) []byte {
	t.Helper()
	c := s.dial(t, s.secure)
	sent, leaves := make(chan struct{}), until == ""
	go func() {
		defer close(sent)
		for _, piece := range []string{stream[:cut], stream[cut:]} {
			if _, err := io.WriteString(c, piece); err != nil {
				return // the edge was faster to close
			}
		}
		if leaves {
			_ = c.(interface{ CloseWrite() error }).CloseWrite()
		}
	}()
	defer func() {
		_ = c.Close()
		<-sent
	}()
	var got []byte
	for buf := make([]byte, 32<<10); ; {
		n, err := c.Read(buf)
		got = append(got, buf[:n]...)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
			return got
		case err != nil:
			t.Fatalf("neither answered nor closed: %v\n%q\ngot %q", err, stream, got)
		case until != "" && bytes.Contains(got, []byte(until)):
			until = ""
			_, _ = io.WriteString(c, clientFrame(0x88, "\x03\xe8"))
		}
	}
}

// provoke sends a stream with a sentinel behind it, cut in two, and checks all that
// comes back. It returns a summary: the statuses, and what became of the sentinel.
func (s *stage) provoke(t testing.TB, stream string, cut int) string {
	t.Helper()
	call, answer := s.sentinel()
	seen, _, _ := sightings(stream)
	socket := len(seen) > 0 && seen[len(seen)-1].opens()
	tail := post(testKey, call)
	if socket {
		tail = clientFrame(0x81, call)
	}
	seen, frames, sound := sightings(stream + tail)
	for i := range seen {
		s.alone(t, &seen[i])
		if w := seen[i].want; string(seen[i].body) == call && w.status == http.StatusOK && w.body != answer {
			t.Fatalf("the sentinel gets %q, want %q", w.body, answer)
		}
	}
	var messages []sighting
	delivered := false
	if socket {
		messages, delivered = s.messages(t, frames)
	}
	until := ""
	if delivered {
		until = answer
	}

	got := bufio.NewReader(bytes.NewReader(s.send(t, stream+tail, cut, until)))
	asked := s.witness.take()
	c := comparison{stream: stream, call: call, seen: seen, sound: sound}
	c.replies(t, got)
	if socket && c.upgraded {
		c.frames(t, got, messages, delivered, asked)
	} else if !slices.Equal(asked, c.asks) {
		t.Errorf("%q\nasked %q, want %q", stream, asked, c.asks)
	}
	return strings.Join(c.summary, " ")
}

// comparison is what came back against what was to be expected.
type comparison struct {
	stream, call string
	seen         []sighting
	sound        bool
	asks         []string // for what was answered
	upgraded     bool
	summary      []string
}

// refusals are the statuses of a request that the edge is too strict for.
var refusals = []int{400, 413, 414, 417, 426, 431, 501, 505}

// replies compares the HTTP part, up to a 101.
func (c *comparison) replies(t testing.TB, r *bufio.Reader) {
	t.Helper()
	for i := 0; ; i++ {
		var seen *sighting
		method, want := "", "nothing"
		if i < len(c.seen) {
			seen = &c.seen[i]
			method, want = seen.request.Method, fmt.Sprintf("%d %q", seen.want.status, seen.want.body)
		}
		got, err := readReply(r, method)
		if err != nil {
			if seen != nil || !errors.Is(err, io.EOF) {
				t.Errorf("%q\nanswer %d: %v, want %s", c.stream, i, err, want)
			}
			return
		}
		said := strconv.Itoa(got.status)
		switch {
		case seen != nil && got.status == seen.want.status && got.body == seen.want.body:
			if c.asks = append(c.asks, seen.asks...); string(seen.body) == c.call {
				said = "sentinel"
			}
		case seen != nil && got.closes && slices.Contains(refusals, got.status):
		case seen == nil && got.closes && !c.sound && got.status >= 400:
		default:
			t.Errorf("%q\nanswer %d: got %d %q, closes: %v; want %s or a refusal that closes", c.stream, i, got.status, got.body, got.closes, want)
		}
		c.summary = append(c.summary, said)
		if c.upgraded = got.status == http.StatusSwitchingProtocols; c.upgraded {
			return
		}
		if got.closes {
			// A request may be refused before it was known to be a HEAD.
			if rest, _ := io.ReadAll(r); len(rest) > 0 && method != http.MethodHead {
				t.Errorf("%q\nbehind answer %d, which closes: %q", c.stream, i, rest)
			}
			return
		}
	}
}
