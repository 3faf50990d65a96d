package bus

import (
	"math/rand/v2"

	"github.com/ommer/ommer/schema"
)

// ask is one question on its way. It is touched only under its shard's mutex.
// Times are nanoseconds since the client's start.
type ask struct {
	to       schema.Receiver // nil while the slot is free
	question schema.Question
	asked    int64
	due      int64
	lane     *lane  // that it was last sent on, nil while it is with nobody
	slow     *peer  // that was asked before, if this is a hedge
	not      *peer  // that shall not be asked again: it refused, or is slow or gone
	sent     int64  // when
	seq      uint64 // its place in the lane, 0 when it is repeated under a reply subject of its own
	gen      uint32 // the upper half of the id
	state    askState
	sends    uint8 // how often it was sent, up to many
	missed   uint8 // how often nobody was there to answer
	refused  uint8 // how often a worker had no room
	moved    uint8 // how often it went to another worker because one was gone
	hedged   bool  // it was sent to another worker since one was slow

	// The clock's list, see wheel. next is also the list of free slots.
	next, prev int32
	wake       int64 // tick
}

// askState says what an ask is waiting for.
type askState uint8

const (
	free    askState = iota
	sent             // an answer
	waiting          // the time to send it again
	held             // a link to send it on
)

// many is where counts of attempts end.
const many = 255

const (
	pageBits = 8
	pageSize = 1 << pageBits
)

// table holds the asks of one shard. It grows by pages up to its limit, so that a
// quiet edge stays small, and reuses the slot that was freed last, which is still
// in the cache.
type table struct {
	pages []*[pageSize]ask
	limit int
	made  int   // slots that were ever used
	free  int32 // head of the list of free slots, none if empty
	used  int
}

// none ends a list of slots.
const none int32 = -1

func (t *table) at(i int32) *ask { return &t.pages[i>>pageBits][i&(pageSize-1)] }

// take returns a free slot, or none when the table is full.
func (t *table) take() int32 {
	if i := t.free; i != none {
		a := t.at(i)
		t.free = a.next
		// Ids are not to be guessed: who answers a question that another worker was asked
		// shall not be believed. And the next one differs from the last.
		if gen := rand.Uint32(); gen != a.gen {
			a.gen = gen
		} else {
			a.gen++
		}
		t.used++
		return i
	}
	if t.made == t.limit {
		return none
	}
	if t.made>>pageBits == len(t.pages) {
		t.pages = append(t.pages, new([pageSize]ask))
	}
	i := int32(t.made)
	t.at(i).gen = rand.Uint32()
	t.made++
	t.used++
	return i
}

// put frees slot i. Answers to the id that it had are late from now on.
func (t *table) put(i int32) {
	a := t.at(i)
	*a = ask{gen: a.gen, next: t.free}
	t.free = i
	t.used--
}

// find returns the slot with the given index when it is in use by that
// generation.
func (t *table) find(i int32, gen uint32) *ask {
	if i < 0 || int(i) >= t.made {
		return nil
	}
	if a := t.at(i); a.state != free && a.gen == gen {
		return a
	}
	return nil
}
