package nio

import "errors"

// ErrAgain is returned by Conn.Read when nothing more is there. Readable is
// called when that may have changed.
//
// It is a net.Error whose Temporary is true, because crypto/tls keeps its state
// on such errors alone, also in the middle of a record (crypto/tls/conn.go,
// readRecordOrCCS).
var ErrAgain error = again{}

type again struct{}

func (again) Error() string   { return "nio: nothing to read" }
func (again) Timeout() bool   { return true }
func (again) Temporary() bool { return true }

var (
	// ErrOverflow is returned by Conn.Write when more would wait for the peer
	// than is allowed. Nothing was written and the connection is as it was, or
	// else it is closed.
	ErrOverflow = errors.New("nio: too much waits to be written")
	// ErrFlushTimeout is given to Handler.Closed when what was queued did not
	// reach the peer within Config.FlushTimeout.
	ErrFlushTimeout = errors.New("nio: the peer did not take what was queued")
)
