package workers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream"
)

// TestStandingQuestionsAreRefused: a shard that takes a millisecond for each answer is
// asked for twice as much. Once that has gone on for a while, nobody waits for long, and
// the shard is as busy as before.
func TestStandingQuestionsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		wait    time.Duration
		asked   int
		refuses bool
	}{
		{"a burst", 5 * time.Millisecond, 90, false},
		{"a standing queue", 5 * time.Millisecond, 2000, true},
		{"without a bound", -1, 2000, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPool(t, Config{Shards: 1, MaxWait: c.wait, Source: &script{
					block: func(context.Context, schema.Selector) (upstream.Block, bool, error) { return oneUncle(7), true, nil },
				}})
				q := schema.Question{Block: schema.BlockHash(schema.Hash{7})}
				lookup(p, q, time.Time{}) // it is in the cache from now on
				answered, refused, longest := 0, 0, time.Duration(0)
				began := time.Now()
				for range c.asked {
					asked := time.Now()
					p.Resolve(q, time.Time{}, schema.ReceiverFunc(func(a schema.Answer) { // on the shard
						switch {
						case a.Err == nil:
							answered++
							if asked.Sub(began) > 300*time.Millisecond {
								longest = max(longest, time.Since(asked))
							}
							time.Sleep(time.Millisecond)
						case a.Err.Code == schema.Overloaded:
							refused++
						default:
							t.Error(a.Err)
						}
					}))
					time.Sleep(500 * time.Microsecond)
				}
				took := time.Since(began)
				time.Sleep(time.Minute)
				synctest.Wait()
				if answered+refused != c.asked || (refused > 0) != c.refuses {
					t.Fatalf("%d answered, %d refused of %d", answered, refused, c.asked)
				}
				if !c.refuses {
					return
				}
				if longest > 4*c.wait {
					t.Errorf("one waited for %v", longest)
				}
				if answered < int(took/time.Millisecond)-5 {
					t.Errorf("%d answered in %v: the shard was idle", answered, took)
				}
			})
		})
	}
}
