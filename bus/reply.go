package bus

import (
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/ommer/ommer/schema"
)

// receive runs on the goroutine of the link's reply subscription.
func (c *Client) receive(l *clientLink, m *nats.Msg) {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		c.missed(l, m)
		return
	}
	now := c.now()
	alone := !schema.IsBundle(m.Data)
	for frame := range schema.Frames(m.Data) {
		id, answer, err := schema.ParseReply(frame)
		if err != nil {
			c.unreadable.Add(1)
			continue
		}
		// Handing one answer on to another goroutine costs more than what is to be
		// made of it. Several are divided among those who are free.
		answer.Unhurried = alone
		s, i := c.slot(id)
		if v, ok := s.answered(i, uint32(id>>32), l, answer, now); ok {
			v.to.Answered(v.answer)
		}
	}
}

// slot finds the place that an id names; whether it is still in use the shard
// decides.
func (c *Client) slot(id uint64) (*shard, int32) {
	n := uint32(len(c.shards))
	return c.shards[uint32(id)%n], int32(uint32(id) / n)
}

// missed takes a 503: the server had nobody to deliver a question to.
func (c *Client) missed(l *clientLink, m *nats.Msg) {
	token := m.Subject[len(l.prefix):]
	if exact, ok := strings.CutPrefix(token, "x"); ok {
		raw, err := hex.DecodeString(exact)
		if err != nil || len(raw) != 8 {
			return
		}
		id := binary.BigEndian.Uint64(raw)
		s, i := c.slot(id)
		if v, ok := s.missedExactly(i, uint32(id>>32), l, c.now()); ok {
			v.to.Answered(v.answer)
		}
		return
	}
	ln := l.named(token)
	if ln == nil {
		return
	}
	// A worker that the server does not know has left it. Where it went it will say.
	c.fleet.shun(ln.peer, c.now())
	for _, at := range ln.blame() {
		c.shards[at.index%uint32(len(c.shards))].missedAt(ln, at, c.now())
		ln.confirm(at.seq)
	}
}
