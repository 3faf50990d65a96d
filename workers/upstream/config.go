package upstream

import (
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ommer/ommer/bus/codel"
)

// Config says which nodes are asked, and how. A zero field has its default.
type Config struct {
	// URLs of the nodes in order of preference: http, https, ws or wss, each with
	// terms of its own behind a #, see URL. At least one, at most MaxNodes.
	URLs []string
	// ChainID is the chain that every node must serve. Default: that of the first
	// node that answers.
	ChainID uint64
	// Finality is how many blocks deep a block is taken for final, for a chain whose
	// nodes do not tell of finalized blocks. 0: what they tell.
	Finality uint64

	// Believe takes nodes at their word: hashes are not computed, so that a false header
	// or uncle is passed on, and swapped ones. Missing ones are seen all the same.
	Believe bool

	// CallTimeout bounds one round trip to one node while there are others left to
	// ask, and everything that is asked in the background. Default 3 s.
	CallTimeout time.Duration
	// InFlight is how many round trips to one node there are at a time. More of them
	// make answers later and not more, unless the node is far away: 4 times 32 blocks
	// each 100 ms are 1,280 blocks per second. Default 4.
	InFlight int
	// Batch is how many blocks are asked for in one round trip, with three calls each.
	// A node that refuses so many is asked for fewer. Default 32.
	Batch int
	// Gather is how long a lookup waits for others to share its round trip, while
	// another is under way. Negative: not at all. Default 2 ms.
	Gather time.Duration
	// Waiting is how many lookups may wait for their turn at one node; beyond it the
	// next node is asked. Default 4096.
	Waiting int
	// MaxWait is how long lookups may stand in line for a node, or 4 times the time of
	// its quickest answers if that is longer: when all have waited for longer for a while, the next node
	// is asked until there are fewer, see package codel. Negative: no bound. Default
	// codel.DefaultTarget.
	MaxWait time.Duration
	// MaxResponse bounds a node's answer in bytes, after decompression. A block of
	// 60 million gas is about 200 kB. Default 8 MiB.
	MaxResponse int64
	// PollInterval is the pause between two looks at a node's head, each of which costs
	// the answer to eth_getBlockByNumber. A node that tells of its heads by itself, which
	// takes a WebSocket, is looked at then, and besides at five times the pause. Default
	// 1 s: about as long may be served what a reorg has changed.
	PollInterval time.Duration

	// Logger gets one line per change of a node's state. Default: none.
	Logger *slog.Logger
	// Registerer takes the metrics. Default: none.
	Registerer prometheus.Registerer
}

// Defaults of Config.
const (
	DefaultCallTimeout  = 3 * time.Second
	DefaultInFlight     = 4
	DefaultBatch        = 32
	DefaultGather       = 2 * time.Millisecond
	DefaultWaiting      = 4096
	DefaultMaxResponse  = 8 << 20
	DefaultPollInterval = time.Second
)

// MaxNodes is the largest number of nodes in a Set.
const MaxNodes = 32

// withDefaults fills in the zero fields and refuses what cannot work. Its errors
// name a URL by its position only.
func (c Config) withDefaults() (Config, error) {
	switch n := len(c.URLs); {
	case n == 0:
		return c, fmt.Errorf("upstream: no URL of a node is given")
	case n > MaxNodes:
		return c, fmt.Errorf("upstream: %d URLs, at most %d are possible", n, MaxNodes)
	}
	for i, raw := range c.URLs {
		if err := checkURL(raw); err != nil {
			return c, fmt.Errorf("upstream: URL %d of %d: %w", i+1, len(c.URLs), err)
		}
	}
	if c.CallTimeout < 0 || c.InFlight < 0 || c.Batch < 0 || c.Waiting < 0 || c.MaxResponse < 0 || c.PollInterval < 0 {
		return c, fmt.Errorf("upstream: a limit or time-out is negative")
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = DefaultCallTimeout
	}
	if c.InFlight == 0 {
		c.InFlight = DefaultInFlight
	}
	if c.Batch == 0 {
		c.Batch = DefaultBatch
	}
	if c.Gather == 0 {
		c.Gather = DefaultGather
	}
	if c.Waiting == 0 {
		c.Waiting = DefaultWaiting
	}
	if c.MaxWait == 0 {
		c.MaxWait = codel.DefaultTarget
	}
	if c.MaxResponse == 0 {
		c.MaxResponse = DefaultMaxResponse
	}
	if c.PollInterval == 0 {
		c.PollInterval = DefaultPollInterval
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// preset is what a node is asked with unless its URL says otherwise.
func (c *Config) preset(place int) terms {
	return terms{priority: place + 1, weight: 1, inFlight: c.InFlight, batch: c.Batch}
}

// URL is the address of a node, as a flag. Behind a # it may say on what terms the node
// is asked: priority=N (the place in the list if not given; nodes of the same one share
// the work), weight=W, rps=CALLS, in-flight=N, batch=BLOCKS, joined by &.
type URL string

// UnmarshalText checks the URL. Its errors repeat nothing of it.
func (u *URL) UnmarshalText(text []byte) error {
	if err := checkURL(string(text)); err != nil {
		return err
	}
	*u = URL(text)
	return nil
}

// checkURL says what is wrong with a URL without repeating it: url.Parse's own
// error would.
func checkURL(raw string) error {
	bare, _, err := splitTerms(raw, terms{})
	if err != nil {
		return err
	}
	u, err := url.Parse(bare)
	if err != nil {
		return fmt.Errorf("not a URL, such as http://127.0.0.1:8545")
	}
	switch u.Scheme {
	case "http", "https", "ws", "wss":
	default:
		return fmt.Errorf("the scheme must be http, https, ws or wss, as in http://127.0.0.1:8545")
	}
	if u.Hostname() == "" {
		return fmt.Errorf("it names no host")
	}
	if p := u.Port(); p != "" {
		if _, err := strconv.ParseUint(p, 10, 16); err != nil {
			return fmt.Errorf("its port is out of range")
		}
	}
	return nil
}
