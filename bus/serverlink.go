package bus

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// moveTimeout bounds each step in giving a link up. What is not done by then is
	// lost with the connection, and asked again.
	moveTimeout = 5 * time.Second
	// forceInterval is the least time between two connections of one link that are
	// given up as mute.
	forceInterval = 2 * time.Second
)

// serverLink is one of a Server's links and what the Server has there.
type serverLink struct {
	*Link
	number int

	// The link is not used for answers while it has lost fewer connections than back.
	// So the order of events does not matter when a connection is given up: the next
	// one is used, whoever ended the last.
	back    atomic.Uint64
	lame    atomic.Uint64 // losses+1 when its server said that it is about to stop
	carried atomic.Bool   // an answer went over this connection
	heard   atomic.Int64  // unix ns when the worker last heard itself here

	words chan []byte // the newest announcement that was not yet published

	// Guarded by Server.mu.
	subs    []*subscription
	dropped int       // by the subscriptions that were taken
	seen    uint64    // losses that were dealt with
	busy    bool      // being given up
	forced  time.Time // when it was last given up as mute
}

// subscription is a NATS subscription whose end can be waited for.
type subscription struct {
	*nats.Subscription
	kind kind
	gone chan struct{}
}

// kind is what a subscription is for.
type kind uint8

const (
	shared kind = iota // the questions for any worker, on each link
	own                // what is for this worker alone, on one link at a time
	ear                // the worker's own announcements, on each link
)

// usable says whether answers may go over the link.
func (l *serverLink) usable() bool { return l.Up() && l.losses.Load() >= l.back.Load() }

// lamed says whether the link's server is about to stop.
func (l *serverLink) lamed() bool { return l.lame.Load() == l.losses.Load()+1 }

// avoid keeps answers off the link until it has another connection.
func (l *serverLink) avoid() { l.back.Store(l.losses.Load() + 1) }

// renew gives the connection up, unless it is lost already: the link goes to another
// server. Nothing that was carried is taken for lost with it.
func (l *serverLink) renew() {
	l.carried.Store(false)
	if l.losses.Load() < l.back.Load() {
		l.Link.renew()
	}
}

// leastBytes is what a message counts for at least in what waits: an empty one takes
// memory as well.
const leastBytes = 64

// subscribe adds a subscription, with a bound in bytes on what waits in it.
func (l *serverLink) subscribe(k kind, subject, group string, backlog int, f nats.MsgHandler) error {
	sub, err := l.nc.QueueSubscribe(subject, group, f) // an empty group is none
	if err != nil {
		return err
	}
	gone := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(gone) })
	l.subs = append(l.subs, &subscription{Subscription: sub, kind: k, gone: gone})
	return sub.SetPendingLimits(backlog/leastBytes, backlog)
}

// has says whether there is a subscription of a kind. Server.mu is held.
func (l *serverLink) has(k kind) bool {
	return slices.ContainsFunc(l.subs, func(s *subscription) bool { return s.kind == k })
}

// take removes the subscriptions of some kinds from those that the link has, for the
// caller to end. Server.mu is held.
func (l *serverLink) take(kinds ...kind) (taken []*subscription) {
	l.subs = slices.DeleteFunc(l.subs, func(s *subscription) bool {
		if !slices.Contains(kinds, s.kind) {
			return false
		}
		n, _ := s.Dropped() // an error means that it was closed
		l.dropped += n
		taken = append(taken, s)
		return true
	})
	return taken
}

// untilLost is ctx, and ends as well when the link loses its connection.
func (l *serverLink) untilLost(ctx context.Context) (context.Context, context.CancelFunc) {
	alive, lost := context.WithCancel(ctx)
	unwatch := l.Watch(func(up bool) {
		if !up {
			lost()
		}
	})
	if !l.Up() {
		lost()
	}
	return alive, func() { unwatch(); lost() }
}

// drain ends subscriptions once everything that was on its way to them has been taken,
// or at once when alive ends. With the connection lost nothing is on its way.
func drain(alive context.Context, subs []*subscription) {
	for _, sub := range subs {
		// An error here and below means that the connection was closed, and the
		// subscription with it.
		_ = sub.Drain()
	}
	for _, sub := range subs {
		select {
		case <-sub.gone:
		case <-alive.Done():
			_ = sub.Unsubscribe()
			<-sub.gone
		}
	}
}

// drop ends subscriptions without waiting for what is on its way to them.
func drop(subs []*subscription) {
	for _, sub := range subs {
		_ = sub.Unsubscribe() // an error means that it is gone already
	}
}

// say has an announcement published, in place of one that still waits. One goroutine
// calls it at a time.
func (l *serverLink) say(b []byte) {
	select {
	case <-l.words:
	default:
	}
	l.words <- b
}

// speak publishes announcements until there are no more. It has a goroutine of its own
// because a socket that stalls holds up who publishes, and the other links must not be.
func (l *serverLink) speak(subject string) {
	for b := range l.words {
		if l.Up() { // held for the next connection it would be old news
			_ = l.nc.Publish(subject, b) // an error means that the connection is lost
		}
	}
}
