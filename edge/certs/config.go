package certs

import (
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Pair names the files of a certificate chain and its key, both PEM.
type Pair struct{ Cert, Key string }

// Config is what a Store is made from.
type Config struct {
	// Pairs has at least one; the first is for clients that name no server, or one
	// that none of them is for.
	Pairs []Pair
	// TicketKeys names a file of keys for session tickets, which processes share so
	// that clients resume at any of them. Empty: each process has its own.
	TicketKeys string

	Logger     *slog.Logger
	Registerer prometheus.Registerer // nil: no metrics

	// Every is the time between two looks at the files. Default: 1 s.
	Every time.Duration
}

func (c Config) withDefaults() (Config, error) {
	if len(c.Pairs) == 0 {
		return c, errors.New("certs: no certificate")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Every <= 0 {
		c.Every = time.Second
	}
	return c, nil
}
