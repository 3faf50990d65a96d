package bus_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/ommer/ommer/bus"
	"github.com/ommer/ommer/bus/embedded"
	"github.com/ommer/ommer/schema"
)

// slowly answers question n of a message when the test lets it.
type slowly struct {
	mu    sync.Mutex
	asked map[uint64]schema.Receiver // by index
	come  chan struct{}
}

func newSlowly() *slowly {
	return &slowly{asked: map[uint64]schema.Receiver{}, come: make(chan struct{}, 100)}
}

func (s *slowly) Resolve(q schema.Question, _ time.Time, to schema.Receiver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[q.Index] = to
	s.come <- struct{}{}
}

func (s *slowly) answer(index uint64, text string) {
	s.mu.Lock()
	to := s.asked[index]
	s.mu.Unlock()
	to.Answered(schema.Answer{Result: []byte(text)})
}

// replies are the messages that come back for one that holds n questions with the
// indexes 0 to n-1, which are their ids too.
func askTogether(t *testing.T, url string, n uint64, between ...[]byte) <-chan *nats.Msg {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	come := make(chan *nats.Msg, 100)
	if _, err := nc.ChanSubscribe("_R.test", come); err != nil {
		t.Fatal(err)
	}
	message := []byte{schema.FrameBundle}
	add := func(frame []byte) {
		message = append(message, 0, 0, byte(len(frame)>>8), byte(len(frame)))
		message = append(message, frame...)
	}
	for i := range n {
		add(schema.AppendRequest(nil, schema.Request{ID: i, Question: schema.Question{Block: schema.Number(7), Index: i}}))
	}
	for _, frame := range between {
		add(frame)
	}
	if err := nc.PublishRequest("ommer.v1."+network+"."+byNumber.Method().String(), "_R.test", message); err != nil {
		t.Fatal(err)
	}
	return come
}

// next is what the next message says, by id.
func next(t *testing.T, come <-chan *nats.Msg) map[uint64]string {
	t.Helper()
	select {
	case m := <-come:
		answers := map[uint64]string{}
		for frame := range schema.Frames(m.Data) {
			id, a, err := schema.ParseReply(frame)
			if err != nil {
				t.Fatal(err)
			}
			answers[id] = string(a.Result)
			if a.Err != nil {
				answers[id] = a.Err.Code.String()
			}
		}
		return answers
	case <-time.After(patience):
		t.Fatal("no message")
		return nil
	}
}

func startSlowly(t *testing.T) (*slowly, *bus.Server, string) {
	t.Helper()
	srv := startNATS(t, embedded.Config{})
	r := newSlowly()
	s := newServer(t, bus.ServerConfig{Links: []*bus.Link{dial(t, "w", srv.URL())}, Resolver: r})
	return r, s, srv.URL()
}

// Answers that come together leave together.
func TestAnswersLeaveTogether(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	startInstant(t, srv.URL())
	steadily(t, func() (wrong string) {
		if got := next(t, askTogether(t, srv.URL(), 5)); len(got) != 5 {
			return fmt.Sprintf("%d answers in the first message, want all 5", len(got))
		}
		return ""
	})
}

// An answer does not wait for one that takes long.
func TestAnswerDoesNotWaitForOthers(t *testing.T) {
	r, s, url := startSlowly(t)
	leaveAtEnd(t, s)
	come := askTogether(t, url, 3)
	for range 3 {
		<-r.come
	}
	r.answer(1, "1")
	if got := next(t, come); len(got) != 1 || got[1] != "1" {
		t.Errorf("got %v, want what is there", got)
	}
	r.answer(0, "0")
	if got := next(t, come); len(got) != 1 || got[0] != "0" {
		t.Errorf("got %v, want what is there", got)
	}
	r.answer(2, "2")
	if got := next(t, come); len(got) != 1 || got[2] != "2" {
		t.Errorf("got %v, want the last", got)
	}
}

// Answers beyond the bytes of a message take another one, each of them once.
func TestAnswersOfManyBytes(t *testing.T) {
	r, s, url := startSlowly(t)
	leaveAtEnd(t, s)
	come := askTogether(t, url, 4)
	for range 4 {
		<-r.come
	}
	large := strings.Repeat("x", 20<<10)
	for i := range uint64(4) {
		r.answer(i, large)
	}
	seen := map[uint64]bool{}
	for len(seen) < 4 {
		got := next(t, come)
		if len(got) > 2 {
			t.Errorf("%d answers of 20 KiB in one message", len(got))
		}
		for id, text := range got {
			if seen[id] || text != large {
				t.Errorf("answer %d: again %v, %d bytes", id, seen[id], len(text))
			}
			seen[id] = true
		}
	}
}

// What cannot be read does not keep the others from their answers.
func TestMessageWithGarbage(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	startInstant(t, srv.URL())
	later := schema.AppendRequest(nil, schema.Request{ID: 77, Question: byNumber})
	later[0] = 2
	come := askTogether(t, srv.URL(), 2, []byte("x"), later, nil)
	got := next(t, come)
	if len(got) != 3 || len(got[0]) == 0 || len(got[1]) == 0 || got[77] != schema.Unsupported.String() {
		t.Errorf("got %d answers, that of the later version %q", len(got), got[77])
	}
}

// A server that leaves sends what waits for company.
func TestLeavingSendsLetters(t *testing.T) {
	r, s, url := startSlowly(t)
	come := askTogether(t, url, 3)
	for range 3 {
		<-r.come
	}
	left := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		left <- s.Leave(ctx)
	}()
	for i := range uint64(3) {
		r.answer(i, "x")
	}
	if err := <-left; err != nil {
		t.Fatal(err)
	}
	if n := s.InFlight(); n != 0 {
		t.Errorf("%d in flight", n)
	}
	for n := 0; n < 3; {
		n += len(next(t, come))
	}
}

// Questions that are asked in one moment travel in few messages, and each gets its own
// answer.
func TestQuestionsLeaveTogether(t *testing.T) {
	srv := startNATS(t, embedded.Config{})
	nc, err := nats.Connect(srv.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	messages := make(chan int, 10000)
	_, err = nc.Subscribe("ommer.v1.>", func(m *nats.Msg) {
		var b schema.Bundle
		n := 0
		for frame := range schema.Frames(m.Data) {
			r, err := schema.ParseRequest(frame)
			if err != nil {
				t.Error(err)
			}
			b.AddReply(r.ID, schema.Answer{Result: []byte{'0' + byte(r.Question.Index%10)}})
			n++
		}
		messages <- n
		if err := m.Respond(b.Message()); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, bus.ClientConfig{Links: []*bus.Link{dial(t, "e", srv.URL())}})
	const n = 1000
	var in []*one
	for i := range uint64(n) {
		in = append(in, ask(t, c, schema.Question{Block: schema.Number(7), Index: i}, patience))
	}
	for i, o := range in {
		if a := o.wait(); a.Err != nil || string(a.Result) != string(rune('0'+i%10)) {
			t.Fatalf("question %d: %s, %v", i, a.Result, a.Err)
		}
	}
	total, most := 0, 0
	for total < n {
		m := <-messages
		total, most = total+m, max(most, m)
	}
	if most < 2 || most > 32 {
		t.Errorf("up to %d questions in a message, want 2 to 32", most)
	}
}
