package workers

import (
	"context"
	"errors"

	"github.com/ommer/ommer/bus/actor"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream"
)

// Failures that say all there is to say. They are shared and must not be changed.
var (
	late        = &schema.Error{Code: schema.Timeout, Detail: "the deadline has passed"}
	mailboxFull = &schema.Error{Code: schema.Overloaded, Detail: "too many questions wait for a shard"}
	standing    = &schema.Error{Code: schema.Overloaded, Detail: "questions stand in line for a shard"}
	tooMany     = &schema.Error{Code: schema.Overloaded, Detail: "too many questions wait for the source"}
	tooManyAsks = &schema.Error{Code: schema.Overloaded, Detail: "too many blocks are asked of the source"}
	beyond      = &schema.Error{Code: schema.Unsupported, Detail: "a block number larger than int64"}
	leaving     = &schema.Error{Code: schema.Draining, Detail: "the worker is stopping"}
)

// failure translates an error of the source or of the actors into what crosses the
// bus.
func failure(err error) *schema.Error {
	code := schema.Internal
	switch {
	case errors.Is(err, actor.ErrStopped):
		return leaving
	case errors.Is(err, upstream.ErrPruned):
		code = schema.Pruned
	case errors.Is(err, upstream.ErrUntrue),
		errors.Is(err, upstream.ErrUnknownFields),
		errors.Is(err, upstream.ErrFailed):
		// A node was reached and is no use: more time would not help.
	case errors.Is(err, upstream.ErrOverloaded):
		code = schema.Overloaded
	case errors.Is(err, context.DeadlineExceeded):
		code = schema.Timeout
	case errors.Is(err, upstream.ErrUnreachable):
		code = schema.Unavailable
	}
	return &schema.Error{Code: code, Detail: err.Error()}
}
