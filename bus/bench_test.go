package bus_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/schema"
)

// uncle is as long as an answer usually is.
var uncle = schema.Answer{Result: append(append([]byte{'"'}, make([]byte, 1500)...), '"')}

// instant answers every question at once.
var instant = resolverFunc(func(_ schema.Question, _ time.Time, to schema.Receiver) { to.Answered(uncle) })

// signal is a Receiver that costs nothing.
type signal chan schema.Answer

func (s signal) Answered(a schema.Answer) { s <- a }

// echo answers frames without anything that a Server does besides.
func echo(t testing.TB, url string) {
	reply := schema.AppendReply(nil, 0, uncle)
	worker(t, url, func(_ int, m *nats.Msg) []byte {
		copy(reply[1:9], m.Data[1:9])
		return reply
	})
}

// asker asks once and waits for the answer.
type asker func() error

func rawAsker(t testing.TB, url string) asker {
	nc, err := nats.Connect(url, nats.SkipSubjectValidation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	done := make(chan struct{}, 1)
	reply := nc.NewInbox()
	if _, err := nc.Subscribe(reply, func(*nats.Msg) { done <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	subject := "ommer.v1." + network + "." + byNumber.Method().String()
	f := schema.AppendRequest(nil, schema.Request{ID: 1, Budget: time.Minute, Question: byNumber})
	return func() error {
		err := nc.PublishRequest(subject, reply, f)
		<-done
		return err
	}
}

func clientAsker(t testing.TB, url string) asker {
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", url)}})
	s := make(signal, 1)
	return func() error {
		c.Resolve(byNumber, time.Time{}, s)
		if a := <-s; a.Err != nil {
			return a.Err
		}
		return nil
	}
}

func startInstant(t testing.TB, url string) { startInstantAs(t, url, "") }

// startKnown starts one that announces itself.
func startKnown(t testing.TB, url string) { startInstantAs(t, url, "w1") }

func startInstantAs(t testing.TB, url, id string) {
	s := newServer(t, bus.ServerConfig{Links: []*bus.Link{dial(t, "w", url)}, Resolver: instant, WorkerID: id})
	t.Cleanup(func() {
		if err := s.Leave(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// TestAllocations holds both sides to what nats.go allocates by itself for the two
// messages.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("sync.Pool drops at random under the race detector")
	}
	measure := func(start func(testing.TB, string), with func(testing.TB, string) asker) float64 {
		srv := startNATS(t, embedded.Config{})
		start(t, srv.URL())
		a := with(t, srv.URL())
		for range 2000 { // grow what grows
			if err := a(); err != nil {
				t.Fatal(err)
			}
		}
		return testing.AllocsPerRun(3000, func() {
			if err := a(); err != nil {
				t.Fatal(err)
			}
		})
	}
	// AllocsPerRun rounds down; the clock and the confirmations are far below one.
	base := measure(echo, rawAsker)
	if got := measure(echo, clientAsker); got > base {
		t.Errorf("a Client allocates %v times per question, nats.go alone %v", got, base)
	}
	if got := measure(startInstant, rawAsker); got > base {
		t.Errorf("a Server allocates %v times per question, nats.go alone %v", got, base)
	}
	if got := measure(startKnown, clientAsker); got > base {
		t.Errorf("both, with a choice of workers, allocate %v times per question, nats.go alone %v", got, base)
	}
}

func BenchmarkAsk(b *testing.B) {
	b.Run("sequential", func(b *testing.B) {
		srv := startNATS(b, embedded.Config{})
		startInstant(b, srv.URL())
		a := clientAsker(b, srv.URL())
		b.ReportAllocs()
		for b.Loop() {
			if err := a(); err != nil {
				b.Fatal(err)
			}
		}
	})
	const inFlight = 256
	b.Run("inflight=256", func(b *testing.B) {
		srv := startNATS(b, embedded.Config{})
		startInstant(b, srv.URL())
		c := newClient(b, bus.ClientConfig{Links: []*bus.Link{dial(b, "e", srv.URL())}})
		s := make(signal, inFlight)
		b.ReportAllocs()
		for range inFlight - 1 {
			c.Resolve(byNumber, time.Time{}, s)
		}
		for b.Loop() {
			c.Resolve(byNumber, time.Time{}, s)
			if a := <-s; a.Err != nil {
				b.Fatal(a.Err)
			}
		}
		for range inFlight - 1 {
			<-s
		}
	})
	b.Run("nc.Request/inflight=256", func(b *testing.B) {
		srv := startNATS(b, embedded.Config{})
		startInstant(b, srv.URL())
		nc, err := nats.Connect(srv.URL())
		if err != nil {
			b.Fatal(err)
		}
		defer nc.Close()
		subject := "ommer.v1." + network + "." + byNumber.Method().String()
		f := schema.AppendRequest(nil, schema.Request{ID: 1, Budget: time.Minute, Question: byNumber})
		work := make(chan struct{})
		var wg sync.WaitGroup
		for range inFlight {
			wg.Go(func() {
				for range work {
					if _, err := nc.Request(subject, f, time.Minute); err != nil {
						b.Error(err)
					}
				}
			})
		}
		b.ReportAllocs()
		for b.Loop() {
			work <- struct{}{}
		}
		close(work)
		wg.Wait()
	})
}
