package bus

// lane is what a shard knows of one link: the reply subject, and which of its
// messages the server may not have routed yet.
//
// A server that finds nobody to deliver a question to answers with status 503 on
// the reply subject. The reply subject is shared, so the message that it speaks
// of has to be found. Three facts make that exact, or harmless:
//
//  1. A server handles the messages of one connection in order and writes a 503
//     while it does so. Whatever comes back about the n-th message (its answer, or
//     a PONG to a PING sent after it) comes after the 503s of all messages before
//     it. So only messages after the last that something came back for can be
//     meant. Their number is small: what was sent within one round trip to a
//     worker, or between two PINGs (see Client.confirm).
//  2. Of these, every one is sent again after a pause, under the same id. For one
//     that had in fact reached a worker this is a second copy of a lookup, and the
//     first answer counts.
//  3. What is sent again gets a reply subject of its own, with the id in it, so
//     that from then on a 503 names its question. These are rare, and so do not
//     crowd the server's cache.
//
// What remains: a question that reached the last worker less than a few
// milliseconds before that one left the queue group, and whose answer takes
// longer than the whole patience of backoff, fails although an answer was coming.
type lane struct {
	reply string // the shared reply subject
	sent  uint64 // the last place that was given away
	taken uint64 // the last place that the server is known to have routed
	aged  uint64 // what sent was at the previous look of the clock
	ring  []int32
	limit int
}

// push gives slot i the next place.
func (l *lane) push(i int32) uint64 {
	l.sent++
	n := uint64(len(l.ring))
	if l.sent-l.taken > n {
		if n < uint64(l.limit) {
			l.grow()
		} else {
			l.taken++ // a silent link: forget the oldest, its deadline will end it
		}
	}
	l.ring[l.sent&uint64(len(l.ring)-1)] = i
	return l.sent
}

func (l *lane) grow() {
	old, n := l.ring, uint64(len(l.ring))
	l.ring = make([]int32, max(64, 2*n))
	for s := l.taken + 1; s < l.sent; s++ {
		l.ring[s&uint64(len(l.ring)-1)] = old[s&(n-1)]
	}
}

// confirm notes that the server has routed everything up to seq.
func (l *lane) confirm(seq uint64) { l.taken = max(l.taken, seq) }

// blame returns the slots of the places that a 503 can mean, from the oldest, one
// per call; next is where to go on. It ends with seq 0.
func (l *lane) blame(next uint64) (seq uint64, i int32) {
	next = max(next, l.taken+1)
	if next > l.sent {
		return 0, none
	}
	return next, l.ring[next&uint64(len(l.ring)-1)]
}

// stale says whether something has been unconfirmed since the previous call.
func (l *lane) stale() bool {
	s := l.taken < l.aged
	l.aged = l.sent
	return s
}
