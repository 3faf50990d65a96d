package ws

import (
	"unicode/utf8"

	"github.com/gobwas/ws"
)

// Event is what a call of Reader.Next came to.
type Event uint8

// The events.
const (
	// More: all of the input was used and nothing is complete yet.
	More Event = iota
	// Text: a whole text message; it is valid UTF-8.
	Text
	// Binary: a whole binary message.
	Binary
	// Ping: to be answered by a pong with the same payload.
	Ping
	// Pong: an answer to a ping, or unasked for.
	Pong
	// Close: the client's close frame, its last. ParseClose reads the payload.
	Close
)

// Reader reads the frames of one client. It is made by NewReader, must not be
// copied once used, and holds no buffer while no message is under way.
type Reader struct {
	pool    *Pool
	data    *buffer // the message so far, when it came in parts
	control *buffer // the control frame so far, when it came in parts

	left int     // bytes that the open frame still lacks
	mask [4]byte // of the open frame, turned so that the next byte meets mask[0]

	head [maxClientHeader]byte // the header so far, when it came in parts
	held uint8                 // bytes in head

	op      Op    // of the open frame, or of the last one
	message Op    // of the message under way: OpText, OpBinary, or 0 for none
	partial uint8 // bytes at the end of data that begin a character, 0 to 3; 0 between messages
	fin     bool  // the open frame is the last of its message
	open    bool  // the header was read, the payload was not
	done    bool  // nothing more is read: a close frame came, or an error
}

// NewReader returns a Reader for a connection whose handshake is complete.
func NewReader(p *Pool) Reader { return Reader{pool: p} }

// Next uses the first n bytes of in, in which it unmasks payloads, up to the end
// of the first frame that completes something; in[n:] is to be given to the next
// call. An event of More says that n is len(in).
//
// The payload aliases in or a buffer of the Reader. It is valid until the next
// call of Next or Release, and may be changed.
//
// After an error, and after the event Close, the Reader uses up and ignores
// whatever it is given. The error is a plain pointer: compare it with nil before
// it becomes an error.
func (r *Reader) Next(in []byte) (n int, event Event, payload []byte, err *Error) {
	r.Release()
	for !r.done {
		if !r.open {
			var used int
			if used, err = r.header(in[n:]); err != nil {
				return r.fail(in, err)
			}
			n += used
			if !r.open {
				return n, More, nil, nil
			}
		}
		chunk := in[n:]
		if len(chunk) > r.left {
			chunk = chunk[:r.left:r.left]
		}
		n += len(chunk)
		if r.op.control() {
			event, payload, err = r.takeControl(chunk)
		} else {
			event, payload, err = r.takeData(chunk)
		}
		if err != nil {
			return r.fail(in, err)
		}
		if event != More || r.open {
			return n, event, payload, nil
		}
	}
	return len(in), More, nil, nil
}

// Release gives back the buffer behind the last payload, if there is one. Next
// does so as well; a session calls Release when its input is used up, so that it
// does not hold the buffer while it waits. A message under way stays. Dropping a
// Reader needs no call: its buffers are then left to the garbage collector.
func (r *Reader) Release() {
	if r.data != nil && r.message == 0 {
		r.pool.put(r.data)
		r.data = nil
	}
	if r.control != nil && (!r.open || !r.op.control()) {
		r.pool.put(r.control)
		r.control = nil
	}
}

// Idle reports whether the Reader is between messages and has seen nothing of the
// next one. An idle Reader can be dropped and a new one used in its place.
func (r *Reader) Idle() bool {
	return !r.done && !r.open && r.held == 0 && r.message == 0 && r.data == nil && r.control == nil
}

// Buffered returns how many bytes of buffers the Reader holds.
func (r *Reader) Buffered() int {
	n := 0
	if r.data != nil {
		n += cap(r.data.bytes)
	}
	if r.control != nil {
		n += cap(r.control.bytes)
	}
	return n
}

// collected returns how much of the message under way has arrived in the frames
// before.
func (r *Reader) collected() int {
	if r.data == nil {
		return 0
	}
	return len(r.data.bytes)
}

// fail ends the reading.
func (r *Reader) fail(in []byte, err *Error) (int, Event, []byte, *Error) {
	r.done, r.open, r.message = true, false, 0
	r.Release()
	return len(in), More, nil, err
}

// unmask decodes the next bytes of the open frame and reports whether they are
// its last ones.
func (r *Reader) unmask(chunk []byte) (last bool) {
	ws.Cipher(chunk, r.mask, 0)
	r.left -= len(chunk)
	if r.left == 0 {
		r.open = false
		return true
	}
	if turn := len(chunk) % 4; turn != 0 {
		m := r.mask
		for i := range r.mask {
			r.mask[i] = m[(i+turn)%4]
		}
	}
	return false
}

// takeControl takes the next bytes of an open control frame.
func (r *Reader) takeControl(chunk []byte) (Event, []byte, *Error) {
	last := r.unmask(chunk)
	payload := chunk
	if !last || r.control != nil {
		r.control = r.pool.append(r.control, chunk)
		if !last {
			return More, nil, nil
		}
		payload = r.control.bytes
	}
	switch r.op {
	case OpPing:
		return Ping, payload, nil
	case OpPong:
		return Pong, payload, nil
	default:
		if err := checkClose(payload); err != nil {
			return More, nil, err
		}
		r.done, r.message = true, 0
		return Close, payload, nil
	}
}

// takeData takes the next bytes of an open data frame.
func (r *Reader) takeData(chunk []byte) (Event, []byte, *Error) {
	last := r.unmask(chunk) && r.fin
	payload := chunk
	if !last || r.data != nil {
		r.data = r.pool.append(r.data, chunk)
		if r.data != nil {
			payload = r.data.bytes
		}
	}
	event := Binary
	if r.message == OpText {
		event = Text
		fresh := payload[len(payload)-len(chunk)-int(r.partial):]
		partial := partialRune(fresh)
		if !utf8.Valid(fresh[:len(fresh)-partial]) || last && partial > 0 {
			return More, nil, errText
		}
		r.partial = uint8(partial)
	}
	if !last {
		return More, nil, nil
	}
	r.message = 0
	return event, payload, nil
}

// partialRune returns how many bytes at the end of p begin a character that the
// bytes after p could complete: 0 to 3. It is 0 also when they begin none; then
// they are invalid, which utf8.Valid says.
func partialRune(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		tail := p[len(p)-n:]
		if utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
