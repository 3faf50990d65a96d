package certs

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// Run finds a change by itself, and at once when it is told to.
func TestRun(t *testing.T) {
	for _, tt := range []struct {
		name  string
		every time.Duration
	}{{"by itself", time.Millisecond}, {"told to", time.Hour}} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPair(t)
			issue(t, 1, far, "a.test").write(t, p)
			s, _ := open(t, Config{Pairs: []Pair{p}, Every: tt.every})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- s.Run(ctx) }()
			issue(t, 2, far, "a.test").write(t, p)
			if tt.every == time.Hour {
				s.Reload()
			}
			for end := time.Now().Add(20 * time.Second); served(t, s.TLS(), "a.test") != 2; {
				if time.Now().After(end) {
					t.Fatal("the new certificate is not served")
				}
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// However a certificate is replaced, it is used at the second look.
func TestReplaced(t *testing.T) {
	for _, tt := range []struct {
		name    string
		replace func(t *testing.T, p Pair, by issued)
	}{
		{"in place", func(t *testing.T, p Pair, by issued) { by.write(t, p) }},
		{"in place, its time kept", func(t *testing.T, p Pair, by issued) {
			info, err := os.Stat(p.Cert)
			if err != nil {
				t.Fatal(err)
			}
			by.write(t, p)
			for _, file := range []string{p.Cert, p.Key} {
				if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"by rename", func(t *testing.T, p Pair, by issued) {
			by.write(t, Pair{p.Cert + ".new", p.Key + ".new"})
			for _, file := range []string{p.Cert, p.Key} {
				if err := os.Rename(file+".new", file); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPair(t)
			issue(t, 1, far, "a.test").write(t, p)
			s, _ := open(t, Config{Pairs: []Pair{p}})
			config := s.TLS()
			tt.replace(t, p, issue(t, 2, far, "a.test"))
			s.refresh(false)
			if got := served(t, config, "a.test"); got != 1 {
				t.Errorf("served %d while it may still be written, want 1", got)
			}
			s.refresh(false)
			if got := served(t, config, "a.test"); got != 2 {
				t.Errorf("served %d, want 2", got)
			}
		})
	}
}

// Kubernetes points the link ..data at another folder; the files are links into it.
func TestReplacedBehindALink(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"..1", "..2"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		issue(t, int64(i+1), far, "a.test").write(t, Pair{filepath.Join(dir, name, "tls.crt"), filepath.Join(dir, name, "tls.key")})
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("..1", "..data")
	link("..data/tls.crt", "tls.crt")
	link("..data/tls.key", "tls.key")
	s, _ := open(t, Config{Pairs: []Pair{{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}}})
	link("..2", "..data_tmp")
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	s.refresh(false)
	s.refresh(false)
	if got := served(t, s.TLS(), "a.test"); got != 2 {
		t.Errorf("served %d, want 2", got)
	}
}

// What is broken is said once, when it stays so, and the certificate before it stays.
func TestBroken(t *testing.T) {
	first := issue(t, 1, far, "a.test")
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, p Pair)
		want  string
	}{
		{"another's key", func(t *testing.T, p Pair) { write(t, p.Key, issue(t, 2, far, "a.test").key) }, "private key does not match"},
		{"cut short", func(t *testing.T, p Pair) { write(t, p.Cert, first.cert[:len(first.cert)/2]) }, "failed to find any PEM data"},
		{"chain cut short", func(t *testing.T, p Pair) {
			rubbish := "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
			write(t, p.Cert, append(slices.Clone(first.cert), rubbish...))
		}, "its chain"},
		{"gone", func(t *testing.T, p Pair) {
			if err := os.Remove(p.Key); err != nil {
				t.Fatal(err)
			}
		}, "no such file"},
		{"a pipe", func(t *testing.T, p Pair) {
			if err := os.Remove(p.Key); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(p.Key, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "no regular file"},
		{"huge", func(t *testing.T, p Pair) { write(t, p.Cert, make([]byte, maxFile+1)) }, "larger than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, reg := newPair(t), prometheus.NewRegistry()
			first.write(t, p)
			s, log := open(t, Config{Pairs: []Pair{p}, Registerer: reg})
			tt.spoil(t, p)
			s.refresh(false)
			if strings.Contains(log.String(), "level=ERROR") {
				t.Errorf("said while it may still be written: %s", log)
			}
			for range 5 {
				s.refresh(false)
			}
			if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), tt.want) {
				t.Errorf("%d errors, want one with %q:\n%s", n, tt.want, log)
			}
			if got := served(t, s.TLS(), "a.test"); got != 1 {
				t.Errorf("served %d, want 1", got)
			}
			if got := testutil.ToFloat64(s.metrics.failed); got != 1 {
				t.Errorf("%v loads have failed, want 1", got)
			}
			if _, err := New(Config{Pairs: []Pair{p}}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("at the start: %v, want an error with %q", err, tt.want)
			}

			// What is repaired is used again.
			if err := os.RemoveAll(p.Key); err != nil {
				t.Fatal(err)
			}
			issue(t, 3, far, "a.test").write(t, p)
			s.refresh(false)
			s.refresh(false)
			if got := served(t, s.TLS(), "a.test"); got != 3 {
				t.Errorf("repaired: served %d, want 3", got)
			}
		})
	}
}

// An operator sees of each certificate where it came from, for whom it is and when
// the first of its chain ends.
func TestWhatIsSaid(t *testing.T) {
	p, reg := newPair(t), prometheus.NewRegistry()
	soon := far.Add(-30 * time.Minute)
	leaf := issue(t, 1, far, "a.test", "b.test")
	leaf.cert = append(leaf.cert, issue(t, 2, soon, "authority").cert...)
	leaf.write(t, p)
	s, log := open(t, Config{Pairs: []Pair{p}, Registerer: reg})
	for _, want := range []string{"certificate loaded", p.Cert, "[a.test b.test]", soon.UTC().Format(time.RFC3339)[:19]} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in %s", want, log)
		}
	}
	expiry := func() float64 { return testutil.ToFloat64(s.metrics.expiry.WithLabelValues(p.Cert)) }
	if got := expiry(); got != float64(soon.Unix()) {
		t.Errorf("expiry %v, want %v", got, soon.Unix())
	}
	issue(t, 3, time.Now().Add(-time.Minute), "a.test").write(t, p)
	s.refresh(true)
	if !strings.Contains(log.String(), "level=WARN") || expiry() > float64(time.Now().Unix()) {
		t.Errorf("nothing is said of a certificate that has ended: expiry %v, %s", expiry(), log)
	}
	if n, err := testutil.GatherAndCount(reg, "ommer_edge_certificate_expiry_timestamp_seconds"); err != nil || n != 1 {
		t.Errorf("%d series, %v, want 1", n, err)
	}
}

func TestServerNames(t *testing.T) {
	pairs := []Pair{newPair(t), newPair(t), newPair(t)}
	issue(t, 1, far, "a.test").write(t, pairs[0])
	issue(t, 2, far, "b.test", "*.c.test").write(t, pairs[1])
	issue(t, 3, far, "x.c.test").write(t, pairs[2])
	s, _ := open(t, Config{Pairs: pairs})
	for name, want := range map[string]int64{"a.test": 1, "b.test": 2, "y.c.test": 2, "x.c.test": 2, "unknown.test": 1, "": 1} {
		if got := served(t, s.TLS(), name); got != want {
			t.Errorf("%q: served %d, want %d", name, got, want)
		}
	}
	// One that is broken does not keep another from being renewed.
	write(t, pairs[0].Key, nil)
	issue(t, 4, far, "b.test").write(t, pairs[1])
	s.refresh(true)
	for name, want := range map[string]int64{"a.test": 1, "b.test": 4, "x.c.test": 3} {
		if got := served(t, s.TLS(), name); got != want {
			t.Errorf("one is broken: %q: served %d, want %d", name, got, want)
		}
	}
}

func TestVersionsAndProtocols(t *testing.T) {
	p := newPair(t)
	issue(t, 1, far, "a.test").write(t, p)
	s, _ := open(t, Config{Pairs: []Pair{p}})
	for _, tt := range []struct {
		name     string
		version  uint16
		offered  []string
		protocol string
		want     string // error
	}{
		{"TLS 1.3", tls.VersionTLS13, []string{"http/1.1"}, "http/1.1", ""},
		{"TLS 1.2", tls.VersionTLS12, []string{"h2", "http/1.1"}, "http/1.1", ""},
		{"TLS 1.1", tls.VersionTLS11, nil, "", "protocol version not supported"},
		{"no ALPN", tls.VersionTLS13, nil, "", ""},
		{"h2 alone", tls.VersionTLS13, []string{"h2"}, "", "no application protocol"},
		{"h2 alone, TLS 1.2", tls.VersionTLS12, []string{"h2"}, "", "no application protocol"},
	} {
		state, err := connect(t, s.TLS(), &tls.Config{
			InsecureSkipVerify: true, NextProtos: tt.offered, MinVersion: tls.VersionTLS10, MaxVersion: tt.version,
		})
		switch {
		case tt.want != "":
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
			}
		case err != nil || state.Version != tt.version || state.NegotiatedProtocol != tt.protocol:
			t.Errorf("%s: version %x, protocol %q, %v", tt.name, state.Version, state.NegotiatedProtocol, err)
		}
	}
}

func TestNoPairs(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("made without a certificate")
	}
}

// Of the cipher suites of TLS 1.2 those with forward secrecy and authenticated
// encryption are there, whatever else crypto/tls knows.
func TestCipherSuites(t *testing.T) {
	p := newPair(t)
	issue(t, 1, far, "a.test").write(t, p)
	s, _ := open(t, Config{Pairs: []Pair{p}})
	for suite, good := range map[uint16]bool{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256:       true,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: true,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA:          false,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA:          false,
	} {
		_, err := connect(t, s.TLS(), &tls.Config{
			ServerName: "a.test", InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite},
		})
		if good != (err == nil) {
			t.Errorf("%s: %v, want it to be possible: %v", tls.CipherSuiteName(suite), err, good)
		}
	}
}
