// Under the race detector sync.Pool drops values at random.
//go:build !race

package workers

import (
	"context"
	"testing"
	"time"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream"
)

func TestHitAllocations(t *testing.T) {
	src := &script{block: func(context.Context, schema.Selector) (upstream.Block, bool, error) { return oneUncle(7), true, nil }}
	p := newPool(t, Config{Source: src, Shards: 1})
	q, deadline, to := schema.Question{Block: schema.BlockHash(schema.Hash{1})}, time.Now().Add(time.Hour), make(answered, 1)
	lookup(p, q, deadline)
	n := testing.AllocsPerRun(500, func() {
		p.Resolve(q, deadline, to)
		<-to
	})
	if n > 0 {
		t.Errorf("%v allocations per hit, want none", n)
	}
}
