package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/ommer/ommer/schema"
)

const (
	// tagsEvery is after how many looks at a head that stays the same a node's safe and
	// finalized blocks are asked for again. Otherwise they are asked for with each new
	// head: they move once in 32 blocks, and each costs a whole block.
	tagsEvery = 5
	// slower is how much longer the pause between two looks is at a node that tells of
	// its new heads.
	slower = 5
	// breath is the part of a pause, one in so many, that is kept between two looks
	// however often a node tells of new heads.
	breath = 10
)

// Run follows the heads of all nodes until ctx ends, then closes the Set. It always
// returns nil.
func (s *Set) Run(ctx context.Context) error {
	var followers sync.WaitGroup
	for _, n := range s.nodes {
		followers.Go(func() { (&follower{set: s, node: n}).run(ctx) })
	}
	followers.Wait()
	s.Close()
	return nil
}

// Latest returns the highest block that any node has told of, false before one has.
func (s *Set) Latest() (uint64, bool) {
	return s.highest((*node).Latest)
}

// Finalized returns the highest block that any node holds for final, or that is deep
// enough to be; false when there is none: on a chain without finality nothing is final
// unless Config.Finality says so.
func (s *Set) Finalized() (uint64, bool) {
	return s.highest((*node).Finalized)
}

func (s *Set) highest(of func(*node) (uint64, bool)) (highest uint64, ok bool) {
	for _, n := range s.nodes {
		if h, known := of(n); known {
			highest, ok = max(highest, h), true
		}
	}
	return highest, ok
}

// Latest is the node's highest block.
func (n *node) Latest() (uint64, bool) { return fromOptional(n.latest.Load()) }

// Finalized is the node's last finalized block, or a higher one that is deep enough.
func (n *node) Finalized() (uint64, bool) {
	told, ok := fromOptional(n.finalized.Load())
	if deep, known := n.canon.final(); known && (!ok || deep > told) {
		return deep, true
	}
	return told, ok
}

// A number that may be unknown is kept plus one, so that 0 means unknown. Heights
// end far below 2^64-1.
func fromOptional(v uint64) (uint64, bool) { return v - 1, v != 0 }

// follower looks at a node's head again and again. It is also what finds out that a
// node is down or back when nobody asks for anything.
type follower struct {
	set  *Set
	node *node

	head   *types.Header // the last one seen
	looks  int           // at it
	doubts int           // how often it could not be followed

	unfilled int // how often it did not have what stands below its head

	news *subscription // nil: there is none
	mute *rpc.Client   // it knows no subscriptions
}

func (f *follower) run(ctx context.Context) {
	for {
		err := f.look(ctx)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			f.node.failed(err)
			f.head = nil // ask for everything once it is back
		} else {
			f.subscribe(ctx)
		}
		if !f.wait(ctx, err == nil) {
			break
		}
	}
	if f.news != nil {
		<-f.news.ended
	}
}

// look asks for the head, and for what goes with it when it is due, and tells them to
// the view.
func (f *follower) look(ctx context.Context) error {
	n := f.node
	headers, errs, err := f.tagged(ctx, schema.Latest)
	if err != nil {
		return err
	}
	head, err := headers[0], errs[0]
	switch {
	case errors.Is(err, ErrUnknownFields):
		n.polled() // it is well; what it says of its head cannot be proved here
		return nil
	case errors.Is(err, errNoBlock), errors.Is(err, ErrPruned):
		return fmt.Errorf("%w: it has no latest block: %s", ErrFailed, err.Error())
	case err != nil:
		return err
	}
	n.latest.Store(head.Number.Uint64() + 1)
	n.polled()
	if n.health.reason() != nil {
		return nil // set aside for what it said before: it has no say in this either
	}
	f.looks++
	if f.head == nil || f.head.Hash() != head.Hash() {
		f.head, f.looks, f.doubts = head, 0, 0
	}
	if err := f.tell(ctx); err != nil {
		return err
	}
	if f.looks%tagsEvery > 0 {
		return nil
	}
	if err := f.lookAtTags(ctx); err != nil || f.unfilled == mostUnfilled {
		return err
	}
	if err := f.fill(ctx); err != nil {
		f.unfilled++
		n.log.Debug("the view is not filled", "reason", err)
	}
	return nil
}

// mostUnfilled is how often a node may fail to tell what stands below its head, which it
// may have dropped.
const mostUnfilled = 3

// lookAtTags asks for the finalized and the safe block, and tells them to the view. It also
// asks whether the node is still of the same chain: it may be another one by now.
func (f *follower) lookAtTags(ctx context.Context) error {
	n, tags := f.node, []schema.Tag{schema.Finalized, schema.Safe}
	if err := n.sameChain(ctx); err != nil {
		return err
	}
	headers, errs, err := f.tagged(ctx, tags...)
	if err != nil {
		return err
	}
	for i, t := range tags {
		header, err := headers[i], errs[i]
		switch {
		case errors.Is(err, errNoBlock), errors.Is(err, ErrFailed), errors.Is(err, ErrUnknownFields):
			continue // a chain without finality, or a node that does not know the tag
		case err != nil:
			return err
		case header.Number.Cmp(f.head.Number) > 0: // the head has moved on
			f.looks = -1 // ask again at the next look
			continue
		}
		if t == schema.Finalized {
			n.finalized.Store(header.Number.Uint64() + 1)
		}
		if err := f.set.tellTag(ctx, f.head, t, header); err != nil {
			n.log.Debug("a tag is not followed", "tag", t.String(), "reason", err)
			f.looks = -1
		}
	}
	return nil
}

// tell tells the head to the view. It is a fault of the node if nobody, and so neither
// the node itself, has the head or its parent again and again; one such time may be
// that of a balancer with a node behind it that lags.
func (f *follower) tell(ctx context.Context) error {
	err := f.set.tell(ctx, f.node, f.head)
	switch {
	case err == nil:
		f.doubts = 0
		return nil
	case errors.Is(err, ErrUntrue):
		return err
	case errors.Is(err, errNowhere):
		if f.doubts++; f.doubts == failuresUntilDown {
			f.doubts = 0
			return fmt.Errorf("%w: its head is block %d, %w", ErrUntrue, f.head.Number, err)
		}
	}
	f.node.log.Debug("a head is not followed", "reason", err)
	return nil
}

// tagged asks the node for the headers of the blocks that tags name.
func (f *follower) tagged(ctx context.Context, tags ...schema.Tag) ([]*types.Header, []error, error) {
	ctx, cancel := context.WithTimeout(ctx, f.node.cfg.CallTimeout)
	defer cancel()
	raws, batch := make([]json.RawMessage, len(tags)), make([]rpc.BatchElem, len(tags))
	for i, t := range tags {
		batch[i] = rpc.BatchElem{Method: "eth_getBlockByNumber", Args: []any{t.String(), false}, Result: &raws[i]}
	}
	if err := f.node.callAsFits(ctx, batch); err != nil {
		return nil, nil, err
	}
	headers, errs := make([]*types.Header, len(tags)), make([]error, len(tags))
	for i, t := range tags {
		headers[i], _, errs[i] = f.node.readBlock(batch[i], raws[i], schema.Tagged(t))
	}
	return headers, errs, nil
}

// wait pauses until the next look is due, and reports whether ctx still lasts.
func (f *follower) wait(ctx context.Context, well bool) bool {
	interval := f.node.cfg.PollInterval
	if f.news == nil || !well {
		return pause(ctx, interval)
	}
	if !pause(ctx, interval/breath) {
		return false
	}
	t := time.NewTimer(slower * interval)
	defer t.Stop()
	select {
	case <-f.news.heads:
	case <-f.news.ended:
		f.news = nil
	case <-t.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
