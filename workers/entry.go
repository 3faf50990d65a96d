package workers

import (
	"bytes"
	"time"
	"unsafe"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/uncle"
	"github.com/ommer/ommer/workers/upstream"
)

// entry is what is known of a block: its uncles as callers are sent them. Without any
// it is a block without uncles or no block at all, which is the same to a caller.
type entry struct {
	uncles []rendered
	until  time.Time // true no longer than that; zero: for good
}

// rendered is an uncle in both of its forms.
type rendered struct {
	json   []byte
	packed schema.Packed
}

// newEntry renders the answer to a question for s, put at the given time.
func newEntry(s schema.Selector, b upstream.Block, found bool, asked time.Time) entry {
	var e entry
	if !found || s.Kind() != schema.ByHash && !b.Final {
		e.until = asked.Add(Fresh)
	}
	if len(b.Uncles) == 0 {
		return e
	}
	scratch := make([]byte, 0, uncle.SizeHint)
	e.uncles = make([]rendered, len(b.Uncles))
	for i, h := range b.Uncles {
		scratch = uncle.Append(scratch[:0], h)
		e.uncles[i] = rendered{bytes.Clone(scratch), schema.Pack(scratch)} // at their own length: they may be kept for long
	}
	return e
}

// answer is the answer to a question about the block.
func (e *entry) answer(q schema.Question) schema.Answer {
	if q.Index >= uint64(len(e.uncles)) {
		return schema.Answer{Result: schema.Null}
	}
	u := &e.uncles[q.Index]
	if q.Packed && !u.packed.IsZero() {
		return schema.Answer{Packed: u.packed}
	}
	return schema.Answer{Result: u.json}
}

// size is the number of bytes that the entry refers to.
func (e *entry) size() int64 {
	n := len(e.uncles) * int(unsafe.Sizeof(rendered{}))
	for i := range e.uncles {
		n += cap(e.uncles[i].json) + cap(e.uncles[i].packed.Deflate)
	}
	return int64(n)
}
