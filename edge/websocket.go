package edge

import (
	"time"

	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/edge/ws"
	"github.com/ommer/ommer/schema/jsonrpc"
)

// codeRevoked closes the WebSockets of a key that was revoked: 4000-4999 are for
// applications (RFC 6455 section 7.4.2), 4401 is read as HTTP's 401. codeRejected
// closes those whose origin or network the key's new settings do not allow.
const (
	codeRevoked  ws.Code = 4401
	codeRejected ws.Code = 4403
)

// openWS makes the session a WebSocket. The handshake has been answered.
func (s *session) openWS(key *keys.Entry, origin string) {
	s.key, s.origin = key, origin
	s.phase, s.timer, s.heard = speaksWS, timerNone, true
	s.drop() // the HTTP parser
	s.node.metrics.webSockets.Inc()
}

// consumeWS takes at most one event from the reader. more means that it needs
// more input.
func (s *session) consumeWS(in []byte, w *scratch) (n int, more bool) {
	r := &s.borrow().ws
	s.heard = s.heard || len(in) > 0
	n, event, payload, err := r.Next(in)
	switch {
	case err != nil:
		s.closeWS(w, err.Code, err.Reason, errProtocol)
		return n, true
	case event == ws.Text || event == ws.Binary:
		if s.key.Revoked() {
			s.closeWS(w, codeRevoked, "key revoked", errRevoked)
			return n, true
		}
		s.message(payload, w)
	case event == ws.Ping:
		w.out = ws.AppendFrame(w.out, ws.OpPong, payload)
	case event == ws.Close:
		code, _ := ws.ParseClose(payload)
		s.closeWS(w, code, "", errClosing)
	case event == ws.More:
		return n, true
	}
	return n, false
}

// recheck ends a WebSocket that could not be opened now.
func (s *session) recheck(w *scratch) {
	if s.key.Revoked() {
		s.closeWS(w, codeRevoked, "key revoked", errRevoked)
		return
	}
	if _, refused := s.node.admits(s.key, []byte(s.origin)); refused != "" {
		s.closeWS(w, codeRejected, errSettings.Message, errRejected)
	}
}

// message takes one message of a WebSocket.
func (s *session) message(text []byte, w *scratch) {
	s.node.metrics.messages.Inc()
	t := terms{key: s.key, room: s.room()}
	if over, ok := s.key.Admit(); !ok {
		s.node.metrics.rejected(byRate)
		t.refuse = errRate(over)
	}
	if x := s.parse(text, t, w); x != nil {
		s.begin(x, w)
	}
}

// room is how many more lookups a WebSocket may have in flight.
func (s *session) room() int {
	return s.node.cfg.Limits.InFlight - int(s.inFlight)
}

// parse turns a message into an exchange, nil when there is nothing to answer.
func (s *session) parse(text []byte, t terms, w *scratch) *exchange {
	calls, batch, err := jsonrpc.Parse(text, w.calls[:0], jsonrpc.Limits{Batch: s.node.cfg.Limits.Batch})
	w.calls = calls
	if err != nil {
		if t.refuse != nil {
			err = t.refuse
		}
		x := newExchange(s, 1)
		x.calls[0] = call{exchange: x, kind: refused, err: err}
		s.node.metrics.refused(err)
		return x
	}
	if len(calls) == 0 {
		return nil
	}
	if t.refuse == nil {
		t.key.Charge(len(calls) - 1)
	}
	x := newExchange(s, len(calls))
	x.batch = batch
	x.fill(calls, t)
	s.node.metrics.count(x)
	return x
}

// begin asks what the exchange needs to know. One that needs nothing is answered
// here and now: only lookups may wait, for only they are limited in number.
func (s *session) begin(x *exchange, w *scratch) {
	s.inFlight += x.asked
	s.queued++
	if x.asked == 0 {
		s.complete(x, w)
		return
	}
	x.ask(s.node.cfg.Resolver, time.Now().Add(s.node.cfg.Timeouts.Lookup))
}

// writeWS writes the answer to a message, if it has one.
func (s *session) writeWS(x *exchange, w *scratch) {
	x.render(w, s.node.cfg.Limits.Response)
	if len(w.body) > 0 {
		w.out = ws.AppendFrame(w.out, ws.OpText, w.body)
	}
}

// ping asks whether the client is still there.
func (s *session) ping(w *scratch) {
	w.out = ws.AppendHeader(w.out, ws.OpPing, 0)
}

// closeWS says goodbye with a code. Answers that are not ready are dropped, as
// RFC 6455 section 5.5.1 has nothing follow a close frame.
func (s *session) closeWS(w *scratch, code ws.Code, reason string, why error) {
	if s.phase != speaksWS {
		return
	}
	w.out = ws.AppendClose(w.out, code, reason)
	s.goodbye(w, why)
}
