package upstream

import (
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/ommer/ommer/schema"
)

// Window is how many blocks a View holds at most. Ethereum makes blocks final when they
// are 64 to 95 deep, and no chain that has uncles was ever seen to go back further.
const Window = 256

// Placed is a verified block and the place where it stands.
type Placed struct {
	Block
	Hash   schema.Hash
	Number uint64
}

// Uncled reports whether the block has uncles.
func (p *Placed) Uncled() bool { return p.Header.UncleHash != types.EmptyUncleHash }

// place is where a block that came from a node stands.
func place(b Block) *Placed {
	return &Placed{Block: b, Hash: schema.Hash(b.Header.Hash()), Number: b.Header.Number.Uint64()}
}

func (p *Placed) parent() schema.Hash { return schema.Hash(p.Header.ParentHash) }

// View is the canonical chain near its head at one moment, as far as it is known: a row
// of blocks that follow one another by their parents' hashes, and those that the tags
// name. It does not change, so that whoever asks it twice is told the same.
type View struct {
	blocks     [Window]*Placed // by number modulo Window; true from first to tip
	first, tip uint64

	safe, finalized *Placed // nil: none
	depth           uint64  // Config.Finality

	reorgs, displaced uint64 // so far; blocks that the last one has displaced
}

// At returns the block that s selects, nil where the View cannot say. By hash it is a
// search, not for the hot path.
func (v *View) At(s schema.Selector) *Placed {
	switch s.Kind() {
	case schema.ByNumber:
		return v.at(s.Number())
	case schema.ByHash:
		return v.named(s.Hash())
	}
	switch s.Tag() {
	case schema.Latest:
		return v.at(v.tip)
	case schema.Safe:
		return v.safe
	case schema.Finalized:
		return v.finalized
	}
	return nil
}

func (v *View) at(number uint64) *Placed {
	if number < v.first || number > v.tip {
		return nil
	}
	return v.blocks[number%Window]
}

func (v *View) named(hash schema.Hash) *Placed {
	for number := v.first; number <= v.tip; number++ {
		if p := v.at(number); p.Hash == hash {
			return p
		}
	}
	for _, p := range []*Placed{v.safe, v.finalized} {
		if p != nil && p.Hash == hash {
			return p
		}
	}
	return nil
}

// Final reports whether the block at a number will stay there: it is at or below the
// finalized one, or as deep as the operator has said is enough.
func (v *View) Final(number uint64) bool {
	return v.finalized != nil && number <= v.finalized.Number ||
		v.depth > 0 && v.tip >= v.depth && number <= v.tip-v.depth
}

// Latest is the number of the head.
func (v *View) Latest() uint64 { return v.tip }

// Safe is the number of the safe block, false when there is none.
func (v *View) Safe() (uint64, bool) { return numberOf(v.safe) }

// Finalized is the number of the finalized block, false when there is none.
func (v *View) Finalized() (uint64, bool) { return numberOf(v.finalized) }

// Reorgs is how many times blocks were displaced by others since the Set was made, and how
// many the last time.
func (v *View) Reorgs() (times, displaced uint64) { return v.reorgs, v.displaced }

func numberOf(p *Placed) (uint64, bool) {
	if p == nil {
		return 0, false
	}
	return p.Number, true
}

// holds reports whether a block is where it is said to be.
func (v *View) holds(number uint64, hash schema.Hash) bool {
	p := v.at(number)
	return p != nil && p.Hash == hash
}

// with returns a View whose head is that of a branch, which is given from its head down.
// Where it is joined, its lowest block's parent is in v and what v has from there on is
// displaced; else nothing of v's row is left. A nil v is an empty one.
func (v *View) with(branch []*Placed, joined bool) *View {
	lowest := branch[len(branch)-1].Number
	next := &View{first: lowest}
	switch {
	case joined:
		*next = *v
	case v != nil: // whether the safe block still is cannot be seen
		next.finalized, next.depth, next.reorgs, next.displaced = v.finalized, v.depth, v.reorgs, v.displaced
	}
	for _, p := range branch[:min(len(branch), Window)] {
		next.blocks[p.Number%Window] = p
	}
	next.tip = branch[0].Number
	if next.tip >= Window {
		next.first = max(next.first, next.tip-Window+1)
	}
	next.settle()
	return next
}

// cut returns a View whose head is a block below that of v.
func (v *View) cut(tip uint64) *View {
	next := *v
	next.tip = tip
	next.settle()
	return &next
}

// settle forgets what the tags named and is no longer canonical.
func (v *View) settle() {
	for _, p := range []**Placed{&v.safe, &v.finalized} {
		if *p != nil && v.displaces(*p) {
			*p = nil
		}
	}
}

// displaces reports whether the row shows that a block does not stand in the chain.
func (v *View) displaces(p *Placed) bool {
	at := v.at(p.Number)
	return p.Number > v.tip || at != nil && at.Hash != p.Hash
}

// tagged returns a View in which a tag names a block, or v itself where that is not
// so or would take the tag back.
func (v *View) tagged(t schema.Tag, p *Placed) *View {
	if v.displaces(p) {
		return v
	}
	if old := v.At(schema.Tagged(t)); old != nil && p.Number <= old.Number {
		return v
	}
	next := *v
	if t == schema.Safe {
		next.safe = p
	} else {
		next.finalized = p
	}
	return &next
}
