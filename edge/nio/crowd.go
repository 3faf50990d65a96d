package nio

import (
	"container/heap"
	"container/list"
	"net/netip"
)

// crowd is the handshakes that wait, by address: some for their client, the others,
// which are ready, for their turn to compute. It says whose turn is next, each
// address having its own (fair queueing: Nagle, RFC 970), and who has to go when
// there are too many (longest queue drop: Suter et al., 1998).
type crowd struct {
	size    int
	lines   map[netip.Addr]*line
	longest longest
	round   list.List // of *line: those with somebody ready, the next one first
	last    uint64    // arrival
}

// line is the handshakes of one address that wait, at least one. Its lists are of
// *newcomer, in the order of arrival.
type line struct {
	addr    netip.Addr
	silent  list.List // wait for their client, which has had no answer yet
	stalled list.List // wait for their client, which has had one
	ready   list.List // wait for their turn
	index   int       // in crowd.longest
	turn    *list.Element
}

// place is where a newcomer stands in a crowd.
type place struct {
	line    *line // nil: nowhere
	list    *list.List
	element *list.Element
	arrival uint64
}

func (c *crowd) init() { c.lines = map[netip.Addr]*line{} }

// add has n wait for its client.
func (c *crowd) add(n *newcomer) {
	l := c.lines[n.addr]
	if l == nil {
		l = &line{addr: n.addr}
		c.lines[n.addr] = l
	}
	if n.answered {
		c.put(n, l, &l.stalled)
	} else {
		c.put(n, l, &l.silent)
	}
	if c.size++; l.len() == 1 {
		heap.Push(&c.longest, l)
	} else {
		heap.Fix(&c.longest, l.index)
	}
}

// wake makes n ready: its client has said something.
func (c *crowd) wake(n *newcomer) {
	l := n.line
	n.list.Remove(n.element)
	c.put(n, l, &l.ready)
	heap.Fix(&c.longest, l.index)
	if l.turn == nil {
		l.turn = c.round.PushBack(l)
	}
}

func (c *crowd) put(n *newcomer, l *line, at *list.List) {
	c.last++
	n.place = place{line: l, list: at, element: at.PushBack(n), arrival: c.last}
}

// next takes the one out whose turn it is; nil when nobody is ready.
func (c *crowd) next() *newcomer {
	if c.round.Len() == 0 {
		return nil
	}
	l := c.round.Front().Value.(*line)
	c.round.MoveToBack(l.turn)
	n := l.ready.Front().Value.(*newcomer)
	c.remove(n)
	return n
}

// remove takes n out.
func (c *crowd) remove(n *newcomer) {
	l := n.line
	n.list.Remove(n.element)
	n.place = place{}
	c.size--
	if l.turn != nil && l.ready.Len() == 0 {
		c.round.Remove(l.turn)
		l.turn = nil
	}
	if l.len() == 0 {
		heap.Remove(&c.longest, l.index)
		delete(c.lines, l.addr)
	} else {
		heap.Fix(&c.longest, l.index)
	}
}

// worst is who makes room, an address with the most that wait losing one; nil when
// nobody waits. Clients that keep us waiting go before those that we keep waiting.
//
// Where addresses have the same number it is the oldest of the silent ones. An honest
// client is silent for a moment only: its first message comes right behind the
// connection. So strangers who hold one connection each keep nobody out; but when
// everybody comes at once, those whose handshake has begun can finish it, and the
// newest go.
func (c *crowd) worst() *newcomer {
	if c.size == 0 {
		return nil
	}
	l := c.longest[0]
	e := l.silent.Front()
	if e == nil {
		e = l.stalled.Front()
	}
	if e == nil {
		e = l.ready.Back()
	}
	return e.Value.(*newcomer)
}

func (l *line) len() int { return l.silent.Len() + l.stalled.Len() + l.ready.Len() }

// longest is a heap with the line first that loses one: see crowd.worst.
type longest []*line

func (h longest) Len() int { return len(h) }

func (h longest) Less(i, j int) bool {
	if a, b := h[i].len(), h[j].len(); a != b {
		return a > b
	}
	a, b := h[i].silent.Front(), h[j].silent.Front()
	return a != nil && (b == nil || a.Value.(*newcomer).arrival < b.Value.(*newcomer).arrival)
}

func (h longest) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is called by package heap, and so is Pop.
func (h *longest) Push(x any) {
	l := x.(*line)
	l.index = len(*h)
	*h = append(*h, l)
}

// Pop takes the last one off.
func (h *longest) Pop() any {
	all := *h
	l := all[len(all)-1]
	all[len(all)-1] = nil
	*h = all[:len(all)-1]
	return l
}
