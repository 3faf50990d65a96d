package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// finalizedEvery is after how many looks at a node's head its finalized block is
// asked for again. It moves once in 32 blocks, the question costs a whole block, and
// to know it late only means that an answer is kept for good a little later.
const finalizedEvery = 15

// Run follows the heads of all nodes until ctx ends, then closes the Set. It always
// returns nil.
func (s *Set) Run(ctx context.Context) error {
	var followers sync.WaitGroup
	for _, n := range s.nodes {
		followers.Go(func() { n.follow(ctx) })
	}
	followers.Wait()
	s.Close()
	return nil
}

// Latest returns the highest block that any node has told of, false before one has.
func (s *Set) Latest() (uint64, bool) {
	return s.highest((*node).Latest)
}

// Finalized returns the highest block that any node holds for final, false when none
// has told of one: on a chain without finality nothing is final.
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

// Finalized is the node's last finalized block.
func (n *node) Finalized() (uint64, bool) { return fromOptional(n.finalized.Load()) }

// A number that may be unknown is kept plus one, so that 0 means unknown. Heights
// end far below 2^64-1.
func fromOptional(v uint64) (uint64, bool) { return v - 1, v != 0 }

// follow looks at the node's head again and again. It is also what finds out that a
// node is down or back when nobody asks for anything.
func (n *node) follow(ctx context.Context) {
	for look := 0; ; look++ {
		if err := n.look(ctx, look%finalizedEvery == 0); err != nil {
			if ctx.Err() != nil {
				return
			}
			n.failed(err)
			look = -1 // ask for everything once it is back
		} else {
			n.polled()
		}
		if !pause(ctx, n.cfg.PollInterval) {
			return
		}
	}
}

// look asks for the head, and for the finalized block if wanted.
func (n *node) look(ctx context.Context, wantFinalized bool) error {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.CallTimeout)
	defer cancel()
	var latest hexutil.Uint64
	var finalized json.RawMessage
	batch := []rpc.BatchElem{{Method: "eth_blockNumber", Result: &latest}}
	if wantFinalized {
		batch = append(batch, rpc.BatchElem{Method: "eth_getBlockByNumber", Args: []any{"finalized", false}, Result: &finalized})
	}
	if err := n.call(ctx, batch); err != nil {
		return err
	}
	if err := batch[0].Error; err != nil {
		return n.scrub.callError(err)
	}
	n.latest.Store(uint64(latest) + 1)
	if !wantFinalized {
		return nil
	}
	err := n.present(batch[1], finalized)
	if errors.Is(err, errNoBlock) || errors.Is(err, ErrFailed) {
		return nil // a chain without finality, or a node that does not know the tag
	}
	if err != nil {
		return err
	}
	var block struct {
		Number *hexutil.Uint64 `json:"number"`
	}
	if json.Unmarshal(finalized, &block) == nil && block.Number != nil {
		n.finalized.Store(uint64(*block.Number) + 1)
	}
	return nil
}
