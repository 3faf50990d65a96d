package workers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/rlp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/archive"
	"github.com/ommer/ommer/workers/upstream"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

// archiveOf makes an uncles file of the blocks first to last of a chain.
func archiveOf(t testing.TB, c upstreamtest.Chain, first, last int) (path string) {
	t.Helper()
	s := new(archive.Segment)
	for _, b := range c[first : last+1] {
		list, err := rlp.EncodeToBytes(b.Uncles())
		if err == nil {
			err = s.Add(b.Header(), b.Hash(), list)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	path = filepath.Join(t.TempDir(), "x.uncles")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := archive.Write(t.Context(), f, func(yield func(*archive.Segment, error) bool) { yield(s, nil) }); err != nil {
		t.Fatal(err)
	}
	return path
}

// archived returns a Source that looks into files before it asks next.
func archived(t testing.TB, next Source, reg prometheus.Registerer, paths ...string) *Archived {
	t.Helper()
	files, err := archive.OpenSet(context.Background(), paths, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	a, err := NewArchived(ArchivedConfig{Files: files, Next: next, Registerer: reg})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// asked is what a pool says of the uncle of a block, or the code of its failure.
func asked(p *Pool, b schema.Selector, index int) string {
	a := lookup(p, schema.Question{Block: b, Index: uint64(index)}, time.Time{})
	if a.Err != nil {
		return a.Err.Code.String()
	}
	return string(a.Result)
}

func hashOf(c upstreamtest.Chain, n int) schema.Selector {
	return schema.BlockHash(schema.Hash(c[n].Hash()))
}

// TestArchiveAlone has no node.
func TestArchiveAlone(t *testing.T) {
	chain := testChain()
	source := archived(t, nil, nil, archiveOf(t, chain, 4, 20))
	p := newPool(t, Config{Source: source})
	if err := p.Ready(); err != nil {
		t.Errorf("not ready: %v", err)
	}
	for range 2 { // from the file, then from the cache
		for n := range chain {
			for index := range 2 {
				byNumber, byHash := "pruned", "pruned"
				if n >= 4 && n <= 20 {
					byNumber = want(chain, n, index)
					if len(chain[n].Uncles()) > 0 {
						byHash = byNumber
					}
				}
				if got := asked(p, schema.Number(uint64(n)), index); got != byNumber {
					t.Errorf("block %d, %d: %.99s, want %.99s", n, index, got, byNumber)
				}
				if got := asked(p, hashOf(chain, n), index); got != byHash {
					t.Errorf("block %v, %d: %.99s, want %.99s", chain[n].Hash(), index, got, byHash)
				}
			}
		}
	}
	for _, tag := range []schema.Tag{schema.Latest, schema.Earliest, schema.Pending, schema.Safe, schema.Finalized} {
		if got := asked(p, schema.Tagged(tag), 0); got != "pruned" {
			t.Errorf("%v: %.99s, want pruned", tag, got)
		}
	}
}

// TestArchiveBeforeNodes has a node that has dropped what the archive has.
func TestArchiveBeforeNodes(t *testing.T) {
	chain := testChain()
	node := upstreamtest.Start(t, chain)
	node.SetFinalized(24)
	node.Falsify(func(_, block string, _ int, object map[string]any) (map[string]any, error) {
		for n := range 13 {
			if block == schema.Number(uint64(n)).String() || block == chain[n].Hash().Hex() {
				return nil, &upstreamtest.Error{Code: 4444, Message: "pruned history unavailable"}
			}
		}
		return object, nil
	})
	reg := prometheus.NewPedanticRegistry()
	source := archived(t, newSet(t, node.URL), reg, archiveOf(t, chain, 3, 12))
	p := newPool(t, Config{Source: source, CacheBytes: -1})
	for n := range chain {
		for index := range 2 {
			byNumber := want(chain, n, index)
			if n < 3 {
				byNumber = "pruned" // neither has it
			}
			byHash := byNumber
			if n <= 12 && len(chain[n].Uncles()) == 0 {
				byHash = "pruned" // the archive has no hashes of blocks without uncles
			}
			if got := asked(p, schema.Number(uint64(n)), index); got != byNumber {
				t.Errorf("block %d, %d: %.99s, want %.99s", n, index, got, byNumber)
			}
			if got := asked(p, hashOf(chain, n), index); got != byHash {
				t.Errorf("block %v, %d: %.99s, want %.99s", chain[n].Hash(), index, got, byHash)
			}
		}
	}
	if got := asked(p, schema.Tagged(schema.Latest), 0); got != want(chain, 24, 0) {
		t.Errorf("latest: %.99s", got)
	}
	for label, least := range map[string]float64{fromArchive: 20, fromElsewhere: 20, fromNowhere: 0, fromDamage: 0} {
		if got := testutil.ToFloat64(source.answers.WithLabelValues(label)); got < least || least == 0 && got > 0 {
			t.Errorf("ommer_workers_blocks_total{source=%q} is %v, want %v or more", label, got, least)
		}
	}
	if n, err := testutil.GatherAndCount(reg, "ommer_archive_blocks", "ommer_archive_uncles", "ommer_archive_bytes"); err != nil || n != 3 {
		t.Errorf("%d gauges, %v", n, err)
	}
}

// TestDamagedArchive has a file of which a part can no longer be read.
func TestDamagedArchive(t *testing.T) {
	chain := testChain()
	path := archiveOf(t, chain, 0, 24)
	u, err := archive.OpenUncles(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[u.IndexSize()+60] ^= 1 // in the list of the first block that has one
	u.Close()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := 3
	for len(chain[damaged].Uncles()) == 0 {
		damaged++
	}
	alone := newPool(t, Config{Source: archived(t, nil, nil, path)})
	node := upstreamtest.Start(t, chain)
	both := newPool(t, Config{Source: archived(t, newSet(t, node.URL), nil, path)})
	for _, b := range []schema.Selector{schema.Number(uint64(damaged)), hashOf(chain, damaged)} {
		if got := asked(alone, b, 0); got != "internal" {
			t.Errorf("without a node: %v: %.99s, want internal", b, got)
		}
		if got := asked(both, b, 0); got != want(chain, damaged, 0) {
			t.Errorf("with a node: %v: %.99s", b, got)
		}
	}
	if got := asked(alone, schema.Number(uint64(damaged+3)), 0); got != want(chain, damaged+3, 0) {
		t.Errorf("another block: %.99s", got)
	}
}

// TestArchivedReady is not ready without its nodes.
func TestArchivedReady(t *testing.T) {
	missing := errors.New("no node")
	source := archived(t, unready{missing}, nil, archiveOf(t, testChain(), 0, 9))
	if err := source.Ready(); !errors.Is(err, missing) {
		t.Errorf("Ready() = %v, want %v", err, missing)
	}
}

type unready struct{ err error }

func (u unready) Block(context.Context, schema.Selector) (b upstream.Block, found bool, err error) {
	return b, false, u.err
}

func (u unready) Ready() error { return u.err }
