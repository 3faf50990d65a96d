package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// pipeline asks on a WebSocket with several requests in flight. One goroutine sends,
// another one reads; answers may come in any order.
type pipeline struct {
	*driver
	free   chan int // slots without a request
	broken chan struct{}

	mu    sync.Mutex
	slots []slot
	dead  bool // nothing is read any more
	good  bool // something was answered rightly
}

// slot is a request in flight. Its id tells which slot it is in.
type slot struct {
	id        uint64
	request   int
	due, sent time.Time
	late      bool
	active    bool
	lost      []uint64 // ids whose time ran out, which may still be answered
	forgotten uint64   // ids up to this one, too: there were too many to keep
}

// mostLost bounds the ids that a slot remembers.
const mostLost = 16

// lose remembers that the request of a slot was given up.
func (s *slot) lose() {
	if s.lost = append(s.lost, s.id); len(s.lost) > mostLost {
		s.forgotten = s.lost[0]
		s.lost = slices.Delete(s.lost, 0, 1)
	}
}

// found says whether an answer is the first to a request that was given up.
func (s *slot) found(id uint64) bool {
	i := slices.Index(s.lost, id)
	if i >= 0 {
		s.lost = slices.Delete(s.lost, i, i+1)
	}
	return i >= 0 || id <= s.forgotten
}

func newPipeline(d *driver) *pipeline {
	p := &pipeline{driver: d, free: make(chan int, d.InFlight), broken: make(chan struct{}), slots: make([]slot, d.InFlight)}
	for s := range p.slots {
		p.slots[s].id = firstID + uint64(s*p.calls())
		p.free <- s
	}
	return p
}

// calls is how many calls each request has, and so how many ids.
func (p *pipeline) calls() int { return p.Dialer.qs.requests[0].calls }

// run asks until the connection breaks or the run is over.
func (p *pipeline) run() {
	var reading sync.WaitGroup
	reading.Go(p.read)
	for p.next() {
	}
	for range cap(p.free) { // each is answered or times out
		select {
		case <-p.free:
		case <-p.broken:
		}
	}
	p.conn.last = true
	_ = p.conn.Close()
	reading.Wait()
	if p.good {
		p.backOff = 0
	}
}

// next sends a request when it is time to. It returns false when there is none.
func (p *pipeline) next() bool {
	var s int
	select {
	case s = <-p.free:
	case <-p.broken:
		return false
	}
	if !p.wait(p.broken) {
		p.free <- s
		return false
	}
	i := p.conn.turn()
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return false // the ticket is kept for the next connection
	}
	p.holds = false
	sl := &p.slots[s]
	sl.id += uint64(len(p.slots) * p.calls())
	sl.request, sl.due, sl.sent, sl.late, sl.active = i, p.due, time.Now(), p.late, true
	p.conn.out = p.conn.appendRequest(p.conn.out[:0], i, sl.id)
	p.mu.Unlock()
	if p.conn.ws.send(p.conn.out) != nil {
		_ = p.conn.Close() // which the reader notices
		return false
	}
	return true
}

// read takes answers until the connection ends. Its deadline is the earliest that a
// request can have: those that are sent later have later ones.
func (p *pipeline) read() {
	next := time.Now().Add(p.Dialer.config.Timeout)
	for {
		err := p.conn.ws.SetReadDeadline(next)
		for err == nil {
			var answer []byte
			if answer, err = p.conn.ws.receive(); err == nil {
				err = p.answered(answer, time.Now())
			}
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			p.fail(broken(err))
			return
		}
		next = p.expire(time.Now())
	}
}

// answered takes a message. An error ends the connection.
func (p *pipeline) answered(answer []byte, now time.Time) error {
	p.mu.Lock()
	s, err := p.slotOf(answer)
	if f, ok := errors.AsType[*Failure](err); ok && f.Kind == KindTwice {
		p.rec.addOdd(p.number, now, p.Dialer.clean(f)) // whoever asked has had an answer
		err = nil
		s = -1
	}
	if err != nil || s < 0 {
		p.mu.Unlock()
		return err
	}
	sl := p.slots[s]
	p.slots[s].active = false
	p.mu.Unlock()
	o := p.Dialer.qs.check(p.Dialer.qs.requests[sl.request], answer, sl.id)
	if len(o.failed) == 0 {
		p.good = true
	}
	p.record(sample{due: sl.due, done: now, late: sl.late, calls: p.calls(), outcome: o})
	p.free <- s
	return nil
}

// slotOf finds whose answer it is, -1 if it is too late for it. An error with id null
// is taken for that of the oldest request.
func (p *pipeline) slotOf(answer []byte) (int, error) {
	text := idOf(answer)
	if text == "null" {
		oldest := -1
		for s := range p.slots {
			if p.slots[s].active && (oldest < 0 || p.slots[s].sent.Before(p.slots[oldest].sent)) {
				oldest = s
			}
		}
		return oldest, nil
	}
	id, err := strconv.ParseUint(text, 10, 64)
	if err == nil && id >= firstID && (id-firstID)%uint64(p.calls()) == 0 {
		s := int((id - firstID) / uint64(p.calls()) % uint64(len(p.slots)))
		switch sl := &p.slots[s]; {
		case sl.active && sl.id == id:
			return s, nil
		case id <= sl.id && sl.found(id):
			return -1, nil
		case id <= sl.id && id >= firstID+uint64(len(p.slots)*p.calls()):
			return -1, &Failure{KindTwice, quote(answer)}
		}
	}
	return -1, &Failure{KindID, quote(answer)}
}

var idStart = []byte(`{"jsonrpc":"2.0","id":`)

// idOf returns the id of the first answer in a message, as it is written.
func idOf(answer []byte) string {
	answer = bytes.TrimSpace(answer)
	first, isBatch := bytes.CutPrefix(answer, []byte{'['})
	if rest, ok := bytes.CutPrefix(first, idStart); ok {
		if i := bytes.IndexByte(rest, ','); i > 0 {
			return string(rest[:i])
		}
	}
	var one response
	if isBatch {
		var list []response
		if json.Unmarshal(answer, &list) != nil || len(list) == 0 {
			return ""
		}
		one = list[0]
	} else if json.Unmarshal(answer, &one) != nil {
		return ""
	}
	return string(one.ID)
}

// expire gives up what has waited too long, and returns when to look again.
func (p *pipeline) expire(now time.Time) (next time.Time) {
	timeout := p.Dialer.config.Timeout
	next = now.Add(timeout)
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.slots {
		switch sl := &p.slots[s]; {
		case !sl.active:
		case now.Sub(sl.sent) >= timeout:
			p.giveUp(s, now, &Failure{KindTimeout, ""})
		case p.isDrained(now):
			p.giveUp(s, now, unanswered())
		case sl.sent.Add(timeout).Before(next):
			next = sl.sent.Add(timeout)
		}
	}
	return next
}

// giveUp counts the request of a slot as failed. The lock is held.
func (p *pipeline) giveUp(s int, now time.Time, why *Failure) {
	sl := &p.slots[s]
	sl.active = false
	sl.lose()
	p.record(sample{due: sl.due, done: now, late: sl.late, calls: p.calls(), outcome: all(p.calls(), why)})
	p.free <- s
}

// fail gives up what is in flight.
func (p *pipeline) fail(why *Failure) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	for s := range p.slots {
		if p.slots[s].active {
			p.giveUp(s, now, why)
		}
	}
	close(p.broken)
	_ = p.conn.Close()
}
