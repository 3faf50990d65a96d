package nio

import (
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

// Config is what a Loop is made of. The zero value is usable: every field that is
// zero has the default named beside it.
type Config struct {
	// Logger takes what an operator should know. Default: nothing is logged.
	Logger *slog.Logger
	// Registerer takes the metrics. Default: none are registered.
	Registerer prometheus.Registerer

	// Pollers is the number of event loops, one goroutine each. Default: GOMAXPROCS.
	Pollers int

	// MaxConns is how many connections may be open, those in their handshake
	// included. Default: nine tenths of the files that the process may open.
	MaxConns int
	// MaxConnsPerAddr is the same for one address, where an IPv6 /64 counts as
	// one. Default: half of MaxConns; negative: no limit, for use behind a balancer.
	MaxConnsPerAddr int

	// Handshakes is how many TLS handshakes compute at a time. With a flood of them
	// that is how long others wait for a processor: with as many as there are
	// processors, 99 of 100 answers took up to five times as long as with half, and
	// with 512 ninety times (BenchmarkFlood, two processors). Default: half of
	// GOMAXPROCS, at least 1.
	Handshakes int
	// HandshakesPerAddr is how many of one address there may be. Default: 1024;
	// negative: no limit.
	HandshakesPerAddr int
	// HandshakeQueue is how many TLS handshakes may wait, for their client or to
	// compute, each with a goroutine and 7 to 35 KB. Beyond it an address
	// with the most loses one. Accepting never waits for a handshake. Default: 4096.
	HandshakeQueue int
	// HandshakeTimeout covers the whole handshake, waiting for it included.
	// Default: 5 s.
	HandshakeTimeout time.Duration

	// MaxUnwritten is how many bytes may wait for one peer in this process, TLS
	// included. It must be above the largest single Write. Default: 4 MiB.
	MaxUnwritten int
	// MaxUnwrittenTotal is the same for all connections together. One of them gets
	// a quarter of what the others leave, at most. Default: 512 MiB.
	MaxUnwrittenTotal int

	// FlushTimeout bounds how long CloseAfterFlush waits for the peer to take
	// what is queued. Default: 5 s.
	FlushTimeout time.Duration
	// LingerTimeout bounds how long a connection is read from after everything
	// was sent, so that no reset destroys the last answer. Default: 1 s.
	LingerTimeout time.Duration

	// KeepAlive is how long a connection is silent before the kernel probes the
	// peer, and the time between its probes. Default: 60 s; negative: no probes.
	KeepAlive time.Duration
	// ReusePort lets several processes listen at the same address, the kernel
	// spreading connections over them, and StopAccepting leave it to the others
	// without losing a connection. Linux only.
	ReusePort bool
}

const (
	defaultHandshakesAddr = 1024
	defaultHandshakeQueue = 4096
	defaultHandshakeTime  = 5 * time.Second
	defaultUnwritten      = 4 << 20
	defaultUnwrittenTotal = 512 << 20
	defaultFlushTime      = 5 * time.Second
	defaultLingerTime     = time.Second
	defaultKeepAlive      = time.Minute
)

// lingerBytes bounds what is read and thrown away after everything was sent. A
// peer that is still sending a refused body gets that far before it is reset.
const lingerBytes = 256 << 10

// engineSlack is what the engine may queue beyond MaxUnwritten: the alerts and
// KeyUpdate replies that crypto/tls writes from within Read. A peer that makes it
// write more of them without reading any is closed.
const engineSlack = 64 << 10

// withDefaults fills in the zero fields and reports values that make no sense.
func (c Config) withDefaults() (Config, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	for _, f := range []struct {
		name     string
		value    *int
		standard int
		negative bool // allowed
	}{
		{"Pollers", &c.Pollers, runtime.GOMAXPROCS(0), false},
		{"MaxConns", &c.MaxConns, maxFiles() / 10 * 9, false},
		{"Handshakes", &c.Handshakes, max(1, runtime.GOMAXPROCS(0)/2), false},
		{"HandshakesPerAddr", &c.HandshakesPerAddr, defaultHandshakesAddr, true},
		{"HandshakeQueue", &c.HandshakeQueue, defaultHandshakeQueue, false},
		{"MaxUnwritten", &c.MaxUnwritten, defaultUnwritten, false},
		{"MaxUnwrittenTotal", &c.MaxUnwrittenTotal, defaultUnwrittenTotal, false},
	} {
		if *f.value == 0 {
			*f.value = f.standard
		}
		if *f.value < 0 && !f.negative {
			return c, fmt.Errorf("nio: %s is negative: %d", f.name, *f.value)
		}
	}
	if c.MaxConnsPerAddr == 0 {
		c.MaxConnsPerAddr = max(1, c.MaxConns/2)
	}
	for _, f := range []struct {
		name     string
		value    *time.Duration
		standard time.Duration
		negative bool
	}{
		{"HandshakeTimeout", &c.HandshakeTimeout, defaultHandshakeTime, false},
		{"FlushTimeout", &c.FlushTimeout, defaultFlushTime, false},
		{"LingerTimeout", &c.LingerTimeout, defaultLingerTime, false},
		{"KeepAlive", &c.KeepAlive, defaultKeepAlive, true},
	} {
		if *f.value == 0 {
			*f.value = f.standard
		}
		if *f.value < 0 && !f.negative {
			return c, fmt.Errorf("nio: %s is negative: %v", f.name, *f.value)
		}
	}
	return c, nil
}

// maxFiles is how many files the process may open. The Go runtime raises the soft
// limit to the hard one when it starts.
func maxFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return int(min(limit.Cur, 1<<21))
}
