package nio

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/sys/unix"
)

// refused expects the connection to be closed without an answer.
func refused(t *testing.T, c net.Conn) {
	t.Helper()
	_, _ = c.Write([]byte("x"))
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("the connection was served, want it closed")
	} else if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		t.Error("the connection was neither served nor closed")
	}
}

func TestConnLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg    Config
		reason refusal
	}{
		"all":         {Config{MaxConns: 3, MaxConnsPerAddr: -1}, refusedConns},
		"one address": {Config{MaxConnsPerAddr: 3}, refusedConnsPerAddr},
	} {
		t.Run(name, func(t *testing.T) {
			l := start(t, tc.cfg)
			ended := make(chan ending, 10)
			addr := listen(t, l, nil, echoing(ended))
			var conns []net.Conn
			for range 3 {
				c := dial(t, addr, 0)
				exchange(t, c, []byte("hello"))
				conns = append(conns, c)
			}
			refused(t, dial(t, addr, 0))
			if got := testutil.ToFloat64(l.metrics.refused[tc.reason]); got != 1 {
				t.Errorf("refused{%s} = %v, want 1", tc.reason, got)
			}
			_ = conns[0].Close()
			wait(t, "Closed", ended)
			eventually(t, "room for another", func() bool {
				l.gate.mu.Lock()
				defer l.gate.mu.Unlock()
				return l.gate.conns == 2
			})
			exchange(t, dial(t, addr, 0), []byte("hello"))
		})
	}
}

func TestAddrKey(t *testing.T) {
	for _, tc := range []struct{ name, addr, want string }{
		{"IPv4", "192.0.2.7:1", "192.0.2.7"},
		{"IPv4 as IPv6", "[::ffff:192.0.2.7]:1", "192.0.2.7"},
		{"IPv6", "[2001:db8:1:2:3:4:5:6]:1", "2001:db8:1:2::"},
		{"IPv6 with a zone", "[fe80::1%eth0]:1", "fe80::"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, err := net.ResolveTCPAddr("tcp", tc.addr)
			if err != nil {
				t.Fatal(err)
			}
			if got := addrKey(a).String(); got != tc.want {
				t.Errorf("addrKey(%s) = %s, want %s", tc.addr, got, tc.want)
			}
		})
	}
}

func TestRefusedByHandler(t *testing.T) {
	l := start(t, Config{})
	addr := listen(t, l, nil, func(*Conn) Handler { return nil })
	refused(t, dial(t, addr, 0))
	if got := testutil.ToFloat64(l.metrics.refused[refusedHandler]); got != 1 {
		t.Errorf("refused{handler} = %v, want 1", got)
	}
	l.Each(func(*Conn) { t.Error("Each shows a refused connection") })
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	l := start(t, Config{Registerer: reg})
	ended := make(chan ending, 3)
	plainAddr, secureAddr := listen(t, l, nil, echoing(ended)), listen(t, l, serverTLS(), echoing(ended))
	conns := []net.Conn{dial(t, plainAddr, 0), dial(t, plainAddr, 0), dial(t, secureAddr, tls.VersionTLS13)}
	for _, c := range conns {
		exchange(t, c, []byte("hello"))
	}
	_ = conns[1].Close()
	wait(t, "Closed", ended)
	eventually(t, "counting it", func() bool { return testutil.ToFloat64(l.metrics.open[plain]) == 1 })
	const want = `
		# HELP ommer_nio_accepted_total Connections handed to a session.
		# TYPE ommer_nio_accepted_total counter
		ommer_nio_accepted_total{transport="plain"} 2
		ommer_nio_accepted_total{transport="tls"} 1
		# HELP ommer_nio_connections Connections that are open, their handshake done.
		# TYPE ommer_nio_connections gauge
		ommer_nio_connections{transport="plain"} 1
		ommer_nio_connections{transport="tls"} 1
		# HELP ommer_nio_unwritten_bytes Bytes that wait in this process for their peers to take them.
		# TYPE ommer_nio_unwritten_bytes gauge
		ommer_nio_unwritten_bytes 0
	`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want),
		"ommer_nio_accepted_total", "ommer_nio_connections", "ommer_nio_unwritten_bytes"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("the metrics' names: %v %v", problems, err)
	}
	if _, err := New(Config{Registerer: reg}); err == nil {
		t.Error("a second loop with the same registerer was accepted")
	}
}

func TestConfig(t *testing.T) {
	for name, cfg := range map[string]Config{
		"Pollers":          {Pollers: -1},
		"MaxUnwritten":     {MaxUnwritten: -1},
		"HandshakeTimeout": {HandshakeTimeout: -1},
	} {
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("New with a negative %s: %v, want an error that names it", name, err)
		}
	}
}

// poor is a listener that has no descriptors for a while.
type poor struct {
	net.Listener
	failures int
}

func (p *poor) Accept() (net.Conn, error) {
	if p.failures > 0 {
		p.failures--
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", unix.EMFILE)}
	}
	return p.Listener.Accept()
}

func TestAcceptErrors(t *testing.T) {
	l := start(t, Config{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.serve(&poor{ln, 3}, nil, echoing(nil)); err != nil {
		t.Fatal(err)
	}
	exchange(t, dial(t, ln.Addr().String(), 0), []byte("hello"))
	if got := testutil.ToFloat64(l.metrics.acceptErrors); got != 3 {
		t.Errorf("%v errors were counted, want 3", got)
	}
	// One that waits to try again stops at once.
	ln, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.serve(&poor{ln, 1 << 30}, nil, echoing(nil)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "long waits", func() bool { return testutil.ToFloat64(l.metrics.acceptErrors) > 8 })
	l.StopAccepting()
}

// TestFewFiles runs a server that may open few files, in a process of its own:
// when they are used up it goes on as soon as some are free.
func TestFewFiles(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"=few files")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v", err)
		}
	}()
	var addr string
	if _, err := fmt.Fscanln(out, &addr); err != nil {
		t.Fatal(err)
	}
	var conns []net.Conn
	served := func(c net.Conn) bool {
		_ = c.SetDeadline(time.Now().Add(200 * time.Millisecond))
		_, _ = c.Write([]byte("x"))
		n, _ := c.Read(make([]byte, 1))
		return n == 1
	}
	for range 100 {
		c := dial(t, addr, 0)
		if conns = append(conns, c); !served(c) {
			break
		}
	}
	if len(conns) == 100 {
		t.Fatal("the server never ran out of files")
	}
	for range 3 { // more than one attempt to accept fails
		conns = append(conns, dial(t, addr, 0))
	}
	for _, c := range conns {
		_ = c.Close()
	}
	eventually(t, "serving again", func() bool {
		c := dial(t, addr, 0)
		defer c.Close()
		return served(c)
	})
}

// fewFiles is the server of TestFewFiles.
func fewFiles() {
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	check(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 40, Max: 40}))
	l, err := New(Config{MaxConns: 1000})
	check(err)
	addr, err := l.Listen("127.0.0.1:0", nil, echoing(nil))
	check(err)
	ctx, end := contextOfInput()
	defer end()
	fmt.Println(addr)
	check(l.Run(ctx))
}
