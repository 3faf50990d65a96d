package bus

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// fleet is the workers that a client knows, from what they announce.
type fleet struct {
	c        *Client
	everyone *peer // the queue group, for when nobody announces
	ranking  atomic.Pointer[ranking]

	mu     sync.Mutex
	peers  map[string]*peer
	joined uint64 // peers that there ever were
}

const (
	// silence is how long a worker, or a link, may say nothing: three announcements
	// may be late or lost.
	silence = 7 * LoadInterval / 2
	// lookInterval is how often the client looks who is silent.
	lookInterval = LoadInterval / 2
	// shunTime is how long a worker that refused a question as a whole, or whom the
	// NATS server did not know, is left alone, unless it announces itself before.
	shunTime = time.Second
	// forgetAfter is when a worker that is gone is forgotten.
	forgetAfter = time.Minute
)

func newFleet(c *Client) *fleet {
	f := &fleet{c: c, peers: map[string]*peer{}}
	f.everyone = c.newPeer("", 0)
	f.ranking.Store(newRanking(nil, nil))
	return f
}

// heard takes an announcement. It runs on the goroutine of a link's subscription.
func (f *fleet) heard(l *clientLink, m *nats.Msg) {
	load, err := parseLoad(m.Subject, m.Data)
	if err != nil {
		f.c.unreadable.Add(1)
		return
	}
	if load.Network != f.c.network {
		return
	}
	f.mu.Lock()
	p, now := f.peers[load.Worker], f.c.now()
	if p == nil {
		if len(f.peers) >= maxPeers {
			f.mu.Unlock()
			return
		}
		f.joined++
		p = f.c.newPeer(load.Worker, f.joined)
		p.decayed = now
		for i := range p.paths { // the same announcement is on its way over all
			p.paths[i].heard.Store(now)
		}
		f.peers[load.Worker] = p
		f.c.log.Info("worker found", "worker", p.name, "zone", load.Zone, "version", load.Version)
	}
	p.heard = now
	lost := false
	if w := &p.paths[l.number]; load.Home {
		w.heard.Store(now)
		w.dead.Store(false)
		// NATS servers hear of the home's subscription before they pass on what it says.
		// But another link's server may not have heard of it yet, and still know it where
		// it was: what was sent that way is asked again when the home is heard that way.
		lost = w.instance != load.Instance || w.epoch < load.Epoch
		w.instance, w.epoch = load.Instance, load.Epoch
	}
	restarted := p.load.Instance != load.Instance
	// Over several links each comes several times, and an old one may come late.
	if restarted || p.load.Epoch <= load.Epoch {
		p.load = load
		p.others.Store(max(0, int64(load.InFlight)-p.asked.Load()))
		if load.State == Ready {
			p.shunned.Store(0)
		}
	}
	again := p.silent && load.Home && p.load.State == Ready
	if again {
		p.silent = false
		f.c.log.Info("worker is heard again", "worker", p.name)
	}
	if p.askable() != p.ready || p.ready && p.zone != load.Zone {
		f.rank()
	}
	f.mu.Unlock()
	if lost {
		f.c.rescue(p, l, nil)
	}
	if again { // what the queue group was asked meanwhile may have gone where nobody is
		f.c.rescue(f.everyone, nil, nil)
	}
}

// risen notes that a link leads to a server that may know less than the one before.
func (f *fleet) risen(l *clientLink) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.peers {
		p.paths[l.number].instance = ""
	}
}

// rank makes a new ranking if other workers can be asked than before.
func (f *fleet) rank() {
	var near, far []*peer
	for _, name := range slices.Sorted(maps.Keys(f.peers)) {
		p := f.peers[name]
		p.ready, p.zone = p.askable(), p.load.Zone
		switch {
		case !p.ready:
		case p.zone == f.c.zone:
			near = append(near, p)
		default:
			far = append(far, p)
		}
	}
	if len(near) == 0 {
		near, far = far, nil
	}
	if r := f.ranking.Load(); r.near != len(near) || !slices.Equal(r.peers, slices.Concat(near, far)) {
		f.ranking.Store(newRanking(near, far))
	}
}

// look finds out who is silent, and forgets who is gone.
func (f *fleet) look(now int64) {
	var lost []*peer
	f.mu.Lock()
	heard := false
	for _, p := range f.peers {
		heard = heard || now-p.heard <= int64(silence)
	}
	for _, p := range f.ranking.Load().peers {
		if now-p.reached() > int64(silence) {
			lost = append(lost, p)
		}
	}
	if !heard {
		// Not all of them hang at the same moment: it is the bus, or this process.
		lost = nil
	} else if len(lost) > 0 {
		for _, p := range lost {
			p.silent = true
		}
		// If they are heard only from links that are not their homes the ranking may be
		// empty now: the queue group can be reached there.
		f.rank()
	}
	dead := f.judge(now)
	for name, p := range f.peers {
		p.decay(now)
		if now-p.heard > int64(forgetAfter) && p.asked.Load() == 0 && !slices.Contains(f.ranking.Load().peers, p) {
			delete(f.peers, name)
			f.c.forget(p)
		}
	}
	f.mu.Unlock()
	for _, p := range lost {
		f.c.log.Warn("worker is silent, asking others", "worker", p.name, "after", silence)
		f.c.rescue(p, nil, p)
	}
	for _, w := range dead {
		if w.p.logged.IsZero() || time.Since(w.p.logged) > logAgain {
			w.p.logged = time.Now()
			f.c.log.Warn("worker is not reached over a link, taking another", "worker", w.p.name, "link", w.l.number, "after", silence)
		}
		f.c.rescue(w.p, w.l, nil)
	}
}

// way is a path that is dead.
type way struct {
	p *peer
	l *clientLink
}

// judge finds the paths over which a worker is no longer heard, while it is over
// another: somewhere behind the link's server something is broken.
func (f *fleet) judge(now int64) (dead []way) {
	for _, p := range f.ranking.Load().peers {
		if now-p.reached() > int64(2*LoadInterval) {
			continue
		}
		for i, l := range f.c.links {
			w := &p.paths[i]
			if l.Up() && now-max(w.heard.Load(), l.risen.Load()) > int64(silence) && !w.dead.Swap(true) {
				dead = append(dead, way{p, l})
			}
		}
	}
	return dead
}

// all are the workers that are not forgotten.
func (f *fleet) all() []*peer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.peers))
}

// states counts the workers by what they say, or that they say nothing.
func (f *fleet) states(now int64) map[State]int {
	n := map[State]int{Ready: 0, Unready: 0, Leaving: 0, "silent": 0}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.peers {
		if now-p.reached() > int64(silence) {
			n["silent"]++
		} else {
			n[p.load.State]++
		}
	}
	return n
}

// shun leaves a worker alone for a moment.
func (f *fleet) shun(p *peer, now int64) {
	if p != f.everyone {
		p.shunned.Store(now + int64(shunTime))
	}
}

// watch looks at the workers and at the links until the client closes.
func (f *fleet) watch() {
	t := time.NewTicker(lookInterval)
	defer t.Stop()
	last, measured := f.c.now(), f.c.now()
	for {
		select {
		case <-f.c.ctx.Done():
			return
		case <-t.C:
		}
		now := f.c.now()
		late := now-last > int64(3*lookInterval)
		last = now
		if late { // this process was held up, and hears now what was said meanwhile
			continue
		}
		f.look(now)
		f.c.lookAtLinks(now)
		if now-measured > int64(time.Second) {
			measured = now
			f.c.measure()
		}
	}
}
