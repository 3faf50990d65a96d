package nio

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// roleVar makes the test binary play a part in a process of its own.
const roleVar = "NIO_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "idlers":
		idlers()
	case "few files":
		fewFiles()
	case "flood":
		flood()
	default:
		goleak.VerifyTestMain(m)
	}
}

// start runs a loop for the length of the test.
func start(t testing.TB, cfg Config) *Loop {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- l.Run(context.Background()) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = l.Close(ctx)
		if err := <-ran; err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("Run: %v", err)
		}
	})
	return l
}

// listen adds a listener at a port of the system's choice.
func listen(t testing.TB, l *Loop, cfg *tls.Config, open OpenFunc) string {
	t.Helper()
	addr, err := l.Listen("127.0.0.1:0", cfg, open)
	if err != nil {
		t.Fatal(err)
	}
	return addr.String()
}

// serverTLS is a configuration with a certificate that clientTLS accepts.
var serverTLS = sync.OnceValue(func() *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "nio.test"},
		DNSNames:     []string{"nio.test"},
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
})

func clientTLS(version uint16) *tls.Config {
	pool := x509.NewCertPool()
	cert, err := x509.ParseCertificate(serverTLS().Certificates[0].Certificate[0])
	if err != nil {
		panic(err)
	}
	pool.AddCert(cert)
	return &tls.Config{
		RootCAs: pool, ServerName: "nio.test", NextProtos: []string{"http/1.1"},
		MinVersion: version, MaxVersion: version,
	}
}

// dial connects; with a version it speaks TLS.
func dial(t testing.TB, addr string, version uint16) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	if version == 0 {
		return conn
	}
	c := tls.Client(conn, clientTLS(version))
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	return c
}

// exchange sends msg and expects it back.
func exchange(t testing.TB, c net.Conn, msg []byte) {
	t.Helper()
	sent := make(chan error, 1)
	go func() {
		_, err := c.Write(msg)
		sent <- err
	}()
	got := make([]byte, len(msg))
	if _, err := io.ReadFull(c, got); err != nil {
		t.Fatalf("reading the echo: %v", err)
	}
	if err := <-sent; err != nil {
		t.Fatalf("writing: %v", err)
	}
	if !bytes.Equal(got, msg) {
		t.Fatal("the echo differs from what was sent")
	}
}

// ending is how a connection ended.
type ending struct {
	conn *Conn
	err  error
}

// session is a Handler for tests. Its work is done under mu by whoever calls; a
// real session hands it to an actor.
type session struct {
	conn     *Conn
	read     func(s *session) // called by Readable with mu held
	drain    func(s *session)
	expire   func(s *session)
	ended    chan<- ending
	mu       sync.Mutex
	rest     []byte // echo: read and not yet written
	isClosed atomic.Bool
	running  atomic.Int32 // calls
	late     atomic.Int32 // calls after Closed, or still running then
}

func (s *session) call(f func(*session)) {
	s.running.Add(1)
	defer s.running.Add(-1)
	if s.isClosed.Load() {
		s.late.Add(1)
	}
	if f == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *session) Readable() { s.call(s.read) }
func (s *session) Drained()  { s.call(s.drain) }
func (s *session) Expired()  { s.call(s.expire) }
func (s *session) Closed(err error) {
	if s.isClosed.Swap(true) || s.running.Load() > 0 {
		s.late.Add(1)
	}
	if s.ended != nil {
		s.ended <- ending{s.conn, err}
	}
}

var echoBuffers sync.Pool

// echo sends back what comes, as fast as it is taken, and ends with the peer.
func echo(s *session) {
	p, ok := echoBuffers.Get().(*[]byte)
	if !ok {
		p = new([]byte)
		*p = make([]byte, 32<<10)
	}
	defer echoBuffers.Put(p)
	buf := *p
	for {
		if len(s.rest) > 0 {
			switch err := s.conn.Write(s.rest); {
			case errors.Is(err, ErrOverflow):
				s.rest = bytes.Clone(s.rest)
				return // Drained comes back
			case err != nil:
				s.conn.Close(err)
				return
			}
			s.rest = nil
		}
		n, err := s.conn.Read(buf)
		switch {
		case err == nil:
			s.rest = buf[:n]
		case errors.Is(err, ErrAgain), errors.Is(err, net.ErrClosed):
			return // the latter in a call that had to wait for mu
		case errors.Is(err, io.EOF):
			s.conn.CloseAfterFlush()
			return
		default:
			s.conn.Close(err)
			return
		}
	}
}

// echoing opens echo sessions; ended may be nil.
func echoing(ended chan<- ending) OpenFunc {
	return func(c *Conn) Handler {
		return &session{conn: c, read: echo, drain: echo, ended: ended}
	}
}

// wait receives within the time that any test may take.
func wait[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("%s did not happen", what)
		panic("not reached")
	}
}

// eventually waits for a condition that nothing announces.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("%s did not happen", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// fill returns n bytes that no mistake in order or length leaves unnoticed.
func fill(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + i>>16)
	}
	return b
}
