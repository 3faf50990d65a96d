package archive

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// TestRealBlocks reads 8192 blocks of Sepolia and compares them with what is known
// of them.
func TestRealBlocks(t *testing.T) {
	e := must[*Era1](t)(Open(sepolia(t, sepolia21)))
	defer e.Close()
	if got, want := e.Start(), uint64(21*MaxEra1Blocks); got != want {
		t.Errorf("Start() = %d, want %d", got, want)
	}
	var blocks, with, uncles, fees int
	err := e.Verify(t.Context(), func(b *Block) error {
		if got, want := b.Header.Number.Uint64(), e.Start()+uint64(blocks); got != want {
			t.Errorf("block %d has number %d", want, got)
		}
		if got := b.Header.Hash(); got != b.Hash {
			t.Errorf("block %v: hash %v, its fields give %v", b.Header.Number, b.Hash, got)
		}
		blocks++
		uncles += len(b.Uncles)
		if len(b.Uncles) > 0 {
			with++
		}
		if b.Header.BaseFee != nil {
			fees++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what      string
		got, want int
	}{
		{"Count()", e.Count(), 8192},
		{"blocks", blocks, 8192},
		{"blocks with uncles", with, 647},
		{"uncles", uncles, 1273},
		{"blocks with baseFee", fees, 8192},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %d, want %d", c.what, c.got, c.want)
		}
	}
}

// TestTransactions decodes what Body leaves undecoded and checks it against the
// header's commitment, so that the split of the body is known to be right.
func TestTransactions(t *testing.T) {
	e := must[*Era1](t)(Open(sepolia(t, sepolia21)))
	defer e.Close()
	n := 0
	for b, err := range e.Blocks() {
		if err != nil {
			t.Fatal(err)
		}
		if b.Header.TxHash == types.EmptyTxsHash {
			continue
		}
		var txs types.Transactions
		if err := rlp.DecodeBytes(b.Transactions, &txs); err != nil {
			t.Fatalf("block %v: %v", b.Header.Number, err)
		}
		if got := types.DeriveSha(txs, trie.NewStackTrie(nil)); got != b.Header.TxHash {
			t.Errorf("block %v: transactions hash to %v, want %v", b.Header.Number, got, b.Header.TxHash)
		}
		n += len(txs)
	}
	if n == 0 {
		t.Error("no transaction seen")
	}
}

// TestGenesis verifies the file that begins at block 0, where the parent and the
// total difficulty are known to be zero.
func TestGenesis(t *testing.T) {
	e := must[*Era1](t)(Open(sepolia(t, sepolia00)))
	defer e.Close()
	if err := e.Verify(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	h := must[*types.Header](t)(e.Header(0))
	// params.SepoliaGenesisHash.
	const want = "0x25a5cc106eea7138acab33231d7160d69cb777ee0c2c553fcddf5138993e6dd9"
	if got := h.Hash().Hex(); got != want {
		t.Errorf("genesis %s, want %s", got, want)
	}
}

func TestReadersAgree(t *testing.T) {
	e := must[*Era1](t)(inMemory(small(30)))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range uint64(30) {
				n := (i*7 + uint64(g)) % 30
				b, err := e.Block(n)
				if err != nil {
					t.Error(err)
					return
				}
				h, err := e.Header(n)
				if err != nil || h.Hash() != b.Hash {
					t.Errorf("Header(%d) = %v, %v, Block has %v", n, h, err, b.Hash)
				}
				body, err := e.Body(n)
				if err != nil || !bytes.Equal(body.UncleList, b.UncleList) || !bytes.Equal(body.Transactions, b.Transactions) {
					t.Errorf("Body(%d) differs from Block (%v)", n, err)
				}
				if want := int(n%3) / 2; len(b.Uncles) != want {
					t.Errorf("block %d: %d uncles, want %d", n, len(b.Uncles), want)
				}
			}
		})
	}
	wg.Wait()
}

func TestOutside(t *testing.T) {
	e := must[*Era1](t)(inMemory(small(3)))
	for _, n := range []uint64{3, 1 << 63, 1<<64 - 1} {
		if _, err := e.Block(n); !errors.Is(err, ErrNotHeld) {
			t.Errorf("Block(%d): %v, want ErrNotHeld", n, err)
		}
	}
}

func TestOpen(t *testing.T) {
	whole := small(2)
	e := must[*Era1](t)(inMemory(whole))
	root := e.Accumulator().Hex()[2:10]
	for _, c := range []struct {
		name string
		path string
		want string // of the error
	}{
		{"named for its root", write(t, "made-00000-"+root+".era1", whole), ""},
		{"named freely", write(t, "blocks", whole), ""},
		{"named for another root", write(t, "made-00000-00000000.era1", whole), "named for 00000000"},
		{"missing", filepath.Join(t.TempDir(), "none.era1"), "none.era1"},
		{"a folder", t.TempDir(), "not a regular file"},
		{"something else", write(t, "text.era1", bytes.Repeat([]byte("text "), 100)), "no era1 file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := Open(c.path)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path) {
					t.Errorf("got %v, want an error with %q that names the file", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Verify(t.Context(), nil); err != nil {
				t.Error(err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if _, err := e.Block(0); !errors.Is(err, os.ErrClosed) {
				t.Errorf("Block after Close: %v", err)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none.era1")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v, want ErrNotExist", err)
	}
}

func TestVerifyStops(t *testing.T) {
	e := must[*Era1](t)(inMemory(small(5)))
	stop := errors.New("enough")
	seen := 0
	if err := e.Verify(t.Context(), func(*Block) error { seen++; return stop }); !errors.Is(err, stop) || seen != 1 {
		t.Errorf("got %v after %d blocks, want the visitor's error after 1", err, seen)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Verify(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
}
