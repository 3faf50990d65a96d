package jsonrpc

// The limits that a zero Limits stands for.
const (
	// DefaultBatch is go-ethereum's limit (node.DefaultConfig, BatchRequestLimit).
	DefaultBatch = 1000
	// DefaultDepth leaves ample room: a batch of calls with an object among their
	// parameters is four deep. The scanner recurses, and this keeps its stack
	// within what a goroutine grows to once: some 16 KiB.
	DefaultDepth = 128
)

// Limits bound what Parse accepts, beyond the length of the message, which the
// caller bounds. Zero fields stand for the defaults.
type Limits struct {
	Batch int // members of a batch
	Depth int // arrays and objects inside each other, the batch and its members included
}

// Parse reads one message: a request object or a batch of them. The calls are
// appended to calls[:0] and alias msg; the slots of calls that a message leaves
// unused still refer to an earlier one. Batch says that the answer must be
// an array, in which notifications have no entry.
//
// An error means that the message as a whole is answered with it and the id null,
// without an array: it is not valid JSON, nests too deep, or is an empty batch. A
// message of nothing but white space has no calls and no error, and is answered
// with nothing. A batch over the limit comes back as one call, whose Err says so
// and whose ID is that of the first call in the batch that has one; the message
// is read to its end but never more calls held than the limit.
func Parse(msg []byte, calls []Call, l Limits) (out []Call, batch bool, err *Error) {
	if l.Batch <= 0 {
		l.Batch = DefaultBatch
	}
	if l.Depth <= 0 {
		l.Depth = DefaultDepth
	}
	out = calls[:0]
	i := skipSpace(msg, 0)
	if i == len(msg) {
		return out, false, nil
	}
	if msg[i] == '[' {
		return parseBatch(msg, i, out, l)
	}
	var c Call
	if i = c.parse(msg, i, l.Depth); !ends(msg, i) {
		return out, false, errParse
	}
	return append(out, c), false, nil
}

// parseBatch reads the array at msg[i].
func parseBatch(msg []byte, i int, out []Call, l Limits) ([]Call, bool, *Error) {
	if i = skipSpace(msg, i+1); i < len(msg) && msg[i] == ']' {
		if !ends(msg, i+1) {
			return out, false, errParse
		}
		return out, false, errEmptyBatch
	}
	var first []byte // the id of the first call that has one
	tooLarge := false
	for done := false; !done; {
		var c Call
		if i = c.parse(msg, i, l.Depth-1); i < 0 {
			return out[:0], false, errParse
		}
		if first == nil && c.Err == nil {
			first = c.ID
		}
		if len(out) < l.Batch {
			out = append(out, c)
		} else {
			tooLarge = true
		}
		if i, done = scanNext(msg, i, ']'); i < 0 {
			return out[:0], false, errParse
		}
	}
	if !ends(msg, i) {
		return out[:0], false, errParse
	}
	if tooLarge {
		return append(out[:0], Call{ID: first, Err: errBatchTooLarge}), true, nil
	}
	return out, true, nil
}

// ends says whether a value that ended before msg[i] was the last thing in msg.
// A negative i is a value that was none.
func ends(msg []byte, i int) bool { return i >= 0 && skipSpace(msg, i) == len(msg) }
