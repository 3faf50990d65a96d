package edge

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/jsonrpc"
)

// exchange is one message of a client and what is to be answered. It belongs to
// its session, but for pending and the answers of its calls: those belong to
// whoever delivers them until pending is zero.
type exchange struct {
	session *session
	next    *exchange // in the session's queue (HTTP)
	link    *exchange // in the session's stack of answered exchanges

	behind *exchange // that waits to be asked after it

	// pending counts the answers that have to come until the session gets the
	// exchange back: those that it awaits less those that have come.
	pending atomic.Int32

	verdict        // how to answer, on HTTP; the key and the network on both
	http     bool  // in the session's queue
	batch    bool  // answer with an array
	done     bool  // every answer is there
	lookups  int32 // calls that count as in flight
	unasked  int32 // of them
	out      int32 // of them, asked and not known to be answered
	awaited  int32 // of them, those that pending was raised by; 0 when the session has it back
	at       int32 // the first call that was not looked at for asking
	deadline time.Time
	calls    []call
	ids      []byte // what the calls' ids alias
	inline   [1]call
}

// call is one request of an exchange. It is the schema.Receiver of its answer.
type call struct {
	exchange *exchange
	id       []byte // raw JSON; nil is answered as null
	question schema.Question
	answer   schema.Answer
	err      *jsonrpc.Error // found wrong at the edge
	kind     kind
}

// kind says what becomes of a call.
type kind uint8

const (
	silent   kind = iota // a notification: nothing is answered
	refused              // answered with err
	known                // rpc.discover: answered with the OpenRPC document
	lookedUp             // a question for the resolver
)

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// keptCalls and keptIDs bound what a recycled exchange holds on to.
const (
	keptCalls = 16
	keptIDs   = 1 << 10
)

// newExchange returns an exchange with room for n calls.
func newExchange(s *session, n int) *exchange {
	x := exchanges.Get().(*exchange)
	x.session = s
	switch {
	case n <= cap(x.calls):
		x.calls = x.calls[:n]
	case n <= len(x.inline):
		x.calls = x.inline[:n]
	default:
		x.calls = make([]call, n)
	}
	return x
}

// release gives the exchange back. Nobody may hold it or one of its calls.
func (x *exchange) release() {
	x.session, x.next, x.link, x.behind = nil, nil, nil, nil
	x.verdict, x.http, x.batch, x.done = verdict{}, false, false, false
	x.lookups, x.at = 0, 0
	clear(x.calls)
	if cap(x.calls) > keptCalls {
		x.calls = nil
	}
	x.calls = x.calls[:0]
	x.ids = x.ids[:0]
	if cap(x.ids) > keptIDs {
		x.ids = nil
	}
	exchanges.Put(x)
}

// terms are what the calls of a message are taken under.
type terms struct {
	key     *keys.Entry
	network *network
	room    int            // how many lookups the connection may still have in flight
	gzip    bool           // the answer may be compressed
	refuse  *jsonrpc.Error // the answer to every call, nil for their own
}

// fill takes over the calls of a parsed message. Nothing of it aliases the
// message afterwards.
func (x *exchange) fill(parsed []jsonrpc.Call, t terms) {
	for i := range parsed {
		p, c := &parsed[i], &x.calls[i]
		c.exchange = x
		if p.ID != nil {
			at := len(x.ids)
			x.ids = append(x.ids, p.ID...) // a former array, if this grows, stays alive through its ids
			c.id = x.ids[at:len(x.ids):len(x.ids)]
		}
		if p.Notification() {
			c.kind = silent
			continue
		}
		if t.refuse != nil {
			c.kind, c.err = refused, t.refuse
			continue
		}
		if p.Err != nil {
			c.kind, c.err = refused, p.Err
			continue
		}
		if string(p.Method) == schema.Discover {
			c.discover(p.Params, t)
			continue
		}
		method, ok := schema.MethodNamed(p.Method)
		if !ok {
			c.kind, c.err = refused, jsonrpc.MethodNotFound(p.Method)
			continue
		}
		if !t.key.AllowsMethod(method) {
			c.kind, c.err = refused, errSettings
			continue
		}
		c.question, c.err = schema.ParseParams(method, p.Params)
		c.question.Packed = t.gzip
		switch {
		case c.err != nil:
			c.kind = refused
		case int(x.lookups) >= t.room:
			c.kind, c.err = refused, errInFlight
		default:
			c.kind = lookedUp
			x.lookups++
		}
	}
}

// discover answers a call of rpc.discover at once: nobody is asked, so that it does
// not count as in flight. What bounds it are the limits on the calls of a batch, on
// their answers, and on what waits for a client.
func (c *call) discover(params []byte, t terms) {
	if c.err = schema.ParseNoParams(params); c.err != nil {
		c.kind = refused
		return
	}
	c.kind = known
	if t.gzip {
		c.answer.Packed = schema.PackedOpenRPC()
	} else {
		c.answer.Result = schema.OpenRPC()
	}
}

// rejected says whether the exchange is a single call that its key may not make. On
// HTTP that is a 403, which a batch cannot be: its other calls are answered.
func (x *exchange) rejected() bool {
	return !x.batch && len(x.calls) == 1 && x.calls[0].err == errSettings
}

// ask sends the next n questions.
func (x *exchange) ask(r schema.Resolver, n int32) {
	for x.unasked -= n; n > 0; x.at++ {
		if c := &x.calls[x.at]; c.kind == lookedUp {
			r.Resolve(c.question, x.deadline, c)
			n--
		}
	}
}

// await has the exchange handed to its session, which may be at once: when
// everything is answered, or half of what was asked while there is more to ask.
func (x *exchange) await() {
	x.awaited = x.out
	if x.unasked > 0 {
		x.awaited = (x.out + 1) / 2
	}
	if x.pending.Add(x.awaited) <= 0 {
		x.session.answered(x, false)
	}
}

// Answered implements schema.Receiver.
func (c *call) Answered(a schema.Answer) {
	x := c.exchange
	if c.answer = a; x.batch {
		c.answer = a.Clone() // it waits for the others
	}
	if x.pending.Add(-1) == 0 {
		x.session.answered(x, a.Unhurried)
	}
}

// render appends the JSON that answers the exchange to w.body: an object, an array,
// or nothing. Packed results are left out and noted in w.splices. From the first
// answer of a batch that would pass limit bytes on, all get an error, as in geth
// (rpc/handler.go, handleBatch).
func (x *exchange) render(w *scratch, limit int) {
	w.body, w.splices = w.body[:0], w.splices[:0]
	if !x.batch {
		if len(x.calls) == 1 {
			x.calls[0].render(w)
		}
		return
	}
	w.body = slices.Grow(w.body, min(x.size(), limit)) // growing in steps copies it several times
	packed, full := 0, false
	for i := range x.calls {
		c := &x.calls[i]
		if c.kind == silent {
			continue
		}
		if len(w.body) == 0 {
			w.body = append(w.body, '[')
		} else {
			w.body = append(w.body, ',')
		}
		packed += int(c.answer.Packed.Size)
		if full = full || len(w.body)+packed+len(c.answer.Result) > limit; full {
			c.kind, c.err = refused, errTooLarge
		}
		c.render(w)
	}
	if len(w.body) > 0 {
		w.body = append(w.body, ']')
	}
}

// size is about how many bytes the answers to a batch take.
func (x *exchange) size() int {
	const frame = len(`{"jsonrpc":"2.0","id":,"result":},`)
	n := len("[]")
	for i := range x.calls {
		n += frame + len(x.calls[i].id) + len(x.calls[i].answer.Result)
	}
	return n
}

func (c *call) render(w *scratch) {
	switch {
	case c.kind == silent:
	case c.kind == refused:
		w.body = jsonrpc.AppendError(w.body, c.id, c.err)
	case c.answer.Err != nil:
		w.body = jsonrpc.AppendError(w.body, c.id, c.answer.Err.Reply())
	default:
		w.body = jsonrpc.AppendResult(w.body, c.id, c.answer.Result)
		if !c.answer.Packed.IsZero() {
			w.splices = append(w.splices, splice{len(w.body) - len("}"), c.answer.Packed})
		}
	}
}
