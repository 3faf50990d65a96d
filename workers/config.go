package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ommer/ommer/bus/codel"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream"
)

// Source is where blocks come from. An upstream.Set is one, an Archived another.
type Source interface {
	// Block returns a verified block, and found false when there is none. It may
	// be called from many goroutines and returns soon after ctx ends. Its error
	// wraps one of package upstream.
	Block(ctx context.Context, s schema.Selector) (b upstream.Block, found bool, err error)
	// Ready returns nil when Block has somebody to ask, else what is missing.
	Ready() error
}

// Viewer is a Source that knows which blocks stand near the head of the chain.
type Viewer interface {
	// View returns what is known at a time, nil when nothing is. It is called for
	// every question by number or tag.
	View(now time.Time) *upstream.View
}

// Config are the settings of a Pool. A zero field has its default.
type Config struct {
	// Source is asked for what is not in the cache. Required. If it is a Viewer, what is
	// near the head is asked of it by hash.
	Source Source
	// Merged is the first block of proof of stake, from which on no block has uncles, see
	// EIP-3675. Default: unknown.
	Merged uint64
	// Shards is the number of actors. Default GOMAXPROCS.
	Shards int
	// CacheBytes bounds the cache, over all shards and with what the entries
	// themselves take. A block without uncles takes about 240 bytes, each uncle
	// 2,000 to 2,500 more: its JSON and that compressed. Negative: keep nothing. Default 256 MiB.
	CacheBytes int64
	// MaxWaiting is how many questions may wait for the source, over all shards;
	// beyond it they are Overloaded. Default 65,536.
	MaxWaiting int
	// MaxFetches is how many blocks may be asked of the source at a time, over
	// all shards; beyond it what would ask for another is Overloaded. Default
	// 2,048.
	MaxFetches int
	// Mailbox is how many questions may wait for one shard; beyond it they are
	// Overloaded. Default 16,384.
	Mailbox int
	// MaxWait is how long questions may stand in a mailbox: when all have waited for
	// longer for a while, further ones are Overloaded until there are fewer, see
	// package codel. Negative: no bound. Default
	// codel.DefaultTarget.
	MaxWait time.Duration
	// Timeout is the time for a question without a deadline. Default 10 s.
	Timeout time.Duration
	// StopTimeout bounds how long Run waits for those who wait for an answer when
	// it stops. Default 10 s.
	StopTimeout time.Duration

	// Logger gets a line per crash of a shard or fetch. Default: none.
	Logger *slog.Logger
	// Registerer takes the metrics until Stop. Default: none.
	Registerer prometheus.Registerer
}

// Defaults of Config.
const (
	DefaultCacheBytes  = 256 << 20
	DefaultMaxWaiting  = 1 << 16
	DefaultMaxFetches  = 2048
	DefaultMailbox     = 16384
	DefaultTimeout     = 10 * time.Second
	DefaultStopTimeout = 10 * time.Second
)

// Fresh is how long an answer is kept that a new block may change.
const Fresh = time.Second

// recentShare is the part of the cache, one in so many bytes, for what is kept no
// longer than Fresh.
const recentShare = 16

var errNoSource = errors.New("workers: no source of blocks is given")

// withDefaults fills in the zero fields and refuses what cannot work.
func (c Config) withDefaults() (Config, error) {
	if c.Source == nil {
		return c, errNoSource
	}
	if c.Shards < 0 || c.MaxWaiting < 0 || c.MaxFetches < 0 || c.Mailbox < 0 || c.Timeout < 0 || c.StopTimeout < 0 {
		return c, fmt.Errorf("workers: a limit or time-out is negative")
	}
	if c.Shards == 0 {
		c.Shards = runtime.GOMAXPROCS(0)
	}
	if c.CacheBytes == 0 {
		c.CacheBytes = DefaultCacheBytes
	}
	if c.MaxWaiting == 0 {
		c.MaxWaiting = DefaultMaxWaiting
	}
	if c.MaxFetches == 0 {
		c.MaxFetches = DefaultMaxFetches
	}
	if c.Mailbox == 0 {
		c.Mailbox = DefaultMailbox
	}
	if c.MaxWait == 0 {
		c.MaxWait = codel.DefaultTarget
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.StopTimeout == 0 {
		c.StopTimeout = DefaultStopTimeout
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// perShard divides a limit among the shards, rounded up.
func (c *Config) perShard(limit int) int { return (limit + c.Shards - 1) / c.Shards }
