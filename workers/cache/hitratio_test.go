package cache

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"
)

// A trace asks a cache and returns how many of the asks that count were hits.
type trace func(p policy) (hits, asks int)

// popularity draws keys by Zipf's law, with any exponent; rand.Zipf has those above 1.
type popularity struct {
	upTo []float64 // of the ranks up to this one
	keys []uint32  // by rank
	rand *rand.Rand
}

func zipf(keys int, exponent float64) *popularity {
	z := &popularity{rand: rand.New(rand.NewPCG(1, 2))}
	var sum float64
	for rank := range keys {
		sum += math.Pow(float64(rank+1), -exponent)
		z.upTo = append(z.upTo, sum)
		z.keys = append(z.keys, uint32(rank))
	}
	z.shuffle()
	return z
}

// shuffle gives every key another popularity.
func (z *popularity) shuffle() {
	z.rand.Shuffle(len(z.keys), func(i, j int) { z.keys[i], z.keys[j] = z.keys[j], z.keys[i] })
}

func (z *popularity) next() uint32 {
	x := z.rand.Float64() * z.upTo[len(z.upTo)-1]
	return z.keys[min(sort.SearchFloat64s(z.upTo, x), len(z.keys)-1)]
}

// ask asks n times.
func (z *popularity) ask(p policy, n int) (hits, asks int) {
	for range n {
		if p.hit(z.next()) {
			hits++
		}
	}
	return hits, n
}

// steady is what remains when the cache has filled.
func steady(keys int, exponent float64) trace {
	return func(p policy) (hits, asks int) {
		z := zipf(keys, exponent)
		z.ask(p, keys)
		return z.ask(p, keys)
	}
}

// shift is what follows on another popularity of all keys.
func shift(keys int) trace {
	return func(p policy) (hits, asks int) {
		z := zipf(keys, 1)
		z.ask(p, 2*keys)
		z.shuffle()
		return z.ask(p, keys/2)
	}
}

// scan has somebody walk over all keys, times asks for each, per ask of the others. With
// 0 the others wait until the scan is over.
func scan(keys, perAsk, times int) trace {
	return func(p policy) (hits, asks int) {
		z := zipf(keys, 1)
		z.ask(p, keys)
		for k := range keys {
			for range times {
				p.hit(uint32(k))
			}
			if perAsk > 0 && k%perAsk == 0 {
				h, n := z.ask(p, 1)
				hits, asks = hits+h, asks+n
			}
		}
		if perAsk == 0 {
			return z.ask(p, keys/25)
		}
		return hits, asks
	}
}

// BenchmarkHitRatio makes the table in the package comment.
func BenchmarkHitRatio(b *testing.B) {
	const keys = 1_300_000 // about the uncles of the main network
	for _, tr := range []struct {
		name string
		run  trace
	}{
		{"0", steady(keys, 0)}, {"0.8", steady(keys, 0.8)}, {"1", steady(keys, 1)}, {"1.2", steady(keys, 1.2)},
		{"shift", shift(keys)},
		{"scan-alone", scan(keys, 0, 1)}, {"scan-alone-x3", scan(keys, 0, 3)},
		{"10-scan-per-1-x3", scan(keys, 10, 3)},
	} {
		for _, of := range policies {
			b.Run(tr.name+"/"+of.name, func(b *testing.B) {
				for b.Loop() {
					hits, asks := tr.run(of.make(keys / 20))
					b.ReportMetric(100*float64(hits)/float64(asks), "%hits")
				}
			})
		}
	}
}

// TestHitRatio holds the policy to what it was chosen for: it is no worse than the
// others, whoever scans. LRU is better for a while when popularity shifts. The traces
// are the same in each run.
func TestHitRatio(t *testing.T) {
	const keys, slack = 40_000, 0.025
	for name, run := range map[string]trace{
		"0.8": steady(keys, 0.8), "1": steady(keys, 1), "1.2": steady(keys, 1.2), "shift": shift(keys),
		"scan": scan(keys, 0, 1), "scan x3": scan(keys, 0, 3), "scan 1 per 1": scan(keys, 1, 3), "scan 10 per 1": scan(keys, 10, 3),
	} {
		ratio := map[string]float64{}
		for _, of := range policies {
			hits, asks := run(of.make(keys / 20))
			ratio[of.name] = float64(hits) / float64(asks)
		}
		for other, r := range ratio {
			if got := ratio["S3-FIFO-here"]; got < r-slack {
				t.Errorf("%s: %.3f of the asks are hits, %.3f with %s", name, got, r, other)
			}
		}
		t.Logf("%-14s %v", name, ratio)
	}
}
