package upstream

import (
	"math"
	"sync"
	"time"
)

// decaying is a sum of which half is left after some time.
type decaying struct {
	sum  float64
	last time.Time
}

func (d *decaying) add(now time.Time, half time.Duration) {
	d.sum, d.last = d.at(now, half)+1, now
}

func (d *decaying) at(now time.Time, half time.Duration) float64 {
	return d.sum * math.Exp2(-float64(now.Sub(d.last))/float64(half))
}

// pace is how quick a node is.
type pace struct {
	mu     sync.Mutex
	mean   float64 // in ns
	last   time.Time
	counts [paceBuckets]float64 // of round trips by their time
	faded  time.Time

	least, before time.Duration // the shortest of this while and of the one before; 0: none
	turned        time.Time
}

const (
	// paceHalf is after which time what was measured counts for half. It is also how
	// a node that was slow and is asked no more is tried again in time.
	paceHalf = 5 * time.Second
	// The buckets grow by a quarter each, from 100 us to more than a minute.
	paceBuckets = 64
	firstPace   = 100 * time.Microsecond
	pacesEach   = 1.25
	// leastPaces is how many round trips tell something of the slowest.
	leastPaces = 20
)

// took notes the time of a round trip. A longer one counts at once, shorter ones in time:
// to find out late that a node has become slow costs more than to find out late that it
// is quick again (the peak EWMA of Finagle's load balancer). Without an answer the time
// says nothing of how long answers take.
func (p *pace) took(now time.Time, d time.Duration, answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if weight := math.Exp2(-float64(now.Sub(p.last)) / float64(paceHalf)); float64(d) > p.mean {
		p.mean = float64(d)
	} else {
		p.mean = p.mean*weight + float64(d)*(1-weight)
	}
	p.last = now
	if !answered {
		return
	}
	if now.Sub(p.turned) > leastFor {
		p.before, p.least, p.turned = p.least, 0, now
	}
	if p.least == 0 || d < p.least {
		p.least = d
	}
	if fade := now.Sub(p.faded); fade > paceHalf/4 {
		left := math.Exp2(-float64(fade) / float64(4*paceHalf))
		for i := range p.counts {
			p.counts[i] *= left
		}
		p.faded = now
	}
	i := 0
	if d > firstPace {
		i = min(int(math.Ceil(math.Log(float64(d)/float64(firstPace))/math.Log(pacesEach))), paceBuckets-1)
	}
	p.counts[i]++
}

// cost is the mean time in ns, and less the longer ago it was measured.
func (p *pace) cost(now time.Time) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mean * math.Exp2(-float64(now.Sub(p.last))/float64(paceHalf))
}

// best is the time of the quickest round trip of late, 0 when none is known: that of a node
// that has nothing else to do.
func (p *pace) best() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.before > 0 && (p.least == 0 || p.before < p.least) {
		return p.before
	}
	return p.least
}

// leastFor is how long the quickest round trip counts, at least.
const leastFor = 15 * time.Second

// slowest is the time in which 99 % of the round trips ended, false when there were too
// few.
func (p *pace) slowest() (time.Duration, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	total := 0.0
	for _, n := range p.counts {
		total += n
	}
	if total < leastPaces {
		return 0, false
	}
	sum, bound := 0.0, float64(firstPace)
	for _, n := range p.counts {
		if sum += n; sum >= 0.99*total {
			break
		}
		bound *= pacesEach
	}
	return time.Duration(bound), true
}
