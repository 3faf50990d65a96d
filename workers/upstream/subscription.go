package upstream

import (
	"context"
	"encoding/json"

	"github.com/ethereum/go-ethereum/rpc"
)

// subscription tells when a node has a new head. What the node says of it there is not
// looked at: it may leave out fields, and what proves the head and what goes with it
// takes a question anyway.
type subscription struct {
	heads chan struct{} // has a value when there was news since it was last read
	ended chan struct{} // closed with the connection, or the context
}

// subscribe subscribes to the heads of a node that is connected to by WebSocket, unless
// that was done. A node that knows no subscriptions is asked once per connection.
func (f *follower) subscribe(ctx context.Context) {
	if f.news != nil || f.node.http != nil {
		return
	}
	setup, cancel := context.WithTimeout(ctx, f.node.cfg.CallTimeout)
	defer cancel()
	client, err := f.node.connected(setup)
	if err != nil || client == f.mute {
		return
	}
	raw := make(chan json.RawMessage)
	sub, err := client.EthSubscribe(setup, raw, "newHeads")
	if err != nil {
		f.mute = client
		f.node.log.Debug("no subscription to new heads; the node is polled", "reason", f.node.scrub.callError(err))
		return
	}
	f.news = &subscription{heads: make(chan struct{}, 1), ended: make(chan struct{})}
	go f.news.read(ctx, sub, raw)
}

// read takes what comes at once: what is not taken go-ethereum's client keeps in memory.
func (s *subscription) read(ctx context.Context, sub *rpc.ClientSubscription, raw <-chan json.RawMessage) {
	defer close(s.ended)
	for {
		select {
		case <-raw:
			select {
			case s.heads <- struct{}{}:
			default: // there is news already
			}
		case <-sub.Err(): //nolint:errcheck // whatever the reason, it has ended
			return
		case <-ctx.Done():
			return // the connection is closed next
		}
	}
}
