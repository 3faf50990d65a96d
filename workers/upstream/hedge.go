package upstream

import (
	"sync/atomic"
	"time"
)

const (
	// hedgeFloor is the least time after which another node is asked as well.
	hedgeFloor = 50 * time.Millisecond
	// hedgePrice is how many lookups pay for one that is asked of two nodes, so that at
	// most 5 % are: an outage must not be made worse by asking more.
	hedgePrice = 20
	// hedgeCredit is for how many of them at once.
	hedgeCredit = 5 * hedgePrice
)

// credit is what lookups have paid for hedges.
type credit struct{ spent atomic.Int64 }

// earn notes a lookup.
func (c *credit) earn() {
	if spent := c.spent.Load(); spent > 0 {
		c.spent.CompareAndSwap(spent, spent-1) // one that is lost among many does not matter
	}
}

// spend pays for a hedge, false when there is not enough.
func (c *credit) spend() bool {
	for {
		spent := c.spent.Load()
		if spent+hedgePrice > hedgeCredit {
			return false
		}
		if c.spent.CompareAndSwap(spent, spent+hedgePrice) {
			return true
		}
	}
}
