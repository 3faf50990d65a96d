package bus

import "github.com/ommer/ommer/schema"

// Settled says whether the client knows that servers have routed all it sent.
func (c *Client) Settled() bool {
	for _, l := range c.links {
		for _, m := range schema.Methods {
			ln := l.lanes[m]
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
	return c.links[0].lanes[schema.UncleByNumber].reply
}
