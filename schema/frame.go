package schema

import (
	"encoding/binary"
	"errors"
	"time"
)

// Frames are what edges and workers send each other on the bus, inside the
// payload of a NATS message. All integers are big-endian.
//
//	request, version 1                     reply, version 1
//	 0  1  version = 1                      0  1  version = 1
//	 1  8  id, echoed in the reply          1  8  id of the request
//	 9  4  budget in milliseconds;          9  1  Code; bit 7: packed
//	       bit 31: may be packed           10  -  OK: the result as JSON,
//	13  1  Kind of the selector                   OK and packed: size and CRC of the
//	14  8  index of the uncle                     JSON, 4 bytes each, deflate blocks,
//	22  -  the block: 8 bytes number,             else: a detail for the log
//	       32 bytes hash or 1 byte tag
//
// A reply is packed only if the request says that it may be. A worker from before
// there was that bit reads a very long budget, for which it has its own time-out.
//
// The budget is what is left of the caller's time, so that clocks need not agree.
// The id is at the same place in every version: a worker can refuse a version
// that it does not know. Versions stay below 9, so that JSON typed by hand, which
// begins with white space, '[' or '{', is never taken for a frame; the last of them
// is FrameBundle, several frames in one message.

// FrameVersion is the version of the frames that this package writes.
const FrameVersion = 1

const (
	idEnd       = 9 // the same in every version
	requestHead = 22
	replyHead   = 10
	packedHead  = replyHead + 8

	mayBePacked = 1 << 31 // in the budget
	maxBudget   = mayBePacked - 1
	packed      = 1 << 7 // in the code
)

// MaxRequestFrame is the length of the longest request frame.
const MaxRequestFrame = requestHead + len(Hash{})

// maxDetail bounds an error's detail in a reply, in bytes, for who writes it and
// for who reads it.
const maxDetail = 512

// Errors of frames that cannot be read.
var (
	ErrFrameShort   = errors.New("bus frame: truncated or too long")
	ErrFrameVersion = errors.New("bus frame: unknown version")
	ErrFrameKind    = errors.New("bus frame: unknown kind of selector")
)

// Request is a question on the bus.
type Request struct {
	ID       uint64
	Budget   time.Duration // whole milliseconds, at most 2^31-1; 0 means none was given
	Question Question
}

// AppendRequest appends the frame of r to b.
func AppendRequest(b []byte, r Request) []byte {
	b = append(b, FrameVersion)
	b = binary.BigEndian.AppendUint64(b, r.ID)
	budget := milliseconds(r.Budget)
	if r.Question.Packed {
		budget |= mayBePacked
	}
	b = binary.BigEndian.AppendUint32(b, budget)
	b = append(b, byte(r.Question.Block.kind))
	b = binary.BigEndian.AppendUint64(b, r.Question.Index)
	switch s := r.Question.Block; s.kind {
	case ByNumber:
		b = binary.BigEndian.AppendUint64(b, s.number)
	case ByHash:
		b = append(b, s.hash[:]...)
	case ByTag:
		b = append(b, byte(s.tag))
	}
	return b
}

// milliseconds rounds a budget up, so that some time left does not become none
// given. Neither must a budget that has run out: it becomes the shortest.
func milliseconds(budget time.Duration) uint32 {
	if budget < 0 {
		return 1
	}
	ms := budget / time.Millisecond
	if budget%time.Millisecond > 0 {
		ms++
	}
	return uint32(min(ms, maxBudget))
}

// ParseRequest reads a request frame. With ErrFrameVersion and ErrFrameKind the
// ID is valid, so that the asker can be told.
func ParseRequest(b []byte) (Request, error) {
	var r Request
	if len(b) < idEnd {
		return r, ErrFrameShort
	}
	r.ID = binary.BigEndian.Uint64(b[1:])
	if b[0] != FrameVersion {
		return r, ErrFrameVersion
	}
	if len(b) < requestHead {
		return r, ErrFrameShort
	}
	budget := binary.BigEndian.Uint32(b[9:])
	r.Budget = time.Duration(budget&maxBudget) * time.Millisecond
	r.Question.Packed = budget&mayBePacked != 0
	r.Question.Index = binary.BigEndian.Uint64(b[14:])
	block := b[requestHead:]
	switch Kind(b[13]) {
	case ByNumber:
		if len(block) != 8 {
			return r, ErrFrameShort
		}
		r.Question.Block = Number(binary.BigEndian.Uint64(block))
	case ByHash:
		if len(block) != len(Hash{}) {
			return r, ErrFrameShort
		}
		r.Question.Block = BlockHash(Hash(block))
	case ByTag:
		if len(block) != 1 {
			return r, ErrFrameShort
		}
		if t := Tag(block[0]); t >= Latest && t <= Finalized {
			r.Question.Block = Tagged(t)
			break
		}
		return r, ErrFrameKind
	default:
		return r, ErrFrameKind
	}
	return r, nil
}

// AppendReply appends the frame that answers the request with the given id.
func AppendReply(b []byte, id uint64, a Answer) []byte {
	b = append(b, FrameVersion)
	b = binary.BigEndian.AppendUint64(b, id)
	switch {
	case a.Err == nil && !a.Packed.IsZero():
		b = append(b, byte(OK)|packed)
		b = binary.BigEndian.AppendUint32(b, a.Packed.Size)
		b = binary.BigEndian.AppendUint32(b, a.Packed.CRC)
		return append(b, a.Packed.Deflate...)
	case a.Err == nil:
		b = append(b, byte(OK))
		return append(b, a.Result...)
	}
	code := a.Err.Code
	if code == OK {
		// An error without a code must not turn its detail into a result.
		code = Internal
	}
	b = append(b, byte(code))
	return append(b, a.Err.Detail[:min(len(a.Err.Detail), maxDetail)]...)
}

// ParseReply reads a reply frame. The answer's Result or Packed aliases b and is
// never empty. With ErrFrameVersion the id is valid.
func ParseReply(b []byte) (id uint64, a Answer, err error) {
	if len(b) < idEnd {
		return 0, a, ErrFrameShort
	}
	id = binary.BigEndian.Uint64(b[1:])
	if b[0] != FrameVersion {
		return id, a, ErrFrameVersion
	}
	if len(b) < replyHead {
		return id, a, ErrFrameShort
	}
	body := b[replyHead:]
	if c := Code(b[idEnd] &^ packed); c != OK {
		if int(c) >= Codes { // of a later version
			c = Internal
		}
		return id, Answer{Err: &Error{Code: c, Detail: string(body[:min(len(body), maxDetail)])}}, nil
	}
	if len(body) == 0 {
		// Spliced into a response, it would make invalid JSON of it.
		return id, a, ErrFrameShort
	}
	if b[idEnd]&packed == 0 {
		a.Result = body
		return id, a, nil
	}
	if len(b) <= packedHead {
		return id, a, ErrFrameShort
	}
	a.Packed = Packed{
		Deflate: b[packedHead:],
		Size:    binary.BigEndian.Uint32(b[replyHead:]),
		CRC:     binary.BigEndian.Uint32(b[replyHead+4:]),
	}
	return id, a, nil
}
