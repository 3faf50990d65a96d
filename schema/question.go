package schema

// Question is one lookup: the uncle at a position of a block.
type Question struct {
	Block Selector
	Index uint64 // the uncle's position, from 0
}

// Method is the call that asks this question; the selector decides it.
func (q Question) Method() Method {
	if q.Block.Kind() == ByHash {
		return UncleByHash
	}
	return UncleByNumber
}

// Answer is what came of a Question: Result when Err is nil.
type Answer struct {
	// Result is the JSON of the result member, `null` when there is no such
	// block or uncle. It is shared: whoever receives it may keep it and must
	// not change it.
	Result []byte
	// Err says why there is no result.
	Err *Error
}

// Null is the result of a lookup that found nothing.
var Null = []byte("null")
