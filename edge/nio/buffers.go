package nio

import (
	"sync"

	"github.com/lesismal/nbio/mempool"
)

// buffers lends byte slices in three sizes: to nbio for what waits to be written,
// and to crypto/tls for the records that it reads. What is larger is left to the
// collector, so that one large reply does not keep its memory for good, nor is
// lent to a connection with ten bytes to wait for. (nbio's own pool does both.)
//
// It is safe for concurrent use.
type buffers struct {
	pools [len(bufferSizes)]sync.Pool
}

var _ mempool.Allocator = (*buffers)(nil)

// bufferSizes: a read of a typical request, a TLS record, and the length up to
// which nbio joins what waits to be written into one buffer.
var bufferSizes = [...]int{4 << 10, 20 << 10, largestBuffer}

const largestBuffer = 64 << 10

// Malloc returns a buffer of the given length, its content undefined.
func (b *buffers) Malloc(size int) *[]byte {
	for i, s := range bufferSizes {
		if size > s {
			continue
		}
		p, ok := b.pools[i].Get().(*[]byte)
		if !ok {
			p = new([]byte)
			*p = make([]byte, s)
		}
		*p = (*p)[:size]
		return p
	}
	p := make([]byte, size)
	return &p
}

// Free takes a buffer back, wherever it came from.
func (b *buffers) Free(p *[]byte) {
	n := cap(*p)
	if n > 2*bufferSizes[len(bufferSizes)-1] {
		return
	}
	for i := len(bufferSizes) - 1; i >= 0; i-- {
		if n >= bufferSizes[i] {
			b.pools[i].Put(p)
			return
		}
	}
}

// Realloc changes a buffer's length and keeps its content.
func (b *buffers) Realloc(p *[]byte, size int) *[]byte {
	if size <= cap(*p) {
		*p = (*p)[:size]
		return p
	}
	q := b.Malloc(size)
	copy(*q, *p)
	b.Free(p)
	return q
}

// Append appends more to a buffer, which may move.
func (b *buffers) Append(p *[]byte, more ...byte) *[]byte {
	n := len(*p)
	p = b.Realloc(p, n+len(more))
	copy((*p)[n:], more)
	return p
}

// AppendString is Append of a string.
func (b *buffers) AppendString(p *[]byte, more string) *[]byte {
	n := len(*p)
	p = b.Realloc(p, n+len(more))
	copy((*p)[n:], more)
	return p
}
