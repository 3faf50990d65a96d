package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/ommer/ommer/schema"
	"github.com/prometheus/client_golang/prometheus"
)

// Defaults and bounds of ServerConfig.
const (
	DefaultMaxInFlight = 32768
	// MaxInFlightLimit is the most that MaxInFlight can be set to.
	MaxInFlightLimit = 1 << 20

	// maxBacklog bounds in bytes what waits to be decoded, per subscription. The
	// receiving side waits for nothing, so the backlog is what arrives while its
	// goroutine is not scheduled; 16 MiB is about 100,000 questions.
	maxBacklog = 16 << 20
	// subscribeTimeout bounds the wait for the server to confirm a subscription.
	subscribeTimeout = 2 * time.Second
	// flushTimeout bounds the wait for the last answers to reach the server.
	flushTimeout = 5 * time.Second
)

// ServerConfig says how a Server answers.
type ServerConfig struct {
	// Link is the connection to serve on. It stays open when the Server leaves.
	Link *Link
	// Network is the token that names the chain in subjects.
	Network string
	// Resolver answers the questions.
	Resolver schema.Resolver
	// WorkerID is the token of the worker's own subjects. Empty means that it has
	// none and only shares the queue.
	WorkerID string
	// MaxInFlight is how many questions may be with the Resolver at once; one more
	// is answered with Overloaded. 0 means DefaultMaxInFlight.
	MaxInFlight int
	// Timeout is the time for a question that came without a budget, and the most
	// that a budget may ask for. 0 means DefaultTimeout.
	Timeout time.Duration
	// Logger gets what an operator should know. Nil logs nothing.
	Logger *slog.Logger
	// Registerer takes the metrics. Nil means none.
	Registerer prometheus.Registerer
}

// Server answers the questions of one network from a Resolver.
type Server struct {
	cfg     ServerConfig
	nc      *nats.Conn
	log     *slog.Logger
	metrics *serverMetrics
	subs    []*subscription

	inFlight atomic.Int64
	leaving  atomic.Bool
	idle     chan struct{} // poked when a leaving server has nothing in flight
	lookups  sync.Pool
	letters  sync.Pool
	post     post
}

// subscription is a NATS subscription whose end can be waited for.
type subscription struct {
	*nats.Subscription
	gone chan struct{}
}

// NewServer joins the queue of workers. It needs no connection to start: it joins
// when there is one. Leave ends it.
func NewServer(cfg ServerConfig) (*Server, error) {
	if cfg.MaxInFlight == 0 {
		cfg.MaxInFlight = DefaultMaxInFlight
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, nc: cfg.Link.nc, log: cfg.Logger, idle: make(chan struct{}, 1)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.lookups.New = func() any { return &lookup{server: s} }
	s.letters.New = func() any { return &letter{server: s} }
	s.post.init()
	s.metrics = newServerMetrics(s)
	patterns := []string{questionSubjects(cfg.Network)}
	groups := []string{queue}
	if cfg.WorkerID != "" {
		patterns = append(patterns, directSubjects(cfg.WorkerID, cfg.Network))
		groups = append(groups, cfg.WorkerID) // one copy, even over several links
	}
	for i, p := range patterns {
		if err := s.subscribe(p, groups[i]); err != nil {
			s.abandon()
			return nil, fmt.Errorf("bus server: %w", err)
		}
	}
	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(s.metrics); err != nil {
			s.abandon()
			return nil, fmt.Errorf("bus server: metrics: %w", err)
		}
	}
	if cfg.Link.Up() {
		// So that whoever asks after this returns finds the server. When it fails
		// the connection is being lost, and the next one subscribes again.
		_ = s.nc.FlushTimeout(subscribeTimeout)
	}
	return s, nil
}

func (cfg ServerConfig) validate() error {
	if cfg.Link == nil || cfg.Resolver == nil {
		return fmt.Errorf("%w: Link and Resolver are needed", ErrConfig)
	}
	if cfg.MaxInFlight < 1 || cfg.MaxInFlight > MaxInFlightLimit {
		return fmt.Errorf("%w: MaxInFlight must be 1 to %d", ErrConfig, MaxInFlightLimit)
	}
	if cfg.Timeout < time.Millisecond || cfg.Timeout > maxTimeout {
		return fmt.Errorf("%w: Timeout must be 1 ms to %v", ErrConfig, maxTimeout)
	}
	if cfg.WorkerID != "" {
		if err := checkToken("WorkerID", cfg.WorkerID); err != nil {
			return err
		}
	}
	return checkToken("Network", cfg.Network)
}

func (s *Server) subscribe(pattern, group string) error {
	sub, err := s.nc.QueueSubscribe(pattern, group, s.receive)
	if err != nil {
		return err
	}
	gone := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(gone) })
	s.subs = append(s.subs, &subscription{sub, gone})
	return sub.SetPendingLimits(-1, maxBacklog)
}

// abandon undoes a start that failed.
func (s *Server) abandon() {
	for _, sub := range s.subs {
		_ = sub.Unsubscribe() // an error means that it is gone already
	}
}

func (s *Server) unregister() {
	if r := s.cfg.Registerer; r != nil {
		r.Unregister(s.metrics)
	}
}

// Missing says in words what keeps questions from arriving, and nothing when they
// can.
func (s *Server) Missing() string {
	if s.leaving.Load() {
		return "the worker is leaving the bus"
	}
	return s.cfg.Link.Missing()
}

// InFlight is the number of questions that the Resolver has.
func (s *Server) InFlight() int { return int(s.inFlight.Load()) }

// Leave ends the Server without losing a question: it leaves the queue, takes what
// was already on its way, waits until everything is answered, and until the NATS
// server has the answers. (Draining the connection instead would lose the answers
// that are still being looked for.) It gives up with ErrUnfinished when ctx is
// done. It must be called once.
func (s *Server) Leave(ctx context.Context) error {
	s.leaving.Store(true)
	defer s.unregister()
	alive, lost := context.WithCancel(ctx) // until the connection is lost
	defer lost()
	defer s.cfg.Link.Watch(func(up bool) {
		if !up {
			lost()
		}
	})()
	if !s.cfg.Link.Up() {
		lost()
	}
	if err := s.unsubscribe(ctx, alive); err != nil {
		return err
	}
	for s.inFlight.Load() > 0 {
		select {
		case <-s.idle:
		case <-ctx.Done():
			return s.unfinished(ctx)
		}
	}
	if alive.Err() != nil {
		return nil // nobody to flush to: the askers ask again
	}
	ctx, cancel := context.WithTimeout(alive, flushTimeout)
	defer cancel()
	if err := s.nc.FlushWithContext(ctx); err != nil && alive.Err() == nil {
		return fmt.Errorf("bus server: leaving: %w", err)
	}
	return nil
}

// unsubscribe leaves the queue and waits until everything that was on its way has
// been taken. With the connection lost nothing is on its way.
func (s *Server) unsubscribe(ctx, alive context.Context) error {
	for _, sub := range s.subs {
		// An error here and below means that the connection was closed, and the
		// subscription with it.
		_ = sub.Drain()
	}
	for _, sub := range s.subs {
		select {
		case <-sub.gone:
			continue
		case <-alive.Done():
		}
		if ctx.Err() != nil {
			return s.unfinished(ctx)
		}
		_ = sub.Unsubscribe()
		<-sub.gone
	}
	return nil
}

func (s *Server) unfinished(ctx context.Context) error {
	return fmt.Errorf("%w: %d in flight: %w", ErrUnfinished, s.inFlight.Load(), ctx.Err())
}

// receive runs on the goroutine of a subscription and waits for nothing.
func (s *Server) receive(m *nats.Msg) {
	began := time.Now()
	if !isReply(m.Reply) || len(m.Data) == 0 {
		s.metrics.outcome(outcomeUnreadable)
		return
	}
	if m.Data[0] > schema.FrameVersion && isPlain(m.Data) {
		s.receivePlain(m, began)
		return
	}
	l := s.letters.Get().(*letter)
	l.to = m.Reply
	l.expect() // the end of the message
	method := lastToken(m.Subject)
	for frame := range schema.Frames(m.Data) {
		s.take(frame, method, l, began)
	}
	l.skip(false)
}

// take has a question looked up; its answer goes into the letter.
func (s *Server) take(frame []byte, method string, to *letter, began time.Time) {
	r, err := schema.ParseRequest(frame)
	switch {
	case errors.Is(err, schema.ErrFrameVersion), errors.Is(err, schema.ErrFrameKind):
		s.metrics.outcome(outcomeUnsupported)
		to.refuse(r.ID, errVersion)
		return
	case err != nil:
		s.metrics.outcome(outcomeUnreadable)
		return
	}
	if method != r.Question.Method().String() {
		s.metrics.outcome(outcomeUnsupported)
		to.refuse(r.ID, errSubject)
		return
	}
	if !s.admit() {
		to.refuse(r.ID, errOverloaded)
		return
	}
	budget := s.cfg.Timeout
	if r.Budget > 0 {
		budget = min(budget, r.Budget)
	}
	l := s.lookups.Get().(*lookup)
	l.letter, l.id, l.began, l.due = to, r.ID, began, began.Add(budget)
	to.expect()
	s.cfg.Resolver.Resolve(r.Question, l.due, l)
}

// admit takes one more question in flight if there is room.
func (s *Server) admit() bool {
	if s.inFlight.Add(1) > int64(s.cfg.MaxInFlight) {
		s.release(1)
		s.metrics.outcome(outcomeOverloaded)
		return false
	}
	return true
}

// release is the end of n questions in flight, their answers published.
func (s *Server) release(n int) {
	if n > 0 && s.inFlight.Add(int64(-n)) == 0 && s.leaving.Load() {
		select {
		case s.idle <- struct{}{}:
		default:
		}
	}
}

func (s *Server) publish(to string, b []byte) {
	if err := s.nc.Publish(to, b); err != nil {
		// The connection is lost, and the asker will notice by itself.
		s.metrics.unsent.Inc()
		s.log.Debug("answer could not be sent", "reason", reason(err))
	}
}

// lookup is one question in flight; it is the Receiver of its answer and is used
// again after that.
type lookup struct {
	server *Server
	letter *letter
	id     uint64
	began  time.Time
	due    time.Time
}

// Answered implements schema.Receiver.
func (l *lookup) Answered(a schema.Answer) {
	s, to, id := l.server, l.letter, l.id
	now := time.Now()
	s.metrics.seconds.Observe(now.Sub(l.began).Seconds())
	expired := now.After(l.due)
	l.letter = nil
	s.lookups.Put(l)
	if expired { // nobody waits for it any more
		s.metrics.outcome(outcomeExpired)
		to.skip(true)
	} else {
		s.metrics.answered(a)
		to.answer(id, a, true)
	}
}
