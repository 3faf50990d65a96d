package edge

import (
	"errors"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/ommer/ommer/bus/actor"
	"github.com/ommer/ommer/bus/keys"
	"github.com/ommer/ommer/edge/http1"
	"github.com/ommer/ommer/edge/nio"
	"github.com/ommer/ommer/edge/ws"
	"github.com/ommer/ommer/schema/jsonrpc"
)

// The signals of a session.
const (
	sigReadable uint32 = 1 << iota // bytes or the end may be there
	sigAnswered                    // an exchange is complete
	sigDrained                     // everything written has left
	sigExpired                     // the time-out has passed
	sigKey                         // its key may have been revoked, or good for less
	sigLeave                       // the node is stopping
	sigClosed                      // the connection is gone
	sigSpare                       // leave if idle: the node is overloaded
)

// phase is what a session speaks.
type phase uint8

const (
	speaksHTTP phase = iota
	speaksWS
	saysGoodbye // what is queued goes out, nothing is read
	gone
)

// session is the actor of one connection. While idle it is this struct and
// nothing else: buffers are borrowed for a turn, and what must outlive a turn
// (part of a request) is in partial.
type session struct {
	cell  actor.Cell
	inbox atomic.Pointer[exchange] // answered, newest first; touched from outside
	idle  atomic.Bool              // it waits for an HTTP request; read from outside

	node   *node
	conn   *nio.Conn
	key    *keys.Entry // of the WebSocket, nil where the application has none
	origin string      // that it was opened from, for when the key's settings change

	first, last *exchange // HTTP: waiting for their turn to be written
	waiting     *exchange // to be asked; the first may have been in part
	lastWaiting *exchange
	partial     *partial // nil when no message is half read

	inFlight  int32 // lookups that are not answered
	asked     int32 // of them, those that the resolver has
	queued    int32 // exchanges that are not written
	held      int32 // bytes of partial, as counted by the node
	unwritten int32 // what nio held when the write timer was set

	slot     uint16 // of its address, among the shares
	network  uint8  // of the WebSocket, among the node's
	phase    phase
	timer    timer
	readable bool // the socket may have more
	heard    bool // something came since the timer was set (WebSocket)
	deaf     bool // the rest of the input is not looked at
	leaving  bool // the node is stopping
}

// partial is what a session keeps of a message that has only partly arrived, and
// of input that it must not read on in yet.
type partial struct {
	in   []byte
	http httpState
	ws   ws.Reader
}

// scratch is what a turn borrows.
type scratch struct {
	in      [64 << 10]byte
	out     []byte   // to be written at the end of the turn
	body    []byte   // an answer without its framing
	splices []splice // what belongs into body
	zipper  zipper
	calls   []jsonrpc.Call // of the message being read
	events  int            // and calls taken in this turn
	request http1.Request
}

const (
	// maxReads, maxEvents and maxAsked are how many buffers of input, how many messages
	// or calls in them, and how many questions a session takes in one turn before
	// others get theirs. The last batch may exceed it: it is parsed as a whole.
	maxReads  = 8
	maxEvents = 256
	maxAsked  = 64
	// keptOut bounds the output buffers that are kept for the next turn.
	keptOut = 256 << 10
)

var (
	scratches = sync.Pool{New: func() any { return new(scratch) }}
	partials  = sync.Pool{New: func() any { return new(partial) }}
)

// signal wakes the session. Safe from any goroutine.
func (s *session) signal(bits uint32) {
	if s.cell.Post(bits) {
		s.node.pool.Submit(s)
	}
}

// answered takes a complete exchange. Safe from any goroutine; here says that the
// calling one may run the session.
func (s *session) answered(x *exchange, here bool) {
	bulk := len(x.calls) > bulkCalls // x is another's as soon as it is in the inbox
	for {
		head := s.inbox.Load()
		x.link = head
		if s.inbox.CompareAndSwap(head, x) {
			break
		}
	}
	if !s.cell.Post(sigAnswered) {
		return
	}
	switch {
	case bulk:
		s.node.pool.SubmitBulk(s)
	case here:
		s.Run()
	default:
		s.node.pool.Submit(s)
	}
}

// bulkCalls is how many calls a batch may have whose answer is written in its turn with
// those to single calls. What there is to render and to send for a longer one, up to
// 25 MB, keeps nobody else waiting.
const bulkCalls = 32

// Readable implements nio.Handler. The poller's goroutine runs the session.
func (s *session) Readable() {
	if s.cell.Post(sigReadable) {
		s.Run()
	}
}

// Drained implements nio.Handler.
func (s *session) Drained() { s.signal(sigDrained) }

// Expired implements nio.Handler.
func (s *session) Expired() { s.signal(sigExpired) }

// Closed implements nio.Handler.
func (s *session) Closed(error) { s.signal(sigClosed) }

// Run implements actor.Runner: one turn. What else there is to do by then waits until
// others had theirs, on the pool: no session holds a poller, which has other
// connections, for longer.
func (s *session) Run() {
	defer s.contain()
	w := scratches.Get().(*scratch)
	again := s.turn(s.cell.Take(), w)
	w.trim()
	scratches.Put(w)
	switch {
	case again: // the cell stays ours
		s.node.pool.SubmitBulk(s)
	case !s.cell.Rest():
		s.node.pool.Submit(s)
	}
}

// trim lets go of what one turn has made larger than most need.
func (w *scratch) trim() {
	if cap(w.out) > keptOut {
		w.out = nil
	}
	if cap(w.body) > keptOut {
		w.body = nil
	}
	if cap(w.zipper.out) > keptOut {
		w.zipper.out = nil
	}
	if cap(w.calls) > keptCalls {
		w.calls = nil
	}
	clear(w.splices[:cap(w.splices)])
	if cap(w.splices) > keptCalls {
		w.splices = nil
	}
}

// contain ends a session that has panicked, and it alone. What it held is left to
// the garbage collector; its exchanges still come back to it.
func (s *session) contain() {
	v := recover()
	if v == nil {
		return
	}
	s.node.log.Error("session panicked", "panic", v, "stack", string(debug.Stack()))
	s.node.metrics.ended(errPanicked)
	s.node.held.Add(int64(-s.held))
	if x := s.waiting; x != nil { // asking it may be what failed: then it does not come back
		s.settle(x, x.out)
	}
	s.partial, s.first, s.last, s.waiting, s.held = nil, nil, nil, nil, 0
	if s.phase != gone {
		s.turnTo(gone)
		s.node.forget()
	}
	s.conn.Close(errPanicked)
	s.Run() // the cell is still ours; a session that is gone does nothing that could panic
}

// turn does what the signals ask for. It reports whether input is left that
// could be read at once.
func (s *session) turn(bits uint32, w *scratch) (again bool) {
	answered := s.takeAnswered()
	if bits&sigClosed != 0 && s.phase != gone {
		s.bury()
	}
	if s.phase == gone {
		for x := answered; x != nil; {
			next := x.link
			if s.back(x) {
				x.release()
			}
			x = next
		}
		return false
	}
	w.out, w.events = w.out[:0], 0
	for x := answered; x != nil; {
		next := x.link
		x.link = nil
		if s.back(x) {
			s.complete(x, w)
		}
		x = next
	}
	if bits&sigReadable != 0 {
		s.readable = true
	}
	if bits&sigLeave != 0 {
		s.leaving = true
	}
	if bits&sigKey != 0 && s.phase == speaksWS {
		s.node.app.recheck(s, w)
	}
	if bits&sigExpired != 0 {
		s.expired(w)
	}
	again = s.read(w)
	again = s.ask() || again
	s.leave(w)
	if bits&sigSpare != 0 {
		s.spare(w)
	}
	s.write(w)
	s.setTimer(bits&sigDrained != 0)
	return again
}

// takeAnswered empties the inbox, oldest first.
func (s *session) takeAnswered() *exchange {
	if s.inbox.Load() == nil {
		return nil
	}
	var oldest *exchange
	for x := s.inbox.Swap(nil); x != nil; {
		next := x.link
		x.link, oldest = oldest, x
		x = next
	}
	return oldest
}

// complete takes an exchange whose answers are all there.
func (s *session) complete(x *exchange, w *scratch) {
	s.inFlight -= x.lookups
	x.done = true
	if x.http {
		if x != s.first && !x.batch && len(x.calls) == 1 {
			x.calls[0].answer = x.calls[0].answer.Clone() // it waits for earlier ones
		}
		s.writeDone(w)
		return
	}
	s.queued--
	if s.phase == speaksWS {
		s.writeWS(x, w)
	}
	x.release()
}

// paused says whether input must wait for answers to leave.
func (s *session) paused() bool {
	l := &s.node.cfg.Limits
	if s.deaf || s.phase > speaksWS || s.conn.Unwritten() > l.Unread {
		return true
	}
	if s.phase == speaksHTTP {
		return int(s.queued) >= l.Pipeline || int(s.inFlight) >= l.InFlight
	}
	return false
}

// read takes what has arrived until there is no more, the session must pause, or
// it had its share.
func (s *session) read(w *scratch) (again bool) {
	var in []byte // a prefix of w.in
	if p := s.partial; p != nil && len(p.in) > 0 {
		in = w.in[:copy(w.in[:], p.in)]
		p.in = p.in[:0]
	}
	for reads := 0; ; {
		if len(in) > 0 || s.partial != nil {
			in = in[s.consume(in, w):]
		}
		if s.paused() {
			break
		}
		if again = w.events >= maxEvents || s.readable && reads >= maxReads; again || !s.readable {
			break
		}
		reads++
		copy(w.in[:], in)
		n, err := s.conn.Read(w.in[len(in):])
		in = w.in[:len(in)+n]
		if err != nil {
			s.readable = false
			if !errors.Is(err, nio.ErrAgain) {
				s.ended(err, w)
				break
			}
		}
	}
	switch {
	case s.phase > speaksWS:
		s.drop()
		return false
	case s.deaf:
		in = nil
	}
	s.keep(in, w)
	return again
}

// consume hands input to the protocol and returns how much of it was taken. What
// is left needs more bytes, or the session is paused.
func (s *session) consume(in []byte, w *scratch) (n int) {
	for more := false; !more && !s.paused() && w.events < maxEvents; w.events++ {
		var took int
		if s.phase == speaksHTTP {
			took, more = s.consumeHTTP(in[n:], w)
		} else {
			took, more = s.consumeWS(in[n:], w)
		}
		n += took
		if len(w.out) > s.node.cfg.Limits.Unread {
			s.write(w)
		}
	}
	return n
}

// keep stores what must outlive the turn, or nothing.
func (s *session) keep(in []byte, w *scratch) {
	p := s.partial
	if len(in) > 0 {
		if p == nil {
			p = s.borrow()
		}
		p.in = append(p.in[:0], in...)
	}
	if p == nil {
		return
	}
	p.ws.Release()
	if len(p.in) == 0 && p.idle() {
		s.drop()
		return
	}
	more := int32(len(p.in)+p.http.parser.Buffered()+p.ws.Buffered()) - s.held
	s.held += more
	if total := s.node.held.Add(int64(more)); more > 0 && total > int64(s.node.cfg.Limits.InputTotal) {
		s.crowded(w)
	}
}

// crowded ends a session that would hold more of a message when all of them
// together hold too much.
func (s *session) crowded(w *scratch) {
	if s.phase == speaksWS {
		s.closeWS(w, ws.CodeTryAgainLater, "too many messages in part", errCrowded)
	} else {
		s.refuse(w, refuseCrowded)
	}
	s.drop()
}

// idle says whether nothing would be lost without p.
func (p *partial) idle() bool { return p.http.idle() && p.ws.Idle() }

// borrow makes sure that there is a partial.
func (s *session) borrow() *partial {
	if s.partial == nil {
		s.partial = partials.Get().(*partial)
		s.partial.http = httpState{parser: s.node.httpPool.Parser()}
		s.partial.ws = ws.NewReader(s.node.wsPool)
	}
	return s.partial
}

// drop gives the partial back.
func (s *session) drop() {
	if p := s.partial; p != nil {
		s.partial = nil
		s.node.held.Add(int64(-s.held))
		s.held = 0
		p.http.parser.Release()
		p.in = p.in[:0]
		if cap(p.in) > keptOut {
			p.in = nil
		}
		partials.Put(p)
	}
}

// ended is told that nothing more can be read. A client that has only shut down
// its sending side still gets the answers to what it has asked over HTTP.
func (s *session) ended(err error, w *scratch) {
	switch {
	case !errors.Is(err, io.EOF):
		s.turnTo(saysGoodbye)
		s.conn.Close(err)
	case s.phase == speaksHTTP && s.last != nil:
		s.deaf, s.last.close = true, true
	default:
		s.goodbye(w, errEnded)
	}
}

// write sends what the turn has produced.
func (s *session) write(w *scratch) {
	if s.phase > speaksWS { // nothing follows the goodbye
		w.out = w.out[:0]
	}
	if len(w.out) == 0 {
		return
	}
	err := s.conn.Write(w.out)
	w.out = w.out[:0]
	switch {
	case err == nil:
	case errors.Is(err, nio.ErrOverflow):
		s.stalled()
	default:
		s.turnTo(saysGoodbye)
		s.conn.Close(err)
	}
}

// stalled ends a connection whose client leaves too much unread.
func (s *session) stalled() {
	wasWS := s.phase == speaksWS
	s.turnTo(saysGoodbye)
	s.node.metrics.ended(errStalled)
	if wasWS && s.conn.Write(ws.AppendClose(nil, ws.CodeTryAgainLater, "client does not read")) == nil {
		s.conn.CloseAfterFlush()
		return
	}
	s.conn.Close(errStalled)
}

// goodbye lets what is queued go out and then closes.
func (s *session) goodbye(w *scratch, why error) {
	if s.phase > speaksWS {
		return
	}
	s.release() // before the client can know that it may open another
	s.write(w)
	if s.phase > speaksWS {
		return
	}
	s.turnTo(saysGoodbye)
	s.node.metrics.ended(why)
	s.conn.CloseAfterFlush()
}

// turnTo begins a phase in which nothing is read.
func (s *session) turnTo(p phase) {
	s.phase = p
	s.release()
}

// release counts a WebSocket out, once. From here on the session has no key.
func (s *session) release() {
	if s.key != nil {
		s.key.Close()
		s.key = nil
	}
}

// leave ends the session when the node is stopping and nothing is owed. What a
// WebSocket's client has sent by now is answered, what it sends from now on is not
// read: it would keep the session for ever.
func (s *session) leave(w *scratch) {
	switch {
	case !s.leaving:
	case s.phase == speaksWS && s.queued > 0:
		s.deaf = !s.readable
	case s.phase == speaksWS:
		s.closeWS(w, ws.CodeGoingAway, "server is restarting", errLeaving)
	case s.phase == speaksHTTP && s.node.parting.Load() && s.queued == 0 && (s.partial == nil || s.partial.http.idle()):
		s.goodbye(w, errLeaving)
	}
}

// bury gives everything back. Exchanges that are still asked for come back
// through the inbox.
func (s *session) bury() {
	s.turnTo(gone)
	s.drop()
	for x := s.first; x != nil; {
		next := x.next
		if x.done {
			x.release()
		}
		x = next
	}
	s.first, s.last, s.waiting, s.lastWaiting = nil, nil, nil, nil
	s.node.forget()
}
