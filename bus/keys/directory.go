package keys

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ommer/ommer/bus"
	"github.com/prometheus/client_golang/prometheus"
)

// Defaults of DirectoryConfig.
const (
	DefaultMax    = 1_000_000
	DefaultResync = 10 * time.Minute
)

// maxKey is the length of the longest key that is looked up, in bytes.
const maxKey = 128

// Bounds of a static key, in characters.
const (
	minStatic = 8
	maxStatic = 64
)

// ErrStatic is returned when a static key has characters or a length that it may not have.
var ErrStatic = errors.New("a static API key must be 8 to 64 characters of A-Z a-z 0-9 . _ ~ -")

// DirectoryConfig says where a Directory reads the keys.
type DirectoryConfig struct {
	// Link is the connection to the bucket. Nil means that there is none: only
	// static keys are known, and the directory is ready at once.
	Link *bus.Link
	// Max is how many keys are kept in memory, revoked ones included; what is over
	// it is left out and counted. A key takes about 250 bytes, and its settings about
	// twice what their record does. 0 means DefaultMax.
	Max int
	// Resync is how often everything is read again, so that even an update that
	// the bus lost is noticed. 0 means DefaultResync.
	Resync time.Duration
	// OnChange is called once for each key that stops being good, and whenever the
	// origins or networks that a key is good for change, from the directory's
	// goroutine, after Lookup and the entry say so. What goes on under the key then
	// has to be looked at again; other settings need no notice, because they are
	// asked for at each call. It must not block. Nil means nothing.
	OnChange func(*Entry)
	// Logger gets what an operator should know. Nil logs nothing.
	Logger *slog.Logger
	// Registerer takes the metrics. Nil means none.
	Registerer prometheus.Registerer
}

// Directory is every key in memory, kept up to date by a watch on the bucket. All
// methods may be called from any goroutine.
type Directory struct {
	cfg     DirectoryConfig
	log     *slog.Logger
	metrics *metrics
	ready   atomic.Bool

	mu      sync.RWMutex
	entries map[hash]*Entry
	missing string // why it is not ready

	// The goroutine's alone.
	load    uint64    // number of the current load
	created time.Time // of the bucket, which tells it from one made anew
	full    bool      // Max was reached in this load

	again   chan struct{} // the link came up: watch anew
	written chan struct{} // a record is being written: the watch has to deliver it
	cancel  context.CancelFunc
	wg      sync.WaitGroup
}

// NewDirectory starts a directory. Close ends it.
func NewDirectory(cfg DirectoryConfig) (*Directory, error) {
	if cfg.Max == 0 {
		cfg.Max = DefaultMax
	}
	if cfg.Resync == 0 {
		cfg.Resync = DefaultResync
	}
	if cfg.Max < 0 || cfg.Resync < 0 {
		return nil, errors.New("keys: Max and Resync must not be negative")
	}
	if cfg.OnChange == nil {
		cfg.OnChange = func(*Entry) {}
	}
	d := &Directory{
		cfg:     cfg,
		log:     cfg.Logger,
		entries: make(map[hash]*Entry),
		missing: "API keys are being read",
		again:   make(chan struct{}, 1),
		written: make(chan struct{}, 1),
	}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	d.metrics = newMetrics(d)
	if cfg.Registerer != nil {
		if err := cfg.Registerer.Register(d.metrics); err != nil {
			return nil, fmt.Errorf("keys: metrics: %w", err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.cancel = cancel
	if cfg.Link == nil {
		d.ready.Store(true)
		return d, nil
	}
	d.wg.Go(func() { d.run(ctx) })
	return d, nil
}

// Close ends the watch and waits until OnChange will not be called again. Lookup
// goes on answering with what is known.
func (d *Directory) Close() {
	d.cancel()
	d.wg.Wait()
	if d.cfg.Registerer != nil {
		d.cfg.Registerer.Unregister(d.metrics)
	}
}

// Lookup returns the entry of a key that is good, and nil for any other: unknown,
// malformed, revoked. All of these take the same way, so the time tells nothing. It
// allocates nothing, keeps nothing of key, and needs no connection.
func (d *Directory) Lookup(key []byte) *Entry {
	h := hash(sha256.Sum256(key[:min(len(key), maxKey)]))
	d.mu.RLock()
	e := d.entries[h]
	d.mu.RUnlock()
	if e == nil || e.Revoked() || len(key) == 0 || len(key) > maxKey {
		return nil
	}
	return e
}

// Static is a key that is in no bucket, as a flag.
type Static string

// UnmarshalText checks the key. The error never repeats it.
func (s *Static) UnmarshalText(text []byte) error {
	if len(text) < minStatic || len(text) > maxStatic {
		return ErrStatic
	}
	for _, c := range text {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '~', c == '-':
		default:
			return ErrStatic
		}
	}
	*s = Static(text)
	return nil
}

// AddStatic makes a key known that is in no bucket, as given: 8 to 64 characters of
// A-Z a-z 0-9 . _ ~ -. The error never repeats it. Whoever can guess the key can use
// it; it is for development.
func (d *Directory) AddStatic(key string) (*Entry, error) {
	if err := new(Static).UnmarshalText([]byte(key)); err != nil {
		return nil, err
	}
	h := hash(sha256.Sum256([]byte(key)))
	e := &Entry{id: h.id(), name: "static", revision: static}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries[h] = e
	return e, nil
}

// Ready says whether the keys have been read once. It stays true from then on: with
// the bucket out of reach the directory answers with what it knows.
func (d *Directory) Ready() bool { return d.ready.Load() }

// Missing says in words why the directory is not ready, and nothing when it is.
func (d *Directory) Missing() string {
	if d.Ready() {
		return ""
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.missing
}

// Len is the number of keys in memory, revoked ones included.
func (d *Directory) Len() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.entries)
}
