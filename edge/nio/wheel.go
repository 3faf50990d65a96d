package nio

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// tick is the granularity of time-outs: they come up to two ticks late and
	// never early.
	tick = 100 * time.Millisecond
	// slots is a power of two. A time-out beyond slots ticks (51 s) is looked at
	// again each time that its connection comes round.
	slots = 512
)

// wheel holds the time-outs of all connections, and so is also the list of the
// connections that there are: one without a time-out is parked.
//
// Moving a time-out later, which every message does, takes no lock: the new time
// is stored in the connection, which stays where it is. When its slot comes round
// it is put where it now belongs.
type wheel struct {
	start time.Time

	mu     sync.Mutex
	now    uint32 // the last tick that was looked at
	slot   [slots]*Conn
	parked *Conn
}

// timer is a connection's place in the wheel.
type timer struct {
	prev, next *Conn // guarded by wheel.mu
	removed    bool  // likewise: a set that was under way must not bring it back
	// at is the tick of the slot that holds the connection, 0 when it is parked
	// or nowhere. It is written with wheel.mu held.
	at atomic.Uint32
	// due is the tick at which the time-out passes, 0 when there is none.
	due atomic.Uint32
}

func (w *wheel) init() { w.start = time.Now() }

// elapsed is the number of ticks that have passed completely.
func (w *wheel) elapsed() uint32 { return uint32(time.Since(w.start) / tick) }

// add puts a new connection among the parked ones.
func (w *wheel) add(c *Conn) {
	w.mu.Lock()
	w.link(&w.parked, c)
	w.mu.Unlock()
}

// remove takes a connection out for good.
func (w *wheel) remove(c *Conn) {
	w.mu.Lock()
	w.unlink(c)
	c.timer.removed = true
	w.mu.Unlock()
}

// set replaces the connection's time-out; d <= 0 removes it.
func (w *wheel) set(c *Conn, d time.Duration) {
	if d <= 0 {
		c.timer.due.Store(0)
		return
	}
	due := uint32((time.Since(w.start) + d + tick - 1) / tick)
	c.timer.due.Store(due)
	// advance clears at before it reads due. So whoever finds the connection in
	// an early enough slot here knows that the new time will be seen there.
	if at := c.timer.at.Load(); at != 0 && at <= due {
		return
	}
	w.mu.Lock()
	if at := c.timer.at.Load(); !c.timer.removed && (at == 0 || at > due) {
		w.unlink(c)
		w.place(c, due)
	}
	w.mu.Unlock()
}

// advance moves the wheel to the given tick and appends the connections whose
// time-outs have passed to expired. Those have no time-out any more.
func (w *wheel) advance(to uint32, expired []*Conn) []*Conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.now < to {
		w.now++
		head := &w.slot[w.now%slots]
		for c := *head; c != nil; c = *head {
			w.unlink(c)
			due := c.timer.due.Load()
			for due != 0 && due <= w.now {
				if c.timer.due.CompareAndSwap(due, 0) {
					expired = append(expired, c)
				}
				due = c.timer.due.Load()
			}
			if due == 0 {
				w.link(&w.parked, c)
			} else {
				w.place(c, due)
			}
		}
	}
	return expired
}

// appendAll appends every connection to conns.
func (w *wheel) appendAll(conns []*Conn) []*Conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := w.parked; c != nil; c = c.timer.next {
		conns = append(conns, c)
	}
	for _, head := range w.slot {
		for c := head; c != nil; c = c.timer.next {
			conns = append(conns, c)
		}
	}
	return conns
}

// appendSlot appends the connections of one slot, each with the ticks that are left
// until its time-out.
func (w *wheel) appendSlot(slot int, conns []timedConn) []timedConn {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := w.slot[slot]; c != nil; c = c.timer.next {
		if due := c.timer.due.Load(); due != 0 {
			conns = append(conns, timedConn{c, due - min(due, w.now)})
		}
	}
	return conns
}

// timedConn is a connection with a time-out.
type timedConn struct {
	*Conn
	left uint32 // ticks
}

// place links the connection into the slot of the tick, or the last one before it.
func (w *wheel) place(c *Conn, due uint32) {
	at := max(w.now+1, min(due, w.now+slots-1))
	w.link(&w.slot[at%slots], c)
	c.timer.at.Store(at)
}

func (w *wheel) link(head **Conn, c *Conn) {
	c.timer.prev, c.timer.next = nil, *head
	if *head != nil {
		(*head).timer.prev = c
	}
	*head = c
}

func (w *wheel) unlink(c *Conn) {
	head := &w.parked
	if at := c.timer.at.Load(); at != 0 {
		head = &w.slot[at%slots]
	}
	if c.timer.prev != nil {
		c.timer.prev.timer.next = c.timer.next
	} else if *head == c {
		*head = c.timer.next
	}
	if c.timer.next != nil {
		c.timer.next.timer.prev = c.timer.prev
	}
	c.timer.prev, c.timer.next = nil, nil
	c.timer.at.Store(0)
}
