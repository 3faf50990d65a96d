package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// Reasons why a node gave no usable answer. An error of this package wraps one of
// them per node that was asked.
var (
	// ErrUnreachable: the node cannot be reached, or did not answer in time.
	ErrUnreachable = errors.New("cannot be reached")
	// ErrOverloaded: the node refuses more, or too many lookups wait for it here.
	ErrOverloaded = errors.New("overloaded")
	// ErrPruned: the node has dropped this part of history.
	ErrPruned = errors.New("history pruned")
	// ErrUntrue: the answer contradicts itself or the question.
	ErrUntrue = errors.New("untrue answer")
	// ErrUnknownFields: the header has fields that this program does not know, so
	// that its hash cannot be computed.
	ErrUnknownFields = errors.New("header with unknown fields")
	// ErrFailed: any other refusal, or an answer that cannot be read.
	ErrFailed = errors.New("failed")
)

// errTooLarge is what reading an answer beyond MaxResponse ends with.
var errTooLarge = errors.New("the answer is larger than the limit")

// errNoAnswer says that the node was reached, as far as is known, and kept silent.
var errNoAnswer = errors.New("no answer in time")

// asked collects what each node said. It reads as one line.
type asked []error

func (a asked) Error() string {
	texts := make([]string, len(a))
	for i, err := range a {
		texts[i] = err.Error()
	}
	return "upstream: " + strings.Join(texts, "; ")
}

func (a asked) Unwrap() []error { return a }

// unreachable reports whether a node that was asked could not be reached.
func (a asked) unreachable() bool {
	return slices.ContainsFunc(a, func(err error) bool { return errors.Is(err, ErrUnreachable) })
}

// JSON-RPC error codes of nodes that mean something here.
const (
	codePruned       = 4444   // EIP-4444: go-ethereum's core/history
	codeLimit        = -32005 // EIP-1474: limit exceeded
	codeUnknownBlock = -39001 // execution-apis: unknown block
	codeNotFound     = -32001 // EIP-1474: resource not found
)

// ErrNoBlock is a node's word that there is no such block, put as an error. No method
// of a Set returns it.
var ErrNoBlock = errors.New("no such block")

var errNoBlock = ErrNoBlock

// callError translates what a call of go-ethereum's client returned, be it for a
// whole batch or for one element of it. The result holds no secret of the URL and
// wraps one of the reasons above, or errNoBlock.
func (sc scrubber) callError(err error) error {
	var (
		status rpc.HTTPError
		said   rpc.Error
		inURL  *url.Error
		syntax *json.SyntaxError
		typed  *json.UnmarshalTypeError
	)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", ErrUnreachable, errNoAnswer)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%w: given up", ErrUnreachable)
	case errors.Is(err, errTooLarge):
		return fmt.Errorf("%w: %w", ErrFailed, errTooLarge)
	case aboutBatch(err):
		return fmt.Errorf("%w: %w", ErrFailed, errBatch)
	case errors.As(err, &status):
		return httpStatus{status.StatusCode}
	case errors.As(err, &said):
		return sc.saidError(said)
	case errors.As(err, &syntax), errors.As(err, &typed):
		return fmt.Errorf("%w: the answer is not JSON-RPC: %s", ErrFailed, sc.text(err.Error()))
	case errors.Is(err, rpc.ErrMissingBatchResponse), errors.Is(err, rpc.ErrNoResult):
		return fmt.Errorf("%w: %w", ErrFailed, err)
	case errors.As(err, &inURL):
		err = inURL.Err // without the URL around it
	}
	return fmt.Errorf("%w: %s", ErrUnreachable, sc.text(err.Error()))
}

// httpStatus is an HTTP status in place of an answer, with the reason behind it. The body is
// left out: some providers repeat the key there.
type httpStatus struct{ code int }

// Error names the status.
func (s httpStatus) Error() string { return fmt.Sprintf("%v: HTTP status %d", s.Unwrap(), s.code) }

// Unwrap returns the reason.
func (s httpStatus) Unwrap() error {
	switch {
	case s.code == http.StatusTooManyRequests:
		return ErrOverloaded
	case s.code >= 500:
		return ErrUnreachable // a gateway with nothing behind it
	default:
		return ErrFailed
	}
}

// vague says that the status may mean anything, a refused batch among it.
func (s httpStatus) vague() bool {
	switch s.code {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity,
		http.StatusInternalServerError, http.StatusNotImplemented:
		return true
	}
	return false
}

// saidError sorts the JSON-RPC errors of nodes. Their codes differ and often are
// -32000 for everything, hence the look at the text.
func (sc scrubber) saidError(said rpc.Error) error {
	code, text := said.ErrorCode(), strings.ToLower(said.Error())
	reason := ErrFailed
	switch {
	case code == codePruned, strings.Contains(text, "prun"): // go-ethereum, reth; Erigon says "due to pruning"
		reason = ErrPruned
	case code == codeLimit, strings.Contains(text, "rate limit"), strings.Contains(text, "too many requests"):
		reason = ErrOverloaded
	case code == codeUnknownBlock,
		strings.Contains(text, "block not found"),        // go-ethereum: safe block not found
		strings.Contains(text, "block is not available"), // go-ethereum: pending block is not available
		strings.Contains(text, "header not found"),
		strings.Contains(text, "unknown block"),
		code == codeNotFound && strings.Contains(text, "not found"):
		reason = errNoBlock
	}
	if errors.Is(reason, ErrOverloaded) {
		return fmt.Errorf("%w: error %d, %s", backOff(said), code, sc.text(said.Error()))
	}
	return fmt.Errorf("%w: error %d, %s", reason, code, sc.text(said.Error()))
}

// overloaded is ErrOverloaded with the time for which a node asks to be left alone.
type overloaded struct{ pause time.Duration }

func (o overloaded) Error() string { return ErrOverloaded.Error() }

func (o overloaded) Unwrap() error { return ErrOverloaded }

// backOff reads backoff_seconds from the data of an error, where some providers have it,
// and so has this service: by itself, or in an object named rate.
func backOff(said rpc.Error) error {
	with, ok := said.(rpc.DataError)
	if !ok {
		return ErrOverloaded
	}
	data, _ := with.ErrorData().(map[string]any)
	if rate, ok := data["rate"].(map[string]any); ok {
		data = rate
	}
	seconds, _ := data["backoff_seconds"].(float64)
	if !(seconds > 0) { // NaN too
		return ErrOverloaded
	}
	return overloaded{time.Duration(min(seconds, longestAsk.Seconds()) * float64(time.Second))}
}
