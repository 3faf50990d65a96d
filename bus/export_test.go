package bus

// Settled says whether the client knows that servers have routed all it sent.
func (c *Client) Settled() bool {
	for _, s := range c.shards {
		s.mu.Lock()
		for i := range s.lanes {
			if s.lanes[i].taken != s.lanes[i].sent {
				s.mu.Unlock()
				return false
			}
		}
		s.mu.Unlock()
	}
	return true
}

// ReplySubject is where the answers to shard 0 on the first link arrive.
func (c *Client) ReplySubject() string { return c.shards[0].lanes[0].reply }
