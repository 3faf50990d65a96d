package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
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
	// maxSmall bounds the same for what is not a question.
	maxSmall = 64 << 10
	// subscribeTimeout bounds the wait for the server to confirm a subscription.
	subscribeTimeout = 2 * time.Second
	// flushTimeout bounds the wait for the last answers to reach the server.
	flushTimeout = 5 * time.Second
)

// ServerConfig says how a Server answers.
type ServerConfig struct {
	// Links are the connections to serve on, 1 to 8, best to different NATS servers.
	// They are the Server's alone, and stay open when it leaves.
	Links []*Link
	// Network is the token that names the chain in subjects.
	Network string
	// Resolver answers the questions.
	Resolver schema.Resolver
	// WorkerID is the token of the worker's own subjects. Empty means that it has
	// none, announces nothing, and only shares the queue. Servers of one process for
	// several networks have the same.
	WorkerID string
	// Zone is a token that says where the worker is: edges there prefer it. It may be
	// empty.
	Zone string
	// Version of the program, as it is announced.
	Version string
	// Ready says whether the worker should be asked: nil, or what is missing. It is
	// called every LoadInterval. A nil func means always.
	Ready func() error
	// Figures are shown among the statistics of the service, as JSON. It may be nil.
	Figures func() any
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
	cfg      ServerConfig
	links    []*serverLink
	log      *slog.Logger
	metrics  *serverMetrics
	failures failures
	instance string
	started  time.Time

	inFlight atomic.Int64
	leaving  atomic.Bool
	namesake atomic.Int64  // announcements of another worker in this one's name
	idle     chan struct{} // poked when a leaving server has nothing in flight
	lookups  sync.Pool
	letters  sync.Pool
	post     post
	service  service

	// What tends the links, see home.go.
	poked   chan struct{} // something may have changed
	stop    chan struct{} // closed when tend should end
	tending sync.WaitGroup
	moving  sync.WaitGroup
	unwatch []func()

	mu       sync.Mutex
	home     *serverLink // nil without a WorkerID
	epoch    uint64
	judgedOn time.Time // from when on silence counts, see mute
	mean     mean
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
	s := &Server{
		cfg: cfg, log: cfg.Logger, instance: randomToken(), started: time.Now(), judgedOn: time.Now(),
		idle: make(chan struct{}, 1), poked: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.lookups.New = func() any { return &lookup{server: s} }
	s.letters.New = func() any { return &letter{server: s} }
	s.post.init()
	s.metrics = newServerMetrics(s)
	if err := s.join(); err != nil {
		s.abandon()
		return nil, fmt.Errorf("bus server: %w", err)
	}
	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(s.metrics); err != nil {
			s.abandon()
			return nil, fmt.Errorf("bus server: metrics: %w", err)
		}
	}
	s.tending.Go(s.tend)
	if cfg.WorkerID != "" {
		for _, l := range s.links {
			s.tending.Go(func() { l.speak(loadSubject(cfg.WorkerID)) })
		}
	}
	for _, l := range s.links {
		if l.Up() {
			// So that whoever asks after this returns finds the server. When it fails
			// the connection is being lost, and the next one subscribes again.
			_ = l.nc.FlushTimeout(subscribeTimeout)
		}
	}
	return s, nil
}

func (cfg ServerConfig) validate() error {
	if len(cfg.Links) < 1 || len(cfg.Links) > maxLinks || slices.Contains(cfg.Links, nil) {
		return fmt.Errorf("%w: Links must be 1 to %d", ErrConfig, maxLinks)
	}
	if cfg.Resolver == nil {
		return fmt.Errorf("%w: Resolver is needed", ErrConfig)
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
	if cfg.Zone != "" {
		if err := checkToken("Zone", cfg.Zone); err != nil {
			return err
		}
	}
	return checkToken("Network", cfg.Network)
}

// join subscribes on every link, and begins to follow what becomes of them.
func (s *Server) join() error {
	for i, link := range s.cfg.Links {
		l := &serverLink{Link: link, number: i, seen: link.losses.Load(), words: make(chan []byte, 1)}
		s.links = append(s.links, l)
		if err := s.serve(l); err != nil {
			return err
		}
		s.unwatch = append(s.unwatch, l.Watch(func(bool) { s.poke() }))
		l.OnLameDuck(func() {
			l.lame.Store(l.losses.Load() + 1)
			s.poke()
		})
	}
	if s.cfg.WorkerID == "" {
		return nil
	}
	s.home = s.links[0]
	if l := s.refuge(s.home); !s.home.Up() && l != nil {
		s.home = l
	}
	return s.settle(s.home)
}

// serve subscribes to what is taken on each link. The caller holds mu, or is alone.
func (s *Server) serve(l *serverLink) error {
	if err := l.subscribe(shared, questionSubjects(s.cfg.Network), queue, maxBacklog, s.inlet(l)); err != nil {
		return err
	}
	if s.cfg.WorkerID == "" || l.has(ear) {
		return nil
	}
	return l.subscribe(ear, loadSubject(s.cfg.WorkerID), "", maxSmall, func(m *nats.Msg) { s.hear(l, m) })
}

// settle subscribes to what is for this worker alone. The caller holds mu, or is alone.
func (s *Server) settle(l *serverLink) error {
	if err := l.subscribe(own, directSubjects(s.cfg.WorkerID, s.cfg.Network), "", maxBacklog, s.inlet(l)); err != nil {
		return err
	}
	return s.service.listen(s, l)
}

// abandon undoes a start that failed.
func (s *Server) abandon() {
	for _, unwatch := range s.unwatch {
		unwatch()
	}
	for _, l := range s.links {
		drop(l.take(shared, own, ear))
	}
}

// Missing says in words what keeps questions from arriving, and nothing when they
// can: over one link is enough.
func (s *Server) Missing() string {
	if s.leaving.Load() {
		return "the worker is leaving the bus"
	}
	missing := ""
	for _, l := range s.links {
		if refused := l.Refused(); refused != "" {
			return refused // it may never be asked anything, and cannot find out
		}
	}
	for _, l := range s.links {
		if missing = l.Missing(); missing == "" {
			return ""
		}
	}
	return missing
}

// InFlight is the number of questions that the Resolver has.
func (s *Server) InFlight() int { return int(s.inFlight.Load()) }

// Leave ends the Server without losing a question: it says that it leaves, leaves the
// queue, takes what was already on its way, waits until everything is answered, and
// until the NATS servers have the answers. (Draining the connections instead would lose
// the answers that are still being looked for.) It gives up with ErrUnfinished when ctx
// is done. It must be called once.
func (s *Server) Leave(ctx context.Context) error {
	s.mu.Lock()
	s.leaving.Store(true) // no link is given up from now on
	s.mu.Unlock()
	s.poke()
	s.moving.Wait()
	err := s.finish(ctx)
	// The last announcement follows the last answers. Who still waits for one after it
	// asked in the moment in which a server forgets a subscription, and asks another.
	s.grow()
	close(s.stop)
	s.tending.Wait()
	for _, l := range s.links {
		if l.Up() && err == nil {
			_ = l.nc.FlushTimeout(time.Second) // edges will notice without
		}
	}
	for _, unwatch := range s.unwatch {
		unwatch()
	}
	if r := s.cfg.Registerer; r != nil {
		r.Unregister(s.metrics)
	}
	return err
}

// finish takes what is on its way and sees to its answers.
func (s *Server) finish(ctx context.Context) error {
	var flushes []func() error
	for _, l := range s.links {
		alive, cancel := l.untilLost(ctx)
		defer cancel()
		s.mu.Lock()
		subs := l.take(shared, own, ear)
		s.mu.Unlock()
		drain(alive, subs)
		flushes = append(flushes, func() error {
			if alive.Err() != nil {
				return nil // nobody to flush to: the askers ask again
			}
			ctx, cancel := context.WithTimeout(alive, flushTimeout)
			defer cancel()
			if err := l.nc.FlushWithContext(ctx); err != nil && alive.Err() == nil {
				return fmt.Errorf("bus server: leaving: %w", err)
			}
			return nil
		})
	}
	if ctx.Err() != nil {
		return s.unfinished(ctx)
	}
	for s.inFlight.Load() > 0 {
		select {
		case <-s.idle:
		case <-ctx.Done():
			return s.unfinished(ctx)
		}
	}
	var err error
	for _, flush := range flushes {
		err = errors.Join(err, flush())
	}
	return err
}

func (s *Server) unfinished(ctx context.Context) error {
	return fmt.Errorf("%w: %d in flight: %w", ErrUnfinished, s.inFlight.Load(), ctx.Err())
}

// inlet is what takes the messages of one subscription to questions.
func (s *Server) inlet(l *serverLink) nats.MsgHandler {
	return func(m *nats.Msg) { s.receive(l, m) }
}

// receive runs on the goroutine of a subscription and waits for nothing.
func (s *Server) receive(via *serverLink, m *nats.Msg) {
	began := time.Now()
	if !isReply(m.Reply) || len(m.Data) == 0 {
		s.metrics.outcome(outcomeUnreadable)
		return
	}
	if m.Data[0] > schema.FrameVersion && isPlain(m.Data) {
		s.receivePlain(via, m, began)
		return
	}
	l := s.letters.Get().(*letter)
	l.to, l.via = m.Reply, via
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
		s.metrics.outcome(outcomeOverloaded)
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

// publish sends an answer over the link that its question came over, and over another
// one while that one has no connection.
func (s *Server) publish(via *serverLink, to string, b []byte) {
	if via.usable() && s.send(via, to, b) == nil {
		return
	}
	for _, l := range s.links {
		if l != via && l.usable() && s.send(l, to, b) == nil {
			return
		}
	}
	// With all connections lost it is held for the next one, see LinkConfig.Hold.
	if err := s.send(via, to, b); err != nil {
		// The asker will notice by itself.
		s.metrics.unsent.Inc()
		s.log.Debug("answer could not be sent", "reason", reason(err))
	}
}

func (s *Server) send(l *serverLink, to string, b []byte) error {
	if !l.carried.Load() {
		l.carried.Store(true)
	}
	return l.nc.Publish(to, b)
}

// done takes note of an answer by the Resolver and of how long it took.
func (s *Server) done(a schema.Answer, took time.Duration) {
	if a.Err != nil {
		s.failures.log(s.log, a.Err)
		if a.Err.Code == schema.Overloaded {
			return // not looked up: it would pass for a quick answer
		}
	}
	s.metrics.seconds.Observe(took.Seconds())
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
	s.done(a, now.Sub(l.began))
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
