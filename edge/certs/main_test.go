package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issued is a certificate that signs itself, and its key, as they stand in files.
type issued struct{ cert, key []byte }

// far is when certificates end that are of no other interest.
var far = time.Now().Add(time.Hour).Truncate(time.Second)

func issue(t *testing.T, serial int64, end time.Time, names ...string) issued {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), DNSNames: names, NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return issued{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (i issued) write(t *testing.T, p Pair) {
	t.Helper()
	write(t, p.Key, i.key)
	write(t, p.Cert, i.cert)
}

func newPair(t *testing.T) Pair {
	dir := t.TempDir()
	return Pair{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
}

// logged is what a Store has logged. It may be read at any time.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func open(t *testing.T, cfg Config) (*Store, *logged) {
	t.Helper()
	log := new(logged)
	cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s, log
}

// connect does a handshake and reads a byte, with which tickets have come.
func connect(t *testing.T, server, client *tls.Config) (tls.ConnectionState, error) {
	t.Helper()
	// A socket has a buffer: at the end of a TLS 1.3 handshake both sides write first.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		a, err := l.Accept()
		if err != nil {
			return
		}
		defer a.Close()
		_, _ = tls.Server(a, server).Write([]byte{1}) // the client sees what fails
		_, _ = a.Read(make([]byte, 1))                // closed by the client first: no reset
	})
	b, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	c := tls.Client(b, client)
	_, err = c.Read(make([]byte, 1))
	return c.ConnectionState(), err
}

// served is the serial number of the certificate that a client of that name gets.
func served(t *testing.T, server *tls.Config, name string) int64 {
	t.Helper()
	state, err := connect(t, server, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	return state.PeerCertificates[0].SerialNumber.Int64()
}
