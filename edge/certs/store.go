package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"
)

// Store is the certificates and ticket keys that are in use.
type Store struct {
	log     *slog.Logger
	metrics *metrics
	every   time.Duration
	again   chan struct{}
	current atomic.Pointer[tls.Config] // never changed once it is here

	// Touched by New and then by Run alone.
	sources    []*source
	certs      []tls.Certificate
	ticketKeys [][ticketKeySize]byte
}

// New reads the files. What cannot be used is an error here.
func New(cfg Config) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{
		log: cfg.Logger, every: cfg.Every, again: make(chan struct{}, 1),
		certs: make([]tls.Certificate, len(cfg.Pairs)),
	}
	if s.metrics, err = newMetrics(cfg.Registerer); err != nil {
		return nil, err
	}
	for i, pair := range cfg.Pairs {
		s.sources = append(s.sources, &source{
			paths: []string{pair.Cert, pair.Key},
			take:  func(texts [][]byte) error { return s.takePair(i, pair, texts[0], texts[1]) },
		})
	}
	if file := cfg.TicketKeys; file != "" {
		s.sources = append(s.sources, &source{
			paths: []string{file}, private: true,
			take: func(texts [][]byte) error { return s.takeTicketKeys(file, texts[0]) },
		})
	}
	for _, source := range s.sources {
		if _, err := source.refresh(true); err != nil {
			return nil, err
		}
	}
	s.publish()
	return s, nil
}

// cipherSuites are those of TLS 1.2 with forward secrecy and authenticated encryption
// (RFC 9325 section 4.2). By default crypto/tls also takes CBC with SHA-1, for clients
// that are older than what the service is for. TLS 1.3 has suites of its own.
var cipherSuites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// TLS is a server's configuration, for as long as there are connections: what is
// read later goes into it.
func (s *Store) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		// Certificates and ticket keys in one piece. Where it has no ticket keys
		// crypto/tls uses those that it made for the configuration returned here
		// (Config.ticketKeys), so that they outlive a new certificate.
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return s.current.Load(), nil },
	}
}

// Reload makes Run read the files now and take whatever they hold. It returns at once.
func (s *Store) Reload() {
	select {
	case s.again <- struct{}{}:
	default: // Run has yet to come to the one before
	}
}

// Run reads the files again when they change, until ctx ends.
func (s *Store) Run(ctx context.Context) error {
	look := time.NewTicker(s.every)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			s.refresh(false)
		case <-s.again:
			s.refresh(true)
		case <-ctx.Done():
			return nil
		}
	}
}

func (s *Store) refresh(force bool) {
	changed := false
	for _, source := range s.sources {
		tried, err := source.refresh(force)
		switch {
		case err != nil:
			s.metrics.failed.Inc()
			s.log.Error("TLS files cannot be used, what was read before stays in use", "files", source.paths, "err", err)
		case tried:
			changed = true
		}
	}
	if changed {
		s.publish()
	}
}

// publish makes new handshakes use what there is.
func (s *Store) publish() {
	config := &tls.Config{
		Certificates: append([]tls.Certificate(nil), s.certs...),
		MinVersion:   tls.VersionTLS12,
		CipherSuites: cipherSuites,
		NextProtos:   []string{"http/1.1"},
		// A reply of 1.5 KB would otherwise go out as two records, each with its
		// own system call.
		DynamicRecordSizingDisabled: true,
	}
	if len(s.ticketKeys) > 0 {
		config.SetSessionTicketKeys(s.ticketKeys)
	}
	s.current.Store(config)
}

func (s *Store) takePair(i int, pair Pair, certPEM, keyPEM []byte) error {
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return fmt.Errorf("certificate %s, key %s: %w", pair.Cert, pair.Key, err)
	}
	expires, err := earliestEnd(cert)
	if err != nil {
		return fmt.Errorf("certificate %s: %w", pair.Cert, err)
	}
	s.certs[i] = cert
	s.metrics.loaded.Inc()
	s.metrics.expires(pair.Cert, expires)
	level := slog.LevelInfo
	if time.Until(expires) <= 0 {
		level = slog.LevelWarn // it is what the operator wants, or else time is wrong here
	}
	s.log.Log(context.Background(), level, "certificate loaded",
		"file", pair.Cert, "names", names(cert.Leaf), "expires", expires.UTC())
	return nil
}

func (s *Store) takeTicketKeys(file string, text []byte) error {
	keys, err := parseTicketKeys(text)
	if err != nil {
		return fmt.Errorf("ticket keys %s: %w", file, err)
	}
	s.ticketKeys = keys
	s.metrics.loaded.Inc()
	s.log.Info("session ticket keys loaded", "file", file, "keys", len(keys))
	return nil
}

// earliestEnd is when the first certificate of a chain is no longer good.
func earliestEnd(cert tls.Certificate) (time.Time, error) {
	end := cert.Leaf.NotAfter
	for _, der := range cert.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return end, fmt.Errorf("its chain: %w", err)
		}
		if c.NotAfter.Before(end) {
			end = c.NotAfter
		}
	}
	return end, nil
}

// names are the servers that a certificate is for.
func names(c *x509.Certificate) []string {
	all := append([]string(nil), c.DNSNames...)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	return all
}
