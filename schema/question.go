package schema

import "bytes"

// Question is one lookup: the uncle at a position of a block.
type Question struct {
	Block Selector
	Index uint64 // the uncle's position, from 0

	// Packed says that who asks can do with Answer.Packed. It changes the form of
	// the answer only.
	Packed bool
}

// Method is the call that asks this question; the selector decides it.
func (q Question) Method() Method {
	if q.Block.Kind() == ByHash {
		return UncleByHash
	}
	return UncleByNumber
}

// Answer is what came of a Question: Result or Packed when Err is nil.
type Answer struct {
	// Result is the JSON of the result member, `null` when there is no such
	// block or uncle. It is shared: whoever receives it may keep it and must
	// not change it. It may keep a message with other answers from being freed:
	// what is kept for long is better a Clone.
	Result []byte
	// Packed is there instead of Result if the question allows it and the resolver
	// has it.
	Packed Packed
	// Err says why there is no result.
	Err *Error
	// Unhurried says that nothing waits behind this answer: who receives it may use
	// the stack that it came on to make something of it, and may ask from there.
	Unhurried bool
}

// Clone returns an answer that shares no memory with anything but its Err.
func (a Answer) Clone() Answer {
	a.Result, a.Packed.Deflate = bytes.Clone(a.Result), bytes.Clone(a.Packed.Deflate)
	return a
}

// Null is the result of a lookup that found nothing.
var Null = []byte("null")
