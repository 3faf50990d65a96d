package nio

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

// TestCloseAfterFlush sends 10 MB to a reader that takes its time.
func TestCloseAfterFlush(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg     *tls.Config
		version uint16
	}{
		"plain":   {nil, 0},
		"TLS 1.2": {serverTLS(), tls.VersionTLS12},
		"TLS 1.3": {serverTLS(), tls.VersionTLS13},
	} {
		t.Run(name, func(t *testing.T) {
			l := start(t, Config{MaxUnwritten: 16 << 20})
			reply := fill(10 << 20)
			ended := make(chan ending, 1)
			addr := listen(t, l, tc.cfg, func(c *Conn) Handler {
				return &session{conn: c, ended: ended, read: func(s *session) {
					// One byte of the request is read, the rest never is.
					if n, _ := c.Read(make([]byte, 1)); n == 0 {
						return
					}
					if err := c.Write(reply); err != nil {
						t.Error(err)
					}
					c.CloseAfterFlush()
					if err := c.Write(reply); !errors.Is(err, net.ErrClosed) {
						t.Errorf("Write after CloseAfterFlush = %v, want net.ErrClosed", err)
					}
				}}
			})
			c := dial(t, addr, tc.version)
			if _, err := c.Write(make([]byte, 20<<10)); err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			buf := make([]byte, 64<<10)
			for {
				n, err := c.Read(buf)
				got.Write(buf[:n])
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("after %d bytes: %v", got.Len(), err)
				}
				runtime.Gosched()
			}
			if !bytes.Equal(got.Bytes(), reply) {
				t.Errorf("got %d bytes, want the %d of the reply", got.Len(), len(reply))
			}
			_ = c.Close()
			if e := wait(t, "Closed", ended); e.err != nil {
				t.Errorf("Closed(%v), want nil", e.err)
			}
		})
	}
}

// TestFlushTimeout has a client that never takes the rest.
func TestFlushTimeout(t *testing.T) {
	l := start(t, Config{MaxUnwritten: 64 << 20, FlushTimeout: 300 * time.Millisecond})
	ended := make(chan ending, 1)
	addr := listen(t, l, nil, func(c *Conn) Handler {
		return &session{conn: c, ended: ended, read: func(*session) {
			_ = c.Write(make([]byte, 32<<20))
			c.CloseAfterFlush()
		}}
	})
	c := dial(t, addr, 0)
	if _, err := c.Write([]byte("go")); err != nil {
		t.Fatal(err)
	}
	if e := wait(t, "Closed", ended); !errors.Is(e.err, ErrFlushTimeout) {
		t.Errorf("Closed(%v), want ErrFlushTimeout", e.err)
	}
}

// TestLinger has a client that keeps sending after the answer, within the bounds
// and beyond them.
func TestLinger(t *testing.T) {
	l := start(t, Config{LingerTimeout: 300 * time.Millisecond})
	ended := make(chan ending, 1)
	opened := make(chan *Conn, 3)
	addr := listen(t, l, nil, func(c *Conn) Handler {
		opened <- c
		return &session{conn: c, ended: ended, read: func(*session) {
			_ = c.Write([]byte("refused"))
			c.CloseAfterFlush()
		}}
	})
	t.Run("upload", func(t *testing.T) {
		c, other := dial(t, addr, 0), dial(t, listen(t, l, nil, echoing(nil)), 0)
		s := wait(t, "opening", opened)
		for i := range 20 {
			if _, err := c.Write(make([]byte, 10<<10)); err != nil {
				t.Fatalf("the upload was reset: %v", err)
			}
			exchange(t, other, []byte("time passes"))
			if i == 0 {
				eventually(t, "sending the answer", func() bool { return s.state.Load()&stateShut != 0 })
			}
		}
		got, err := io.ReadAll(c)
		if string(got) != "refused" || err != nil {
			t.Errorf("got %q and %v, want the answer", got, err)
		}
		_ = c.Close()
		if e := wait(t, "Closed", ended); e.err != nil {
			t.Errorf("Closed(%v), want nil", e.err)
		}
	})
	t.Run("silent", func(t *testing.T) {
		c := dial(t, addr, 0)
		if _, err := c.Write([]byte("go")); err != nil {
			t.Fatal(err)
		}
		if e := wait(t, "Closed", ended); e.err != nil {
			t.Errorf("Closed(%v), want nil", e.err)
		}
	})
	t.Run("endless", func(t *testing.T) {
		c := dial(t, addr, 0)
		for {
			if _, err := c.Write(make([]byte, 64<<10)); err != nil {
				break
			}
		}
		wait(t, "Closed", ended)
	})
}

func TestClose(t *testing.T) {
	boom := errors.New("boom")
	for name, tc := range map[string]struct {
		act  func(c *Conn)
		want error
	}{
		"with an error": {func(c *Conn) { c.Close(boom); c.Close(nil) }, boom},
		"without":       {func(c *Conn) { c.Close(nil); c.Close(boom) }, nil},
		"with a queue":  {func(c *Conn) { _ = c.Write(make([]byte, 4<<20)); c.Close(boom) }, boom},
		"while flushing": {func(c *Conn) {
			_ = c.Write(make([]byte, 4<<20))
			c.CloseAfterFlush()
			c.Close(boom)
		}, boom},
	} {
		t.Run(name, func(t *testing.T) {
			l := start(t, Config{})
			ended := make(chan ending, 1)
			addr := listen(t, l, nil, func(c *Conn) Handler {
				return &session{conn: c, ended: ended, read: func(*session) { tc.act(c) }}
			})
			c := dial(t, addr, 0)
			if _, err := c.Write([]byte("go")); err != nil {
				t.Fatal(err)
			}
			e := wait(t, "Closed", ended)
			if !errors.Is(e.err, tc.want) {
				t.Errorf("Closed(%v), want %v", e.err, tc.want)
			}
			if _, err := e.conn.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Read after the end = %v, want net.ErrClosed", err)
			}
			if err := e.conn.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("Write after the end = %v, want net.ErrClosed", err)
			}
			if u := l.unwritten.Load(); u != 0 {
				t.Errorf("%d bytes are still counted as unwritten", u)
			}
		})
	}
}

// TestReset has clients that reset their connections in the middle of an answer.
func TestReset(t *testing.T) {
	l := start(t, Config{})
	ended := make(chan ending, 100)
	addr := listen(t, l, nil, echoing(ended))
	for range 100 {
		c := dial(t, addr, 0)
		_ = c.(*net.TCPConn).SetWriteBuffer(8 << 20)
		if _, err := c.Write(make([]byte, 200<<10)); err != nil {
			t.Fatal(err)
		}
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	for range 100 {
		if e := wait(t, "Closed", ended); e.err == nil {
			t.Error("Closed(nil), want an error after a reset")
		}
	}
	exchange(t, dial(t, addr, 0), fill(100<<10))
}

// TestClosedIsLast closes connections from outside while they are busy in every
// other way, so that descriptors are used again at once, and checks that each
// handler was told of its own end only, and of nothing after it.
func TestClosedIsLast(t *testing.T) {
	l := start(t, Config{MaxConnsPerAddr: -1})
	var mu sync.Mutex
	var sessions []*session
	addr := listen(t, l, nil, func(c *Conn) Handler {
		s := &session{conn: c, read: echo, drain: echo}
		s.expire = func(s *session) { c.SetTimeout(time.Millisecond) }
		c.SetTimeout(time.Millisecond)
		mu.Lock()
		sessions = append(sessions, s)
		mu.Unlock()
		if rand.N(10) == 0 {
			c.Close(nil) // before it is ready
		}
		return s
	})
	var wg, closer sync.WaitGroup
	stop := make(chan struct{})
	closer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			l.Each(func(c *Conn) {
				if rand.N(4) == 0 {
					c.Close(nil)
				}
			})
			runtime.Gosched()
		}
	})
	for range 8 {
		wg.Go(func() {
			for range 100 {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					t.Error(err)
					return
				}
				_ = c.SetDeadline(time.Now().Add(20 * time.Second))
				msg := make([]byte, 1000)
				for range 3 {
					if _, err := c.Write(msg); err != nil {
						break
					}
					if _, err := io.ReadFull(c, msg); err != nil {
						if errors.Is(err, os.ErrDeadlineExceeded) {
							t.Error("a client was left waiting")
						}
						break
					}
				}
				_ = c.Close()
			}
		})
	}
	wg.Wait()
	close(stop)
	closer.Wait()
	eventually(t, "the end of all connections", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for _, s := range sessions {
			if !s.isClosed.Load() {
				return false
			}
		}
		return true
	})
	for _, s := range sessions {
		if n := s.late.Load(); n > 0 {
			t.Errorf("%d calls after Closed", n)
		}
	}
	l.gate.mu.Lock()
	defer l.gate.mu.Unlock()
	if l.gate.conns != 0 || len(l.gate.addrs) != 0 {
		t.Errorf("the gate counts %d connections of %d addresses, want none", l.gate.conns, len(l.gate.addrs))
	}
}

// TestClosedWaits ends a connection while a call into its handler is running.
func TestClosedWaits(t *testing.T) {
	l := start(t, Config{})
	ended := make(chan ending, 1)
	opened, entered, release := make(chan *Conn, 1), make(chan struct{}), make(chan struct{})
	addr := listen(t, l, nil, func(c *Conn) Handler {
		c.SetTimeout(1)
		opened <- c
		return &session{conn: c, ended: ended, expire: func(*session) {
			close(entered)
			<-release
		}}
	})
	dial(t, addr, 0)
	c := wait(t, "opening", opened)
	wait(t, "Expired", entered)
	c.Close(nil)
	eventually(t, "closing the socket", func() bool { return c.state.Load()&stateClosed != 0 })
	if c.state.Load()&stateTold != 0 {
		t.Error("Closed was called while Expired was running")
	}
	close(release)
	wait(t, "Closed", ended)
}

// TestLeaks opens and closes many connections and looks at what stays.
func TestLeaks(t *testing.T) {
	l := start(t, Config{})
	addr := listen(t, l, nil, echoing(nil))
	secureAddr := listen(t, l, serverTLS(), echoing(nil))
	exchange(t, dial(t, addr, 0), fill(10))
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	for i := range 1000 {
		connect := func() (net.Conn, error) { return net.Dial("tcp", addr) }
		if i%10 == 0 {
			connect = func() (net.Conn, error) { return tls.Dial("tcp", secureAddr, clientTLS(tls.VersionTLS13)) }
		}
		conn, err := connect()
		if err != nil {
			t.Fatal(err)
		}
		exchange(t, conn, []byte("hello"))
		_ = conn.Close()
	}
	eventually(t, "the end of all but one connection", func() bool {
		l.gate.mu.Lock()
		defer l.gate.mu.Unlock()
		return l.gate.conns == 1
	})
	eventually(t, "closing the descriptors", func() bool { return openFiles(t) <= files })
	eventually(t, "ending the goroutines", func() bool { return runtime.NumGoroutine() <= goroutines })
}

func openFiles(t *testing.T) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc here")
	}
	return len(names)
}

func TestLoopClose(t *testing.T) {
	t.Run("at once after Run", func(t *testing.T) {
		for range 20 {
			l, err := New(Config{Pollers: 4})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			if err := l.Run(ctx); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("without Run", func(t *testing.T) {
		l, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Listen("127.0.0.1:0", nil, echoing(nil)); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if _, err := l.Listen("127.0.0.1:0", nil, echoing(nil)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Listen after Close = %v, want net.ErrClosed", err)
		}
	})
	t.Run("waits for what is being flushed", func(t *testing.T) {
		l := start(t, Config{MaxUnwritten: 32 << 20})
		ended := make(chan ending, 2)
		flushing := make(chan struct{}, 1)
		addr := listen(t, l, nil, func(c *Conn) Handler {
			return &session{conn: c, ended: ended, read: func(*session) {
				if n, _ := c.Read(make([]byte, 1)); n == 0 {
					return
				}
				_ = c.Write(make([]byte, 16<<20))
				c.CloseAfterFlush()
				flushing <- struct{}{}
			}}
		})
		busy, idle := dial(t, addr, 0), dial(t, addr, 0)
		if _, err := busy.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		wait(t, "flushing", flushing)
		done := make(chan error, 1)
		go func() { done <- l.Close(context.Background()) }()
		if e := wait(t, "the end of the idle connection", ended); !errors.Is(e.err, net.ErrClosed) {
			t.Errorf("Closed(%v), want net.ErrClosed", e.err)
		}
		if _, err := io.ReadAll(idle); err != nil {
			t.Errorf("the idle client got %v", err)
		}
		n, err := io.Copy(io.Discard, busy)
		if n != 16<<20 || err != nil {
			t.Errorf("the busy client got %d bytes and %v, want all", n, err)
		}
		_ = busy.Close()
		if err := wait(t, "Close", done); err != nil {
			t.Errorf("Close = %v, want nil", err)
		}
	})
	t.Run("cuts what takes too long", func(t *testing.T) {
		l := start(t, Config{MaxUnwritten: 32 << 20})
		flushing := make(chan struct{}, 1)
		addr := listen(t, l, nil, func(c *Conn) Handler {
			return &session{conn: c, read: func(*session) {
				_ = c.Write(make([]byte, 16<<20))
				c.CloseAfterFlush()
				flushing <- struct{}{}
			}}
		})
		c := dial(t, addr, 0)
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		wait(t, "flushing", flushing)
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		if err := l.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close = %v, want context.DeadlineExceeded", err)
		}
	})
}
