package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream"
)

// latencyCalls is how many calls the median is of.
const latencyCalls = 5

// maxClient bounds the name that a node gives itself.
const maxClient = 100

func (n *node) findChain(ctx context.Context) error {
	var id hexutil.Big
	if err := n.call(ctx, &id, "eth_chainId"); err != nil {
		if refused(err) {
			err = fmt.Errorf("eth_chainId: %w", err) // else it is about more than this call
		}
		return err
	}
	if i := id.ToInt(); !i.IsUint64() || i.Sign() == 0 {
		return fmt.Errorf("eth_chainId: %w: %.40v is no chain ID", upstream.ErrUntrue, i)
	}
	n.facts = known[id.ToInt().Uint64()]
	n.Chain = &Chain{ID: id.ToInt().Uint64(), Name: n.facts.name}
	return nil
}

func (n *node) findLatency(ctx context.Context) {
	var took []time.Duration
	for range latencyCalls {
		began := time.Now()
		var number hexutil.Uint64
		if err := n.call(ctx, &number, "eth_blockNumber"); err != nil {
			n.unknown("latency", err)
			n.Latency = nil
			return
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	n.Latency.MedianMS, n.Latency.Calls = milliseconds(took[len(took)/2]), len(took)
}

func (n *node) findIdentity(ctx context.Context) {
	var client string
	if err := n.call(ctx, &client, "web3_clientVersion"); err != nil {
		n.unknown("client", err)
	} else {
		client = printable(n.scrub.Text(client))
		if c := []rune(client); len(c) > maxClient {
			client = string(c[:maxClient]) + "..."
		}
		n.Client = &client
	}
	var syncing json.RawMessage // false, or an object
	if err := n.call(ctx, &syncing, "eth_syncing"); err != nil {
		n.unknown("syncing", err)
	} else {
		is := bytes.HasPrefix(syncing, []byte("{"))
		n.Syncing = &is
	}
	genesis, err := n.numbered(ctx, 0)
	switch {
	case err != nil:
		n.unknown("genesis", err)
	case genesis == nil:
		n.unknown("genesis", upstream.ErrNoBlock)
	default:
		n.Chain.Genesis = genesis.hash.Hex()
		if n.facts.genesis != (common.Hash{}) && n.facts.genesis != genesis.hash {
			n.untrue(fmt.Sprintf("it says that it serves %s, whose genesis block is %v, and shows %v", n.facts.name, n.facts.genesis, genesis.hash))
			n.facts = facts{}
		}
	}
}

func (n *node) findHead(ctx context.Context) {
	latest, err := n.block(ctx, schema.Tagged(schema.Latest))
	if err == nil && latest == nil {
		err = upstream.ErrNoBlock
	}
	if err != nil {
		n.unknown("head", err)
		return
	}
	n.blocks[latest.header.Number.Uint64()] = latest
	n.Head = &Head{
		Number: latest.header.Number.Uint64(), Hash: latest.hash.Hex(),
		AgeSeconds: time.Now().Unix() - int64(min(latest.header.Time, 1<<62)),
	}
	n.Safe = n.findTag(ctx, "safe", schema.Safe)
	n.Finalized = n.findTag(ctx, "finalized", schema.Finalized)
}

func (n *node) findTag(ctx context.Context, fact string, tag schema.Tag) *Tag {
	b, err := n.block(ctx, schema.Tagged(tag))
	if r, ok := errors.AsType[refusal](err); ok && r.code == -32602 {
		b, err = nil, nil // a node from before the merge, to which the tag is no parameter
	}
	switch {
	case err != nil:
		n.unknown(fact, err)
		return nil
	case b == nil:
		return &Tag{}
	default:
		number := b.header.Number.Uint64()
		return &Tag{Number: &number}
	}
}

// findSubscribe asks for new heads. The subscription ends with the connection.
func (n *node) findSubscribe(ctx context.Context) {
	if n.http != nil {
		return
	}
	var id json.RawMessage
	err := n.call(ctx, &id, "eth_subscribe", "newHeads")
	if err != nil {
		n.unknown("subscribe", err)
		if errors.Is(err, upstream.ErrUnreachable) {
			return
		}
	}
	works := err == nil && !isNull(id)
	n.Subscribe = &works
}
