package ws

import (
	"math/bits"
	"sync"
)

// Buffers have 512 bytes, 1 KiB, and so on to 1 MiB. Doubling keeps what a
// connection holds within twice what arrived and the copying linear; giving each
// size back to its own list makes it free of allocations. Longer ones, which
// Limits.Message alone can ask for, are left to the collector.
const (
	minBufferBits = 9
	bufferSizes   = 12
)

// Pool is what the Readers of one server have in common: their limits and the
// buffers in which they collect what comes in parts. It keeps a buffer that
// nobody uses no longer than two cycles of the garbage collector.
type Pool struct {
	message int
	free    [bufferSizes]sync.Pool // of *buffer, by size
}

// NewPool returns a pool that has no buffers yet.
func NewPool(l Limits) *Pool {
	p := &Pool{message: l.Message}
	if p.message <= 0 {
		p.message = DefaultMessage
	}
	return p
}

// buffer is on the heap by itself so that a Reader holds one word of it and
// giving it back allocates nothing.
type buffer struct {
	bytes []byte
}

// append adds data to b, which may be nil, and returns the buffer that has it
// all. The one that it replaced is back in the pool.
func (p *Pool) append(b *buffer, data []byte) *buffer {
	if len(data) == 0 {
		return b
	}
	if b == nil {
		b = p.get(len(data))
	} else if cap(b.bytes)-len(b.bytes) < len(data) {
		longer := p.get(len(b.bytes) + len(data))
		longer.bytes = append(longer.bytes, b.bytes...)
		p.put(b)
		b = longer
	}
	b.bytes = append(b.bytes, data...)
	return b
}

// get returns an empty buffer with room for n bytes, n > 0.
func (p *Pool) get(n int) *buffer {
	size := bits.Len(uint(n-1) >> minBufferBits)
	if size < bufferSizes {
		if b, ok := p.free[size].Get().(*buffer); ok {
			return b
		}
	}
	return &buffer{bytes: make([]byte, 0, 1<<(size+minBufferBits))}
}

// put takes a buffer back. Nothing of it may be used any more.
func (p *Pool) put(b *buffer) {
	size := bits.Len(uint(cap(b.bytes)-1) >> minBufferBits)
	if size < bufferSizes {
		b.bytes = b.bytes[:0]
		p.free[size].Put(b)
	}
}
