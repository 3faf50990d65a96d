package archive

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/big"
	"runtime"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// TestRefusedLayout alters a whole file in one place; Open must name what is wrong.
func TestRefusedLayout(t *testing.T) {
	const blocks = 5
	whole := small(blocks)
	index := len(whole) - 8*(blocks+2)
	put := func(at int, v uint64) func([]byte) []byte {
		return func(b []byte) []byte { binary.LittleEndian.PutUint64(b[at:], v); return b }
	}
	for _, c := range []struct {
		name  string
		alter func([]byte) []byte
		want  string
	}{
		{"empty", func([]byte) []byte { return nil }, "too short"},
		{"no version", func(b []byte) []byte { b[0] = 0x66; return b }, "no era1 file"},
		{"version with a value", func(b []byte) []byte { b[2] = 1; return b }, "version entry of 1 bytes"},
		{"reserved bytes", func(b []byte) []byte { b[7] = 1; return b }, "reserved"},
		{"half of it", func(b []byte) []byte { return b[:len(b)/2] }, "truncated"},
		{"last byte missing", func(b []byte) []byte { return b[:len(b)-1] }, "truncated"},
		{"a byte too many", func(b []byte) []byte { return append(b, 0) }, "blocks"},
		{"no blocks", put(len(whole)-8, 0), "count of 0 blocks"},
		{"too many blocks", put(len(whole)-8, MaxEra1Blocks+1), "count of 8193 blocks"},
		{"huge count", put(len(whole)-8, 1<<61+1), "count of"},
		{"more blocks than bytes", put(len(whole)-8, 8000), "too many for a file of"},
		{"one block less", put(len(whole)-8, blocks-1), "block index"},
		{"huge start", put(index, 1<<63), "first block is number"},
		{"positive offset", put(index+8, 8), "said to begin at"},
		{"offset before the file", put(index+8, 1<<63), "said to begin at"},
		{"last offset behind the blocks", put(index+8*blocks, 8), "said to begin at"},
		{"offset within the version", put(index+8, -uint64(index-8-4)), "said to begin at byte 4"},
		{"offset that overflows", put(index+8, 1<<63-1), "said to begin at"},
		{"offset of the version", put(index+8, -uint64(index-8)), "said to begin at byte 0"},
		{"offsets out of order", func(b []byte) []byte { copy(b[index+8:], b[index+24:index+32]); return b }, "block 1 is said to begin at"},
		{"no accumulator", func(b []byte) []byte { b[index-8-40] = 9; return b }, "want accumulator"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := inMemory(c.alter(bytes.Clone(whole)))
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v, want ErrDamaged with %q", e, err, c.want)
			}
		})
	}
}

// TestRefusedBlock builds files whose layout is right and whose blocks are not.
func TestRefusedBlock(t *testing.T) {
	body := func(b types.Body) []byte { return must[[]byte](t)(rlp.EncodeToBytes(&b)) }
	for _, c := range []struct {
		name  string
		build func(*builder, []*types.Header, [][]byte)
		want  string
	}{
		{"another uncle", func(w *builder, h []*types.Header, b [][]byte) {
			w.add(h[0], b[0])
			w.add(h[1], body(types.Body{Uncles: []*types.Header{{Number: new(big.Int), Difficulty: new(big.Int)}}}))
		}, "block 1: damaged history file: byte"},
		{"uncles left out", func(w *builder, h []*types.Header, b [][]byte) {
			w.add(h[0], b[0])
			w.add(h[1], b[1])
			w.add(h[2], b[1])
		}, "sha3Uncles"},
		{"a block twice", func(w *builder, h []*types.Header, b [][]byte) {
			w.add(h[0], b[0])
			w.add(h[0], b[0])
		}, "the header is of block 0"},
		{"a block from elsewhere", func(w *builder, h []*types.Header, b [][]byte) {
			w.add(h[0], b[0])
			h[1].ParentHash[0] ^= 1
			w.add(h[1], b[1])
		}, "the parent is"},
		{"a genesis with a parent", func(w *builder, h []*types.Header, b [][]byte) {
			h[0].ParentHash[0] ^= 1
			w.add(h[0], b[0])
		}, "the parent is"},
		{"total difficulty", func(w *builder, h []*types.Header, b [][]byte) {
			w.td.SetInt64(5)
			w.add(h[0], b[0])
		}, "total difficulty 105, want 100"},
		{"body without uncles", func(w *builder, h []*types.Header, b [][]byte) { w.add(h[0], []byte{0xc1, 0xc0}) }, "uncles"},
		{"body with withdrawals", func(w *builder, h []*types.Header, b [][]byte) {
			w.add(h[0], []byte{0xc3, 0xc0, 0xc0, 0xc0})
		}, "uncles"},
		{"two bodies", func(w *builder, h []*types.Header, b [][]byte) { w.add(h[0], append(b[0], b[0]...)) }, "more than one value"},
		{"body that inflates beyond the limit", func(w *builder, h []*types.Header, b [][]byte) {
			w.add(h[0], make([]byte, maxBody+1))
		}, "over 16777216 bytes"},
		{"header that inflates beyond the limit", func(w *builder, h []*types.Header, b [][]byte) {
			h[0].Extra = make([]byte, maxHeader)
			w.add(h[0], b[0])
		}, "over 65536 bytes"},
		{"entries in another order", func(w *builder, h []*types.Header, b [][]byte) {
			w.offsets = append(w.offsets, int64(w.Len()))
			w.packed(typeBody, b[0])
		}, "entry is body, want header"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w builder
			w.begin()
			headers, bodies := chain(3)
			c.build(&w, headers, bodies)
			if len(w.records) == 0 {
				w.records = make([]node, 1)
			}
			e := must[*Era1](t)(inMemory(w.finish(0)))
			if err := e.Verify(t.Context(), nil); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Verify: %v, want ErrDamaged with %q", err, c.want)
			}
		})
	}
}

// TestEveryAlteredByteIsSeen flips each byte of a small file: Open or Verify must
// refuse it, unless the blocks are the same: snappy can write one content in
// several ways. Receipts are the exception, since nothing here reads them.
func TestEveryAlteredByteIsSeen(t *testing.T) {
	whole := small(4)
	e := must[*Era1](t)(inMemory(whole))
	unread := make(map[int64]bool)
	for i := range e.Count() {
		b := &block{e: e, next: e.bounds[i], end: e.bounds[i+1]}
		v := must[span](t)(b.entry(typeReceipts))
		for at := v.off; at < v.end(); at++ {
			unread[at] = true
		}
	}
	content := func(e *Era1) (all []byte, err error) {
		err = e.Verify(t.Context(), func(b *Block) error {
			all = append(append(append(all, b.Hash[:]...), b.Transactions...), b.UncleList...)
			return nil
		})
		return append(all, e.accumulator[:]...), err
	}
	want := must[[]byte](t)(content(e))
	same := 0
	for at := range whole {
		if unread[int64(at)] {
			continue
		}
		altered := bytes.Clone(whole)
		altered[at] ^= 0x10
		e, err := inMemory(altered)
		var got []byte
		if err == nil {
			got, err = content(e)
		}
		switch {
		case err == nil && bytes.Equal(got, want):
			same++
		case !errors.Is(err, ErrDamaged):
			t.Errorf("byte %d altered: %v, want ErrDamaged", at, err)
		}
	}
	if same > len(whole)/20 {
		t.Errorf("%d of %d alterations changed nothing", same, len(whole))
	}
}

func TestEveryTruncationIsSeen(t *testing.T) {
	whole := small(4)
	for n := range whole {
		if e, err := inMemory(whole[:n]); !errors.Is(err, ErrDamaged) {
			t.Errorf("the first %d bytes: %v, %v, want ErrDamaged", n, e, err)
		}
	}
}

// hollow is a file of any size whose bytes are zero but for a few.
type hollow struct {
	size  int64
	parts map[int64][]byte
}

func (h hollow) ReadAt(b []byte, off int64) (int, error) {
	clear(b)
	for at, part := range h.parts {
		if at >= off && at+int64(len(part)) <= off+int64(len(b)) {
			copy(b[at-off:], part)
		}
	}
	if off+int64(len(b)) > h.size {
		return 0, io.EOF
	}
	return len(b), nil
}

// TestHostileLengthTakesNoMemory has an entry of 4 GiB in a file that is as large.
func TestHostileLengthTakesNoMemory(t *testing.T) {
	var w builder
	w.begin()
	w.entry(typeHeader, nil)
	binary.LittleEndian.PutUint32(w.Bytes()[10:], 1<<32-1)
	tail := builder{records: make([]node, 1)}
	accAt := int64(16 + 1<<32)
	tail.offsets = []int64{8 - accAt} // as if the tail were the file
	end := tail.finish(0)
	f := hollow{size: accAt + int64(len(end)), parts: map[int64][]byte{
		0: w.Bytes()[:8], 8: w.Bytes()[8:16], accAt: end[:8], accAt + 40: end[40:48], accAt + 48: end[48:72], accAt + 64: end[64:72],
	}}
	e := must[*Era1](t)(newEra1("hollow", f, f.size))

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := e.Block(0)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "4294967295 compressed bytes") {
		t.Errorf("got %v, want ErrDamaged", err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("%d bytes allocated for a block that is refused", got)
	}
}
