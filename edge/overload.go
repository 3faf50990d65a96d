package edge

import (
	"context"
	"sync"
	"time"

	"github.com/ommer/ommer/edge/nio"
	"github.com/ommer/ommer/edge/overload"
)

// action is something that is shed, as metrics count it.
type action int

// The actions. Connections that are refused are counted by package nio.
const (
	shedKeepAlive action = iota // an HTTP connection ended with an answer
	shedIdle                    // an idle one ended
	shedRequest                 // an HTTP request or the opening of a WebSocket was refused
	shedMessage                 // a message of a WebSocket was refused
)

var shedNames = [...]string{shedKeepAlive: "keep_alive", shedIdle: "idle", shedRequest: "request", shedMessage: "message"}

// newMonitor returns what decides how much is shed. Whatever a session has to do comes
// through a poller or the pool.
func (n *node) newMonitor() (*overload.Monitor, error) {
	return overload.New(overload.Config{
		Limits: n.cfg.Overload, Logger: n.log, Registerer: n.cfg.Registerer,
		Lanes: []overload.Lane{
			{Name: "pollers", Mark: n.loop.Ping},
			{Name: "pool", Mark: func(arrived func()) { n.pool.Submit(mark(arrived)) }},
		},
		Changed: func(s overload.Stage) { n.loop.Refuse(s >= overload.RefuseConns) },
	})
}

// mark is what runs in the pool when its turn has come.
type mark func()

func (m mark) Run() { m() }

// watch runs the monitor until stop is called.
func (n *node) watch(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // also while draining
	var watching sync.WaitGroup
	watching.Go(func() { n.overload.Run(ctx) })
	return func() {
		cancel()
		watching.Wait()
	}
}

// Overloaded is nil while new connections are served.
func (n *Node) Overloaded() error { return n.overload.Err() }

// sheds says whether what belongs to a stage is to be shed now, and counts it then.
// While nothing is, it costs one atomic load.
func (n *node) sheds(from overload.Stage, what action) bool {
	if n.overload.Stage() < from {
		return false
	}
	n.metrics.shed[what].Inc()
	return true
}

// What closeIdle does each second: it ends the part of all connections, and none that
// was idle for less than the part of its time-out. One in use leaves with its next
// answer; to end it here would cost a client a request that it may be about to send.
const (
	idleShare = 16
	idleMin   = 8
)

// closeIdle has the connections end that have waited longest for a request, if
// connections are not kept alive. Which these are is known to a part in ages of the
// time-out, so that it takes no list of a million.
func (n *node) closeIdle() {
	if n.overload.Stage() < overload.NoKeepAlive {
		return
	}
	whole := n.cfg.Timeouts.Idle
	age := func(left time.Duration) int {
		return min(int((whole-min(left, whole))*ages/whole), ages-1)
	}
	var count [ages]int
	n.loop.EachTimed(func(c *nio.Conn, left time.Duration) {
		if c.Handler().(*session).idle.Load() {
			count[age(left)]++
		}
	})
	room := max(int(n.open.Load())/idleShare, idleShare)
	oldest := leavingAge(&count, room)
	n.loop.EachTimed(func(c *nio.Conn, left time.Duration) {
		if s := c.Handler().(*session); room > 0 && age(left) >= oldest && s.idle.Load() {
			room--
			s.signal(sigSpare)
		}
	})
}

// ages is how many ages closeIdle tells apart.
const ages = 64

// leavingAge is from which age on connections leave, as far as there is room: ages
// when none may.
func leavingAge(count *[ages]int, room int) int {
	age := ages
	for sum := 0; age > ages/idleMin && sum < room; {
		age--
		sum += count[age]
	}
	return age
}

// spare ends the session if it waits for a request.
func (s *session) spare(w *scratch) {
	if s.phase == speaksHTTP && s.timer == timerIdle && !s.readable && s.queued == 0 && (s.partial == nil || s.partial.http.idle()) {
		s.node.metrics.shed[shedIdle].Inc()
		s.goodbye(w, errSpared)
	}
}
