package devnode

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// accepted is said whenever the blocks cannot be used.
const accepted = "want an era1 file, an RLP export (.rlp or .rlp.gz), or a folder of such files"

// chain is all blocks held. It does not change after it was opened, but for its
// cache.
type chain struct {
	id       uint64
	segments []segment // by number, at least one
	numbers  map[common.Hash]uint64
	uncled   uint64 // the first block read that has uncles, 0 for none
	answers  cache
}

// segment is a row of blocks whose numbers follow one another: one file.
type segment struct {
	name        string
	first, last uint64
	parent      common.Hash // of the first
	hash        common.Hash // of the last
	blocks      source
}

// source reads the blocks of a segment. It may be used by any number of goroutines.
type source interface {
	block(n uint64) (*types.Block, error)
	Close() error
}

// openChain reads every block once: it checks them and indexes their hashes.
func openChain(cfg Config) (*chain, error) {
	c := &chain{id: cfg.ChainID, numbers: make(map[common.Hash]uint64)}
	l := loader{chain: c, log: cfg.Logger, left: maxExport}
	if err := l.load(cfg.Blocks); err != nil {
		return nil, errors.Join(err, c.close())
	}
	if c.id == 0 {
		c.id = DefaultChainID
	}
	return c, nil
}

// bounds returns the numbers of the first and the last block held.
func (c *chain) bounds() (first, last uint64) {
	return c.segments[0].first, c.segments[len(c.segments)-1].last
}

// block returns block n, nil when it is not held.
func (c *chain) block(n uint64) (*types.Block, error) {
	i, found := slices.BinarySearchFunc(c.segments, n, func(s segment, n uint64) int {
		switch {
		case n < s.first:
			return 1
		case n > s.last:
			return -1
		default:
			return 0
		}
	})
	if !found {
		return nil, nil
	}
	return c.segments[i].blocks.block(n)
}

// answersOf returns the answers about block n, nil when it is not held.
func (c *chain) answersOf(n uint64) (*answers, error) {
	if a := c.answers.get(n); a != nil {
		return a, nil
	}
	b, err := c.block(n)
	if b == nil || err != nil {
		return nil, err
	}
	a, err := render(b)
	if err != nil {
		return nil, err
	}
	c.answers.put(n, a)
	return a, nil
}

func (c *chain) close() error {
	var errs []error
	for _, s := range c.segments {
		errs = append(errs, s.blocks.Close())
	}
	return errors.Join(errs...)
}

// loader fills a chain.
type loader struct {
	chain *chain
	log   *slog.Logger
	left  int64 // bytes of RLP that may still be read into memory
}

func (l *loader) load(path string) error {
	if path == "" {
		return l.sample()
	}
	st, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("blocks: %w; %s", err, accepted)
	}
	files := []string{path}
	if st.IsDir() {
		if files, err = blockFiles(path); err != nil {
			return err
		}
	}
	for i, f := range files {
		begun := time.Now()
		s, err := l.open(f)
		if err != nil {
			return fmt.Errorf("blocks: %w; %s", err, accepted)
		}
		l.chain.segments = append(l.chain.segments, s)
		l.log.Debug("devnode read blocks", "file", f, "of", fmt.Sprintf("%d/%d", i+1, len(files)),
			"first", s.first, "last", s.last, "took", time.Since(begun))
	}
	return l.order()
}

// blockFiles lists the files of a folder that hold blocks.
func blockFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("blocks: %w", err)
	}
	var files []string
	for _, e := range entries {
		n := e.Name()
		if !e.IsDir() && (strings.HasSuffix(n, ".era1") || strings.HasSuffix(n, ".rlp") || strings.HasSuffix(n, ".rlp.gz")) {
			files = append(files, filepath.Join(dir, n))
		}
	}
	switch {
	case len(files) == 0:
		return nil, fmt.Errorf("blocks: %s holds no *.era1, *.rlp or *.rlp.gz; %s", dir, accepted)
	case len(files) > maxFiles:
		return nil, fmt.Errorf("blocks: %s holds %d files, at most %d can be served", dir, len(files), maxFiles)
	}
	return files, nil
}

// order sorts the segments and checks how they meet.
func (l *loader) order() error {
	s := l.chain.segments
	slices.SortFunc(s, func(a, b segment) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
	for i := 1; i < len(s); i++ {
		a, b := s[i-1], s[i]
		switch {
		case b.first <= a.last:
			return fmt.Errorf("blocks: %s and %s both hold block %d", a.name, b.name, b.first)
		case b.first == a.last+1 && b.parent != a.hash:
			return fmt.Errorf("blocks: %s does not continue %s: the parent of block %d is %v, want %v", b.name, a.name, b.first, b.parent, a.hash)
		}
	}
	return nil
}

// index takes in one block, in order.
func (l *loader) index(s *segment, h *types.Header, hash common.Hash, txs func() (types.Transactions, error)) error {
	if c := l.chain; c.uncled == 0 && h.UncleHash != types.EmptyUncleHash {
		c.uncled = h.Number.Uint64()
	}
	n := h.Number.Uint64()
	if s.hash == (common.Hash{}) { // the first one
		s.first, s.parent = n, h.ParentHash
	}
	s.last, s.hash = n, hash
	l.chain.numbers[hash] = n
	if l.chain.id != 0 {
		return nil
	}
	if n == 0 {
		switch hash {
		case params.MainnetGenesisHash:
			l.chain.id = params.MainnetChainConfig.ChainID.Uint64()
		case params.SepoliaGenesisHash:
			l.chain.id = params.SepoliaChainConfig.ChainID.Uint64()
		case params.HoodiGenesisHash:
			l.chain.id = params.HoodiChainConfig.ChainID.Uint64()
		}
	}
	if l.chain.id != 0 || h.TxHash == types.EmptyTxsHash {
		return nil
	}
	list, err := txs()
	if err != nil {
		return err
	}
	for _, tx := range list {
		if id := tx.ChainId(); id.IsUint64() && id.Sign() > 0 {
			l.chain.id = id.Uint64()
			return nil
		}
	}
	return nil
}
