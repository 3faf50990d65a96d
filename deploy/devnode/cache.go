package devnode

import (
	"sync"
	"sync/atomic"
)

// cache keeps answers until maxCache bytes are full, and then takes no more: blocks
// do not change, and a development chain mostly fits.
type cache struct {
	byNumber sync.Map // uint64 to *answers
	size     atomic.Int64
}

func (c *cache) get(n uint64) *answers {
	if a, ok := c.byNumber.Load(n); ok {
		return a.(*answers)
	}
	return nil
}

func (c *cache) put(n uint64, a *answers) {
	if c.size.Load() >= maxCache {
		return
	}
	if _, held := c.byNumber.LoadOrStore(n, a); !held {
		c.size.Add(a.size())
	}
}
