package bus_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/schematest"
	"github.com/prometheus/client_golang/prometheus"
)

// newFixedServer puts a Fixed of the known questions on the bus.
func newFixedServer(t testing.TB, url string, reg prometheus.Registerer) *schematest.Fixed {
	t.Helper()
	fixed := schematest.NewFixed(known)
	t.Cleanup(fixed.Stop)
	s := newServer(t, bus.ServerConfig{Links: []*bus.Link{dial(t, "w", url)}, Resolver: fixed, WorkerID: "w1", Registerer: reg})
	leaveAtEnd(t, s)
	return fixed
}

func leaveAtEnd(t testing.TB, s *bus.Server) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Leave(ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestPlainJSON(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	newFixedServer(t, srv.URL(), nil)
	nc, err := nats.Connect(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	const number, hash = "eth_getUncleByBlockNumberAndIndex", "eth_getUncleByBlockHashAndIndex"
	for _, c := range []struct{ name, method, ask, want string }{
		{"params", number, `["0x7","0x0"]`, `{"jsonrpc":"2.0","id":null,"result":{"n":7}}`},
		{"params after white space", number, " \n[\"0x7\",\"0x0\"] ", `{"jsonrpc":"2.0","id":null,"result":{"n":7}}`},
		{"nothing found", number, `["0x8","0x0"]`, `{"jsonrpc":"2.0","id":null,"result":null}`},
		{"by hash", hash, `["0x09` + strings.Repeat("00", 31) + `","0x1"]`, `{"jsonrpc":"2.0","id":null,"result":` + known[byHash] + `}`},
		{"request", number, `{"jsonrpc":"2.0","id":"a","method":"` + number + `","params":["0x7","0x0"]}`, `{"jsonrpc":"2.0","id":"a","result":{"n":7}}`},
		{"bad params", number, `["7","0x0"]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"invalid argument 0: hex string without 0x prefix"}}`},
		{"bad JSON", number, `["0x7"`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`},
		{"bad request", number, `{"id":1}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"invalid request"}}`},
		{"another method", number, `{"jsonrpc":"2.0","id":1,"method":"` + hash + `"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"this subject is for the method ` + number + `"}}`},
		{"unknown method", "nothing", `[]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"the method nothing does not exist/is not available"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, subject := range []string{"ommer.v1." + network + "." + c.method, "ommer.w.w1.v1." + network + "." + c.method} {
				m, err := nc.Request(subject, []byte(c.ask), patience)
				if err != nil {
					t.Fatal(err)
				}
				if got := string(m.Data); got != c.want {
					t.Errorf("%s\ngot  %s\nwant %s", subject, got, c.want)
				}
			}
		})
	}
}

func TestServerRefusesWhatItDoesNotKnow(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	newFixedServer(t, srv.URL(), nil)
	nc, err := nats.Connect(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	good := schema.AppendRequest(nil, schema.Request{ID: 42, Question: byNumber})
	version, kind := append([]byte(nil), good...), append([]byte(nil), good...)
	version[0], kind[13] = 2, 99
	for _, c := range []struct {
		name   string
		method schema.Method
		frame  []byte
		want   schema.Code
	}{
		{"good", schema.UncleByNumber, good, schema.OK},
		{"newer version", schema.UncleByNumber, version, schema.Unsupported},
		{"unknown kind", schema.UncleByNumber, kind, schema.Unsupported},
		{"subject of another method", schema.UncleByHash, good, schema.Unsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := nc.Request("ommer.v1."+network+"."+c.method.String(), c.frame, patience)
			if err != nil {
				t.Fatal(err)
			}
			id, a, err := schema.ParseReply(m.Data)
			if err != nil || id != 42 || codeOf(a) != c.want {
				t.Errorf("id %d, %v, %v; want %v", id, a.Err, err, c.want)
			}
		})
	}
}

func TestServerShedsOverItsLimit(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	fixed := schematest.NewFixed(known)
	t.Cleanup(fixed.Stop)
	reg := prometheus.NewRegistry()
	s := newServer(t, bus.ServerConfig{Links: []*bus.Link{dial(t, "w", srv.URL())}, Resolver: fixed, MaxInFlight: 10, Registerer: reg})
	leaveAtEnd(t, s)
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}})
	fixed.Hold()
	var in []*one
	for range 10 {
		in = append(in, ask(t, c, byNumber, patience))
	}
	eventually(t, "all are held", func() bool { return s.InFlight() == 10 })
	ask(t, c, byNumber, patience).want(schema.Overloaded)
	if got := counter(t, reg, "ommer_bus_questions_total", "overloaded"); got != 2 {
		t.Errorf("refused %v times, want twice: it is tried once more", got)
	}
	fixed.Release()
	for _, o := range in {
		o.want(schema.OK)
	}
	ask(t, c, byNumber, patience).want(schema.OK)
}

func TestServerDoesNotAnswerLate(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	reg := prometheus.NewRegistry()
	type late struct {
		to  schema.Receiver
		due time.Time
	}
	stubborn := make(chan late, 100)
	s := newServer(t, bus.ServerConfig{
		Links: []*bus.Link{dial(t, "w", srv.URL())}, Registerer: reg,
		Resolver: resolverFunc(func(_ schema.Question, due time.Time, to schema.Receiver) { stubborn <- late{to, due} }),
	})
	leaveAtEnd(t, s)
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}, Registerer: reg})
	asked := 0
	eventually(t, "the worker is asked", func() bool {
		ask(t, c, byNumber, 30*time.Millisecond).want(schema.Timeout)
		asked = len(stubborn)
		return asked > 0
	})
	for range asked {
		l := <-stubborn
		eventually(t, "the worker's deadline is over", func() bool { return time.Now().After(l.due) })
		l.to.Answered(okAnswer)
	}
	if got := counter(t, reg, "ommer_bus_questions_total", "expired"); got != float64(asked) {
		t.Errorf("%v expired of %d", got, asked)
	}
	if got := s.InFlight(); got != 0 {
		t.Errorf("%d in flight", got)
	}
}

type resolverFunc func(schema.Question, time.Time, schema.Receiver)

func (f resolverFunc) Resolve(q schema.Question, d time.Time, to schema.Receiver) { f(q, d, to) }

// TestLeaveUnderLoad: one of two workers comes and goes while questions are asked
// as fast as they are answered. It takes them slower than they come and answers
// later from elsewhere, so that it leaves with questions in every place.
func TestLeaveUnderLoad(t *testing.T) {
	t.Parallel()
	for name, ids := range map[string][2]string{"queue group": {}, "by worker": {"stayer", "leaver"}} {
		t.Run(name, func(t *testing.T) {
			srv := startNATS(t, embedded.Config{})
			quick := resolverFunc(func(_ schema.Question, _ time.Time, to schema.Receiver) { to.Answered(okAnswer) })
			leaveAtEnd(t, newServer(t, bus.ServerConfig{Links: []*bus.Link{dial(t, "w", srv.URL())}, Resolver: quick, WorkerID: ids[0]}))
			c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}})
			l := startLoadOf(t, c, func(i int) schema.Question { return schema.Question{Block: schema.Number(uint64(i))} }, 256, patience)
			slow := resolverFunc(func(_ schema.Question, _ time.Time, to schema.Receiver) {
				for began := time.Now(); time.Since(began) < 100*time.Microsecond; {
					runtime.Gosched()
				}
				time.AfterFunc(2*time.Millisecond, func() { to.Answered(okAnswer) })
			})
			for range 10 {
				link := dial(t, "leaver", srv.URL())
				s := newServer(t, bus.ServerConfig{Links: []*bus.Link{link}, Resolver: slow, WorkerID: ids[1]})
				eventually(t, "it is asked", func() bool { return s.InFlight() > 10 })
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				if err := s.Leave(ctx); err != nil {
					t.Error(err)
				}
				cancel()
				link.Close()
			}
			l.end()
			if l.failed() > 0 {
				t.Errorf("%d of %d lost: %v", l.failed(), l.asked.Load(), l)
			}
		})
	}
}

// TestLeavingWorkerKeepsItsQuestions: what the last worker still has is answered by
// it, although new questions find nobody.
func TestLeavingWorkerKeepsItsQuestions(t *testing.T) {
	t.Parallel()
	srv := startNATS(t, embedded.Config{})
	fixed := schematest.NewFixed(known)
	t.Cleanup(fixed.Stop)
	s := newServer(t, bus.ServerConfig{Links: []*bus.Link{dial(t, "w", srv.URL())}, Resolver: fixed})
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}})
	fixed.Hold()
	var in []*one
	for range 100 {
		in = append(in, ask(t, c, byNumber, patience))
	}
	eventually(t, "all are held", func() bool { return s.InFlight() == 100 })
	eventually(t, "and known to be", c.Settled)
	left := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() { left <- s.Leave(ctx) }()
	eventually(t, "it leaves", func() bool { return s.Missing() != "" })
	eventually(t, "it has left", func() bool { return codeOf(ask(t, c, byHash, patience/20).wait()) == schema.NoWorkers })
	var out []*one
	for range 200 {
		out = append(out, ask(t, c, byNumber, patience))
	}
	for _, o := range out {
		o.want(schema.NoWorkers)
	}
	fixed.Release()
	for _, o := range in {
		o.want(schema.OK)
	}
	if err := <-left; err != nil {
		t.Error(err)
	}
}

func TestLeaveIsBounded(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	fixed := schematest.NewFixed(known)
	t.Cleanup(fixed.Stop)
	s := newServer(t, bus.ServerConfig{Links: []*bus.Link{dial(t, "w", srv.URL())}, Resolver: fixed})
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}})
	fixed.Hold()
	o := ask(t, c, byNumber, patience)
	eventually(t, "held", func() bool { return s.InFlight() == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Leave(ctx); !errors.Is(err, bus.ErrUnfinished) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	fixed.Release()
	o.want(schema.OK) // still sent while the link is there
}

// A worker answers to edges and to inboxes, and writes nowhere else for whoever asks.
func TestServerAnswersNobodyElse(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	reg := prometheus.NewRegistry()
	newFixedServer(t, srv.URL(), reg)
	nc, err := nats.Connect(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	written, err := nc.SubscribeSync("$KV.>")
	if err != nil {
		t.Fatal(err)
	}
	subject := "ommer.v1." + network + "." + byNumber.Method().String()
	for _, data := range [][]byte{schema.AppendRequest(nil, schema.Request{ID: 1, Question: byNumber}), []byte(`["0x7","0x0"]`)} {
		if err := nc.PublishRequest(subject, "$KV.ommer_keys.x", data); err != nil {
			t.Fatal(err)
		}
	}
	// Its answer comes after those of the questions before it.
	if _, err := nc.Request(subject, []byte(`["0x7","0x0"]`), patience); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, err := written.Pending(); n != 0 || err != nil {
		t.Errorf("%d messages were written to the keys, %v", n, err)
	}
}
