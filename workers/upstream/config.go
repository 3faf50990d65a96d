package upstream

import (
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config says which nodes are asked, and how. A zero field has its default.
type Config struct {
	// URLs of the nodes in order of preference: http, https, ws or wss. At least
	// one, at most MaxNodes.
	URLs []string
	// ChainID is the chain that every node must serve. Default: that of the first
	// node that answers.
	ChainID uint64

	// CallTimeout bounds one attempt at one node while there are others left to
	// ask, and everything that is asked in the background. Default 3 s.
	CallTimeout time.Duration
	// InFlight is how many lookups one node is asked at a time. Default 64.
	InFlight int
	// Waiting is how many more may wait for their turn at one node; beyond it the
	// next node is asked. Default 1024.
	Waiting int
	// MaxResponse bounds a node's answer in bytes, after decompression. A block of
	// 60 million gas is about 200 kB. Default 8 MiB.
	MaxResponse int64
	// PollInterval is the pause between two looks at a node's head, each of which costs
	// the answer to eth_getBlockByNumber. A node that tells of its heads by itself, which
	// takes a WebSocket, is looked at then, and besides at five times the pause. Default
	// 1 s: about as long may be served what a reorg has changed.
	PollInterval time.Duration
	// Finality makes a block final that is so many blocks below the head or deeper, on
	// chains that have no finality of their own. Default: only what nodes call finalized.
	Finality uint64

	// Logger gets one line per change of a node's state. Default: none.
	Logger *slog.Logger
	// Registerer takes the metrics. Default: none.
	Registerer prometheus.Registerer
}

// Defaults of Config.
const (
	DefaultCallTimeout  = 3 * time.Second
	DefaultInFlight     = 64
	DefaultWaiting      = 1024
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
	if c.CallTimeout < 0 || c.InFlight < 0 || c.Waiting < 0 || c.MaxResponse < 0 || c.PollInterval < 0 {
		return c, fmt.Errorf("upstream: a limit or time-out is negative")
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = DefaultCallTimeout
	}
	if c.InFlight == 0 {
		c.InFlight = DefaultInFlight
	}
	if c.Waiting == 0 {
		c.Waiting = DefaultWaiting
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

// URL is the address of a node, as a flag.
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
	u, err := url.Parse(raw)
	if err != nil {
		return fmt.Errorf("not a URL")
	}
	switch u.Scheme {
	case "http", "https", "ws", "wss":
	default:
		return fmt.Errorf("the scheme must be http, https, ws or wss")
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
