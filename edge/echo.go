package edge

import (
	"github.com/ommer/ommer/edge/http1"
	"github.com/ommer/ommer/edge/ws"
)

// NewEcho is New for a node that serves no JSON-RPC and asks for no key: GET / says
// OK, any other method on / has its body sent back, and the WebSocket /echo sends
// back each message as what it came, text or binary. It is for suites that test a
// server's HTTP and WebSocket against something that answers: all but the answer is
// what serves JSON-RPC. Keys, Network and Resolver of the Config are not used.
func NewEcho(cfg Config) (*Node, error) { return newNode(cfg, echo{}) }

// echo is the application of NewEcho. It answers at once, so that nothing of it is
// ever in flight.
type echo struct{}

const typeBinary = "application/octet-stream"

var (
	sayOK = &refusal{status: 200, kind: typeText, body: []byte("OK")}

	refuseNotEcho       = text(404, "not found: there are / and the WebSocket /echo", "")
	refuseNoUpgradeEcho = text(426, "this is a WebSocket address: ask for an upgrade", "Upgrade: websocket\r\nConnection: Upgrade\r\n")
)

// judge implements application.
func (echo) judge(s *session, r *http1.Request) (v verdict, upgrade bool) {
	v = s.node.verdict(r)
	method := string(r.Method)
	switch string(r.Path) {
	case "/":
		if method == "GET" || method == "HEAD" {
			v.refusal = sayOK
		}
	case "/echo":
		switch {
		case method != "GET":
			v.refusal = refuseVerbWS
		case !r.Upgrade:
			v.refusal = refuseNoUpgradeEcho
		default:
			upgrade = true
		}
	default:
		v.refusal = refuseNotEcho
	}
	return v, upgrade
}

// request implements application. Nothing waits in the queue, so that the body is
// written before it is gone.
func (echo) request(s *session, v verdict, w *scratch) {
	v.refusal = &refusal{status: 200, kind: typeBinary, body: w.request.Body}
	s.enqueue(s.canned(v), w)
}

// message implements application.
func (echo) message(s *session, kind ws.Event, payload []byte, w *scratch) {
	s.node.metrics.messages.Inc()
	op := ws.OpText
	if kind == ws.Binary {
		op = ws.OpBinary
	}
	w.out = ws.AppendFrame(w.out, op, payload)
}

// recheck implements application. There are no keys that could change.
func (echo) recheck(*session, *scratch) {}
