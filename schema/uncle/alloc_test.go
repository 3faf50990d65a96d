// Under the race detector sync.Pool drops values at random.
//go:build !race

package uncle

import (
	"testing"
)

func TestAppendAllocations(t *testing.T) {
	h, dst := mainnet0x299(), make([]byte, 0, SizeHint)
	// The encoding that is hashed, the buffer it comes from and the digits of two big integers.
	const budget = 4
	if n := testing.AllocsPerRun(100, func() { Append(dst, h) }); n > budget {
		t.Errorf("%v allocations, want at most %d", n, budget)
	}
}
