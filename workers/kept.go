package workers

import (
	"fmt"
	"iter"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/cache"
)

// listed is how many blocks a shard lists before it goes on with other messages: some
// tens of microseconds.
const listed = 512

// listing asks a shard for the blocks that it keeps for good, a part of them each time
// that it is told. Whoever tells touches it only when done has a value.
type listing struct {
	next   func() (schema.Selector, int, bool) // nil at first
	stop   func()
	blocks []schema.Selector
	worth  []int
	over   bool // these were the last
	err    error
	done   chan struct{} // has a value when the shard has listed a part
}

// Fail ends the list.
func (l *listing) Fail(err error) {
	l.err = err
	l.done <- struct{}{}
}

// list lists the next blocks. They are read from the cache as it is now: blocks that come
// or go while a list is being made may be in it or not.
func (s *shard) list(l *listing) {
	if l.next == nil { // else a part was listed before, if by a shard that has crashed since
		l.next, l.stop = iter.Pull2(s.kept.All())
	}
	l.blocks, l.worth = l.blocks[:0], l.worth[:0]
	for range listed {
		b, worth, ok := l.next()
		if !ok {
			l.over = true
			break
		}
		l.blocks, l.worth = append(l.blocks, b), append(l.worth, worth)
	}
	l.done <- struct{}{}
}

// Kept lists the blocks that are kept for good, most at most, those that are worth most
// first. The shards answer callers meanwhile.
func (p *Pool) Kept(most int) ([]schema.Selector, error) {
	r := ranking{most: most}
	for _, s := range p.slots {
		if err := s.list(&r); err != nil {
			return nil, fmt.Errorf("workers: the cache cannot be listed: %w", err)
		}
	}
	return r.blocks(), nil
}

// list adds what the slot's shard keeps to a ranking.
func (s *slot) list(r *ranking) error {
	l := &listing{done: make(chan struct{}, 1)}
	defer func() {
		if l.stop != nil {
			l.stop()
		}
	}()
	for !l.over {
		if err := s.shard.Tell(l); err != nil {
			return err
		}
		<-l.done // each message is received or failed
		if l.err != nil {
			return l.err
		}
		for i, b := range l.blocks {
			r.add(b, l.worth[i])
		}
	}
	return nil
}

// ranking takes the most worthy of some blocks.
type ranking struct {
	most, have int
	by         [cache.MaxWorth + 1][]schema.Selector // worth
}

func (r *ranking) add(b schema.Selector, worth int) {
	r.by[worth] = append(r.by[worth], b)
	if r.have++; r.have <= r.most {
		return
	}
	for i := range r.by {
		if last := len(r.by[i]) - 1; last >= 0 {
			r.by[i] = r.by[i][:last]
			r.have--
			return
		}
	}
}

func (r *ranking) blocks() []schema.Selector {
	blocks := make([]schema.Selector, 0, r.have)
	for i := range r.by {
		blocks = append(blocks, r.by[len(r.by)-1-i]...)
	}
	return blocks
}
