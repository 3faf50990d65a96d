package bus_test

import (
	"crypto/rand"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/schema"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

var okAnswer = schema.Answer{Result: []byte(`{"n":7}`)}

// counter reads the sum of a counter's series whose labels include the text.
func counter(t testing.TB, reg *prometheus.Registry, name, label string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if label == "" || strings.Contains(m.String(), `"`+label+`"`) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func TestSilentWorkerTimesOutAtTheDeadline(t *testing.T) {
	t.Parallel()
	srv := startNATS(t, embedded.Config{})
	worker(t, srv.URL(), func(int, *nats.Msg) []byte { return nil })
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}})
	for _, budget := range []time.Duration{time.Millisecond, 30 * time.Millisecond, 300 * time.Millisecond} {
		o := ask(t, c, byNumber, budget)
		o.want(schema.Timeout)
		if o.took < budget || o.took > bus.DefaultTimeout/2 { // its own deadline, not the default
			t.Errorf("budget %v: took %v", budget, o.took)
		}
	}
	if n := c.Pending(); n != 0 {
		t.Errorf("%d pending", n)
	}
}

func TestNoWorkersFailsFast(t *testing.T) {
	t.Parallel()
	srv := startNATS(t, embedded.Config{})
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}})
	var all []*one
	for range 500 {
		all = append(all, ask(t, c, byNumber, patience), ask(t, c, byHash, patience))
	}
	for _, o := range all {
		o.want(schema.NoWorkers)
		if o.took < 75*time.Millisecond || o.took > patience/2 {
			t.Fatalf("took %v", o.took)
		}
	}
	eventually(t, "a single one fails within a second", func() bool {
		one := ask(t, c, byNumber, patience)
		one.want(schema.NoWorkers)
		return one.took < time.Second
	})
	eventually(t, "nobody there is told from nobody answering, at the deadline too", func() bool {
		return codeOf(ask(t, c, byNumber, 20*time.Millisecond).wait()) == schema.NoWorkers
	})
}

func TestWorkerThatComesWhileAskingAgain(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	reg := prometheus.NewRegistry()
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}, Registerer: reg})
	// The patience is short, so a slow machine gets several chances.
	for range 20 {
		o := ask(t, c, byNumber, patience)
		eventually(t, "asked again", func() bool { return counter(t, reg, "ommer_bus_ask_retries_total", "no-workers") > 0 })
		sub := worker(t, srv.URL(), func(_ int, m *nats.Msg) []byte { return frame(t, m, okAnswer) })
		a := o.wait()
		if a.Err == nil {
			return
		}
		if err := sub.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
	}
	t.Error("no question found the worker")
}

func TestRefusalsAreTriedOnceMore(t *testing.T) {
	for _, c := range []struct {
		name    string
		refusal schema.Code
		times   int
		want    schema.Code
		asked   int32
	}{
		{"overloaded once", schema.Overloaded, 1, schema.OK, 2},
		{"draining once", schema.Draining, 1, schema.OK, 2},
		{"overloaded always", schema.Overloaded, 99, schema.Overloaded, 2},
		{"failed", schema.Internal, 99, schema.Internal, 1},
		{"pruned", schema.Pruned, 99, schema.Pruned, 1},
		{"unsupported", schema.Unsupported, 99, schema.Unsupported, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := startNATS(t, embedded.Config{})
			var asked atomic.Int32
			worker(t, srv.URL(), func(n int, m *nats.Msg) []byte {
				asked.Add(1)
				if n <= c.times {
					return frame(t, m, schema.Answer{Err: &schema.Error{Code: c.refusal}})
				}
				return frame(t, m, okAnswer)
			})
			cl := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}})
			ask(t, cl, byNumber, patience).want(c.want)
			if got := asked.Load(); got != c.asked {
				t.Errorf("asked %d times, want %d", got, c.asked)
			}
		})
	}
}

// A packed answer to who cannot do with it would become a hole in a response.
func TestPackedOnlyIfAskedFor(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	packed := schema.Answer{Packed: schema.Pack([]byte(known[byHash]))}
	worker(t, srv.URL(), func(_ int, m *nats.Msg) []byte {
		r, err := schema.ParseRequest(m.Data)
		if err != nil {
			t.Error(err)
		}
		return schema.AppendReply(nil, r.ID, packed)
	})
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}})
	ask(t, c, byHash, patience).want(schema.Internal)
	may := byHash
	may.Packed = true
	if a := ask(t, c, may, patience).wait(); a.Err != nil || a.Packed.IsZero() {
		t.Errorf("got %+v", a)
	}
}

func TestLateAndRepeatedAnswersAreDropped(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	late := make(chan *nats.Msg, 1)
	var awake atomic.Bool
	worker(t, srv.URL(), func(_ int, m *nats.Msg) []byte {
		if !awake.Load() {
			select {
			case late <- m:
			default:
			}
			return nil
		}
		b := frame(t, m, okAnswer)
		_ = m.Respond(b) // and once more by the caller
		return b
	})
	reg := prometheus.NewRegistry()
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}, MaxPending: 1, Registerer: reg})
	eventually(t, "one is asked and not answered in time", func() bool {
		ask(t, c, byNumber, 20*time.Millisecond).want(schema.Timeout)
		return len(late) > 0
	})
	m := <-late
	awake.Store(true)
	wrong := frame(t, m, schema.Answer{Result: []byte(`"late"`)})
	for range 10 { // the one slot is used by others now
		if err := m.Respond(wrong); err != nil {
			t.Fatal(err)
		}
		if a := ask(t, c, byNumber, patience).wait(); string(a.Result) != `{"n":7}` {
			t.Fatalf("got %s, %v", a.Result, a.Err)
		}
	}
	eventually(t, "late answers are counted", func() bool {
		return counter(t, reg, "ommer_bus_late_answers_total", "") == 20
	})
}

func TestFullTableRefusesAtOnce(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	worker(t, srv.URL(), func(int, *nats.Msg) []byte { return nil })
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}, MaxPending: 37})
	var in []*one
	for range 37 {
		in = append(in, ask(t, c, byNumber, patience))
	}
	o := ask(t, c, byNumber, patience)
	if o.times.Load() != 1 {
		t.Error("it was not refused at once")
	}
	o.want(schema.Overloaded)
	if got := c.Pending(); got != 37 {
		t.Errorf("%d pending", got)
	}
	c.Close()
	for _, o := range in {
		o.want(schema.Draining)
	}
}

func TestCloseAnswersEverything(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	worker(t, srv.URL(), func(int, *nats.Msg) []byte { return nil })
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}})
	var in []*one
	for range 1000 {
		in = append(in, ask(t, c, byNumber, patience))
	}
	c.Close()
	for _, o := range in {
		select {
		case <-o.done:
			o.want(schema.Draining)
		default:
			t.Fatal("Close returned before the answer")
		}
	}
	ask(t, c, byNumber, patience).want(schema.Draining)
	c.Close() // again is fine
}

func TestGarbageIsIgnored(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	reg := prometheus.NewRegistry()
	fixed := newFixedServer(t, srv.URL(), reg)
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}, Registerer: reg})
	nc, err := nats.Connect(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	reply := c.ReplySubject()
	base := reply[:strings.LastIndexByte(reply, '.')+1]
	subjects := []string{
		"ommer.v1." + network + "." + schema.UncleByHash.String(), "ommer.v1." + network + ".nothing",
		reply, base + "x", base + "x00", base + "x0000000000000000", base + "99", base + "-1", base + "word",
	}
	for i := range 500 {
		b := make([]byte, i%80)
		if _, err := rand.Read(b); err != nil {
			t.Fatal(err)
		}
		for _, s := range subjects {
			m := &nats.Msg{Subject: s, Data: b, Reply: reply}
			switch i % 3 {
			case 1:
				m.Reply = ""
			case 2: // as if the server had nobody
				m.Data, m.Header = nil, nats.Header{"Status": {"503"}, "Nats-Subject": {s}}
			}
			if err := nc.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
		}
		if i%50 == 0 {
			ask(t, c, byNumber, patience).want(schema.OK)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	ask(t, c, byHash, patience).want(schema.OK)
	if fixed.Asked() == 0 || counter(t, reg, "ommer_bus_questions_total", "unreadable") == 0 {
		t.Error("the garbage did not arrive")
	}
}

func TestClientMetricsAreWellFormed(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	reg := prometheus.NewPedanticRegistry()
	newFixedServer(t, srv.URL(), reg) // both sides in one registry, as all-in-one has it
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}, Registerer: reg})
	for range 10 {
		ask(t, c, byNumber, patience).want(schema.OK)
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	if got := counter(t, reg, "ommer_bus_asks_total", "ok"); got != 10 {
		t.Errorf("%v asks counted", got)
	}
	if got := counter(t, reg, "ommer_bus_link_up", ""); got != 2 {
		t.Errorf("%v links up", got)
	}
}

func TestConfigErrorsNameTheField(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	l := dial(t, "e", srv.URL())
	links := []*bus.Link{l}
	client := func(c bus.ClientConfig) func() error {
		return func() error { _, err := bus.NewClient(c); return err }
	}
	server := func(c bus.ServerConfig) func() error {
		return func() error { _, err := bus.NewServer(c); return err }
	}
	link := func(c bus.LinkConfig) func() error {
		return func() error { _, err := bus.Dial(c); return err }
	}
	urls := []string{srv.URL()}
	for _, c := range []struct {
		says string
		make func() error
	}{
		{"Links", client(bus.ClientConfig{Network: "n"})},
		{"Network", client(bus.ClientConfig{Links: links})},
		{"Network", client(bus.ClientConfig{Links: links, Network: "a.b"})},
		{"MaxPending", client(bus.ClientConfig{Links: links, Network: "n", MaxPending: -1})},
		{"Timeout", client(bus.ClientConfig{Links: links, Network: "n", Timeout: 1})},
		{"Shards", client(bus.ClientConfig{Links: links, Network: "n", Shards: 17})},
		{"Links", server(bus.ServerConfig{Network: "n", Resolver: nobody{}})},
		{"Links", server(bus.ServerConfig{Network: "n", Links: make([]*bus.Link, 9), Resolver: nobody{}})},
		{"Resolver", server(bus.ServerConfig{Network: "n", Links: links})},
		{"Zone", server(bus.ServerConfig{Network: "n", Links: links, Resolver: nobody{}, Zone: "a b"})},
		{"WorkerID", server(bus.ServerConfig{Network: "n", Links: links, Resolver: nobody{}, WorkerID: "*"})},
		{"MaxInFlight", server(bus.ServerConfig{Network: "n", Links: links, Resolver: nobody{}, MaxInFlight: -1})},
		{"Name", link(bus.LinkConfig{Name: "", URLs: urls})},
		{"Name", link(bus.LinkConfig{Name: "a.b", URLs: urls})},
		{"URLs", link(bus.LinkConfig{Name: "a"})},
		{"URLs", link(bus.LinkConfig{Name: "a", URLs: []string{"http://x"}})},
		{"SeedFile", link(bus.LinkConfig{Name: "a", URLs: urls, SeedFile: "/nowhere"})},
		{"CredsFile", link(bus.LinkConfig{Name: "a", URLs: urls, CredsFile: "/nowhere"})},
		{"CAFile", link(bus.LinkConfig{Name: "a", URLs: urls, CAFile: "/nowhere"})},
		{"CertFile", link(bus.LinkConfig{Name: "a", URLs: urls, CertFile: "/nowhere"})},
		{"CertFile", link(bus.LinkConfig{Name: "a", URLs: urls, CertFile: "/nowhere", KeyFile: "/nowhere"})},
	} {
		t.Run(c.says, func(t *testing.T) {
			err := c.make()
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want one that says %s", err, c.says)
			}
		})
	}
}

// nobody is a Resolver that is never asked.
type nobody struct{}

func (nobody) Resolve(schema.Question, time.Time, schema.Receiver) {}
