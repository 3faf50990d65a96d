package edge

import (
	"bytes"

	"github.com/ommer/ommer/edge/http1"
	"github.com/ommer/ommer/edge/overload"
	"github.com/ommer/ommer/edge/ws"
	"github.com/ommer/ommer/schema/jsonrpc"
)

// service is the application that the edge is made for: JSON-RPC, its calls answered
// by the Resolver of the network that the Host header names, for those who have a key.
type service struct{}

// codeRevoked closes the WebSockets of a key that was revoked: 4000-4999 are for
// applications (RFC 6455 section 7.4.2), 4401 is read as HTTP's 401. codeRejected
// closes those whose origin or network the key's new settings do not allow.
const (
	codeRevoked  ws.Code = 4401
	codeRejected ws.Code = 4403
)

// Paths of the service. What follows the first two is the key; the last one needs
// none.
var (
	pathHTTP    = []byte("/v3")
	pathWS      = []byte("/ws/v3")
	pathOpenRPC = []byte("/openrpc.json")
)

// keyOf returns the key of a path below prefix. A path without a key is below it
// too: it is refused like a wrong key.
func keyOf(path, prefix []byte) (key []byte, ok bool) {
	rest, ok := bytes.CutPrefix(path, prefix)
	switch {
	case !ok:
		return nil, false
	case len(rest) == 0:
		return nil, true
	case rest[0] != '/' || bytes.IndexByte(rest[1:], '/') >= 0:
		return nil, false
	default:
		return rest[1:], true
	}
}

// judge implements application: path, key, what the key is good for, verb, then
// fields.
func (service) judge(s *session, r *http1.Request) (v verdict, upgrade bool) {
	v = s.node.verdict(r)
	v.gzip = acceptsGzip(r)
	origin, asked := originOf(r)
	if asked {
		v.origin = anyOrigin // so that a page may read why it is refused
	}
	secret, isHTTP := keyOf(r.Path, pathHTTP)
	isWS := false
	if !isHTTP {
		secret, isWS = keyOf(r.Path, pathWS)
	}
	if !isHTTP && !isWS {
		v.refusal = refuseNotFound
		if bytes.Equal(r.Path, pathOpenRPC) {
			v.refusal, v.origin = openRPCFor(r.Method), "" // its fields are for any origin
		}
		return v, false
	}
	v.key = s.node.cfg.Keys.Lookup(secret)
	if v.key == nil {
		v.refusal = refuseKey
		if !s.node.cfg.Keys.Ready() { // who knows whether it is wrong: clients give up on 401
			v.refusal = refuseOverloaded
		}
		return v, false
	}
	v.network = s.node.networks.of(r.Host)
	allowed, refused := admits(v.key, v.network, origin)
	if refused != "" {
		s.node.metrics.rejected(refused)
		v.refusal = refuseSettings
		return v, false
	}
	if asked || string(r.Method) == "OPTIONS" {
		v.origin = allowed
	}
	switch {
	case isWS && string(r.Method) != "GET":
		v.refusal = refuseVerbWS
	case isWS && !r.Upgrade:
		v.refusal = refuseNoUpgrade
	case isWS && s.node.sheds(overload.RefuseRequests, shedRequest):
		v.refusal = refuseOverloaded
	case isWS:
		return v, true
	case string(r.Method) == "OPTIONS":
		v.refusal = sayOptions
	case string(r.Method) != "POST":
		v.refusal = refuseVerb
	case !isJSON(r):
		v.refusal = refuseType
	case isEncoded(r):
		v.refusal = refuseEncoding
	case s.node.sheds(overload.RefuseRequests, shedRequest):
		v.refusal = refuseOverloaded
	}
	return v, false
}

// openRPCFor answers a request with this verb for the OpenRPC document.
func openRPCFor(method []byte) *refusal {
	switch string(method) {
	case "GET", "HEAD":
		return sayOpenRPC
	case "OPTIONS":
		return sayOpenRPCOptions
	default:
		return refuseVerbOpenRPC
	}
}

// isJSON says whether the body is declared to be JSON. Parameters of the media
// type are allowed and not looked at. The field should come once; where it comes
// again, which one counts depends on the reader (RFC 9110 section 8.3), so each
// must say JSON.
func isJSON(r *http1.Request) bool {
	found := false
	for value := range r.All("content-type") {
		if found = isMediaTypeJSON(value); !found {
			return false
		}
	}
	return found
}

func isMediaTypeJSON(value []byte) bool {
	if i := bytes.IndexByte(value, ';'); i >= 0 {
		value = value[:i]
	}
	value = bytes.TrimRight(value, " \t")
	for _, t := range [...]string{"application/json", "application/json-rpc", "application/jsonrequest"} {
		if len(value) == len(t) && bytes.EqualFold(value, []byte(t)) {
			return true
		}
	}
	return false
}

// isEncoded says whether the body is declared to be compressed. geth ignores that
// and answers with a parse error; RFC 9110 section 8.4 has a status for it.
func isEncoded(r *http1.Request) bool {
	for coding := range r.Elements("content-encoding") {
		if !bytes.EqualFold(coding, []byte("identity")) {
			return true
		}
	}
	return false
}

// request implements application.
func (service) request(s *session, v verdict, w *scratch) {
	if over, ok := v.key.Admit(); !ok {
		s.node.metrics.rejected(byRate)
		v.refusal = refusalForRate(over)
		s.enqueue(s.canned(v), w)
		return
	}
	// The message is bounded already: every call of a batch is asked in time.
	x := s.parse(w.request.Body, terms{key: v.key, network: v.network, room: s.node.cfg.Limits.Batch, gzip: v.gzip}, w)
	if x == nil {
		x = newExchange(s, 0)
	}
	x.http, x.verdict = true, v
	s.push(x)
	s.begin(x, w)
}

// recheck implements application.
func (service) recheck(s *session, w *scratch) {
	if s.key.Revoked() {
		s.closeWS(w, codeRevoked, "key revoked", errRevoked)
		return
	}
	if _, refused := admits(s.key, s.node.networks.at(s.network), []byte(s.origin)); refused != "" {
		s.closeWS(w, codeRejected, errSettings.Message, errRejected)
	}
}

// message implements application. Text and binary are answered alike.
func (service) message(s *session, _ ws.Event, text []byte, w *scratch) {
	if s.key.Revoked() {
		s.closeWS(w, codeRevoked, "key revoked", errRevoked)
		return
	}
	s.node.metrics.messages.Inc()
	t := terms{key: s.key, network: s.node.networks.at(s.network), room: s.room()}
	if s.node.sheds(overload.RefuseRequests, shedMessage) {
		t.refuse = errOverloaded
	} else if over, ok := s.key.Admit(); !ok {
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
		s.node.metrics.refused(t.network, err)
		return x
	}
	if len(calls) == 0 {
		return nil
	}
	if t.refuse == nil {
		t.key.Charge(len(calls) - 1)
	}
	w.events += len(calls) - 1
	x := newExchange(s, len(calls))
	x.batch, x.key, x.network = batch, t.key, t.network
	x.fill(calls, t)
	s.node.metrics.count(x)
	return x
}
