package upstream

import (
	"sync"
	"time"
)

// lacks is up to which block a node has pruned its history, as far as it was seen, so that
// it is not the first to be asked for what it does not have.
type lacks struct {
	mu    sync.Mutex
	below uint64 // blocks below that one
	seen  time.Time
}

// lacksFor is how long that is believed: somebody may have given it a history meanwhile.
const lacksFor = 10 * time.Minute

// note notes that a block was pruned.
func (l *lacks) note(number uint64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.seen) > lacksFor {
		l.below = 0
	}
	l.below, l.seen = max(l.below, number+1), now
}

// has says whether the node may have a block.
func (l *lacks) has(number uint64, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return number >= l.below || now.Sub(l.seen) > lacksFor
}
