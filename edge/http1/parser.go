package http1

import "bytes"

// Event is what a call of Next has completed.
type Event uint8

// The events.
const (
	// More is the absence of an event: bytes are missing.
	More Event = iota
	// Head: the request line and the header fields are complete.
	Head
	// Body: the body is complete, and with it the request.
	Body
)

// state says what the next byte is part of.
type state uint8

const (
	inHead state = iota
	inLength
	inChunkSize
	inChunkExt
	inChunkSizeLF
	inChunkData
	inChunkDataCR
	inChunkDataLF
	inTrailer
	inTrailerName
	inTrailerValue
	inTrailerLF
	inEndLF
	failed
)

// Parser reads the requests of one connection. It is made by Pool.Parser and
// must not be copied while it is in use.
type Parser struct {
	pool *Pool
	body *buffer // what has arrived of a body that comes in parts

	// Of the head. Positions are offsets into the input, of which nothing but
	// an empty line is consumed before the head is complete.
	line   int32 // where the first line that is not complete starts
	scan   int32 // how far there is no line end
	first  int32 // length of the request line with its CRLF, 0 before it is complete
	fields int32 // also of the trailer

	// Of the body.
	got      int   // bytes of data so far
	remain   int   // bytes missing of the body or the chunk; the size while it is read
	width    int32 // length of the chunk line or trailer section so far
	overhead int32 // see maxOverhead

	state   state
	reason  Reason // of the failure
	blank   bool   // the empty line before the request line was seen
	discard bool   // the body is counted and dropped
}

// Next takes the bytes that have arrived and not been consumed, and says how many
// it is done with and what they completed. Call it with in[n:] until the event is
// More; then what is left of in must start the next call's input, followed by
// what arrives. Next may be called with nothing new and then says More, or Body
// if the body is empty.
//
// With Head, r is filled. With Body, r.Body is set; it is nil after Discard. With
// More, what r holds means nothing, and the next call may bring another Request.
//
// An error ends the connection: each later call returns it again, and nothing
// more is consumed. If the event is Head, the framing was sound and r is filled,
// so that the caller can put its own reasons to refuse first; that is so for a
// Content-Length over the limit and for an unknown expectation.
func (p *Parser) Next(in []byte, r *Request) (n int, ev Event, err *Error) {
	switch p.state {
	case inHead:
		p.recycle()
		if p.scan == 0 && !p.blank && len(in) > 0 && in[0] == '\r' {
			// RFC 9112 section 2.2: one empty line is ignored.
			if len(in) == 1 {
				return 0, More, nil
			}
			if in[1] == '\n' {
				p.blank = true
				n = 2
			}
		}
		blank := n
		n, ev, err = p.head(in[blank:], r)
		return blank + n, ev, err
	case inLength:
		return p.length(in, r)
	case failed:
		return 0, More, refuse(p.reason)
	default:
		return p.chunked(in, r)
	}
}

// head looks for the end of the head, line by line, and parses each line as soon
// as it is complete.
func (p *Parser) head(in []byte, r *Request) (int, Event, *Error) {
	if p.scan <= maxMethod {
		if err := checkMethod(in); err != nil {
			return p.fail(err)
		}
	}
	resumed := p.first > 0
	r.reset()
	for {
		i := bytes.IndexByte(in[p.scan:], '\n')
		if i < 0 {
			p.scan = int32(len(in))
			if err := p.overlong(len(in)); err != nil {
				return p.fail(err)
			}
			return 0, More, nil
		}
		end := int(p.scan) + i + 1
		if err := p.overlong(end); err != nil {
			return p.fail(err)
		}
		line := in[p.line : end-1]
		if len(line) == 0 || line[len(line)-1] != '\r' {
			return p.fail(refuse(BareLF))
		}
		line = line[:len(line)-1]
		p.line, p.scan = int32(end), int32(end)
		switch {
		case p.first == 0:
			p.first = int32(end)
			if err := r.requestLine(line); err != nil {
				return p.fail(err)
			}
		case len(line) > 0:
			if p.fields++; int(p.fields) > p.pool.limits.Fields {
				return p.fail(refuse(FieldsMany))
			}
			if err := r.field(line); err != nil {
				return p.fail(err)
			}
		default:
			if resumed {
				r.reparse(in[:end], int(p.first))
			}
			return p.begin(end, r)
		}
	}
}

// overlong refuses a request line or a header section to which the first n bytes
// of the input belong, whether its end is among them or not.
func (p *Parser) overlong(n int) *Error {
	switch {
	case p.first == 0 && n > p.pool.limits.Line+len("\r\n"):
		return refuse(LineLong)
	case p.first > 0 && n-int(p.first) > p.pool.limits.Header:
		return refuse(HeaderLong)
	}
	return nil
}

// reparse fills r from a head whose lines came in several calls and have been
// checked one by one, so that none can fail. Each byte is looked at twice.
func (r *Request) reparse(head []byte, first int) {
	r.reset()
	_ = r.requestLine(head[:first-2])
	for rest := head[first:]; len(rest) > 2; {
		end := bytes.IndexByte(rest, '\n')
		_ = r.field(rest[:end-1])
		rest = rest[end+1:]
	}
}

// begin turns from a complete head of n bytes to the body.
func (p *Parser) begin(n int, r *Request) (int, Event, *Error) {
	if err := r.frame(); err != nil {
		return p.fail(err)
	}
	*p = Parser{pool: p.pool, state: inLength, remain: int(r.ContentLength)}
	if r.Chunked {
		p.state, p.remain = inChunkSize, 0
	}
	// With these the framing is sound, so the caller sees the head.
	switch {
	case r.seen.otherExpectation:
		p.stop(ExpectationUnknown)
	case r.ContentLength > int64(p.pool.limits.Body):
		p.stop(BodyLong)
	default:
		return n, Head, nil
	}
	return n, Head, refuse(p.reason)
}

// fail ends the parser and is what Next then returns.
func (p *Parser) fail(err *Error) (int, Event, *Error) {
	p.stop(err.Reason)
	return 0, More, err
}

// stop ends the parser.
func (p *Parser) stop(why Reason) {
	p.recycle()
	p.state, p.reason = failed, why
}

// Discard makes the parser drop what comes of the body whose Head was the last
// event. The limit holds nevertheless, and Body is reported with a nil body.
// Between requests Discard does nothing.
func (p *Parser) Discard() {
	if p.state != inHead && p.state != failed {
		p.discard = true
		p.recycle()
	}
}

// Release gives the memory of the body back. Call it when the connection ends.
// It may also be called as soon as the body of a Body event is done with; the
// next call of Next does it otherwise. Within a body it ends the parser, so that
// nobody is ever shown the rest for the whole.
func (p *Parser) Release() {
	if p.state != inHead && p.state != failed {
		p.stop(Released)
	}
	p.recycle()
}

// Idle reports whether the parser is between requests and has seen nothing of the
// next one.
func (p *Parser) Idle() bool { return p.state == inHead && p.scan == 0 && !p.blank }

// Buffered returns how many bytes of buffers the parser holds.
func (p *Parser) Buffered() int {
	if p.body == nil {
		return 0
	}
	return cap(p.body.b)
}
