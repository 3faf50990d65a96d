package devnode

import (
	"bytes"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rlp"
)

// FuzzExport reads exports: blocks that are accepted encode to the bytes that they
// were read from, are linked, and are found by their hashes.
func FuzzExport(f *testing.F) {
	blocks := sampleBlocks(f)
	f.Add(blocks[0])
	f.Add(bytes.Join(blocks[10:12], nil))
	f.Add(slices.Concat(blocks[61], blocks[62][:50]))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &chain{numbers: make(map[common.Hash]uint64)}
		l := loader{chain: c, left: 1 << 20}
		s, err := l.export("fuzz", bytes.NewReader(data))
		if err != nil || bytes.HasPrefix(data, []byte(magicGzip)) {
			return
		}
		var again []byte
		parent := s.parent
		for n := s.first; n <= s.last; n++ {
			b, err := s.blocks.block(n)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := rlp.EncodeToBytes(b)
			if err != nil {
				t.Fatal(err)
			}
			again = append(again, raw...)
			if b.ParentHash() != parent || c.numbers[b.Hash()] != n {
				t.Errorf("block %d: parent %v, want %v; known as %d", n, b.ParentHash(), parent, c.numbers[b.Hash()])
			}
			parent = b.Hash()
		}
		if !bytes.Equal(again, data) {
			t.Errorf("read    %x\nencodes %x", data, again)
		}
	})
}
