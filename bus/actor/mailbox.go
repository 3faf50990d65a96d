package actor

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

// mailbox is the bounded queue of one actor: any goroutine puts, the one that
// runs the actor takes. Messages are taken in the order in which they were put.
//
// It is a ring that both sides index by running numbers. Putting is under a
// mutex. Taking needs it once per batch, to look how far the messages reach;
// then it reads them where they are and says after each how far it has come. So
// the two sides touch the same memory seldom, and yet the limit is exact: one
// who finds no place looks up how far the taking has come.
type mailbox[M any] struct {
	limit    int // places for Tell
	reserved int // places beyond them, for TellReserved

	_     cacheLine // each of the groups below is written by another side
	taken atomic.Uint64

	_    cacheLine
	view []M    // the ring as of the last look
	pos  uint64 // number of the next message; taken for those who put
	end  uint64 // number after the last one of the batch
	kept uint64 // slots from here to pos have been read and not cleared

	_       cacheLine
	mu      sync.Mutex
	ring    []M    // its length is a power of two, or 0
	tail    uint64 // number of the next message to be put
	seen    uint64 // a value that taken had
	asleep  bool   // the taker has found nothing and relies on being told
	closed  bool
	refused uint64
}

// cacheLine keeps what two goroutines write apart.
type cacheLine [64]byte

const (
	// batch is how many messages one run receives before others have their
	// turn on the pool.
	batch = 64
	// minSlots is the length that a ring starts with.
	minSlots = 8
	// keepBytes is how large a ring may be for an actor without mail to hold on
	// to it. One that grew larger in a burst is given back. It is twice what
	// the default mailbox needs for pointers.
	keepBytes = 16 << 10
)

// put adds m unless limit messages are there already. wake is true when the taker
// has found nothing before, so that the actor has to be woken.
func (b *mailbox[M]) put(m M, limit int) (wake bool, err error) {
	b.mu.Lock()
	if n := b.tail - b.seen; n >= uint64(limit) || n == uint64(len(b.ring)) {
		b.seen = b.taken.Load()
	}
	n := b.tail - b.seen
	switch {
	case b.closed:
		err = ErrStopped
	case n >= uint64(limit):
		b.refused++
		err = ErrFull
	default:
		if n == uint64(len(b.ring)) {
			b.grow()
		}
		b.ring[b.tail&uint64(len(b.ring)-1)] = m
		b.tail++
		wake, b.asleep = b.asleep, false
	}
	b.mu.Unlock()
	return wake, err
}

// grow doubles the ring. Whoever takes reads on in the old one until the next
// look; nobody writes to that any more.
func (b *mailbox[M]) grow() {
	ring := make([]M, max(minSlots, 2*len(b.ring)))
	for i := b.seen; i < b.tail; i++ {
		ring[i&uint64(len(ring)-1)] = b.ring[i&uint64(len(b.ring)-1)]
	}
	b.ring = ring
}

// take removes the oldest message of the batch.
func (b *mailbox[M]) take() (m M, ok bool) {
	if b.pos == b.end {
		return m, false
	}
	m = b.view[b.pos&uint64(len(b.view)-1)]
	b.pos++
	b.taken.Store(b.pos)
	return m, true
}

// look begins a batch of at most n messages. It returns false when there is
// nothing: the next put will ask for the actor to be woken.
func (b *mailbox[M]) look(n int) bool {
	b.mu.Lock()
	b.clear()
	b.seen = b.pos
	if b.asleep = b.pos == b.tail; b.asleep {
		var m M
		if uintptr(len(b.ring))*unsafe.Sizeof(m) > keepBytes {
			b.ring = nil
		}
	}
	b.view, b.end = b.ring, min(b.tail, b.pos+uint64(n))
	b.mu.Unlock()
	return b.pos < b.end
}

// clear forgets the messages that were read, so that their memory can go. Their
// slots may be in use again already: those within a ring's length of the tail are
// not.
func (b *mailbox[M]) clear() {
	var zero M
	if n := uint64(len(b.ring)); b.tail-b.kept > n {
		b.kept = b.tail - n
	}
	for ; b.kept < b.pos; b.kept++ {
		b.ring[b.kept&uint64(len(b.ring)-1)] = zero
	}
	b.kept = b.pos
}

// close makes every later put fail.
func (b *mailbox[M]) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
}

// mailStats is what can be seen of a mailbox from outside.
type mailStats struct {
	length, limit, reserved int
	received, refused       uint64
	closed                  bool
}

func (b *mailbox[M]) stats() mailStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.taken.Load()
	return mailStats{
		length: int(b.tail - taken), limit: b.limit, reserved: b.reserved,
		received: taken, refused: b.refused,
		closed: b.closed,
	}
}
