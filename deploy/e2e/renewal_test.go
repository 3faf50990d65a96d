//go:build e2e

package e2e

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// serial is the number of the certificate that a new client gets.
func (c *certificates) serial(addr string) (int64, error) {
	conn, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: c.roots, ServerName: "localhost"})
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.Int64(), nil
}

// newcomer asks over a new connection each time.
func (f *fleet) newcomer(e *edge, key string) *httpCaller {
	c := f.httpCaller(e, true, key)
	c.http.Transport.(*http.Transport).DisableKeepAlives = true
	return c
}

// TestCertificateRenewal replaces the certificate again and again under load, with
// SIGHUP and without, and once by one that cannot be used. Nobody notices but those
// who connect afterwards.
func TestCertificateRenewal(t *testing.T) {
	_, with, _ := sepolia(t)
	f, key := startFleet(t, startNode(t, "").url, size{edges: 1, workers: 1})
	e := f.edges[0]
	all := learn(t, f.httpCaller(e, false, key), with)
	l := startLoad(t, all, append(loadCallers(f, key), f.newcomer(e, key), f.newcomer(e, key)))
	l.more(1000)

	served := func(want int64) {
		t.Helper()
		eventually(t, soon, fmt.Sprintf("certificate %d to be served", want), func() error {
			got, err := f.certs.serial(e.https)
			if err == nil && got != want {
				err = fmt.Errorf("it is %d", got)
			}
			return err
		})
	}
	served(2)
	for serial := int64(3); serial < 7; serial++ {
		f.certs.renew(serial)
		if serial%2 == 0 {
			e.signal(syscall.SIGHUP)
		}
		served(serial)
		l.more(500)
	}

	good, err := os.ReadFile(f.certs.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.certs.keyFile, good[:len(good)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	const complaint = "TLS files cannot be used"
	eventually(t, soon, "the edge to complain", func() error {
		if _, log := e.output(); !strings.Contains(log, complaint) {
			return fmt.Errorf("no %q in the log", complaint)
		}
		return nil
	})
	served(6)
	f.certs.renew(7)
	served(7)
	l.more(500)
	l.end()
	none(t, l)

	if !e.running() {
		t.Errorf("the edge has ended, exit code %d", e.code)
	}
	_, log := e.output()
	if n := strings.Count(log, complaint); n != 1 {
		t.Errorf("%d complaints, want 1:\n%s", n, log)
	}
	if got := e.mustMetric(t, "ommer_edge_certificate_expiry_timestamp_seconds"); got != float64(f.certs.authority.NotAfter.Unix()) {
		t.Errorf("expiry %v, want %v", got, f.certs.authority.NotAfter.Unix())
	}
	if code := e.stop(); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
}

// TestTicketsOfAnotherEdge resumes at a second edge what began at the first.
func TestTicketsOfAnotherEdge(t *testing.T) {
	_, with, _ := sepolia(t)
	file := filepath.Join(t.TempDir(), "tickets")
	if err := os.WriteFile(file, []byte(strings.Repeat("5a", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, key := startFleet(t, startNode(t, "").url, size{edges: 2, workers: 1, edgeArgs: []string{"--tls-ticket-keys", file}})
	cache := tls.NewLRUClientSessionCache(1)
	for i, e := range f.edges {
		c := f.httpCaller(e, true, key)
		config := c.http.Transport.(*http.Transport).TLSClientConfig
		config.ServerName, config.ClientSessionCache = "localhost", cache
		var resumed bool
		config.VerifyConnection = func(s tls.ConnectionState) error { resumed = s.DidResume; return nil }
		rightAgain(t, "an answer", c, question{block: &with[0]})
		if want := i > 0; resumed != want {
			t.Errorf("edge %d: resumed %v, want %v", i, resumed, want)
		}
	}
}

// TestTicketKeysOpenToOthers starts an edge whose ticket keys everybody can read.
func TestTicketKeysOpenToOthers(t *testing.T) {
	certs := newCertificates(t)
	file := filepath.Join(t.TempDir(), "tickets")
	if err := os.WriteFile(file, []byte(strings.Repeat("5a", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o644); err != nil { // whatever the umask
		t.Fatal(err)
	}
	_, stderr, code := run(t, "ommer-edge", append([]string{
		"--admin", "127.0.0.1:0", "--https", "127.0.0.1:0", "--tls-cert", certs.certFile, "--tls-key", certs.keyFile, "--tls-ticket-keys", file,
	}, noNATS...)...)
	for _, want := range []string{"--tls-ticket-keys", file, "chmod o="} {
		if code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("exit code %d, want 1; no %q in: %s", code, want, stderr)
		}
	}
}

// TestServeHangup tells the all-in-one server to read again what it has made itself.
func TestServeHangup(t *testing.T) {
	data := t.TempDir()
	s := serve(t, data)
	s.signal(syscall.SIGHUP)
	eventually(t, soon, "the certificate to be read again", func() error {
		_, log := s.output()
		if n := strings.Count(log, "certificate loaded"); n != 2 {
			return fmt.Errorf("read %d times", n)
		}
		return nil
	})
	s.try(t)
	s.leave(t)
}
