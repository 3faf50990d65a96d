package transcript

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
)

// way is how a conversation is played.
type way struct {
	name   string
	secure bool
	ws     bool
	binary bool
	naked  bool // to the TLS port without TLS
}

// ways are those that there are. Naked ones are played only where a conversation
// asks for it.
var ways = map[Kind][]way{
	Calls: {
		{name: "HTTP"},
		{name: "HTTPS", secure: true},
		{name: "WS text", ws: true},
		{name: "WS binary", ws: true, binary: true},
		{name: "WSS text", ws: true, secure: true},
		{name: "WSS binary", ws: true, secure: true, binary: true},
	},
	HTTP:      {{name: "HTTP"}, {name: "HTTPS", secure: true}, {name: "TCP to the TLS port", naked: true}},
	WebSocket: {{name: "WS", ws: true}, {name: "WSS", ws: true, secure: true}},
}

// waysOf are those in which c is played.
func (c *Conversation) waysOf(kind Kind) (chosen []way, err error) {
	for _, w := range ways[kind] {
		if slices.Contains(c.ways, w.name) || len(c.ways) == 0 && !w.naked {
			chosen = append(chosen, w)
		}
	}
	if len(c.ways) > 0 && len(chosen) != len(c.ways) {
		return nil, fmt.Errorf("there is no such way among %q", c.ways)
	}
	return chosen, nil
}

// speaker says and hears the lines of one conversation in one way.
type speaker interface {
	// say sends lines.
	say(lines []string) error
	// hear returns what there is in the place of the lines that are wanted.
	hear(want []string) []string
	// rest returns what there is beyond the last lines wanted: nothing, if the
	// connection is in order.
	rest() []string
	// hangUp ends the client's side of the connection.
	hangUp()
	close()
}

// newSpeaker connects to an edge.
func newSpeaker(ctx context.Context, kind Kind, c *Conversation, w way, e *Edge, key string) (speaker, error) {
	addr, config := e.HTTP, (*tls.Config)(nil)
	if w.secure {
		addr, config = e.HTTPS, &tls.Config{RootCAs: e.Roots, ServerName: "localhost"}
	}
	if w.naked {
		addr = e.HTTPS
	}
	nc, err := dial(ctx, addr, config, c.needs(givenUp))
	if err != nil {
		return nil, err
	}
	h := httpSpeaker{conn: nc, key: key, probe: e.Key}
	if !w.ws {
		if kind == Calls {
			return &httpCaller{h, ""}, nil
		}
		return &h, nil
	}
	if err := h.upgrade(); err != nil {
		nc.close()
		return nil, err
	}
	s := wsSpeaker{conn: nc, key: key, byID: c.byID}
	if kind == Calls {
		return &wsCaller{s, w.binary, ""}, nil
	}
	return &s, nil
}

// httpSpeaker speaks HTTP as it is written.
type httpSpeaker struct {
	*conn
	key      string
	probe    string // a key for a request of its own
	head     bool   // the last request was a HEAD
	upgraded bool   // the last response opened a WebSocket
}

func (s *httpSpeaker) say(lines []string) error {
	var all []byte
	for _, l := range lines {
		l, unended := strings.CutSuffix(l, `\`)
		b, err := expand(l, s.key)
		if err != nil {
			return err
		}
		if all = append(all, b...); !unended {
			all = append(all, "\r\n"...)
		}
	}
	s.head = strings.HasPrefix(lines[0], "HEAD ")
	s.send(all)
	return nil
}

func (s *httpSpeaker) hear(want []string) (got []string) {
	for _, l := range want {
		switch {
		case strings.HasPrefix(l, "HTTP/"), l == anything:
			lines, status := s.response(!s.head)
			s.upgraded = status == 101
			if got = append(got, lines...); status == 0 {
				return got
			}
		case l == end:
			lines, _ := s.response(true)
			return append(got, lines...)
		}
	}
	return got
}

// rest asks what has one answer only.
func (s *httpSpeaker) rest() []string {
	if s.upgraded {
		w := wsSpeaker{conn: s.conn}
		return w.rest()
	}
	const call, answer = `{"jsonrpc":"2.0","id":"in step","method":"x"}`,
		`{"jsonrpc":"2.0","id":"in step","error":{"code":-32601,"message":"the method x does not exist/is not available"}}`
	s.send(post(s.probe, call))
	lines, _ := s.response(true)
	if lines[len(lines)-1] == answer {
		return nil
	}
	return lines
}

// post is a request with a call.
func post(key, call string) []byte {
	return fmt.Appendf(nil, "POST /v3/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		key, len(call), call)
}

// upgrade opens a WebSocket. The keys are those of RFC 6455 section 1.3.
func (s *httpSpeaker) upgrade() error {
	s.send(fmt.Appendf(nil, "GET /ws/v3/%s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", s.key))
	lines, status := s.response(true)
	if status != 101 || !slices.Contains(lines, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") {
		return fmt.Errorf("no WebSocket is opened: %q", lines)
	}
	return nil
}

// wsSpeaker speaks WebSocket frames.
type wsSpeaker struct {
	*conn
	key  string
	byID bool
}

func (s *wsSpeaker) say(lines []string) error {
	for _, l := range lines {
		b, err := encodeFrame(l, s.key)
		if err != nil {
			return err
		}
		s.send(b)
	}
	return nil
}

func (s *wsSpeaker) hear(want []string) (got []string) {
	skip := false
	for i := 0; i < len(want); i++ {
		if skip = want[i] == skipped; skip {
			got = append(got, skipped)
			i++
		}
		line := s.next()
		for skip && i < len(want) && line != want[i] && !strings.HasPrefix(line, "(") {
			line = s.next()
		}
		if got = append(got, line); strings.HasPrefix(line, "(") {
			break
		}
	}
	if s.byID {
		slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(idOf(a), idOf(b)) })
	}
	return got
}

func (s *wsSpeaker) next() string {
	line, _ := s.frame()
	return line
}

// idOf is the id in an answer, or the first one in it.
func idOf(line string) string {
	_, after, _ := strings.Cut(line, `"id":`)
	id, _, _ := strings.Cut(after, ",")
	return id
}

// rest pings: nothing else may be on its way.
func (s *wsSpeaker) rest() []string {
	const mark = "in step"
	s.send(appendFrame(nil, 0x89, []byte(mark)))
	if line := s.next(); line != "pong "+mark {
		return []string{line}
	}
	return nil
}

// httpCaller posts calls.
type httpCaller struct {
	httpSpeaker
	call string
}

func (s *httpCaller) say(lines []string) error {
	b, err := expand(lines[0], s.key)
	s.call = string(b)
	return err
}

func (s *httpCaller) hear([]string) []string {
	s.send(post(s.key, s.call))
	lines, _ := s.response(true)
	fine := []string{"HTTP/1.1 200 OK", "Date: {date}", "Content-Type: application/json"}
	blank := slices.Index(lines, "")
	if len(lines) < len(fine) || !slices.Equal(lines[:len(fine)], fine) || blank != len(fine)+1 {
		return lines
	}
	if answer := lines[blank+1:]; len(answer) > 0 {
		return answer
	}
	return []string{nothing}
}

// wsCaller sends calls as messages.
type wsCaller struct {
	wsSpeaker
	binary bool
	call   string
}

func (s *wsCaller) say(lines []string) error {
	b, err := expand(lines[0], s.key)
	s.call = string(b)
	return err
}

func (s *wsCaller) hear(want []string) []string {
	first := byte(0x81)
	if s.binary {
		first = 0x82
	}
	s.send(appendFrame(nil, first, []byte(s.call)))
	if slices.Equal(want, []string{nothing}) {
		if rest := s.rest(); rest != nil {
			return rest
		}
		return want
	}
	line := s.next()
	answer, ok := strings.CutPrefix(line, "text ")
	if !ok {
		answer = line
	}
	return []string{answer}
}
