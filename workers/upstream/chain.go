package upstream

import (
	"fmt"
	"math/big"
	"strconv"
	"sync"
)

// chain is the chain that all nodes of a Set must serve: the configured one, or that
// of the first node that was reached.
type chain struct {
	mu sync.Mutex
	id uint64 // 0 until known
}

// errChain: the node is of another chain, so that nothing it says is of use.
var errChain = fmt.Errorf("%w", ErrUntrue)

// check compares a node's chain ID with that of the others.
func (c *chain) check(id *big.Int) error {
	if !id.IsUint64() || id.Sign() == 0 {
		return fmt.Errorf("%w: it serves chain %v, which is no chain ID", errChain, id)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.id == 0 {
		c.id = id.Uint64()
	}
	if c.id != id.Uint64() {
		return fmt.Errorf("%w: it serves chain %v, the chain here is %d", errChain, id, c.id)
	}
	return nil
}

// get returns the chain ID, false before it is known.
func (c *chain) get() (id uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id, c.id != 0
}

// String returns the chain ID in decimal.
func (c *chain) String() string {
	id, _ := c.get()
	return strconv.FormatUint(id, 10)
}
