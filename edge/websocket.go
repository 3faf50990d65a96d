package edge

import "github.com/ommer/ommer/edge/ws"

// openWS makes the session a WebSocket. The handshake has been answered.
func (s *session) openWS(v verdict, origin string) {
	s.key, s.origin = v.key, origin
	if v.network != nil { // an application without keys has no network
		s.network = v.network.number
	}
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
		s.node.app.message(s, event, payload, w)
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
