package archive

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// Block is one block of a history file. Its header has the number that was asked
// for, and its uncles are those that the header commits to.
type Block struct {
	Header *types.Header
	Hash   common.Hash // keccak256 of the header as stored
	Body
}

// Body is what a block holds besides its header.
type Body struct {
	// Transactions is the list as stored, not decoded: most readers have no use
	// for it. It decodes into types.Transactions.
	Transactions rlp.RawValue
	// UncleList is the list of uncles as stored; its keccak256 is the header's
	// sha3Uncles.
	UncleList rlp.RawValue
	Uncles    []*types.Header
}

// Header returns the header of block n, with ErrNotHeld when n is not in the
// file and ErrDamaged when the header cannot be read or has another number.
func (e *Era1) Header(n uint64) (*types.Header, error) {
	var h *types.Header
	err := e.within(n, func(b *block) (err error) {
		h, _, err = b.header(n)
		return err
	})
	return h, err
}

// Body returns the body of block n, with ErrNotHeld when n is not in the file and
// ErrDamaged when it cannot be read. Whether it belongs to the header only Block
// can say.
func (e *Era1) Body(n uint64) (*Body, error) {
	var body Body
	err := e.within(n, func(b *block) error { return b.body(&body) })
	if err != nil {
		return nil, err
	}
	return &body, nil
}

// Block returns block n, with ErrNotHeld when n is not in the file and ErrDamaged
// when it cannot be read, has another number, or when its uncles are not those
// that the header commits to. The commitments to transactions and receipts are
// not checked.
func (e *Era1) Block(n uint64) (*Block, error) {
	var out *Block
	err := e.within(n, func(b *block) (err error) {
		out, err = b.block(n, everyBody)
		return err
	})
	return out, err
}

// everyBody is for readers who want to see the body of every block.
func everyBody(*types.Header) bool { return true }

// within calls f with a reader of block n and adds the file and the block to its
// error.
func (e *Era1) within(n uint64, f func(*block) error) error {
	if n < e.start || n-e.start >= uint64(e.Count()) {
		return fmt.Errorf("archive: %s: %w: %d is not in %d to %d", e.path, ErrNotHeld, n, e.start, e.start+uint64(e.Count())-1)
	}
	z := e.inflaters.get()
	defer e.inflaters.put(z)
	i := n - e.start
	if err := f(&block{e: e, z: z, next: e.bounds[i], end: e.bounds[i+1]}); err != nil {
		return fmt.Errorf("archive: %s: block %d: %w", e.path, n, err)
	}
	return nil
}

// block reads the four entries of one block, in their order.
type block struct {
	e    *Era1
	z    *inflater
	next int64 // the next entry
	end  int64 // where the block must end
	last entryType
}

// entry moves over the entries up to and including the one of type want.
func (b *block) entry(want entryType) (span, error) {
	t := typeHeader
	if b.last != 0 {
		t = b.last + 1 // the types are numbered in the order of the entries
	}
	for ; ; t++ {
		v, err := readEntry(b.e.file, t, b.next, b.end)
		if err != nil {
			return v, err
		}
		b.next, b.last = v.end(), t
		if t == want {
			return v, nil
		}
	}
}

func (b *block) header(n uint64) (*types.Header, common.Hash, error) {
	v, err := b.entry(typeHeader)
	if err != nil {
		return nil, common.Hash{}, err
	}
	raw, err := b.z.inflate(b.e.file, v, maxHeader)
	if err != nil {
		return nil, common.Hash{}, fmt.Errorf("header: %w", err)
	}
	h := new(types.Header)
	if err := rlp.DecodeBytes(raw, h); err != nil {
		return nil, common.Hash{}, damaged(v.off, "header: %v", err)
	}
	if !h.Number.IsUint64() || h.Number.Uint64() != n {
		return nil, common.Hash{}, damaged(v.off, "the header is of block %v", h.Number)
	}
	return h, crypto.Keccak256Hash(raw), nil
}

func (b *block) body(out *Body) error {
	v, err := b.entry(typeBody)
	if err != nil {
		return err
	}
	raw, err := b.z.inflate(b.e.file, v, maxBody)
	if err != nil {
		return fmt.Errorf("body: %w", err)
	}
	if err := out.parse(raw); err != nil {
		return damaged(v.off, "body: %v", err)
	}
	return nil
}

// block reads the block, without its body unless that is wanted.
func (b *block) block(n uint64, body func(*types.Header) bool) (*Block, error) {
	out := new(Block)
	var err error
	if out.Header, out.Hash, err = b.header(n); err != nil {
		return nil, err
	}
	if !body(out.Header) {
		return out, nil
	}
	at := b.next
	if err := b.body(&out.Body); err != nil {
		return nil, err
	}
	if got := crypto.Keccak256Hash(out.UncleList); got != out.Header.UncleHash {
		return nil, damaged(at, "the uncles hash to %v, sha3Uncles is %v", got, out.Header.UncleHash)
	}
	return out, nil
}

// parse splits the RLP of a body, [transactions, uncles].
func (b *Body) parse(raw []byte) error {
	lists, rest, err := rlp.SplitList(raw)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return rlp.ErrMoreThanOneValue
	}
	txs, rest, err := rlp.SplitList(lists)
	if err != nil {
		return fmt.Errorf("transactions: %w", err)
	}
	b.Transactions = lists[:len(lists)-len(rest)]
	if _, err := rlp.CountValues(txs); err != nil {
		return fmt.Errorf("transactions: %w", err)
	}
	b.UncleList = rest
	if err := rlp.DecodeBytes(rest, &b.Uncles); err != nil {
		return fmt.Errorf("uncles: %w", err)
	}
	return nil
}
