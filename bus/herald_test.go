package bus_test

import (
	"encoding/json"
	"fmt"
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

// copies is how many questions the client has made of others because time went by: a
// machine that stalls has some of them.
func (f *fleet) copies(t testing.TB) int64 {
	return int64(f.retries(t, "slow") + f.retries(t, "worker-lost"))
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
