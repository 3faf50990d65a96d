package bus

import (
	"encoding/json"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/jsonrpc"
)

// A question may also be plain JSON, so that an operator can ask by hand:
//
//	nats req ommer.v1.mainnet.eth_getUncleByBlockNumberAndIndex '["0x29c","0x0"]'
//
// An array holds the parameters of the subject's method, an object is a whole
// JSON-RPC request for that method. Either is answered with a JSON-RPC response;
// after an array its id is null. A notification is not answered.

// isPlain says whether a message is JSON: after white space it begins with '[' or
// '{'. No frame does.
func isPlain(b []byte) bool {
	for _, c := range b {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c == '[' || c == '{'
		}
	}
	return false
}

// receivePlain takes a question in plain JSON.
func (s *Server) receivePlain(via *serverLink, m *nats.Msg, began time.Time) {
	p := &plainLookup{server: s, via: via, reply: m.Reply, began: began}
	q, wrong, ask := p.parse(lastToken(m.Subject), m.Data)
	switch {
	case wrong != nil:
		s.metrics.outcome(outcomeInvalid)
		s.publish(via, m.Reply, jsonrpc.AppendError(nil, p.id, wrong))
	case !ask:
		s.metrics.outcome(outcomeInvalid)
	case !s.admit():
		s.metrics.outcome(outcomeOverloaded)
		s.publish(via, m.Reply, jsonrpc.AppendError(nil, p.id, errOverloaded.Reply()))
	default:
		s.cfg.Resolver.Resolve(q, began.Add(s.cfg.Timeout), p)
	}
}

// plainLookup is one question in plain JSON, and the Receiver of its answer.
type plainLookup struct {
	server *Server
	via    *serverLink
	reply  string
	id     []byte // raw JSON, nil for null
	began  time.Time
}

// parse reads the question. Wrong is what the asker did wrong; ask is false when
// there is nothing to answer.
func (p *plainLookup) parse(name string, msg []byte) (q schema.Question, wrong *jsonrpc.Error, ask bool) {
	params := json.RawMessage(nil)
	if err := json.Unmarshal(msg, &params); err != nil {
		return q, &jsonrpc.Error{Code: jsonrpc.CodeParse, Message: "parse error"}, false
	}
	if params[0] == '{' {
		calls, _, err := jsonrpc.Parse(msg, nil, jsonrpc.Limits{})
		if err != nil {
			return q, err, false
		}
		c := &calls[0]
		p.id = c.ID
		switch {
		case c.Err != nil:
			return q, c.Err, false
		case c.Notification():
			return q, nil, false
		case string(c.Method) != name:
			return q, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this subject is for the method " + name}, false
		}
		params = c.Params
	}
	method, ok := schema.MethodNamed([]byte(name))
	if !ok {
		return q, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the method " + name + " does not exist/is not available"}, false
	}
	q, wrong = schema.ParseParams(method, params)
	return q, wrong, wrong == nil
}

// Answered implements schema.Receiver.
func (p *plainLookup) Answered(a schema.Answer) {
	s := p.server
	if a.Err != nil {
		s.publish(p.via, p.reply, jsonrpc.AppendError(nil, p.id, a.Err.Reply()))
	} else {
		s.publish(p.via, p.reply, jsonrpc.AppendResult(nil, p.id, a.Result))
	}
	s.metrics.answered(a)
	s.done(a, time.Since(p.began))
	s.release(1)
}
