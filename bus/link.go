package bus

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// pingInterval and maxPings find a dead server within three seconds.
	pingInterval = time.Second
	maxPings     = 2
	// dialTimeout bounds each attempt to connect to one server.
	dialTimeout = 2 * time.Second
	// writeTimeout bounds how long a stalled socket can hold up who publishes.
	writeTimeout = time.Second
	// reconnectWait and reconnectJitter are the pause after a round over all
	// servers. Short, because questions are waiting; spread, because every edge
	// lost the same server at the same moment.
	reconnectWait   = 50 * time.Millisecond
	reconnectJitter = 100 * time.Millisecond
	// logAgain is how often the log repeats that the bus cannot be reached.
	logAgain = 30 * time.Second
)

// Link is one connection to the bus. It is never given up: while no server can be
// reached it tries again until it is closed, so that processes may start in any
// order.
type Link struct {
	nc   *nats.Conn
	log  *slog.Logger
	name string
	urls string // for the log, without credentials

	up      atomic.Bool
	changed atomic.Int64 // unix ns of the last change of up, or of Dial
	losses  atomic.Uint64
	closing atomic.Bool
	renewed atomic.Bool            // the loss to come is our own doing
	refused atomic.Pointer[string] // what the server does not let this user do; nil: nothing so far
	onClose func()                 // of those that it is kept apart from, or nil
	gone    chan struct{}          // closed after the last callback

	mu       sync.Mutex
	last     string // why the last attempt to connect failed
	logged   time.Time
	watchers []*watcher
	ducks    []func()
	troubled time.Time // when an error was last logged
}

// watcher is a func by identity, so that it can be taken out again.
type watcher struct{ f func(up bool) }

// Dial opens a Link. It returns without an error while no server can be reached;
// an error means that the configuration cannot be used. It takes at most two
// seconds per URL.
func Dial(cfg LinkConfig) (*Link, error) {
	opts, err := cfg.options()
	if err != nil {
		return nil, err
	}
	l := &Link{log: cfg.Logger, name: cfg.Name, urls: redactAll(cfg.URLs), gone: make(chan struct{})}
	if l.log == nil {
		l.log = slog.New(slog.DiscardHandler)
	}
	l.log = l.log.With("link", cfg.Name)
	l.changed.Store(time.Now().UnixNano())
	first := make(chan struct{})
	opts = append(opts,
		nats.ConnectHandler(func(nc *nats.Conn) { l.rise(nc); close(first) }),
		nats.ReconnectHandler(l.rise),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { l.fall(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { l.failed(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) { l.trouble(sub, err) }),
		nats.LameDuckModeHandler(func(nc *nats.Conn) { l.duck(nc) }),
		nats.ClosedHandler(func(*nats.Conn) { close(l.gone) }),
	)
	if l.nc, err = nats.Connect(strings.Join(cfg.URLs, ","), opts...); err != nil {
		return nil, configError("cannot be used", err)
	}
	if l.nc.IsConnected() {
		<-first // so that Up is true when Dial returns
	} else if err := l.nc.LastError(); err != nil {
		l.failed(err)
	}
	return l, nil
}

// Up says whether the link is connected.
func (l *Link) Up() bool { return l.up.Load() }

// Missing says in words what keeps the link from being ready, and nothing when it
// is. It is fit for a readiness page: no credentials.
func (l *Link) Missing() string {
	if l.Up() {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := "not connected to NATS at " + l.urls
	if l.last != "" {
		s += ": " + l.last
	}
	return s
}

// NATS is the connection itself, for the packages below bus. They must not close
// it.
func (l *Link) NATS() *nats.Conn { return l.nc }

// Watch calls f after each change, true for connected. Calls come one at a time
// and f must return soon, for the next change waits for it. The returned func ends
// the watch; a call that has begun may still be running.
func (l *Link) Watch(f func(up bool)) (cancel func()) {
	w := &watcher{f}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchers = append(slices.Clip(l.watchers), w)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if i := slices.Index(l.watchers, w); i >= 0 {
			l.watchers = slices.Delete(slices.Clone(l.watchers), i, i+1)
		}
	}
}

// OnLameDuck calls f when the server of the link says that it is about to stop: it takes
// no connections any more and will close this one within minutes. Calls come as those
// of Watch do, and f must return soon.
func (l *Link) OnLameDuck(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ducks = append(slices.Clip(l.ducks), f)
}

// Close ends the connection and waits for its callbacks. Whoever serves or asks
// over the link is closed before it.
func (l *Link) Close() {
	if !l.closing.Swap(true) {
		if l.onClose != nil {
			l.onClose()
		}
		l.nc.Close()
	}
	<-l.gone
}

// downFor is how long the link has been without a connection, 0 when it is up.
func (l *Link) downFor(now time.Time) time.Duration {
	if l.up.Load() {
		return 0
	}
	return max(0, time.Duration(now.UnixNano()-l.changed.Load()))
}

// upFor is how long the link has been connected, 0 when it is not.
func (l *Link) upFor(now time.Time) time.Duration {
	if !l.up.Load() {
		return 0
	}
	return max(0, time.Duration(now.UnixNano()-l.changed.Load()))
}

func (l *Link) rise(nc *nats.Conn) {
	l.mu.Lock()
	l.last, l.logged = "", time.Time{}
	l.mu.Unlock()
	l.refused.Store(nil)
	l.log.Info("bus connected", "server", redact(nc.ConnectedUrl()))
	l.change(true)
}

func (l *Link) fall(err error) {
	if l.closing.Load() {
		l.change(false)
		return
	}
	l.losses.Add(1)
	if l.renewed.Swap(false) {
		l.change(false)
		return
	}
	l.mu.Lock()
	l.last = reason(err)
	l.logged = time.Now()
	l.mu.Unlock()
	l.log.Warn("bus connection lost, reconnecting", "servers", l.urls, "reason", reason(err))
	l.change(false)
}

func (l *Link) duck(nc *nats.Conn) {
	l.log.Info("bus server is about to stop", "server", redact(nc.ConnectedUrl()))
	l.mu.Lock()
	fs := l.ducks
	l.mu.Unlock()
	for _, f := range fs {
		f()
	}
}

// failed notes an attempt that did not connect. The first is logged unless the
// loss itself just was, then one every logAgain.
func (l *Link) failed(err error) {
	if errors.Is(err, nats.ErrNoServers) {
		return // the sum of a round over all servers; each attempt tells why
	}
	now := time.Now()
	l.mu.Lock()
	l.last = reason(err)
	quiet := now.Sub(l.logged) < logAgain
	if !quiet {
		l.logged = now
	}
	l.mu.Unlock()
	if !quiet {
		l.log.Warn("bus cannot be reached, trying again", "servers", l.urls, "reason", reason(err))
	}
}

// renew gives the connection up for one to another server. The log has said why.
func (l *Link) renew() {
	l.renewed.Store(true)
	if l.nc.ForceReconnect() != nil { // closed
		l.renewed.Store(false)
	}
}

// trouble logs what NATS reports beside the flow of messages: a refused
// permission, a slow consumer.
func (l *Link) trouble(sub *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrPermissionViolation) {
		l.refuse(err)
		return
	}
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	l.mu.Lock()
	again := time.Since(l.troubled) > logAgain
	if again {
		l.troubled = time.Now()
	}
	l.mu.Unlock()
	if again { // a flood does not become one of the log
		l.log.Warn("bus reported an error", "subject", subject, "reason", reason(err))
	}
}

// refuse notes that the server does not let this user do what it has to. It is said once
// per connection: what is refused is tried again and again.
func (l *Link) refuse(err error) {
	text := reason(err)
	text = "NATS refuses this user something: " + text[:min(len(text), maxRefusal)] + "; is it the user for the name " + l.name + "?"
	needed := !strings.Contains(text, "$SRV")
	if needed && !l.refused.CompareAndSwap(nil, &text) {
		return
	}
	l.log.Warn("bus refuses this user something", "name", l.name, "reason", reason(err))
}

// Refused says in words what the server does not let this user do, and nothing when all
// that was tried was let.
func (l *Link) Refused() string {
	if text := l.refused.Load(); text != nil {
		return *text
	}
	return ""
}

// maxRefusal bounds what of a server's refusal is shown.
const maxRefusal = 256

func (l *Link) change(up bool) {
	l.changed.Store(time.Now().UnixNano())
	l.up.Store(up)
	l.mu.Lock()
	ws := l.watchers
	l.mu.Unlock()
	for _, w := range ws {
		w.f(up)
	}
}

// reason is the text of err for a log.
func reason(err error) string {
	if err == nil {
		return "closed by the other side"
	}
	return strings.TrimPrefix(err.Error(), "nats: ")
}

// randomToken is 8 characters that no other link of the same name has.
func randomToken() string {
	const digits = "0123456789abcdefghijklmnopqrstuvwxyz"
	var b [8]byte
	for i := range b {
		b[i] = digits[rand.IntN(len(digits))]
	}
	return string(b[:])
}
