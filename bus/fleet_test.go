package bus_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/schema"
	"github.com/prometheus/client_golang/prometheus"
)

// herald is a worker that announces itself and does with questions what a test wants.
type herald struct {
	t     testing.TB
	nc    *nats.Conn
	name  string
	asked atomic.Int64
	do    atomic.Pointer[func(id uint64, q schema.Question, reply string)]

	mu     sync.Mutex
	load   bus.Load
	silent bool
	direct *nats.Subscription
}

// newHerald starts a worker that answers everything at once.
func newHerald(t testing.TB, url, name string) *herald {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	h := &herald{t: t, nc: nc, name: name, load: bus.Load{Worker: name, Instance: "1", Network: network, State: bus.Ready, Home: true, MaxInFlight: 100}}
	h.will(h.answer)
	take := func(m *nats.Msg) {
		for f := range schema.Frames(m.Data) {
			r, err := schema.ParseRequest(f)
			if err != nil {
				t.Error(err)
			}
			h.asked.Add(1)
			(*h.do.Load())(r.ID, r.Question, m.Reply)
		}
	}
	h.direct, err = nc.Subscribe("ommer.w."+name+".v1."+network+".*", take)
	if err == nil {
		_, err = nc.QueueSubscribe("ommer.v1."+network+".*", "lookup", take)
	}
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(bus.LoadInterval)
		defer tick.Stop()
		for {
			h.announce()
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	})
	t.Cleanup(func() { close(stop); wg.Wait(); nc.Close() })
	return h
}

func (h *herald) announce() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.silent {
		return
	}
	b, err := json.Marshal(h.load)
	if err != nil {
		h.t.Error(err)
	}
	_ = h.nc.Publish("ommer.load."+h.name, b) // it may have been closed
}

// change changes what is announced, and announces it.
func (h *herald) change(f func(*bus.Load)) {
	h.mu.Lock()
	f(&h.load)
	h.mu.Unlock()
	h.announce()
}

// hang lets it swallow questions and say nothing.
func (h *herald) hang() {
	h.will(swallow)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.silent = true
}

func (h *herald) will(do func(id uint64, q schema.Question, reply string)) { h.do.Store(&do) }

func swallow(uint64, schema.Question, string) {}

func (h *herald) respond(id uint64, reply string, a schema.Answer) {
	_ = h.nc.Publish(reply, schema.AppendReply(nil, id, a)) // it may have been closed
}

// answer answers with the worker's name.
func (h *herald) answer(id uint64, _ schema.Question, reply string) {
	h.respond(id, reply, schema.Answer{Result: []byte(`"` + h.name + `"`)})
}

func (h *herald) refuse(code schema.Code) func(uint64, schema.Question, string) {
	return func(id uint64, _ schema.Question, reply string) {
		h.respond(id, reply, schema.Answer{Err: &schema.Error{Code: code}})
	}
}

// fleet is some workers and a client that knows them.
type fleet struct {
	*bus.Client
	workers []*herald
	reg     *prometheus.Registry
	url     string
}

func newFleet(t testing.TB, n int, cfg bus.ClientConfig) *fleet {
	t.Helper()
	f := &fleet{reg: prometheus.NewRegistry()}
	f.url = startNATS(t, embedded.Config{}).URL()
	for i := range n {
		f.workers = append(f.workers, newHerald(t, f.url, fmt.Sprintf("w%d", i)))
	}
	cfg.Registerer = f.reg
	if cfg.Links == nil {
		cfg.Links = []*bus.Link{dial(t, "e", f.url)}
	}
	f.Client = newClient(t, cfg)
	f.wantKnown(t, n)
	return f
}

// wantKnown waits until the client can choose among so many workers.
func (f *fleet) wantKnown(t testing.TB, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d workers are known", n), func() bool { return len(f.Ranked()) == n })
}

func (f *fleet) retries(t testing.TB, reason string) float64 {
	return counter(t, f.reg, "ommer_bus_ask_retries_total", reason)
}

// where asks for blocks one after another, and says who answered.
func (f *fleet) where(t testing.TB, blocks int) (by []string) {
	t.Helper()
	for n := range blocks {
		a := ask(t, f, schema.Question{Block: schema.Number(uint64(n))}, patience).wait()
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		by = append(by, strings.Trim(string(a.Result), `"`))
	}
	return by
}

func TestABlockHasItsWorker(t *testing.T) {
	const blocks = 500
	f := newFleet(t, 3, bus.ClientConfig{})
	before := f.where(t, blocks)
	if again := f.where(t, blocks); !slices.Equal(before, again) {
		t.Error("the same blocks were answered by others")
	}
	share := map[string]int{}
	for _, name := range before {
		share[name]++
	}
	if len(share) != 3 {
		t.Errorf("shares are %v", share)
	}
	newHerald(t, f.url, "new")
	f.wantKnown(t, 4)
	moved := 0
	for i, name := range f.where(t, blocks) {
		if name != before[i] {
			if moved++; name != "new" {
				t.Fatalf("block %d went from %s to %s", i, before[i], name)
			}
		}
	}
	if moved < blocks/8 || moved > blocks/2 {
		t.Errorf("%d of %d blocks moved to the fourth worker", moved, blocks)
	}
}

// One of four answers late, and says in time that it lives.
func TestSlowWorkerIsAskedLittle(t *testing.T) {
	f := newFleet(t, 4, bus.ClientConfig{})
	slow := f.workers[2]
	slow.will(func(id uint64, q schema.Question, reply string) {
		time.AfterFunc(300*time.Millisecond, func() { slow.answer(id, q, reply) })
	})
	const asks = 20_000
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			for n := range asks / 8 {
				ask(t, f, schema.Question{Block: schema.Number(uint64(n*8 + k))}, patience).want(schema.OK)
			}
		})
	}
	wg.Wait()
	if got := slow.asked.Load(); got > asks*3/100 {
		t.Errorf("the slow one was asked %d of %d", got, asks)
	} else {
		t.Logf("the slow one was asked %d of %d", got, asks)
	}
}

func TestHungWorkerIsLeft(t *testing.T) {
	f := newFleet(t, 2, bus.ClientConfig{})
	f.where(t, 100)
	f.workers[0].hang()
	var all []*one
	for n := range uint64(1000) {
		all = append(all, ask(t, f, schema.Question{Block: schema.Number(n)}, patience))
	}
	for _, o := range all {
		o.want(schema.OK)
	}
	if got := f.retries(t, "worker-lost"); got == 0 {
		t.Error("none was asked again")
	}
	f.wantKnown(t, 1)
	asked := f.workers[0].asked.Load()
	f.where(t, 100)
	if got := f.workers[0].asked.Load(); got != asked {
		t.Errorf("%d more for the one that hangs", got-asked)
	}
}

// A worker that may have lost what it was asked says so, and is asked again.
func TestLostQuestionsAreAskedAgain(t *testing.T) {
	for name, change := range map[string]func(*bus.Load){
		"connection": func(l *bus.Load) { l.Epoch++ },
		"restart":    func(l *bus.Load) { l.Instance = "2" },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 1, bus.ClientConfig{})
			w := f.workers[0]
			w.will(swallow)
			var all []*one
			for range 100 {
				all = append(all, ask(t, f, byNumber, patience))
			}
			eventually(t, "all were asked", func() bool { return w.asked.Load() == 100 })
			w.will(w.answer)
			w.change(change)
			for _, o := range all {
				o.want(schema.OK)
			}
			if got := w.asked.Load(); got != 200 {
				t.Errorf("asked %d times, want each twice", got)
			}
		})
	}
}

// What a worker says of its move is heard over one link before the server of another one
// knows where it is now: what it is asked that way would be lost again.
func TestQuestionsFollowAWorkerThatMoves(t *testing.T) {
	here, there := startNATS(t, embedded.Config{}).URL(), startNATS(t, embedded.Config{}).URL()
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", here), dial(t, "e", there)}})
	w, alsoW := newHerald(t, here, "w0"), newHerald(t, there, "w0")
	eventually(t, "the worker is known", func() bool { return len(c.Ranked()) == 1 })
	w.will(swallow)
	var all []*one
	for range 100 {
		all = append(all, ask(t, c, byNumber, patience))
	}
	eventually(t, "all were asked", func() bool { return w.asked.Load()+alsoW.asked.Load() >= 100 })
	move := func(l *bus.Load) { l.Epoch++ }
	alsoW.change(move)
	eventually(t, "the move is known", func() bool { return c.Epoch("w0") == 1 })
	w.will(w.answer)
	w.change(move)
	for _, o := range all {
		o.want(schema.OK)
	}
	if got := w.asked.Load(); got > 300 {
		t.Errorf("%d questions became %d", len(all), got)
	}
}

// What the queue group was asked, because no worker could be reached at home, is asked
// again when one can.
func TestLostInTheQueueGroup(t *testing.T) {
	f := newFleet(t, 2, bus.ClientConfig{})
	for _, w := range f.workers {
		w.change(func(l *bus.Load) { l.Home = false })
	}
	f.wantKnown(t, 0)
	for _, w := range f.workers {
		w.will(swallow)
	}
	var all []*one
	for range 100 {
		all = append(all, ask(t, f, byNumber, patience))
	}
	eventually(t, "all were asked", func() bool { return f.workers[0].asked.Load()+f.workers[1].asked.Load() >= 100 })
	w := f.workers[0]
	w.will(w.answer)
	w.change(func(l *bus.Load) { l.Home = true })
	for _, o := range all {
		o.want(schema.OK)
	}
}

// A worker that is heard all the time, but not from its home any more, is as silent as one
// that says nothing: what it was asked is asked elsewhere.
func TestHomeFallsSilent(t *testing.T) {
	f := newFleet(t, 2, bus.ClientConfig{Shards: 1}) // so that hedges save four of them
	w := f.workers[0]
	w.will(swallow)
	w.change(func(l *bus.Load) { l.Home = false })
	stop := make(chan struct{})
	var talking sync.WaitGroup
	talking.Go(func() {
		tick := time.NewTicker(time.Millisecond) // more often than the client looks who is silent
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				w.announce()
			case <-stop:
				return
			}
		}
	})
	defer talking.Wait()
	defer close(stop)
	var all []*one
	for n := range uint64(200) {
		all = append(all, ask(t, f, schema.Question{Block: schema.Number(n)}, patience))
	}
	for _, o := range all {
		o.want(schema.OK)
	}
	f.wantKnown(t, 1)
}

// When nobody answers, asking again must not make it worse.
func TestOutageIsNotAmplified(t *testing.T) {
	f := newFleet(t, 3, bus.ClientConfig{})
	for _, w := range f.workers {
		w.will(swallow)
	}
	const asks = 20_000
	var all []*one
	for n := range uint64(asks) {
		all = append(all, ask(t, f, schema.Question{Block: schema.Number(n)}, 2*time.Second))
	}
	for _, o := range all {
		o.want(schema.Timeout)
	}
	sum := int64(0)
	for _, w := range f.workers {
		sum += w.asked.Load()
	}
	// 5 %, and what each of 16 shards may have saved.
	if most := int64(asks*105/100 + 16*4); sum < asks || sum > most {
		t.Errorf("%d questions became %d, want %d at most", asks, sum, most)
	}
	if f.retries(t, "slow") == 0 {
		t.Error("no question was hedged")
	}
}

// A slow answer is not waited for, and both answers make one.
func TestHedge(t *testing.T) {
	f := newFleet(t, 2, bus.ClientConfig{})
	var held atomic.Int64
	for _, w := range f.workers {
		w.will(func(id uint64, q schema.Question, reply string) {
			if w.asked.Load()%2 == 1 { // each second question of a worker
				w.answer(id, q, reply)
				return
			}
			held.Add(1)
			time.AfterFunc(400*time.Millisecond, func() { w.answer(id, q, reply); held.Add(-1) })
		})
	}
	for n := range uint64(40) {
		ask(t, f, schema.Question{Block: schema.Number(n)}, patience).want(schema.OK)
	}
	eventually(t, "all are answered in the end", func() bool { return held.Load() == 0 })
	hedged := f.retries(t, "slow")
	if hedged == 0 {
		t.Error("none was hedged")
	}
	eventually(t, "the other answers are dropped", func() bool {
		return counter(t, f.reg, "ommer_bus_late_answers_total", "") >= 1
	})
	if n := f.Unanswered(); n != 0 {
		t.Errorf("%d questions are counted as with workers", n)
	}
}

// A hedge that is lost as well is not the end, while there is credit: a shard begins with
// four.
func TestHedgeAgain(t *testing.T) {
	f := newFleet(t, 3, bus.ClientConfig{Shards: 1})
	var mu sync.Mutex
	copies := map[uint64]int{}
	for _, w := range f.workers {
		w.will(func(id uint64, q schema.Question, reply string) {
			mu.Lock()
			copies[id]++
			lost := copies[id] < 3
			mu.Unlock()
			if !lost {
				w.answer(id, q, reply)
			}
		})
	}
	var all []*one
	for n := range uint64(2) {
		all = append(all, ask(t, f, schema.Question{Block: schema.Number(n)}, patience))
	}
	for _, o := range all {
		o.want(schema.OK)
	}
	if n := f.Unanswered(); n != 0 {
		t.Errorf("%d questions are counted as with workers", n)
	}
}

// A worker whom the server does not know is no reason to wait.
func TestGoneWorkerIsReplaced(t *testing.T) {
	f := newFleet(t, 2, bus.ClientConfig{})
	gone := f.workers[0]
	if err := gone.direct.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	if err := gone.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, name := range f.where(t, 200) {
		if name != "w1" {
			t.Fatalf("answered by %s", name)
		}
	}
	if f.retries(t, "worker-lost") == 0 || f.retries(t, "no-workers") != 0 {
		t.Error("the queue group was asked")
	}
}

// With all of them gone the queue group is the last resort, and then the answer is
// that there are none.
func TestAllWorkersGone(t *testing.T) {
	f := newFleet(t, 2, bus.ClientConfig{})
	for _, w := range f.workers {
		w.nc.Close()
	}
	o := ask(t, f, byNumber, patience)
	o.want(schema.NoWorkers)
	if o.took > 2*time.Second {
		t.Errorf("took %v", o.took)
	}
	newHerald(t, f.url, "new")
	eventually(t, "the new one answers", func() bool { return ask(t, f, byNumber, patience).wait().Err == nil })
}

func TestRefusedByOne(t *testing.T) {
	for _, tt := range []struct {
		code   schema.Code
		refuse int // how many of three
		want   schema.Code
		most   int64 // questions that one becomes
	}{
		{schema.Overloaded, 1, schema.OK, 2},
		{schema.Overloaded, 3, schema.Overloaded, 2},
		{schema.Unavailable, 2, schema.OK, 8},
		{schema.Draining, 2, schema.OK, 8},
		{schema.Internal, 1, schema.OK, 2},
		{schema.Internal, 3, schema.Internal, 2},
		{schema.Pruned, 1, schema.OK, 2},
		{schema.Pruned, 3, schema.Pruned, 2},
		{schema.Unsupported, 3, schema.Unsupported, 1},
	} {
		t.Run(fmt.Sprintf("%v by %d", tt.code, tt.refuse), func(t *testing.T) {
			f := newFleet(t, 3, bus.ClientConfig{})
			for _, w := range f.workers[:tt.refuse] {
				w.will(w.refuse(tt.code))
			}
			sum := func() (n int64) {
				for _, w := range f.workers {
					n += w.asked.Load()
				}
				return n
			}
			for n := range uint64(50) {
				before := sum()
				ask(t, f, schema.Question{Block: schema.Number(n)}, patience).want(tt.want)
				if got := sum() - before; got > tt.most {
					t.Errorf("one question became %d", got)
				}
			}
		})
	}
}

// A worker that has no nodes, or leaves, is not asked.
func TestWorkersThatAreNotReady(t *testing.T) {
	f := newFleet(t, 3, bus.ClientConfig{})
	f.workers[0].change(func(l *bus.Load) { l.State = bus.Unready })
	f.workers[1].change(func(l *bus.Load) { l.State = bus.Leaving })
	f.wantKnown(t, 1)
	for _, name := range f.where(t, 50) {
		if name != "w2" {
			t.Fatalf("answered by %s", name)
		}
	}
	f.workers[0].change(func(l *bus.Load) { l.State = bus.Ready })
	f.wantKnown(t, 2)
}

// Those in the client's zone are asked while there are any.
func TestZone(t *testing.T) {
	url := startNATS(t, embedded.Config{}).URL()
	near, far := newHerald(t, url, "near"), newHerald(t, url, "far")
	near.change(func(l *bus.Load) { l.Zone = "here" })
	far.change(func(l *bus.Load) { l.Zone = "there" })
	f := &fleet{Client: newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", url)}, Zone: "here"})}
	only := func(name string) {
		t.Helper()
		eventually(t, "only "+name+" is asked", func() bool {
			by := slices.Compact(f.where(t, 20))
			return len(by) == 1 && by[0] == name
		})
	}
	only("near")
	near.change(func(l *bus.Load) { l.State = bus.Leaving })
	only("far")
	near.change(func(l *bus.Load) { l.State = bus.Ready })
	only("near")
}

// When the only worker of a zone hangs, or answers nothing, those of others are asked.
func TestZoneOfOne(t *testing.T) {
	for name, fail := range map[string]func(*herald){
		"hangs":           (*herald).hang,
		"answers nothing": func(h *herald) { h.will(swallow) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 3, bus.ClientConfig{Zone: "here"})
			near := f.workers[0]
			near.change(func(l *bus.Load) { l.Zone = "here" })
			eventually(t, "the near one is asked", func() bool {
				before := near.asked.Load()
				f.where(t, 20)
				return near.asked.Load() == before+20
			})
			fail(near)
			for n := range uint64(300) {
				ask(t, f, schema.Question{Block: schema.Number(n)}, patience).want(schema.OK)
			}
			asked := near.asked.Load()
			f.where(t, 100)
			if got := near.asked.Load() - asked; got > 20 {
				t.Errorf("of 100 more questions %d went to the near one", got)
			}
		})
	}
}

// Nobody can make a client remember workers without end.
func TestWorkersAreBounded(t *testing.T) {
	f := newFleet(t, 1, bus.ClientConfig{})
	for i := range 1200 {
		name := fmt.Sprintf("x%d", i)
		b, err := json.Marshal(bus.Load{Worker: name, Network: network, State: bus.Unready})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.workers[0].nc.Publish("ommer.load."+name, b); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all were heard", func() bool { return f.Known() >= 1024 })
	f.where(t, 10)
	if got := f.Known(); got != 1024 {
		t.Errorf("%d workers are known", got)
	}
}

// A NATS server that hangs is found by its silence, and what it holds is asked over
// another link.
func TestHungServer(t *testing.T) {
	a, b := cluster(t)
	t.Cleanup(a.Close)
	f := newFreezer(t, strings.TrimPrefix(a.URL(), "nats://"))
	links := []*bus.Link{dial(t, "e", "nats://"+f.ln.Addr().String()), dial(t, "e", b.URL())}
	newHerald(t, b.URL(), "w0")
	c := newClient(t, bus.ClientConfig{Links: links})
	eventually(t, "the worker is known", func() bool { return len(c.Ranked()) == 1 })
	eventually(t, "answers", func() bool { return ask(t, c, byNumber, patience).wait().Err == nil })
	close(f.frozen)
	began := time.Now()
	var all []*one
	for range 200 {
		all = append(all, ask(t, c, byNumber, patience))
	}
	for _, o := range all {
		o.want(schema.OK)
	}
	t.Logf("the last answer came after %v", time.Since(began))
	eventually(t, "the link goes another way", func() bool {
		return links[0].Up() && !strings.HasSuffix(links[0].NATS().ConnectedUrl(), f.ln.Addr().String())
	})
	ask(t, c, byNumber, patience).want(schema.OK)
}

// The servers hear both the client and the worker, but no longer each other: questions
// take the link by which they get to the worker's home.
func TestCutBetweenServers(t *testing.T) {
	a, b := startNATS(t, embedded.Config{}), startNATS(t, embedded.Config{})
	links := []*bus.Link{dial(t, "e", a.URL()), dial(t, "e", b.URL())}
	home, far := newHerald(t, b.URL(), "w0"), newHerald(t, a.URL(), "w0") // as if a were joined to b
	f := &fleet{Client: newClient(t, bus.ClientConfig{Links: links})}
	f.wantKnown(t, 1)
	for range 10 {
		ask(t, f, byNumber, patience).want(schema.OK)
	}
	if far.asked.Load() == 0 {
		t.Fatal("the first link is not used")
	}
	far.will(swallow)
	far.change(func(l *bus.Load) { l.Home = false })
	var all []*one
	for range 100 {
		all = append(all, ask(t, f, byNumber, patience))
	}
	for _, o := range all {
		o.want(schema.OK)
	}
	if home.asked.Load() == 0 {
		t.Error("answered from nowhere")
	}
	asked := far.asked.Load()
	for range 10 {
		ask(t, f, byNumber, patience).want(schema.OK)
	}
	if got := far.asked.Load(); got != asked {
		t.Errorf("%d more went the way that leads nowhere", got-asked)
	}
	far.will(far.answer)
	far.change(func(l *bus.Load) { l.Home = true })
	eventually(t, "the first link is used again", func() bool {
		ask(t, f, byNumber, patience).want(schema.OK)
		return far.asked.Load() > asked
	})
}

// Workers that are heard, but not from their homes, are asked in the queue group.
func TestNoWayHome(t *testing.T) {
	f := newFleet(t, 2, bus.ClientConfig{})
	for _, w := range f.workers {
		if err := w.direct.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
		w.change(func(l *bus.Load) { l.Home = false })
	}
	f.wantKnown(t, 0)
	f.where(t, 20)
}

func TestLinksApart(t *testing.T) {
	a, b := cluster(t)
	closed := sync.OnceFunc(a.Close)
	t.Cleanup(closed)
	links, err := bus.DialApart(bus.LinkConfig{Name: "e", URLs: []string{a.URL(), b.URL()}}, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, l := range links {
			l.Close()
		}
	})
	servers := func() (ids []string) {
		seen := map[string]bool{}
		for _, l := range links {
			if l.Up() {
				seen[l.NATS().ConnectedServerName()] = true
			}
		}
		return slices.Sorted(maps.Keys(seen))
	}
	both := []string{"a", "b"}
	eventually(t, "one link on each", func() bool { return slices.Equal(servers(), both) })
	for _, l := range links { // one of them goes to the other's server
		if l.NATS().ConnectedServerName() == "a" {
			if err := l.NATS().ForceReconnect(); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "one link on each again", func() bool { return links[0].Up() && links[1].Up() && slices.Equal(servers(), both) })
	closed()
	eventually(t, "both on the one that is left", func() bool {
		return links[0].Up() && links[1].Up() && slices.Equal(servers(), []string{"b"})
	})
}
