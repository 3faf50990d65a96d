package actor_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ommer/ommer/bus/actor"
)

// lookup asks a directory for a number.
type lookup struct {
	actor.Reply[int]
	name string
}

// directory is an actor: nobody else touches its map, so it has no lock.
type directory struct {
	numbers map[string]int
}

var errUnknown = errors.New("no such name")

func (d *directory) Receive(m lookup) {
	if n, ok := d.numbers[m.name]; ok {
		m.Answer(n)
		return
	}
	m.Fail(fmt.Errorf("%w: %s", errUnknown, m.name))
}

func Example() {
	sys, err := actor.NewSystem(actor.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ref, err := actor.Spawn(sys, actor.Options{Name: "directory", Mailbox: 100},
		func(*actor.Ref[lookup]) (actor.Actor[lookup], error) {
			return &directory{numbers: map[string]int{"jennie": 8675309}}, nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, name := range []string{"jennie", "tommy"} {
		n, err := actor.Ask(ctx, ref, func(r actor.Reply[int]) lookup { return lookup{r, name} })
		fmt.Println(n, err)
	}

	fmt.Println(sys.Stop(ctx))
	fmt.Println(ref.Tell(lookup{name: "jennie"}))
	// Output:
	// 8675309 <nil>
	// 0 no such name: tommy
	// <nil>
	// actor: stopped
}

// session is one of very many: it has a cell and no goroutine. Its input is kept
// in its own fields.
type session struct {
	cell actor.Cell
	pool *actor.Pool

	mu    sync.Mutex
	lines []string

	seen int           // the run's own
	done chan struct{} // closed when the session ends
}

// The signals of a session.
const (
	readable = 1 << iota
	closed
)

// line is called by whoever reads from the network.
func (s *session) line(text string) {
	s.mu.Lock()
	s.lines = append(s.lines, text)
	s.mu.Unlock()
	s.signal(readable)
}

func (s *session) signal(bits uint32) {
	if s.cell.Post(bits) {
		s.pool.Submit(s)
	}
}

// Run is called by the pool, never twice at a time.
func (s *session) Run() {
	for {
		bits := s.cell.Take()
		if bits&readable != 0 {
			s.mu.Lock()
			s.seen += len(s.lines)
			s.lines = s.lines[:0]
			s.mu.Unlock()
		}
		if bits&closed != 0 {
			close(s.done)
			return // holding the run: nothing that is posted now starts another
		}
		if s.cell.Rest() {
			return
		}
	}
}

func Example_session() {
	pool := actor.NewPool(0)
	defer pool.Close()
	s := &session{pool: pool, done: make(chan struct{})}
	for i := range 3 {
		s.line(fmt.Sprint("line ", i))
	}
	s.signal(closed)
	<-s.done
	fmt.Println(s.seen, "lines")
	// Output: 3 lines
}
