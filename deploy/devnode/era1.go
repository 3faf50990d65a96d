package devnode

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/ommer/ommer/workers/archive"
)

// era1 is a source that reads its blocks from the file as they are asked for.
type era1 struct {
	*archive.Era1
}

// era1 verifies and indexes an era1 file.
func (l *loader) era1(path string) (segment, error) {
	e, err := archive.Open(path)
	if err != nil {
		return segment{}, err
	}
	s := segment{name: path, blocks: era1{e}}
	err = e.Verify(context.Background(), func(b *archive.Block) error {
		return l.index(&s, b.Header, b.Hash, func() (types.Transactions, error) { return transactions(&b.Body) })
	})
	if err != nil {
		_ = e.Close() // only read from
		return segment{}, err
	}
	return s, nil
}

func (e era1) block(n uint64) (*types.Block, error) {
	b, err := e.Block(n)
	if err != nil {
		return nil, err
	}
	txs, err := transactions(&b.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: block %d: %w", e.Path(), n, err)
	}
	return types.NewBlockWithHeader(b.Header).WithBody(types.Body{Transactions: txs, Uncles: b.Uncles}), nil
}

func transactions(b *archive.Body) (txs types.Transactions, err error) {
	if err := rlp.DecodeBytes(b.Transactions, &txs); err != nil {
		return nil, fmt.Errorf("transactions: %w", err)
	}
	return txs, nil
}
