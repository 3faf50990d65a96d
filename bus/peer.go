package bus

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ommer/ommer/schema"
)

// peer is a worker as a client sees it, or all of them: the queue group.
type peer struct {
	name  string // empty for the queue group
	seed  uint64 // of its name, for the ranking
	lanes []methodLanes

	sent    atomic.Uint64 // questions, those that were asked again included
	asked   atomic.Int64  // questions of this client that it has not answered
	others  atomic.Int64  // what it has in flight besides, as far as it says
	took    atomic.Int64  // ns it takes, see sample
	paths   []path        // by link
	shunned atomic.Int64  // until then, ns since the client's start: it has refused, or is gone
	_       [64]byte      // the next peer's counts are on another cache line

	// What follows is touched under the fleet's mutex.
	load    Load
	heard   int64     // when it last said something, from its home or not, ns since the client's start
	ready   bool      // it was askable when the ranking was made
	zone    string    // as it was then
	silent  bool      // nothing comes from its home: only fleet.look says so, and asks others what it was asked
	logged  time.Time // when it was last logged that a path to it is dead; the watcher's own
	decayed int64     // when took was last made smaller
}

// path is the way to a worker over one link, through as many NATS servers as it takes.
type path struct {
	heard atomic.Int64 // when something came from its home that way, ns since the client's start
	dead  atomic.Bool  // nothing does any more, while it does another way

	// What the home said last that way. Under the fleet's mutex.
	instance string // empty after the link was connected anew
	epoch    uint64
}

// leads says whether questions get to the worker over a link.
func (p *peer) leads(l *clientLink) bool { return len(p.paths) == 0 || !p.paths[l.number].dead.Load() }

// askable says whether the worker can be asked itself. The fleet's mutex is held.
func (p *peer) askable() bool { return p.load.State == Ready && !p.silent }

// reached is when something last came from the worker's home, on any link.
func (p *peer) reached() (at int64) {
	for i := range p.paths {
		at = max(at, p.paths[i].heard.Load())
	}
	return at
}

// methodLanes are the lanes of one link, by method.
type methodLanes [len(schema.Methods) + 1]*lane

// newPeer makes a peer with its lanes. Their reply subjects are unlike those of all
// others that this client ever had, so that a 503 means the lane that it names.
func (c *Client) newPeer(name string, number uint64) *peer {
	p := &peer{name: name, seed: seedOf(name)}
	if name != "" {
		p.paths = make([]path, len(c.links))
	}
	for _, l := range c.links {
		var lanes methodLanes
		for _, m := range schema.Methods {
			subject, token := questionSubject(c.network, m), m.String()
			if name != "" {
				subject = directSubject(name, c.network, m)
				token = "w" + strconv.FormatUint(number, 36) + "m" + strconv.Itoa(int(m))
			}
			lanes[m] = &lane{link: l, peer: p, subject: subject, reply: l.prefix + token, token: token, limit: c.laneLimit}
		}
		p.lanes = append(p.lanes, lanes)
		l.join(lanes)
	}
	return p
}

// forget takes the peer's lanes back. Nothing that it was asked is unanswered.
func (c *Client) forget(p *peer) {
	for i, l := range c.links {
		l.part(p.lanes[i])
	}
}

const (
	// affinity is how many times dearer the first of a block's two workers may be
	// than the second before that one is asked: the first has the block in its cache.
	affinity = 2
	// slack is how many questions more make no difference, so that what one loop
	// turn brings together is not torn apart.
	slack = 8
	// quick is a time below which workers are equally fast.
	quick = 5 * time.Millisecond
	// sampleWeight is the part of one more sample in the mean, and halfLife how fast a
	// mean that gets none is forgotten. Together they bound what a slow worker gets
	// that is tried again and again: a few questions in each halfLife.
	sampleWeight = 8
	halfLife     = 4 * time.Second
)

// sample notes how long the worker took for a question.
func (p *peer) sample(took int64) {
	old := p.took.Load()
	p.took.Store(old + (took-old)/sampleWeight) // another's sample may get lost
}

// decay makes the mean smaller as time passes.
func (p *peer) decay(now int64) {
	for ; now-p.decayed >= int64(halfLife/8); p.decayed += int64(halfLife / 8) {
		took := p.took.Load()
		p.took.Store(took - took/12) // 2^(-1/8)
	}
}

// cost is what a further question costs there: the expected wait, as a number to
// compare.
func (p *peer) cost() int64 {
	return max(p.took.Load(), int64(quick)) * (p.asked.Load() + p.others.Load() + slack)
}

// seedOf is FNV-1a, which every edge computes alike.
func seedOf(name string) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range []byte(name) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}
