package schematest

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ommer/ommer/schema"
)

// Offered is what came of questions that were asked on a schedule.
type Offered struct {
	Asked, OK, Overloaded, Failed int
	Goodput                       float64 // OK per second
	P50, P99                      time.Duration
}

func (o Offered) String() string {
	return fmt.Sprintf("%d asked, %d ok, %d overloaded, %d failed: %.0f ok/s, p50 %v, p99 %v",
		o.Asked, o.OK, o.Overloaded, o.Failed, o.Goodput, o.P50.Round(10*time.Microsecond), o.P99.Round(10*time.Microsecond))
}

// Offer asks at a rate per second for some time, whether there are answers or not, and
// waits for all of them. The latency of a question counts from when it was due. What is
// asked in the first half only sets the scene.
func Offer(r schema.Resolver, question func(i int) schema.Question, rate float64, lasts time.Duration) (o Offered) {
	n := int(rate * lasts.Seconds())
	took := make([]time.Duration, n) // 0: no result
	var overloaded, failed atomic.Int64
	var all sync.WaitGroup
	all.Add(n)
	began := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for next := 0; next < n; {
		now := <-tick.C
		due := min(n, int(now.Sub(began).Seconds()*rate))
		for i := next; i < due; i++ {
			at := began.Add(time.Duration(float64(i) / rate * float64(time.Second)))
			r.Resolve(question(i), now.Add(10*time.Second), schema.ReceiverFunc(func(a schema.Answer) {
				defer all.Done()
				switch {
				case i < n/2:
				case a.Err == nil:
					took[i] = time.Since(at)
				case a.Err.Code == schema.Overloaded:
					overloaded.Add(1)
				default:
					failed.Add(1)
				}
			}))
		}
		next = max(next, due)
	}
	all.Wait()
	took = slices.DeleteFunc(took[n/2:], func(d time.Duration) bool { return d == 0 })
	o = Offered{Asked: n - n/2, OK: len(took), Overloaded: int(overloaded.Load()), Failed: int(failed.Load())}
	o.Goodput = float64(o.OK) / (lasts.Seconds() / 2)
	if len(took) > 0 {
		slices.Sort(took)
		o.P50, o.P99 = took[len(took)/2], took[len(took)*99/100]
	}
	return o
}

// Capacity is how many questions per second are answered while a number of them are
// always unanswered.
func Capacity(r schema.Resolver, question func(i int) schema.Question, inFlight int, lasts time.Duration) float64 {
	var next, answered atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range inFlight {
		all.Go(func() {
			done := make(chan schema.Answer, 1)
			for time.Since(began) < lasts {
				r.Resolve(question(int(next.Add(1))), time.Time{}, schema.ReceiverFunc(func(a schema.Answer) { done <- a }))
				if a := <-done; a.Err == nil {
					answered.Add(1)
				}
			}
		})
	}
	all.Wait()
	return float64(answered.Load()) / time.Since(began).Seconds()
}
