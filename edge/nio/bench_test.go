package nio

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAllocations holds the hot path to its budget: a message read and answered
// costs no allocation. With TLS there are those of crypto/tls, see tlsAllocations.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	l := start(t, Config{})
	for _, tc := range []struct {
		name    string
		cfg     *tls.Config
		version uint16
		max     float64
	}{
		{"plain", nil, 0, 0},
		{"TLS 1.3", serverTLS(), tls.VersionTLS13, tlsAllocations},
	} {
		t.Run(tc.name, func(t *testing.T) {
			addr := listen(t, l, tc.cfg, func(c *Conn) Handler {
				return &session{conn: c, read: func(s *session) {
					c.SetTimeout(time.Minute)
					echo(s)
				}}
			})
			c := dial(t, addr, tc.version)
			msg, got := fill(400), make([]byte, 400)
			n := testing.AllocsPerRun(500, func() {
				if _, err := c.Write(msg); err != nil {
					t.Fatal(err)
				}
				if _, err := io.ReadFull(c, got); err != nil {
					t.Fatal(err)
				}
			})
			if n > tc.max {
				t.Errorf("%v allocations per message, want at most %v", n, tc.max)
			}
		})
	}
}

func BenchmarkEcho(b *testing.B) {
	for _, tc := range []struct {
		name    string
		cfg     *tls.Config
		version uint16
	}{
		{"plain", nil, 0}, {"TLS", serverTLS(), tls.VersionTLS13},
	} {
		for _, size := range []int{400, 1500} {
			b.Run(fmt.Sprintf("%s/%d", tc.name, size), func(b *testing.B) {
				l := start(b, Config{})
				c := dial(b, listen(b, l, tc.cfg, echoing(nil)), tc.version)
				msg, got := fill(size), make([]byte, size)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.Write(msg); err != nil {
						b.Fatal(err)
					}
					if _, err := io.ReadFull(c, got); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkAccept opens, uses and closes a connection.
func BenchmarkAccept(b *testing.B) {
	for _, tc := range []struct {
		name    string
		cfg     *tls.Config
		version uint16
	}{
		{"plain", nil, 0}, {"TLS", serverTLS(), tls.VersionTLS13},
	} {
		b.Run(tc.name, func(b *testing.B) {
			l := start(b, Config{MaxConnsPerAddr: -1})
			addr := listen(b, l, tc.cfg, echoing(nil))
			client := clientTLS(tls.VersionTLS13)
			b.ReportAllocs()
			for b.Loop() {
				conn, err := net.Dial("tcp", addr)
				if err != nil {
					b.Fatal(err)
				}
				_ = conn.(*net.TCPConn).SetLinger(0) // no ports in TIME_WAIT
				if tc.version != 0 {
					conn = tls.Client(conn, client)
				}
				exchange(b, conn, []byte("hello"))
				_ = conn.Close()
			}
		})
	}
}

// BenchmarkIdle reports the resident memory of an idle connection. The clients are
// another process.
func BenchmarkIdle(b *testing.B) {
	const conns = 4000
	for _, tc := range []struct {
		name string
		cfg  *tls.Config
	}{
		{"plain", nil}, {"TLS", serverTLS()},
	} {
		b.Run(tc.name, func(b *testing.B) {
			for b.Loop() {
				l := start(b, Config{MaxConns: conns, MaxConnsPerAddr: -1, HandshakesPerAddr: -1})
				addr := listen(b, l, tc.cfg, echoing(nil))
				before := resident(b)
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), roleVar+"=idlers", "NIO_TEST_ADDR="+addr,
					"NIO_TEST_CONNS="+strconv.Itoa(conns), "NIO_TEST_TLS="+strconv.FormatBool(tc.cfg != nil))
				cmd.Stderr = os.Stderr
				in, err := cmd.StdinPipe()
				if err != nil {
					b.Fatal(err)
				}
				out, err := cmd.StdoutPipe()
				if err != nil {
					b.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					b.Fatal(err)
				}
				var ready int
				if _, err := fmt.Fscanln(out, &ready); err != nil || ready != conns {
					b.Fatalf("%d clients are ready: %v", ready, err)
				}
				b.ReportMetric(float64(resident(b)-before)/conns, "rss-B/conn")
				_ = in.Close()
				if err := cmd.Wait(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// resident is the memory of this process after the collector has given back what
// it can.
func resident(b *testing.B) int {
	runtime.GC()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("no /proc here")
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		b.Fatal(err)
	}
	return pages * unix.Getpagesize()
}

// idlers are the clients of BenchmarkIdle: they exchange one message each and then
// stay until standard input ends.
func idlers() {
	addr, secure := os.Getenv("NIO_TEST_ADDR"), os.Getenv("NIO_TEST_TLS") == "true"
	n, err := strconv.Atoi(os.Getenv("NIO_TEST_CONNS"))
	if err != nil {
		panic(err)
	}
	conns := make([]net.Conn, n)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := w; i < n; i += 8 {
				c, err := net.DialTimeout("tcp", addr, 20*time.Second)
				if err != nil {
					panic(err)
				}
				if secure {
					c = tls.Client(c, &tls.Config{InsecureSkipVerify: true}) // the key is another process's
				}
				_ = c.SetDeadline(time.Now().Add(20 * time.Second))
				msg := make([]byte, 400)
				if _, err := c.Write(msg); err != nil {
					panic(err)
				}
				if _, err := io.ReadFull(c, msg); err != nil {
					panic(err)
				}
				conns[i] = c
			}
		})
	}
	wg.Wait()
	fmt.Println(n)
	_, _ = io.Copy(io.Discard, bufio.NewReader(os.Stdin))
	runtime.KeepAlive(conns)
}

// contextOfInput is done when standard input ends.
func contextOfInput() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return ctx, cancel
}
