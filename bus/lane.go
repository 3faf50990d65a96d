package bus

import (
	"sync"
	"sync/atomic"

	"github.com/ommer/ommer/schema"
)

// lane is a way to ask: the questions of one method to one worker (or to all of them)
// over one link, with a reply subject of its own. Questions that come close together leave in one message (see
// Client.publish). It remembers which of them the server may not have routed yet.
//
// A server that finds nobody to deliver a message to answers with status 503 on
// the reply subject. The reply subject is shared, so the questions that it speaks
// of have to be found. Three facts make that exact, or harmless:
//
//  1. A server handles the messages of one connection in order and writes a 503
//     while it does so. Whatever comes back about a message (an answer, or a PONG to
//     a PING sent after it) comes after the 503s of all messages before it. So only
//     questions after the last that something came back for can be meant. Their
//     number is small: what was sent within one round trip to a worker, or between
//     two PINGs (see Client.confirm).
//  2. Of these, every one is sent again after a pause, under the same id. For one
//     that had in fact reached a worker this is a second copy of a lookup, and the
//     first answer counts.
//  3. What is sent again gets a message and a reply subject of its own, with the id
//     in it, so that from then on a 503 names its question. These are rare, and so
//     do not crowd the server's cache.
//
// What remains: a question that reached the last worker less than a few
// milliseconds before that one left the queue group, and whose answer takes
// longer than the whole patience of backoff, fails although an answer was coming.
//
// A shard's mutex may be held when a lane's is taken, never the other way round.
type lane struct {
	link    *clientLink
	peer    *peer
	subject string
	reply   string        // the shared reply subject
	token   string        // its last token
	taken   atomic.Uint64 // the last place that the server is known to have routed

	mu        sync.Mutex
	out       []*schema.Bundle // what waits to be published; the last one has room, if any has
	given     uint64           // the last place that was given away
	begun     uint64           // the last place that may be on its way
	published uint64           // the last place that is
	aged      uint64           // what published was at the previous look of the clock
	ring      []uint32         // by place: the index of the question
	frame     [schema.MaxRequestFrame]byte
	limit     int

	_ [64]byte // the next lane's mutex is on another cache line
}

// maxBundle is how many questions leave in one message. Answers of the usual size to
// as many take two messages of maxLetter bytes.
const maxBundle = 32

// bundles are what was published and may be filled again.
var bundles = sync.Pool{New: func() any { return new(schema.Bundle) }}

// add puts a question among those that are to be published. It returns its place, and
// whether the publisher has to be woken.
func (l *lane) add(index uint32, r schema.Request) (seq uint64, wake bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.out) - 1
	if last < 0 || l.out[last].Frames() >= maxBundle {
		l.out = append(l.out, bundles.Get().(*schema.Bundle))
		last++
	}
	l.out[last].AddRequest(r)
	return l.push(index), last == 0 && l.out[last].Frames() == 1
}

// publish sends a question at once, if none waits to be published before it, and
// returns its place; 0 if it was not sent. It is for quiet times, in which waking the
// publisher costs more than company would save.
func (l *lane) publish(index uint32, r schema.Request) (seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given != l.published {
		return 0
	}
	// An error means that the link was lost a moment ago: its publisher finds another.
	b := schema.AppendRequest(l.frame[:0], r)
	if l.link.nc.PublishRequest(l.subject, l.reply, b) != nil {
		return 0
	}
	l.link.messages.Add(1)
	seq = l.push(index)
	l.begun, l.published = seq, seq
	return seq
}

// take returns what waits to be published, for which done is called then, and leaves
// into for what comes next.
func (l *lane) take(into []*schema.Bundle) []*schema.Bundle {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.out
	l.out, l.begun = into[:0], l.given
	return out
}

// done notes that what was taken is published: a PING comes after it.
func (l *lane) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.published = l.begun
}

// push gives a question the next place.
func (l *lane) push(index uint32) uint64 {
	l.given++
	n := uint64(len(l.ring))
	if l.given-l.taken.Load() > n {
		if n < uint64(l.limit) {
			l.grow()
		} else {
			l.confirm(l.given - n) // a silent link: forget the oldest, its deadline will end it
		}
	}
	l.ring[l.given&uint64(len(l.ring)-1)] = index
	return l.given
}

func (l *lane) grow() {
	old, n := l.ring, uint64(len(l.ring))
	l.ring = make([]uint32, max(64, 2*n))
	for s := l.taken.Load() + 1; s < l.given; s++ {
		l.ring[s&uint64(len(l.ring)-1)] = old[s&(n-1)]
	}
}

// confirm notes that the server has routed everything up to seq.
func (l *lane) confirm(seq uint64) {
	for {
		taken := l.taken.Load()
		if taken >= seq || l.taken.CompareAndSwap(taken, seq) {
			return
		}
	}
}

// blamed is a question that a 503 can mean.
type blamed struct {
	seq   uint64
	index uint32
}

// blame returns the questions that a 503 can mean, from the oldest. Each of them may be
// over by now.
func (l *lane) blame() (list []blamed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for seq := l.taken.Load() + 1; seq <= l.begun; seq++ {
		list = append(list, blamed{seq, l.ring[seq&uint64(len(l.ring)-1)]})
	}
	return list
}

// mark is the last place that was published.
func (l *lane) mark() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.published
}

// lost notes that the connection is gone, and with it every 503 that was to come.
func (l *lane) lost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.confirm(l.begun)
}

// stale says whether something has been unconfirmed since the previous call.
func (l *lane) stale() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.taken.Load() < l.aged
	l.aged = l.published
	return s
}
