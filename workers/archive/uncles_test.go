package archive

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// uncles returns an uncles file of segments.
func uncles(tb testing.TB, segments ...*Segment) []byte {
	tb.Helper()
	var w memory
	if err := Write(context.Background(), &w, each(segments...)); err != nil {
		tb.Fatal(err)
	}
	return w.data
}

func each(segments ...*Segment) func(func(*Segment, error) bool) {
	return func(yield func(*Segment, error) bool) {
		for _, s := range segments {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// TestRealUncles asks for every block of 8192 of Sepolia, by number and by hash, and
// for those around them.
func TestRealUncles(t *testing.T) {
	e := must[*Era1](t)(Open(sepolia(t, sepolia21)))
	defer e.Close()
	path := write(t, "sepolia.uncles", uncles(t, must[*Segment](t)(e.Segment(t.Context()))))
	u := must[*Uncles](t)(OpenUncles(path))
	defer u.Close()
	if err := u.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	if id := u.Chain().ID; id != 11155111 || u.Blocks() != 8192 || u.Uncled() != 647 || u.Count() != 1273 {
		t.Errorf("chain %d, %d blocks, %d with %d uncles, want chain 11155111, 8192 blocks, 647 with 1273", id, u.Blocks(), u.Uncled(), u.Count())
	}
	for b, err := range e.Blocks() {
		if err != nil {
			t.Fatal(err)
		}
		n := b.Header.Number.Uint64()
		list, held, err := u.ByNumber(nil, n)
		if err != nil || !held || crypto.Keccak256Hash(list) != b.Header.UncleHash {
			t.Fatalf("block %d: %x %v %v, want what hashes to %v", n, list, held, err, b.Header.UncleHash)
		}
		list, held, err = u.ByHash(nil, b.Hash)
		if with := len(b.Uncles) > 0; err != nil || held != with || with && crypto.Keccak256Hash(list) != b.Header.UncleHash {
			t.Fatalf("block %v: %x %v %v, want %v", b.Hash, list, held, err, with)
		}
		for _, uncle := range b.Uncles { // whose hashes are no blocks'
			if list, held, err := u.ByHash(nil, uncle.Hash()); held || err != nil {
				t.Fatalf("uncle %v is taken for a block: %x %v", uncle.Hash(), list, err)
			}
		}
	}
	for _, n := range []uint64{0, 21*8192 - 1, 22 * 8192, 1 << 62, 1<<64 - 1} {
		if list, held, err := u.ByNumber(nil, n); held || err != nil || len(list) > 0 {
			t.Errorf("block %d, which is not covered: %x %v %v", n, list, held, err)
		}
	}
}

// TestRanges has segments that meet and segments that do not.
func TestRanges(t *testing.T) {
	whole := uncles(t, segment(t, 0, 59))
	if !bytes.Equal(whole, uncles(t, segment(t, 0, 7), segment(t, 8, 20), segment(t, 21, 59))) {
		t.Error("other segments of the same blocks give another file")
	}
	u := must[*Uncles](t)(newUncles("x", uncles(t, segment(t, 3, 9), segment(t, 20, 24), segment(t, 25, 30))))
	if got := u.Ranges(); len(got) != 2 || got[0].First != 3 || got[0].Last != 9 || got[1].First != 20 || got[1].Last != 30 {
		t.Errorf("ranges %v", got)
	}
	for n := range uint64(40) {
		want := n >= 3 && n <= 9 || n >= 20 && n <= 30
		list, held, err := u.ByNumber([]byte("x"), n)
		if held != want || u.Covers(n) != want || err != nil || held && (list[0] != 'x' || string(list[1:]) == emptyList != (n%3 != 2)) {
			t.Errorf("block %d: %x %v %v", n, list, held, err)
		}
	}
}

// askAll asks a file for blocks, by number and by hash.
func askAll(u *Uncles, blocks []Uncled) error {
	for _, b := range blocks {
		_, _, err1 := u.ByNumber(nil, b.Number)
		_, _, err2 := u.ByHash(nil, b.Hash)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
	}
	return nil
}

// TestEveryAlteredByteOfUnclesIsSeen flips each byte: opening refuses it and names the
// section where it is, or, in the lists, the lookup that meets it.
func TestEveryAlteredByteOfUnclesIsSeen(t *testing.T) {
	low, high := segment(t, 0, 29), segment(t, 40, 59)
	whole, blocks := uncles(t, low, high), slices.Concat(low.Uncled, high.Uncled)
	good := must[*Uncles](t)(newUncles("x", whole))
	if err := askAll(good, blocks); err != nil {
		t.Fatal(err)
	}
	for at := range whole {
		altered := bytes.Clone(whole)
		altered[at] ^= 1 << (at % 8)
		section := good.at.at(int64(at))
		u, err := newUncles("x", altered)
		if section == "lists" {
			if err != nil {
				t.Fatalf("byte %d: opening reads the lists: %v", at, err)
			}
			if err := askAll(u, blocks); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "lists: ") {
				t.Fatalf("byte %d: %v, want ErrDamaged in the lists", at, err)
			}
			err = u.Verify(t.Context())
		}
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), section+": ") {
			t.Fatalf("byte %d, of the %s: %v, want ErrDamaged that says so", at, section, err)
		}
	}
}

// TestEveryTruncationOfUnclesIsSeen cuts the file at each byte, and lengthens it.
func TestEveryTruncationOfUnclesIsSeen(t *testing.T) {
	whole := uncles(t, segment(t, 0, 59))
	good := must[*Uncles](t)(newUncles("x", whole))
	for n := range whole {
		u, err := newUncles("x", whole[:n])
		if !errors.Is(err, ErrDamaged) {
			t.Fatalf("the first %d bytes: %v, %v, want ErrDamaged", n, u, err)
		}
		if section := good.at.at(int64(n)); !strings.Contains(err.Error(), section+": ") {
			t.Fatalf("cut in the %s: %v", section, err)
		}
	}
	if _, err := newUncles("x", append(bytes.Clone(whole), 0)); !errors.Is(err, ErrDamaged) {
		t.Errorf("a byte too many: %v", err)
	}
}

// TestForgedUncles alters files and makes their checksums right again.
func TestForgedUncles(t *testing.T) {
	whole := uncles(t, segment(t, 0, 29), segment(t, 40, 59))
	good := must[*Uncles](t)(newUncles("x", whole))
	at := good.at
	put := func(off int64, v uint64) func([]byte) { return func(b []byte) { le.PutUint64(b[off:], v) } }
	for _, c := range []struct {
		name  string
		alter func([]byte)
		want  string
	}{
		{"version", func(b []byte) { b[8] = 2 }, "version 2"},
		{"reserved", func(b []byte) { b[13] = 1 }, "reserved"},
		{"no ranges", put(56, 0), "0 ranges"},
		{"ranges beyond the file", put(56, 1<<60), "ranges"},
		{"places beyond the file", put(64, 1<<63), "head: 9223372036854775808 places"},
		{"lists beyond the file", put(80, 1<<63), "head: lists of"},
		{"a place less", put(64, good.head.places-1), "its head says"},
		{"range ends before it begins", put(at.ranges+8, 1<<40), "ranges: "},
		{"ranges overlap", put(at.ranges+rangeSize, 29), "ranges: 29 to 59"},
		{"ranges touch", put(at.ranges+rangeSize, 30), "ranges: 30 to 59"},
		{"range beyond numbers", put(at.ranges+rangeSize+8, 1<<63), "ranges: 40 to"},
		{"place in no range", put(at.places+placeSize*9, 31), "in no range"},
		{"place behind the ranges", put(at.hashes-placeSize, 61), "in no range"},
		{"places out of order", put(at.places+placeSize, 1), "out of order"},
		{"first list not at the start", put(at.places+8, 1), "said to have its list"},
		{"list beyond the lists", put(at.hashes-8, good.head.lists), "said to have its list"},
		{"empty list", put(at.places+placeSize+8, listHead), "said to have its list"},
		{"hash of no place", put(at.lists-8, 1<<64-1), "of no place"},
		{"hashes out of order", put(at.hashes+8, 0), "out of order"},
	} {
		t.Run(c.name, func(t *testing.T) {
			forged := bytes.Clone(whole)
			c.alter(forged)
			seal(forged, at)
			u, err := newUncles("x", forged)
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v, want ErrDamaged with %q", u, err, c.want)
			}
		})
	}
	t.Run("another block's hash", func(t *testing.T) { // which only Verify can tell
		forged := bytes.Clone(whole)
		forged[at.hashes+7]--
		seal(forged, at)
		u := must[*Uncles](t)(newUncles("x", forged))
		if err := u.Verify(t.Context()); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "hashes: ") {
			t.Errorf("got %v, want ErrDamaged", err)
		}
	})
}

// seal makes the checksums of the sections right.
func seal(b []byte, at sections) {
	le.PutUint32(b[88:], checksum(b[at.ranges:at.places]))
	le.PutUint32(b[92:], checksum(b[at.places:at.hashes]))
	le.PutUint32(b[96:], checksum(b[at.hashes:at.lists]))
	le.PutUint32(b[140:], checksum(b[:140]))
}

// TestCutShortWhileOpen takes the end of a file away from under its mapping.
func TestCutShortWhileOpen(t *testing.T) {
	e := must[*Era1](t)(Open(sepolia(t, sepolia21)))
	defer e.Close()
	s := must[*Segment](t)(e.Segment(t.Context()))
	path := write(t, "x.uncles", uncles(t, s))
	u := must[*Uncles](t)(OpenUncles(path))
	defer u.Close()
	if err := os.Truncate(path, u.IndexSize()); err != nil {
		t.Fatal(err)
	}
	last := s.Uncled[len(s.Uncled)-1]
	for _, ask := range []func() error{
		func() error { _, _, err := u.ByNumber(nil, last.Number); return err },
		func() error { _, _, err := u.ByHash(nil, last.Hash); return err },
		func() error { return u.Verify(t.Context()) },
	} {
		if err := ask(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "cut short") {
			t.Errorf("got %v, want ErrDamaged", err)
		}
	}
	if list, held, err := u.ByNumber(nil, s.First); err != nil || !held { // which has none
		t.Errorf("what is left of the file: %x %v %v", list, held, err)
	}
}

func TestUnclesReadersAgree(t *testing.T) {
	s := segment(t, 0, 59)
	u := must[*Uncles](t)(newUncles("x", uncles(t, s)))
	var wg sync.WaitGroup
	for g := range uint64(4) {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(g, g))
			var buf []byte
			for range 2000 {
				b := s.Uncled[random.IntN(len(s.Uncled))]
				for _, ask := range []func() ([]byte, bool, error){
					func() ([]byte, bool, error) { return u.ByNumber(buf[:0], b.Number) },
					func() ([]byte, bool, error) { return u.ByHash(buf[:0], b.Hash) },
				} {
					list, held, err := ask()
					if err != nil || !held || !bytes.Equal(list, b.List) {
						t.Errorf("block %d: %x %v %v, want %x", b.Number, list, held, err, b.List)
						return
					}
					buf = list
				}
			}
		})
	}
	wg.Wait()
}

// TestHashesThatBeginAlike has blocks that the hashes section cannot tell apart.
func TestHashesThatBeginAlike(t *testing.T) {
	s := segment(t, 0, 59)
	for i := range s.Uncled {
		copy(s.Uncled[i].Hash[:], "same")
	}
	u := must[*Uncles](t)(newUncles("x", uncles(t, s)))
	for _, b := range s.Uncled {
		if list, held, err := u.ByHash(nil, b.Hash); err != nil || !held || !bytes.Equal(list, b.List) {
			t.Errorf("%v: %x %v %v", b.Hash, list, held, err)
		}
		b.Hash[31] ^= 1
		if _, held, err := u.ByHash(nil, b.Hash); err != nil || held {
			t.Errorf("%v: %v %v", b.Hash, held, err)
		}
	}
	if err := u.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLookupsDoNotAllocate(t *testing.T) {
	s := segment(t, 0, 59)
	u := must[*Uncles](t)(newUncles("x", uncles(t, s)))
	buf := make([]byte, 0, 4096)
	b := s.Uncled[3]
	if n := testing.AllocsPerRun(100, func() {
		_, _, _ = u.ByNumber(buf, b.Number)
		_, _, _ = u.ByHash(buf, b.Hash)
		_, _, _ = u.ByHash(buf, common.Hash{})
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
