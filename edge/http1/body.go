package http1

import "sync"

const (
	// smallestBuffer is what is allocated for the first bytes of a body in parts.
	smallestBuffer = 512
	// largestPooled is the capacity of the largest buffer that is kept for the
	// next body; larger ones are rare and left to the garbage collector.
	largestPooled = 64 << 10
)

// Pool holds what the parsers of one server share: their limits and the buffers
// for bodies that arrive in parts. It may be used by any number of parsers at the
// same time.
type Pool struct {
	limits  Limits
	buffers sync.Pool
}

type buffer struct{ b []byte }

// NewPool returns a pool whose parsers have the given limits.
func NewPool(l Limits) *Pool {
	return &Pool{limits: l.effective()}
}

// Limits returns the limits with their defaults filled in.
func (p *Pool) Limits() Limits { return p.limits }

// Parser returns a parser for one connection.
func (p *Pool) Parser() Parser { return Parser{pool: p} }

func (p *Pool) get() *buffer {
	if b, ok := p.buffers.Get().(*buffer); ok {
		return b
	}
	return new(buffer)
}

func (p *Pool) put(b *buffer) {
	if cap(b.b) <= largestPooled {
		b.b = b.b[:0]
		p.buffers.Put(b)
	}
}

// recycle gives up the buffer, if there is one.
func (p *Parser) recycle() {
	if p.body != nil {
		p.pool.put(p.body)
		p.body = nil
	}
}

// collect copies data behind what has come of the body. The buffer doubles with
// what has really arrived and never exceeds most, the largest length that the
// body can still turn out to have.
func (p *Parser) collect(data []byte, most int) {
	if len(data) == 0 {
		return
	}
	if p.body == nil {
		p.body = p.pool.get()
	}
	b := p.body.b
	if need := len(b) + len(data); need > cap(b) {
		room := max(need, min(max(2*cap(b), smallestBuffer), most))
		b = append(make([]byte, 0, room), b...)
	}
	p.body.b = append(b, data...)
}

// length reads a body of known length.
func (p *Parser) length(in []byte, r *Request) (int, Event, *Error) {
	data := in[:min(len(in), p.remain)]
	whole := p.got + p.remain
	p.got += len(data)
	p.remain -= len(data)
	if p.remain == 0 && p.body == nil {
		return p.complete(len(data), data, r)
	}
	if !p.discard {
		p.collect(data, whole)
	}
	if p.remain > 0 {
		return len(data), More, nil
	}
	return p.complete(len(data), p.body.b, r)
}

// complete delivers the body. A buffer behind it stays until the next call.
func (p *Parser) complete(n int, body []byte, r *Request) (int, Event, *Error) {
	r.Body = body[:len(body):len(body)]
	if p.discard {
		r.Body = nil
	}
	*p = Parser{pool: p.pool, body: p.body}
	return n, Body, nil
}
