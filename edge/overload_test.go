package edge_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ommer/ommer/edge"
	"github.com/ommer/ommer/edge/overload"
	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/schematest"
)

// slow is a block whose lookups wait until they are released.
const slow = 999

// keeper answers at once, but for the slow block.
type keeper struct {
	*schematest.Fixed
	mu   sync.Mutex
	kept []func()
}

func (k *keeper) Resolve(q schema.Question, d time.Time, to schema.Receiver) {
	if q.Block != schema.Number(slow) {
		k.Fixed.Resolve(q, d, to)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = append(k.kept, func() { k.Fixed.Resolve(q, d, to) })
}

func (k *keeper) waiting() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.kept)
}

func (k *keeper) release() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range k.kept {
		f()
	}
	k.kept = nil
}

// pressed is an edge under pressure.
type pressed struct {
	*fixture
	keeper *keeper
	reg    *prometheus.Registry
	log    *syncBuffer
}

// syncBuffer is a log.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func startPressed(t *testing.T, l overload.Limits) *pressed {
	p := &pressed{keeper: &keeper{Fixed: schematest.NewFixed(uncles())}, reg: prometheus.NewRegistry(), log: new(syncBuffer)}
	p.fixture = start(t, func(c *edge.Config) {
		c.Resolver, c.Registerer, c.Logger, c.Overload = p.keeper, p.reg, slog.New(slog.NewTextHandler(p.log, nil)), l
		c.Limits.InputTotal = 512 << 20   // with its default bodies never come so far
		c.Timeouts.Idle = 8 * time.Second // so that one idle for a second may be closed
		c.Timeouts.Body, c.Timeouts.Lookup = time.Minute, time.Minute
	})
	return p
}

// metric is the sum of what has the name and label value, which may be empty.
func (p *pressed) metric(t *testing.T, name, label string) (sum float64) {
	t.Helper()
	families, err := p.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || len(m.GetLabel()) > 0 && m.GetLabel()[0].GetValue() == label) {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func (p *pressed) stage(t *testing.T) overload.Stage {
	return overload.Stage(p.metric(t, "ommer_edge_overload_stage", ""))
}

// until waits for a stage, longer than eventually: leaving all of them takes 10 s.
func (p *pressed) until(t *testing.T, want overload.Stage) {
	t.Helper()
	for end := time.Now().Add(time.Minute); p.stage(t) != want; {
		if time.Now().After(end) {
			t.Fatalf("at %v, waited in vain for %v; pressure of memory %.3f, of delay %.3f; log:\n%s", p.stage(t), want,
				p.metric(t, "ommer_edge_overload_pressure", "memory"), p.metric(t, "ommer_edge_overload_pressure", "delay"), p.log)
		}
		time.Sleep(5 * time.Millisecond) // between looks at the condition
	}
}

// held is what a Monitor counts of this process's memory.
func held() uint64 {
	runtime.GC()
	s := []metrics.Sample{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64() - s[2].Value.Uint64()
}

// ballast is memory in use, of which the system need not find any.
var ballast []byte

const pressedBudget = 512 << 20

// fill brings what is in use to a part of the budget.
func fill(t *testing.T, part float64) {
	ballast = nil
	ballast = make([]byte, int(part*pressedBudget)-int(held()))
	t.Cleanup(func() { ballast = nil })
}

// begun is a connection with a request whose body has not come whole.
func (p *pressed) begun(t *testing.T, body string) (c net.Conn, rest string) {
	t.Helper()
	c = p.dial(t, false)
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	request := post(testKey, body)
	head := len(request) - len(body) + 1
	io.WriteString(c, request[:head])
	return c, request[head:]
}

// refused says whether a new connection ends without an answer.
func (p *pressed) refused(t *testing.T) bool {
	t.Helper()
	c, err := net.Dial("tcp", p.HTTP().String())
	if err != nil {
		return true
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	io.WriteString(c, post(testKey, lookup(1, 1)))
	_, err = http.ReadResponse(bufio.NewReader(c), nil)
	return err != nil
}

// works expects a WebSocket to answer.
func works(t *testing.T, c *websocket.Conn, id int) {
	t.Helper()
	send(t, c, lookup(id, 5))
	if got := receive(t, c); got != answer(id, 5) {
		t.Errorf("the WebSocket got %s", got)
	}
}

const overloadedText = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32005,"message":"limit exceeded","data":{"reason":"overloaded","backoff_seconds":1}}}`

// TestOverloadOfMemory: bodies that do not end take the edge through all stages, and
// their end back. What it has taken is answered throughout.
func TestOverloadOfMemory(t *testing.T) {
	fill(t, 0.76)
	p := startPressed(t, overload.Limits{Memory: pressedBudget, Delay: time.Hour})
	const mebi = 1 << 20
	var bodies []net.Conn
	for range 140 {
		c, _ := p.begun(t, strings.Repeat(" ", mebi))
		bodies = append(bodies, c)
	}
	grown := 0
	most := bytes.Repeat([]byte(" "), mebi-2)
	// grow has bodies grow until the edge is at the stage, a little at a time, as it
	// takes until the next look that it is seen.
	grow := func(want overload.Stage) {
		t.Helper()
		for p.stage(t) < want {
			for range 4 {
				if grown == len(bodies) {
					t.Fatalf("at %v, and all bodies have grown; log:\n%s", p.stage(t), p.log)
				}
				if _, err := bodies[grown].Write(most); err != nil {
					t.Fatal(err)
				}
				grown++
			}
			runtime.GC()
			was := p.metric(t, "ommer_edge_overload_pressure", "memory")
			eventually(t, "the pressure to be measured", func() bool { return p.metric(t, "ommer_edge_overload_pressure", "memory") != was })
		}
		if got := p.stage(t); got != want {
			t.Fatalf("at %v, want %v; log:\n%s", got, want, p.log)
		}
	}

	ws, wsTLS := p.open(t, false), p.open(t, true)
	idle := p.dial(t, false)
	io.WriteString(idle, post(testKey, lookup(1, 1)))
	if resp, body := response(t, bufio.NewReader(idle)); resp.Close || body != answer(1, 1) {
		t.Fatalf("before: %s %v %s", resp.Status, resp.Header, body)
	}
	_ = idle.SetDeadline(time.Now().Add(2 * time.Minute))
	kept := p.open(t, false)
	send(t, kept, lookup(7, slow))
	first, second := p.dial(t, false), p.dial(t, true)
	for _, c := range []net.Conn{first, second} {
		_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
		io.WriteString(c, post(testKey, lookup(8, slow)))
	}
	eventually(t, "three lookups in flight", func() bool { return p.keeper.waiting() == 3 })
	begun2, rest2 := p.begun(t, lookup(2, 2))
	begun3, rest3 := p.begun(t, lookup(3, 3))

	grow(overload.NoKeepAlive)
	transports(t, func(t *testing.T, secure bool) {
		c := p.dial(t, secure)
		r := bufio.NewReader(c)
		io.WriteString(c, post(testKey, lookup(1, 9)))
		if resp, body := response(t, r); !resp.Close || body != answer(1, 9) {
			t.Errorf("%s %v %s, want the answer and Connection: close", resp.Status, resp.Header, body)
		}
		if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
			t.Errorf("after the answer: %v", err)
		}
	})
	if n, err := idle.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the idle connection got %d bytes, %v", n, err)
	}
	works(t, ws, 1)
	works(t, wsTLS, 1)
	if err := p.Overloaded(); err != nil {
		t.Errorf("not ready at the first stage: %v", err)
	}

	grow(overload.RefuseConns)
	if !p.refused(t) {
		t.Error("a new connection was served")
	}
	if c, err := tls.Dial("tcp", p.HTTPS().String(), &tls.Config{RootCAs: p.roots, ServerName: "localhost"}); err == nil {
		t.Error("a TLS handshake was made")
		c.Close()
	}
	works(t, ws, 2)
	works(t, wsTLS, 2)
	io.WriteString(begun2, rest2)
	if resp, body := response(t, bufio.NewReader(begun2)); !resp.Close || body != answer(2, 2) {
		t.Errorf("what had begun: %s %s", resp.Status, body)
	}
	if err := p.Overloaded(); err == nil || !strings.Contains(err.Error(), "refuse connections (memory 9") {
		t.Errorf("readiness says %v", err)
	}

	grow(overload.RefuseRequests)
	for _, c := range []*websocket.Conn{ws, wsTLS} {
		send(t, c, "["+lookup(3, 5)+","+lookup(4, 5)+"]")
		if got, want := receive(t, c), "["+fmt.Sprintf(overloadedText, "3")+","+fmt.Sprintf(overloadedText, "4")+"]"; got != want {
			t.Errorf("the WebSocket got %s", got)
		}
	}
	io.WriteString(begun3, rest3)
	if _, body := response(t, bufio.NewReader(begun3)); body != answer(3, 3) {
		t.Errorf("what had begun: %s", body)
	}
	// Behind what is in flight, a request and the opening of a WebSocket.
	io.WriteString(first, post(testKey, lookup(9, 9)))
	io.WriteString(second, "GET /ws/v3/"+testKey+" HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
	eventually(t, "both to be refused", func() bool { return p.metric(t, "ommer_edge_overload_shed_total", "request") == 2 })
	p.keeper.release()
	for _, c := range []net.Conn{first, second} {
		r := bufio.NewReader(c)
		if resp, body := response(t, r); resp.StatusCode != 200 || body != answer(8, slow) {
			t.Errorf("what was in flight: %s %s", resp.Status, body)
		}
		if resp, body := response(t, r); resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" || body != fmt.Sprintf(overloadedText, "null") {
			t.Errorf("what came then: %s %v %s", resp.Status, resp.Header, body)
		}
	}
	if got := receive(t, kept); got != answer(7, slow) {
		t.Errorf("what was in flight: %s", got)
	}

	for _, c := range bodies {
		c.Close()
	}
	p.until(t, overload.NoKeepAlive) // which is left below 76.5 %
	works(t, ws, 5)
	ballast = nil
	p.until(t, overload.Normal)
	c := p.dial(t, false)
	io.WriteString(c, post(testKey, lookup(1, 1)))
	if resp, body := response(t, bufio.NewReader(c)); resp.Close || body != answer(1, 1) {
		t.Errorf("afterwards: %s %v %s", resp.Status, resp.Header, body)
	}
	works(t, ws, 6)
	for label, name := range map[string]string{
		"keep_alive": "ommer_edge_overload_shed_total", "idle": "ommer_edge_overload_shed_total", "request": "ommer_edge_overload_shed_total",
		"message": "ommer_edge_overload_shed_total", "overload": "ommer_nio_refused_total",
	} {
		if p.metric(t, name, label) == 0 {
			t.Errorf("%s{%s} counts nothing", name, label)
		}
	}
	if n := strings.Count(p.log.String(), "overload"); n < 6 {
		t.Errorf("%d changes of stage are in the log:\n%s", n, p.log)
	}
}

// burner takes long on the goroutine that asks it, while it is told to.
type burner struct {
	*schematest.Fixed
	on atomic.Bool
}

func (b *burner) Resolve(q schema.Question, d time.Time, to schema.Receiver) {
	for end := time.Now().Add(20 * time.Millisecond); b.on.Load() && time.Now().Before(end); {
		runtime.Gosched()
	}
	b.Fixed.Resolve(q, d, to)
}

// TestOverloadOfDelay: clients that ask for more than the pollers can do are refused,
// and are answered when they can.
func TestOverloadOfDelay(t *testing.T) {
	b := &burner{Fixed: schematest.NewFixed(uncles())}
	p := &pressed{reg: prometheus.NewRegistry(), log: new(syncBuffer)}
	p.fixture = start(t, func(c *edge.Config) {
		c.Resolver, c.Registerer, c.Logger = b, p.reg, slog.New(slog.NewTextHandler(p.log, nil))
		c.Overload = overload.Limits{Memory: 1 << 40, Delay: 100 * time.Millisecond}
	})
	var refused atomic.Int32
	var clients sync.WaitGroup
	const n = 64
	conns := make([]*websocket.Conn, n)
	for i := range conns {
		conns[i] = p.open(t, false)
	}
	b.on.Store(true)
	end := time.Now().Add(time.Minute)
	for _, c := range conns {
		clients.Go(func() {
			for refused.Load() < n && time.Now().Before(end) {
				send(t, c, lookup(1, 3))
				switch got := receive(t, c); got {
				case answer(1, 3):
				case fmt.Sprintf(overloadedText, "1"):
					refused.Add(1)
				default:
					t.Errorf("got %s", got)
					return
				}
			}
		})
	}
	clients.Wait()
	b.on.Store(false)
	if refused.Load() < n {
		t.Fatalf("%d calls were refused; log:\n%s", refused.Load(), p.log)
	}
	p.until(t, overload.RefuseConns)
	works(t, conns[0], 1)
	if !strings.Contains(p.log.String(), `stage="refuse requests"`) {
		t.Errorf("the log:\n%s", p.log)
	}
}

// TestOverloadEndsIdle: many idle connections end, one in use and WebSockets do not.
func TestOverloadEndsIdle(t *testing.T) {
	fill(t, 0.6)
	p := startPressed(t, overload.Limits{Memory: pressedBudget, Delay: time.Hour})
	ws := p.open(t, false)
	inUse := p.dial(t, false)
	io.WriteString(inUse, post(testKey, lookup(8, slow)))
	eventually(t, "a lookup in flight", func() bool { return p.keeper.waiting() == 1 })
	begun, rest := p.begun(t, lookup(3, 3))
	idle := make([]net.Conn, 20) // more than end at once
	for i := range idle {
		idle[i] = p.dial(t, i%2 == 0)
	}
	fill(t, 0.87)
	p.until(t, overload.NoKeepAlive)
	for i, c := range idle {
		if n, err := c.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
			t.Errorf("idle connection %d: %d bytes, %v", i, n, err)
		}
	}
	if got := p.metric(t, "ommer_edge_overload_shed_total", "idle"); got != float64(len(idle)) {
		t.Errorf("%v idle connections were ended, want %d", got, len(idle))
	}
	p.keeper.release()
	if resp, body := response(t, bufio.NewReader(inUse)); body != answer(8, slow) || !resp.Close {
		t.Errorf("the connection in use: %s %v %s", resp.Status, resp.Header, body)
	}
	io.WriteString(begun, rest)
	if resp, body := response(t, bufio.NewReader(begun)); body != answer(3, 3) || !resp.Close {
		t.Errorf("the request that had begun: %s %v %s", resp.Status, resp.Header, body)
	}
	works(t, ws, 1)
}

// TestOverloadOff: nothing is shed by an edge that is told so.
func TestOverloadOff(t *testing.T) {
	fill(t, 1.2)
	p := startPressed(t, overload.Limits{Memory: pressedBudget, Off: true})
	eventually(t, "the pressure to be seen", func() bool { return p.metric(t, "ommer_edge_overload_pressure", "memory") > 1 })
	c := p.dial(t, false)
	io.WriteString(c, post(testKey, lookup(1, 1)))
	if resp, body := response(t, bufio.NewReader(c)); resp.Close || body != answer(1, 1) {
		t.Errorf("%s %v %s", resp.Status, resp.Header, body)
	}
}
