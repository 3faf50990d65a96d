package bus

import "github.com/ommer/ommer/schema"

// Settled says whether the client knows that servers have routed all it sent.
func (c *Client) Settled() bool {
	for _, l := range c.links {
		for _, ln := range l.all() {
			ln.mu.Lock()
			settled := ln.taken.Load() == ln.given
			ln.mu.Unlock()
			if !settled {
				return false
			}
		}
	}
	return true
}

// ReplySubject is where the answers to questions by number arrive on the first link.
func (c *Client) ReplySubject() string {
	return c.fleet.everyone.lanes[0][schema.UncleByNumber].reply
}

// Ranked are the names of the workers that the client chooses among.
func (c *Client) Ranked() (names []string) {
	for _, p := range c.fleet.ranking.Load().peers {
		names = append(names, p.name)
	}
	return names
}

// Known is how many workers the client remembers.
func (c *Client) Known() int {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	return len(c.fleet.peers)
}

// Epoch is what the client knows of a worker's epoch.
func (c *Client) Epoch(worker string) uint64 {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	if p := c.fleet.peers[worker]; p != nil {
		return p.load.Epoch
	}
	return 0
}

// Unanswered is how many questions are counted as with a worker.
func (c *Client) Unanswered() (n int64) {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	n = c.fleet.everyone.asked.Load()
	for _, p := range c.fleet.peers {
		n += p.asked.Load()
	}
	return n
}

// Lame says whether a link's server is known to be about to stop.
func (c *Client) Lame(link int) bool { return c.links[link].lame.Load() }
