package bus

import (
	"errors"

	"github.com/ommer/ommer/schema"
)

// Errors of this package. What happens to a question is never one of them: that
// is a schema.Error in its answer.
var (
	// ErrConfig: a field of a configuration cannot be used; the text names it.
	ErrConfig = errors.New("bus configuration")
	// ErrUnfinished: the time to leave ran out with questions in flight.
	ErrUnfinished = errors.New("bus: questions left unanswered")
)

// Answers that the bus gives by itself. They are shared and must not be changed.
var (
	errTimeout    = &schema.Error{Code: schema.Timeout}
	errOverloaded = &schema.Error{Code: schema.Overloaded, Detail: "too many questions in flight"}
	errNoWorkers  = &schema.Error{Code: schema.NoWorkers, Detail: "no worker serves the network"}
	errNoLink     = &schema.Error{Code: schema.NoWorkers, Detail: "no connection to NATS"}
	errClosed     = &schema.Error{Code: schema.Draining, Detail: "the asking side has closed"}
	errVersion    = &schema.Error{Code: schema.Unsupported, Detail: "unknown version or kind of question"}
	errSubject    = &schema.Error{Code: schema.Unsupported, Detail: "the subject's method does not ask this"}
	errPacked     = &schema.Error{Code: schema.Internal, Detail: "a packed answer that nobody asked for"}
)
