package schema

import (
	"encoding/binary"
	"iter"
)

// FrameBundle begins a message that is several frames of one direction:
//
//	0  1  version = 8
//	1  4  length of the first frame
//	5  -  the first frame
//	   4  length of the next one, and so on
//
// A message costs everyone who handles it several times what a frame in it costs.
const FrameBundle = 8

const (
	bundleHead = 1
	lengthSize = 4
)

// Bundle is frames on their way into one message. The zero Bundle is empty; its
// memory is used again after Reset.
type Bundle struct {
	b []byte
	n int
}

// AddRequest adds the frame of r.
func (b *Bundle) AddRequest(r Request) {
	at := b.begin()
	b.b = AppendRequest(b.b, r)
	b.end(at)
}

// AddReply adds the frame that answers the request with the given id.
func (b *Bundle) AddReply(id uint64, a Answer) {
	at := b.begin()
	b.b = AppendReply(b.b, id, a)
	b.end(at)
}

func (b *Bundle) begin() (at int) {
	if b.n == 0 {
		b.b = append(b.b[:0], FrameBundle)
	}
	b.b = append(b.b, 0, 0, 0, 0)
	return len(b.b)
}

func (b *Bundle) end(at int) {
	binary.BigEndian.PutUint32(b.b[at-lengthSize:], uint32(len(b.b)-at))
	b.n++
}

// Frames is how many frames there are.
func (b *Bundle) Frames() int { return b.n }

// Size is how many bytes they take.
func (b *Bundle) Size() int { return len(b.b) }

// Message is what to send, good until the next change: a frame alone is a message as
// it is.
func (b *Bundle) Message() []byte {
	if b.n == 1 {
		return b.b[bundleHead+lengthSize:]
	}
	return b.b
}

// Reset empties b. It keeps up to keep bytes of memory.
func (b *Bundle) Reset(keep int) {
	b.n, b.b = 0, b.b[:0]
	if cap(b.b) > keep {
		b.b = nil
	}
}

// IsBundle says whether a message holds several frames.
func IsBundle(message []byte) bool { return len(message) > 0 && message[0] == FrameBundle }

// Frames returns the frames of a message, which alias it. Where one is cut short an
// empty one comes in its place, as the last: no frame is empty.
func Frames(message []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if !IsBundle(message) {
			yield(message)
			return
		}
		for rest := message[bundleHead:]; ; {
			var frame []byte
			if len(rest) >= lengthSize {
				n := binary.BigEndian.Uint32(rest)
				if rest = rest[lengthSize:]; uint64(n) <= uint64(len(rest)) {
					frame, rest = rest[:n:n], rest[n:]
				}
			}
			if !yield(frame) || len(frame) == 0 || len(rest) == 0 {
				return
			}
		}
	}
}

// RequestID is the id of a request's frame, whatever else is in it.
func RequestID(frame []byte) (id uint64, ok bool) {
	if len(frame) < idEnd {
		return 0, false
	}
	return binary.BigEndian.Uint64(frame[1:]), true
}
