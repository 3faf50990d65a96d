package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/rpc"
)

// callAsFits sends calls as one batch, or one after the other to a node that takes none,
// which is found out here.
func (n *node) callAsFits(ctx context.Context, batch []rpc.BatchElem) error {
	if n.single.Load() {
		return n.callEach(ctx, batch)
	}
	err := n.call(ctx, batch)
	if status, _ := errors.AsType[httpStatus](err); len(batch) > callsEach || n.batchError(err, batch) == nil && !status.vague() {
		return err
	}
	if each := n.callEach(ctx, batch); each != nil {
		return err
	}
	answered := func(e rpc.BatchElem) bool { return e.Error == nil }
	if slices.ContainsFunc(batch, answered) && !n.single.Swap(true) {
		n.fewer(1)
		n.log.Warn("upstream takes no batches: it is asked for one call at a time")
	}
	return nil
}

// codeInvalidRequest is what go-ethereum refuses a batch with that has too many calls.
const codeInvalidRequest = -32600

// codeTooLarge is what it refuses the rest of a batch with whose answer became too long.
const codeTooLarge = -32003

// batchError returns what a node has refused a batch with for being one, or for being too
// large, as far as that can be told: it is cheap to try a smaller one. Else it is nil.
func (n *node) batchError(err error, batch []rpc.BatchElem) error {
	if err != nil {
		if errors.Is(err, errBatch) || errors.Is(err, errTooLarge) && len(batch) > callsEach {
			return err
		}
		return nil
	}
	if !slices.ContainsFunc(batch, func(e rpc.BatchElem) bool { return !errors.Is(e.Error, rpc.ErrMissingBatchResponse) }) {
		return fmt.Errorf("%w: %w", ErrFailed, errBatch) // []
	}
	for _, e := range batch {
		said, ok := errors.AsType[rpc.Error](e.Error)
		if !ok {
			continue
		}
		text := strings.ToLower(said.Error())
		if code := said.ErrorCode(); code == codeInvalidRequest && strings.Contains(text, "batch") ||
			code == codeTooLarge && len(batch) > callsEach || strings.Contains(text, "batch limit") ||
			strings.Contains(text, "batch size") {
			return n.scrub.callError(e.Error)
		}
	}
	return nil
}

// errBatch is part of errors that a batch may be the reason of: an answer that is none to
// a batch, or a status that says that the request is too large.
var errBatch = errors.New("no answer to a batch")

// aboutBatch says whether a whole call failed in a way that a smaller one, or a single
// call, may not.
func aboutBatch(err error) bool {
	if status, ok := errors.AsType[rpc.HTTPError](err); ok {
		return status.StatusCode == http.StatusRequestEntityTooLarge
	}
	typed, ok := errors.AsType[*json.UnmarshalTypeError](err)
	return ok && typed.Offset > 0 && typed.Field == "" && typed.Value == "object"
}

// fewer has the node asked for fewer blocks at a time.
func (n *node) fewer(blocks int) {
	for {
		now := n.batch.Load()
		if int32(blocks) >= now {
			return
		}
		if n.batch.CompareAndSwap(now, int32(blocks)) {
			n.log.Info("upstream takes smaller batches", "blocks", blocks, "calls", blocks*callsEach)
			return
		}
	}
}
