package edge

import (
	"bytes"

	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/edge/http1"
	"github.com/ommer/ommer/edge/overload"
	"github.com/ommer/ommer/edge/ws"
)

// httpState is what a session knows of a request that is not complete.
type httpState struct {
	parser  http1.Parser
	verdict verdict // once the header is complete
	inBody  bool
}

// verdict is what was decided of a request when its header was complete: how its
// answer is to be sent and, if the header was enough to refuse it, what to say.
type verdict struct {
	refusal   *refusal    // nil: the body is a message
	key       *keys.Entry // whose it is, nil when it is nobody's
	network   *network    // that it is for, nil when there is no key
	origin    string      // a browser asks: the origin that may read the answer
	close     bool        // the connection ends after the answer
	keepAlive bool        // say so, to HTTP/1.0
	head      bool        // the body is not to be sent
	gzip      bool        // the answer may be compressed
}

// idle says whether no request has begun.
func (h *httpState) idle() bool { return !h.inBody && h.parser.Idle() }

// consumeHTTP takes at most one event from the parser. more means that it needs
// more input.
func (s *session) consumeHTTP(in []byte, w *scratch) (n int, more bool) {
	h := &s.borrow().http
	n, event, err := h.parser.Next(in, &w.request)
	switch {
	case err != nil:
		r := refusalFor(err.Status)
		switch {
		case event == http1.Head: // the framing is sound, so others may object first
			h.verdict, _ = s.node.app.judge(s, &w.request)
			if h.verdict.refusal != nil {
				r = h.verdict.refusal
			}
		case !h.inBody: // what is known of the answer even when the rest is not understood
			h.verdict = verdict{head: bytes.HasPrefix(in, []byte("HEAD "))}
		}
		s.refuse(w, r)
		return n, true
	case event == http1.Head:
		v, upgrade := s.node.app.judge(s, &w.request)
		if upgrade {
			s.upgrade(&w.request, v, w)
			return n, s.phase == saysGoodbye
		}
		h.verdict, h.inBody = v, true
		switch {
		case v.refusal != nil && w.request.Expect: // the body may never come
			s.refuse(w, v.refusal)
		case v.refusal != nil:
			h.parser.Discard()
		case w.request.Expect:
			s.enqueue(s.canned(verdict{refusal: sayContinue}), w)
		}
	case event == http1.Body:
		v := h.verdict
		h.verdict, h.inBody = verdict{}, false
		s.deaf = v.close // nothing after it is read
		if v.refusal != nil {
			s.enqueue(s.canned(v), w)
		} else {
			s.node.app.request(s, v, w)
		}
	default:
		return n, true
	}
	return n, false
}

// verdict is how any answer to the request is to be sent.
func (n *node) verdict(r *http1.Request) verdict {
	return verdict{
		close: r.Close || n.stopping.Load(), keepAlive: r.KeepAlive,
		head: string(r.Method) == "HEAD",
	}
}

// originOf returns the value of a request's Origin field. Several of them, which no
// browser sends, are like an empty one.
func originOf(r *http1.Request) (value []byte, asked bool) {
	for v := range r.All("origin") {
		if asked {
			return nil, true
		}
		value, asked = v, true
	}
	return value, asked
}

// upgrade opens a WebSocket.
func (s *session) upgrade(r *http1.Request, v verdict, w *scratch) {
	var h ws.Handshake
	for _, f := range r.Fields {
		h.Field(f.Name, f.Value)
	}
	bad := h.Check()
	switch {
	case bad != nil:
		v.refusal = refusalOfHandshake(bad)
	case s.queued > 0 || r.Chunked || r.ContentLength > 0:
		// A client cannot know the answer to what it sent before, nor may it
		// send a body: it is not a handshake that anyone means.
		v.refusal = refusalFor(400)
	case !s.node.opens(v.key):
		s.node.metrics.rejected(byConns)
		v.refusal = refuseKeyConns
	default:
		s.node.metrics.responded(101)
		w.out = ws.AppendUpgrade(w.out, h.Key)
		origin, _ := originOf(r)
		s.openWS(v, string(origin))
		return
	}
	s.refuse(w, v.refusal)
}

// refuse answers what cannot be a request, after those before it, and ends the
// connection. What the header said of the answer holds for this one too.
func (s *session) refuse(w *scratch, r *refusal) {
	v := verdict{}
	if s.partial != nil {
		v = s.partial.http.verdict
	}
	v.refusal, v.close = r, true
	s.enqueue(s.canned(v), w)
	s.deaf = true
}

// canned returns an exchange whose answer is known.
func (s *session) canned(v verdict) *exchange {
	x := newExchange(s, 0)
	x.http, x.verdict, x.done = true, v, true
	return x
}

// enqueue puts a complete exchange behind those that wait.
func (s *session) enqueue(x *exchange, w *scratch) {
	s.push(x)
	s.queued++
	s.writeDone(w)
}

// push appends to the queue.
func (s *session) push(x *exchange) {
	if s.last == nil {
		s.first = x
	} else {
		s.last.next = x
	}
	s.last = x
}

// writeDone writes the answers at the head of the queue that are complete.
func (s *session) writeDone(w *scratch) {
	for s.first != nil && s.first.done {
		x := s.first
		if s.first = x.next; s.first == nil {
			s.last = nil
		}
		s.queued--
		if s.first == nil && (s.partial == nil || s.partial.http.idle()) && !x.close {
			x.close = s.node.stopping.Load() || s.node.sheds(overload.NoKeepAlive, shedKeepAlive)
		}
		s.writeHTTP(x, w)
		ends, why := x.close, errAsked
		if x.refusal != nil && x.refusal.why != nil {
			why = x.refusal.why
		}
		x.release()
		if ends {
			s.goodbye(w, why)
			return
		}
	}
}

// writeHTTP writes the answer to a request.
func (s *session) writeHTTP(x *exchange, w *scratch) {
	n := s.node
	if x.refusal != nil {
		n.metrics.responded(x.refusal.status)
		w.out = x.refusal.append(w.out, x.verdict, n.date.Value())
		return
	}
	status := 200
	if x.rejected() {
		status = 403
	}
	n.metrics.responded(status)
	x.render(w, n.cfg.Limits.Response)
	body, gzip := w.body, x.gzip && (len(w.splices) > 0 || len(w.body) >= gzipFrom)
	if gzip {
		body = w.zipper.zip(body, w.splices)
	}
	w.out = appendAnswer(w.out, status, body, gzip, x.verdict, n.date.Value())
}
