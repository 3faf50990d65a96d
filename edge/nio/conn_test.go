package nio

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// dribble sends every byte in a segment of its own.
type dribble struct{ net.Conn }

func (d dribble) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := d.Conn.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

func TestEcho(t *testing.T) {
	for _, tc := range []struct {
		name    string
		version uint16
	}{
		{"plain", 0}, {"TLS 1.2", tls.VersionTLS12}, {"TLS 1.3", tls.VersionTLS13},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := start(t, Config{})
			var cfg *tls.Config
			if tc.version != 0 {
				cfg = serverTLS()
			}
			ended := make(chan ending, 1)
			addr := listen(t, l, cfg, echoing(ended))
			c := dial(t, addr, tc.version)
			for _, size := range []int{1, 500, 4096, 16 << 10, 16<<10 + 1, 100 << 10, 3 << 20, 7} {
				exchange(t, c, fill(size))
			}
			if s, ok := c.(*tls.Conn); ok {
				if got := s.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
					t.Errorf("protocol = %q, want http/1.1", got)
				}
			}
			_ = c.Close()
			if e := wait(t, "Closed", ended); e.err != nil {
				t.Errorf("Closed(%v), want nil after a clean end", e.err)
			}
		})
	}
}

// TestFragments has crypto/tls see its records a byte at a time, in the handshake
// and after it.
func TestFragments(t *testing.T) {
	l := start(t, Config{})
	addr := listen(t, l, serverTLS(), echoing(nil))
	for name, version := range map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			raw := dial(t, addr, 0)
			c := tls.Client(dribble{raw}, clientTLS(version))
			for range 20 {
				exchange(t, c, fill(300))
			}
			exchange(t, c, fill(20<<10))
		})
	}
}

func TestManyClients(t *testing.T) {
	l := start(t, Config{})
	plain := listen(t, l, nil, echoing(nil))
	secure := listen(t, l, serverTLS(), echoing(nil))
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			addr, cfg := plain, (*tls.Config)(nil)
			if i%4 == 0 {
				addr, cfg = secure, clientTLS(tls.VersionTLS13)
			}
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			if cfg != nil {
				conn = tls.Client(conn, cfg)
			}
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			msg := bytes.Repeat([]byte{byte(i)}, 100+i*13)
			got := make([]byte, len(msg))
			for range 20 {
				if _, err := conn.Write(msg); err != nil {
					t.Error(err)
					return
				}
				if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, msg) {
					t.Errorf("client %d: got another's bytes or %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestKeyUpdate has the client change its keys and ask the server to do so too.
func TestKeyUpdate(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("there is no openssl to send a KeyUpdate")
	}
	l := start(t, Config{})
	addr := listen(t, l, serverTLS(), echoing(nil))
	cmd := exec.Command(openssl, "s_client", "-connect", addr, "-tls1_3")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, to := io.Pipe()
	cmd.Stdout, cmd.Stderr = to, to
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	var reader sync.WaitGroup
	reader.Go(func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	})
	defer func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = to.Close()
		reader.Wait()
	}()
	// What openssl reads at once is one command, or none: so each line waits for
	// the one before.
	for _, step := range []struct{ line, want string }{
		{"hello one", "hello one"},
		{"K", "KEYUPDATE"}, // and it asks the server to do the same
		{"hello two", "hello two"},
		{"k", "KEYUPDATE"},
		{"K", "KEYUPDATE"},
		{"hello three", "hello three"},
	} {
		if _, err := io.WriteString(in, step.line+"\n"); err != nil {
			t.Fatal(err)
		}
		for !strings.Contains(wait(t, "the answer to "+step.line, lines), step.want) {
		}
	}
}

// TestHalfClose: a request and the end of the client's side together, answered by
// the poller itself, and long after it has seen the end.
func TestHalfClose(t *testing.T) {
	l := start(t, Config{})
	later := func(ended chan<- ending) OpenFunc {
		return func(c *Conn) Handler {
			return &session{conn: c, ended: ended, expire: echo, drain: echo,
				read: func(*session) { c.SetTimeout(1) }}
		}
	}
	for _, tc := range []struct {
		name    string
		cfg     *tls.Config
		version uint16
		open    func(chan<- ending) OpenFunc
		sizes   []int
	}{
		{"plain at once", nil, 0, echoing, []int{10, 1000, 4000, 20000, 100000}},
		{"plain later", nil, 0, later, []int{10, 1000, 30000}},
		{"TLS at once", serverTLS(), tls.VersionTLS13, echoing, []int{10, 1000, 4000, 20000, 100000}},
		{"TLS 1.3 later", serverTLS(), tls.VersionTLS13, later, []int{10, 1000, 30000}},
		{"TLS 1.2 later", serverTLS(), tls.VersionTLS12, later, []int{10, 1000, 30000}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ended := make(chan ending, 1)
			addr := listen(t, l, tc.cfg, tc.open(ended))
			for _, size := range tc.sizes {
				c := dial(t, addr, tc.version)
				msg := fill(size)
				if _, err := c.Write(msg); err != nil {
					t.Fatal(err)
				}
				if err := c.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
					t.Fatal(err)
				}
				if s, ok := c.(*tls.Conn); ok { // its CloseWrite sends close_notify only
					if err := s.NetConn().(*net.TCPConn).CloseWrite(); err != nil {
						t.Fatal(err)
					}
				}
				got, err := io.ReadAll(c)
				if err != nil || !bytes.Equal(got, msg) {
					t.Fatalf("got %d bytes and %v, want the %d bytes sent", len(got), err, len(msg))
				}
				_ = c.Close()
				if e := wait(t, "Closed", ended); e.err != nil {
					t.Fatalf("Closed(%v), want nil", e.err)
				}
			}
		})
	}
}

// TestBacklog has a client that does not read, and then does.
func TestBacklog(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg     *tls.Config
		version uint16
	}{
		"plain":   {nil, 0},
		"TLS 1.3": {serverTLS(), tls.VersionTLS13},
	} {
		t.Run(name, func(t *testing.T) {
			const limit = 1 << 20
			l := start(t, Config{MaxUnwritten: limit})
			var total int
			full, drained := make(chan int, 1), make(chan int, 10)
			chunk := fill(50 << 10)
			addr := listen(t, l, tc.cfg, func(c *Conn) Handler {
				return &session{
					conn: c,
					read: func(s *session) {
						if n, err := c.Read(make([]byte, 10)); n == 0 || err != nil {
							return
						}
						for {
							if c.Unwritten() > limit {
								t.Errorf("%d bytes wait, the limit is %d", c.Unwritten(), limit)
							}
							if err := c.Write(chunk); errors.Is(err, ErrOverflow) {
								full <- total
								return
							} else if err != nil {
								t.Error(err)
								return
							}
							total += len(chunk)
						}
					},
					drain: func(s *session) { drained <- c.Unwritten() },
				}
			})
			c := dial(t, addr, tc.version)
			if _, err := c.Write([]byte("go")); err != nil {
				t.Fatal(err)
			}
			n := wait(t, "ErrOverflow", full)
			if n < limit/2 {
				t.Errorf("only %d bytes were taken before ErrOverflow", n)
			}
			if u := l.unwritten.Load(); u == 0 || u > limit {
				t.Errorf("the loop counts %d bytes unwritten", u)
			}
			for read := 0; read < n; read += len(chunk) {
				got := make([]byte, len(chunk))
				if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, chunk) {
					t.Fatalf("after %d of %d bytes: %v or wrong bytes", read, n, err)
				}
			}
			if u := wait(t, "Drained", drained); u != 0 {
				t.Errorf("Drained with %d bytes unwritten", u)
			}
			if u := l.unwritten.Load(); u != 0 {
				t.Errorf("the loop counts %d bytes unwritten after all was read", u)
			}
			// The connection still works.
			if _, err := c.Write([]byte("go")); err != nil {
				t.Fatal(err)
			}
			wait(t, "ErrOverflow", full)
		})
	}
}

// TestDrainedIsNeverLost writes just past what the kernel takes, many times, with a
// client that reads at the same moment.
func TestDrainedIsNeverLost(t *testing.T) {
	l := start(t, Config{MaxUnwritten: 8 << 20})
	ended := make(chan ending, 1)
	const rounds = 300
	addr := listen(t, l, nil, func(c *Conn) Handler {
		round := 0
		chunk := make([]byte, 300<<10)
		next := func(s *session) {
			for round < rounds && c.Unwritten() == 0 {
				round++
				if err := c.Write(chunk); err != nil {
					t.Error(err)
					return
				}
			}
			if round == rounds && c.Unwritten() == 0 {
				c.CloseAfterFlush()
			}
		}
		return &session{conn: c, read: next, drain: next, ended: ended}
	})
	c := dial(t, addr, 0)
	_ = c.(*net.TCPConn).SetReadBuffer(16 << 10)
	if _, err := c.Write([]byte("go")); err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, c)
	if want := int64(rounds * 300 << 10); n != want || err != nil {
		t.Errorf("read %d bytes and %v, want %d", n, err, want)
	}
	_ = c.Close()
	if e := wait(t, "Closed", ended); e.err != nil {
		t.Errorf("Closed(%v), want nil", e.err)
	}
}

// However many do not read, all of them together stay within the bound, and who does
// read finds room.
func TestMaxUnwrittenTotal(t *testing.T) {
	const total, stuck = 8 << 20, 40
	for name, version := range map[string]uint16{"plain": 0, "TLS": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			l := start(t, Config{MaxUnwritten: 64 << 20, MaxUnwrittenTotal: total})
			var server *tls.Config
			if version != 0 {
				server = serverTLS()
			}
			opened := make(chan *Conn, 1)
			addr := listen(t, l, server, func(c *Conn) Handler {
				opened <- c
				return &session{conn: c}
			})
			open := func() *Conn {
				dial(t, addr, version)
				c := wait(t, "opening", opened)
				eventually(t, "adding", func() bool { return c.state.Load()&stateReady != 0 })
				return c
			}
			closed := 0
			for range stuck {
				c := open()
				for range 3 { // more than the kernel takes
					if err := c.Write(make([]byte, 4<<20)); err != nil {
						closed++
						break
					}
				}
				if n := l.unwritten.Load(); n > total {
					t.Fatalf("%d bytes wait, more than %d", n, total)
				}
			}
			if n := l.unwritten.Load(); n < total/4 || closed == 0 {
				t.Errorf("%d bytes wait, %d closed: the bound was not tried", n, closed)
			}
			c := open()
			if err := c.Write(make([]byte, 4<<10)); err != nil {
				t.Errorf("Write of a connection with nothing queued = %v, want nil", err)
			}
		})
	}
}

// What a peer has taken is not held any longer, though more of the same Write waits.
func TestUnwrittenIsFreed(t *testing.T) {
	const size, left = 32 << 20, 8 << 20
	l := start(t, Config{MaxUnwritten: 2 * size, MaxUnwrittenTotal: 8 * size})
	opened := make(chan *Conn, 1)
	addr := listen(t, l, nil, func(c *Conn) Handler {
		opened <- c
		return &session{conn: c}
	})
	peer := dial(t, addr, 0)
	c := wait(t, "opening", opened)
	eventually(t, "adding", func() bool { return c.state.Load()&stateReady != 0 })
	inUse := func() int {
		runtime.GC()
		runtime.GC() // what is in a sync.Pool outlives the first
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := inUse()
	if err := c.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if got := inUse() - before; got < size/2 {
		t.Errorf("%d bytes are held of %d that nobody reads", got, size)
	}
	for buf := make([]byte, 64<<10); c.Unwritten() > left; {
		if _, err := peer.Read(buf); err != nil {
			t.Fatal(err)
		}
	}
	if got := inUse() - before; got > 2*left {
		t.Errorf("%d bytes are held with %d to be written", got, c.Unwritten())
	}
}

func TestAddresses(t *testing.T) {
	l := start(t, Config{})
	opened := make(chan *Conn, 1)
	addr, err := l.Listen("[::]:0", nil, func(c *Conn) Handler {
		opened <- c
		return &session{conn: c}
	})
	if err != nil {
		t.Skip("no IPv6 here")
	}
	c := dial(t, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(addr.(*net.TCPAddr).Port)).String(), 0)
	s := wait(t, "opening", opened)
	if got, want := s.RemoteAddr().String(), c.LocalAddr().String(); got != want {
		t.Errorf("RemoteAddr = %s, want %s", got, want)
	}
	if got, want := s.LocalAddr().String(), c.RemoteAddr().String(); got != want {
		t.Errorf("LocalAddr = %s, want %s", got, want)
	}
	if s.TLS() {
		t.Error("TLS = true on a plain connection")
	}
}

// TestSizes keeps an eye on what every connection costs.
func TestSizes(t *testing.T) {
	if got := unsafe.Sizeof(Conn{}); got > 160 {
		t.Errorf("Conn is %d bytes, want at most 160", got)
	}
	if got := unsafe.Sizeof(secure{}); got > 64 {
		t.Errorf("secure is %d bytes, want at most 64", got)
	}
}
