package bus

import "time"

// A hedge is a second copy of a question that its worker takes long for, sent to
// another one (Dean and Barroso, The Tail at Scale, 2013). So that an outage is not
// made worse by it, hedges are paid for: each question adds to the credit of its shard,
// and a hedge takes as much as hedgePrice questions add.
const (
	// hedgePrice makes hedges at most 5 % of the questions.
	hedgePrice = 20
	// hedgeCredit is for how many of them at once, in a shard.
	hedgeCredit = 4 * hedgePrice
	// hedgeFloor is the least time after which a question is hedged. Above it it is
	// the time in which 99 % of the last second's answers came.
	hedgeFloor = 50 * time.Millisecond
	// hedgeSample is how many answers that needs.
	hedgeSample = 100
)

// measure finds out in which time 99 % of the answers came since the last time, rounded
// up to one of the bounds that times are counted by.
func (c *Client) measure() {
	var now, since [buckets + 1]uint64
	total := uint64(0)
	for _, s := range c.shards {
		s.mu.Lock()
		for i, n := range s.counts.seconds {
			now[i] += n
		}
		s.mu.Unlock()
	}
	for i, n := range now {
		since[i] = n - c.seconds[i]
		total += since[i]
	}
	if total < hedgeSample {
		return // and add the next second
	}
	c.seconds = now
	least, n := total-total/100, uint64(0)
	for i := range since {
		if n += since[i]; n >= least {
			c.hedgeAfter.Store(max(int64(hedgeFloor), int64(firstBucket)<<i))
			return
		}
	}
}

// hedgePause is how long an ask that is being sent waits for its answer before it is
// hedged. After that it waits as long again as it has waited in all: whatever was lost,
// and why ever, is asked again in time.
func (s *shard) hedgePause(a *ask, now int64) int64 {
	pause := s.c.hedgeAfter.Load()
	if a.hedged {
		pause = max(pause, now-a.asked)
	}
	return pause
}

// hedge asks another worker as well, if there is one and that is not too much.
func (s *shard) hedge(i int32, a *ask, now int64) {
	other := s.c.fleet.ranking.Load().pick(a.question.Block, a.lane.peer, now)
	if other == nil || s.credit < hedgePrice {
		// Later there may be. The pauses grow, so that an outage costs little.
		s.wheel.set(&s.table, i, min(a.due, now+max(now-a.sent, int64(hedgeFloor))), false)
		return
	}
	s.credit -= hedgePrice
	s.counts.retries[retrySlow]++
	a.lane.peer.sample(now - a.sent) // it takes that long at least
	s.endHedge(a)
	a.slow, a.not, a.lane, a.hedged = a.lane.peer, a.lane.peer, nil, true
	s.send(i, a, now, false)
}
