package devnode

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// sampleRLP is the sample chain, 64 blocks as an export.
//
//go:generate go run ../testchain/gen sample.rlp.gz
//go:embed sample.rlp.gz
var sampleRLP []byte

// export is a source that holds its blocks, from 0 or another first number on.
type export struct {
	first  uint64
	blocks []*types.Block
}

func (e *export) block(n uint64) (*types.Block, error) { return e.blocks[n-e.first], nil }

// Close has nothing to release.
func (e *export) Close() error { return nil }

// sample takes in the chain that the package carries.
func (l *loader) sample() error {
	s, err := l.export("the sample chain", bytes.NewReader(sampleRLP))
	if err != nil {
		return err
	}
	l.chain.segments = append(l.chain.segments, s)
	return nil
}

// The first bytes of a file tell its format.
const (
	magicEra1 = "\x65\x32" // the version entry
	magicGzip = "\x1f\x8b"
)

// open reads the file at path, whatever its format.
func (l *loader) open(path string) (segment, error) {
	f, err := os.Open(path)
	if err != nil {
		return segment{}, err
	}
	defer f.Close() //nolint:errcheck // only read from
	st, err := f.Stat()
	if err != nil {
		return segment{}, err
	}
	if !st.Mode().IsRegular() {
		return segment{}, fmt.Errorf("%s: not a regular file", path)
	}
	var magic [2]byte
	if _, err := f.ReadAt(magic[:], 0); err != nil {
		return segment{}, fmt.Errorf("%s: too short to hold blocks", path)
	}
	if string(magic[:]) == magicEra1 {
		return l.era1(path)
	}
	return l.export(path, f)
}

// export reads the blocks of an RLP export: one after another, nothing between.
func (l *loader) export(name string, r io.ReadSeeker) (segment, error) {
	data, err := l.readExport(r)
	if err != nil {
		return segment{}, fmt.Errorf("%s: %w", name, err)
	}
	e := new(export)
	s := segment{name: name, blocks: e}
	for at := 0; at < len(data); {
		_, rest, err := rlp.SplitList(data[at:])
		if err != nil {
			return segment{}, fmt.Errorf("%s: byte %d: no block: %w", name, at, err)
		}
		b := new(types.Block)
		if err = rlp.DecodeBytes(data[at:len(data)-len(rest)], b); err != nil {
			return segment{}, fmt.Errorf("%s: byte %d: %w", name, at, err)
		}
		if err = follows(e, b); err != nil {
			return segment{}, fmt.Errorf("%s: byte %d: block %v: %w", name, at, b.Number(), err)
		}
		if len(e.blocks) == 0 {
			e.first = b.NumberU64()
		}
		e.blocks = append(e.blocks, b)
		err = l.index(&s, b.Header(), b.Hash(), func() (types.Transactions, error) { return b.Transactions(), nil })
		if err != nil {
			return segment{}, fmt.Errorf("%s: block %v: %w", name, b.Number(), err)
		}
		at = len(data) - len(rest)
	}
	if len(e.blocks) == 0 {
		return segment{}, fmt.Errorf("%s: holds no blocks", name)
	}
	return s, nil
}

// readExport reads a file into memory, decompressed.
func (l *loader) readExport(f io.ReadSeeker) ([]byte, error) {
	var magic [2]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	r := io.Reader(f)
	if string(magic[:]) == magicGzip {
		z, err := gzip.NewReader(f)
		if err != nil {
			return nil, err
		}
		r = z
	}
	data, err := io.ReadAll(io.LimitReader(r, l.left+1))
	if err != nil {
		return nil, err
	}
	if l.left -= int64(len(data)); l.left < 0 {
		return nil, fmt.Errorf("RLP exports of over %d MiB are not held in memory; use era1 files", maxExport>>20)
	}
	return data, nil
}

// follows checks that b continues the blocks before it and that its uncles are
// those that its header commits to. The transactions are not checked: it would take
// a trie, and with it go-ethereum's database, into the binary.
func follows(e *export, b *types.Block) error {
	if !b.Number().IsUint64() || b.NumberU64() > 1<<63-1 {
		return errors.New("number is out of range")
	}
	if got := types.CalcUncleHash(b.Uncles()); got != b.UncleHash() {
		return fmt.Errorf("the uncles hash to %v, sha3Uncles is %v", got, b.UncleHash())
	}
	if len(e.blocks) == 0 {
		return nil
	}
	last := e.blocks[len(e.blocks)-1]
	if b.NumberU64() != last.NumberU64()+1 {
		return fmt.Errorf("does not follow block %v", last.Number())
	}
	if b.ParentHash() != last.Hash() {
		return fmt.Errorf("the parent is %v, want %v", b.ParentHash(), last.Hash())
	}
	return nil
}
