package bus_test

import (
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
	"github.com/ommer/ommer/schema/schematest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	network  = "sepolia"
	patience = 20 * time.Second
)

var (
	byNumber = schema.Question{Block: schema.Number(7)}
	byHash   = schema.Question{Block: schema.BlockHash(schema.Hash{9}), Index: 1}
	known    = map[schema.Question]string{
		byNumber: `{"n":7}`,
		byHash:   `{"h":9,"logsBloom":"0x` + strings.Repeat("0", 1<<10) + `"}`, // worth packing
	}
)

func startNATS(t testing.TB, cfg embedded.Config) *embedded.Server {
	t.Helper()
	s, err := embedded.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func dial(t testing.TB, name string, urls ...string) *bus.Link {
	t.Helper()
	l, err := bus.Dial(bus.LinkConfig{Name: name, URLs: urls})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func newClient(t testing.TB, cfg bus.ClientConfig) *bus.Client {
	t.Helper()
	cfg.Network = network
	c, err := bus.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func newServer(t testing.TB, cfg bus.ServerConfig) *bus.Server {
	t.Helper()
	cfg.Network = network
	s, err := bus.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// eventually waits until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Since(began) > patience {
			t.Fatalf("not within %v: %s", patience, what)
		}
		<-tick.C
	}
}

// steadily expects try to find nothing wrong, and has it try several times: when the
// machine stalls, all workers are slow for a moment, and the client does what it does then.
func steadily(t *testing.T, try func() (wrong string)) {
	t.Helper()
	wrong := ""
	for range 20 {
		if wrong = try(); wrong == "" {
			return
		}
	}
	t.Error("each time: ", wrong)
}

// stalls says whether this process has been held up since, as long as one that judges by
// silence is: what has to happen before something else may come after it then.
func stalls(t *testing.T) func() bool {
	t.Helper()
	var held atomic.Bool
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(bus.LoadInterval / 10)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-tick.C:
			case <-stop:
				return
			}
			now := time.Now()
			if now.Sub(last) > bus.LoadInterval {
				held.Store(true)
			}
			last = now
		}
	})
	t.Cleanup(func() { close(stop); wg.Wait() })
	return held.Load
}

// one is the Receiver of one answer; a second answer fails the test.
type one struct {
	t     testing.TB
	asked time.Time
	times atomic.Int32
	done  chan struct{}
	a     schema.Answer
	took  time.Duration
}

func ask(t testing.TB, r schema.Resolver, q schema.Question, budget time.Duration) *one {
	o := &one{t: t, asked: time.Now(), done: make(chan struct{})}
	r.Resolve(q, o.asked.Add(budget), o)
	return o
}

func (o *one) Answered(a schema.Answer) {
	if o.times.Add(1) != 1 {
		o.t.Error("answered twice")
		return
	}
	o.a, o.took = a, time.Since(o.asked)
	close(o.done)
}

func (o *one) wait() schema.Answer {
	o.t.Helper()
	select {
	case <-o.done:
	case <-time.After(patience):
		o.t.Fatal("never answered")
	}
	return o.a
}

func (o *one) want(code schema.Code) {
	o.t.Helper()
	if got := codeOf(o.wait()); got != code {
		o.t.Errorf("got %v (%v), want %v", got, o.a.Err, code)
	}
}

func codeOf(a schema.Answer) schema.Code {
	if a.Err == nil {
		return schema.OK
	}
	return a.Err.Code
}

// worker answers frames by a func, over a connection of its own. Nil answers
// nothing.
func worker(t testing.TB, url string, answer func(n int, m *nats.Msg) []byte) *nats.Subscription {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	n := 0
	sub, err := nc.QueueSubscribe("ommer.v1."+network+".*", "lookup", func(m *nats.Msg) {
		n++
		if b := answer(n, m); b != nil {
			_ = m.Respond(b)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return sub
}

// frame is a reply to the request in m.
func frame(t testing.TB, m *nats.Msg, a schema.Answer) []byte {
	r, err := schema.ParseRequest(m.Data)
	if err != nil {
		t.Error(err)
	}
	return schema.AppendReply(nil, r.ID, a)
}

// load keeps asking from several goroutines until stop, and counts the answers by
// code.
type load struct {
	wg    sync.WaitGroup
	stop  atomic.Bool
	asked atomic.Int64
	codes [8]atomic.Int64
}

// startLoad asks with inFlight questions unanswered at a time.
func startLoad(t testing.TB, r schema.Resolver, inFlight int, budget time.Duration) *load {
	return startLoadOf(t, r, func(int) schema.Question { return byNumber }, inFlight, budget)
}

// startLoadOf is startLoad with questions that each of those who ask has by its number.
func startLoadOf(t testing.TB, r schema.Resolver, of func(int) schema.Question, inFlight int, budget time.Duration) *load {
	l := new(load)
	for i := range inFlight {
		l.wg.Go(func() {
			for !l.stop.Load() {
				l.asked.Add(1)
				a := ask(t, r, of(i), budget).wait()
				l.codes[codeOf(a)].Add(1)
			}
		})
	}
	return l
}

func (l *load) end() {
	l.stop.Store(true)
	l.wg.Wait()
}

func (l *load) String() string {
	var s strings.Builder
	for c := range l.codes {
		if n := l.codes[c].Load(); n > 0 {
			fmt.Fprintf(&s, "%v %d ", schema.Code(c), n)
		}
	}
	return s.String()
}

// failed is how many were answered with anything but a result.
func (l *load) failed() int64 { return l.asked.Load() - l.codes[schema.OK].Load() }

func TestConformance(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	n := 0
	schematest.Conformance(t, func(t *testing.T) schematest.Subject {
		n++
		fixed := schematest.NewFixed(known)
		t.Cleanup(fixed.Stop)
		s := newServer(t, bus.ServerConfig{Links: []*bus.Link{dial(t, fmt.Sprintf("w%d", n), srv.URL())}, Resolver: fixed})
		c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, fmt.Sprintf("e%d", n), srv.URL())}})
		// The next subtest's questions must not go to this worker any more.
		leaveAtEnd(t, s)
		t.Cleanup(fixed.Release)
		return schematest.Subject{
			Resolver: c,
			Known:    known,
			Stall:    func() func() { fixed.Hold(); return fixed.Release },
			Stop:     c.Close,
		}
	})
}
