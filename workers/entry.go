package workers

import (
	"bytes"
	"time"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/uncle"
	"github.com/ommer/ommer/workers/upstream"
)

// entry is what is known of a block: its uncles as callers are sent them. Without any
// it is a block without uncles or no block at all, which is the same to a caller.
type entry struct {
	uncles [upstream.MaxUncles][]byte // nil beyond the last one
	until  time.Time                  // true no longer than that; zero: for good
}

// newEntry renders the answer to a question for s, put at the given time.
func newEntry(s schema.Selector, b upstream.Block, found bool, asked time.Time) entry {
	var e entry
	if !found || s.Kind() != schema.ByHash && !b.Final {
		e.until = asked.Add(Fresh)
	}
	var scratch []byte
	for i, h := range b.Uncles {
		if scratch == nil {
			scratch = make([]byte, 0, uncle.SizeHint)
		}
		scratch = uncle.Append(scratch[:0], h)
		e.uncles[i] = bytes.Clone(scratch) // at its own length: it may be kept for long
	}
	return e
}

// result is the result for an index.
func (e *entry) result(index uint64) []byte {
	if index >= uint64(len(e.uncles)) || e.uncles[index] == nil {
		return schema.Null
	}
	return e.uncles[index]
}

// size is the number of bytes that the entry refers to.
func (e *entry) size() int64 {
	n := 0
	for _, u := range e.uncles {
		n += cap(u)
	}
	return int64(n)
}
