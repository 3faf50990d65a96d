package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// inBubble is a dialer to a server within a synctest bubble that answers at once, but
// for a stall: what it is asked from then on, that long, waits for its end.
func inBubble(t *testing.T, stallAfter, stall time.Duration) *Dialer {
	t.Helper()
	d, err := NewDialer(DialerConfig{
		Endpoints: []Endpoint{{Addr: "server:80", Path: "/"}}, Timeout: 10 * time.Second,
		Questions: []Question{{Method: "m", Params: "[]"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	from := time.Now().Add(stallAfter)
	d.dial = func(context.Context, *net.Dialer, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			r := bufio.NewReader(far)
			for id := int64(firstID); ; id++ {
				req, err := http.ReadRequest(r)
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				if now := time.Now(); !now.Before(from) && now.Before(from.Add(stall)) {
					time.Sleep(from.Add(stall).Sub(now))
				}
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":null}`, id)
				fmt.Fprintf(far, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			}
		}()
		return near, nil
	}
	return d
}

// A stall of one second in ten must be seen by the tenth of the requests that met it.
// In a closed loop it is seen by as many as there are connections.
func TestCoordinatedOmission(t *testing.T) {
	const duration, stall = 10 * time.Second, time.Second
	synctest.Test(t, func(t *testing.T) {
		d := inBubble(t, 4*time.Second+5*time.Millisecond, stall)
		r, err := Run(t.Context(), Config{Dialer: d, Connections: 2, Rate: 100, Duration: duration})
		if err != nil {
			t.Fatal(err)
		}
		if r.Took != duration || r.Requests != 1000 || r.Right != 1000 || r.Null != 1000 || r.Failures() != 0 {
			t.Errorf("%v, %+v, want 1000 requests, all right", r.Took, r.Counts)
		}
		// Of the 100 that were due in the stall two were sent and 98 had to wait.
		if r.Late != 98 {
			t.Errorf("%d were late, want 98", r.Late)
		}
		var slow int64
		for _, bar := range r.Latency.Distribution() {
			if bar.From > int64(10*time.Millisecond) {
				slow += bar.Count
			}
		}
		if slow != 99 { // of the last one 5 ms are left
			t.Errorf("%d took over 10 ms, want 99", slow)
		}
		for _, q := range []struct {
			percentile  float64
			least, most time.Duration
		}{{50, 0, time.Millisecond}, {90, 0, 10 * time.Millisecond}, {95, 490 * time.Millisecond, 510 * time.Millisecond}, {99, 890 * time.Millisecond, 910 * time.Millisecond}} {
			if got := time.Duration(r.Latency.ValueAtQuantile(q.percentile)); got < q.least || got > q.most {
				t.Errorf("p%v is %v, want %v to %v", q.percentile, got, q.least, q.most)
			}
		}
	})
}

// A stall that does not end leaves requests that are never sent, which are failures.
func TestUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := inBubble(t, 4*time.Second+5*time.Millisecond, time.Hour)
		r, err := Run(t.Context(), Config{Dialer: d, Connections: 1, Rate: 100, Duration: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if r.Calls != 500 || r.Right != 401 || r.Failed[KindUnanswered].Count != 1 || r.Failed[KindUnsent].Count != 98 {
			t.Errorf("got %+v", r.Counts)
		}
		time.Sleep(time.Hour) // so that the server notices
	})
}

// The rate grows with the connections, and the measured time comes after it.
func TestRamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open []int
		var right []int
		d := inBubble(t, 0, 0)
		r, err := Run(t.Context(), Config{
			Dialer: d, Connections: 100, Rate: 1000, Ramp: 10 * time.Second, WarmUp: time.Second, Duration: 2*time.Second + 500*time.Millisecond,
			Progress: func(t Tick) { open, right = append(open, t.Open), append(right, t.Right) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Requests != 2500 || r.Failures() != 0 || r.Opened != 100 {
			t.Errorf("%+v, %d opened", r.Counts, r.Opened)
		}
		for i := range 9 {
			if want := 10 * (i + 1); open[i] < want-1 || open[i] > want+1 {
				t.Errorf("after %d s %d are open, want about %d", i+1, open[i], want)
			}
			if want := 100*i + 50; right[i] < want-5 || right[i] > want+5 {
				t.Errorf("in second %d there were %d answers, want about %d", i+1, right[i], want)
			}
		}
	})
}

// A stall that began before the measured time is seen in it, and its end is not waited for
// longer than the result is worth. What failed in the warm-up is told apart.
func TestStallAtTheStart(t *testing.T) {
	for _, tt := range []struct {
		timeout, took                time.Duration
		before, timedOut, unanswered int
	}{
		{10 * time.Second, 8 * time.Second, 0, 0, 3},
		{900 * time.Millisecond, 3750 * time.Millisecond, 3, 9, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			d := inBubble(t, 0, time.Hour)
			d.config.Timeout = tt.timeout
			r, err := Run(t.Context(), Config{Dialer: d, Connections: 3, WarmUp: time.Second, Duration: 2 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(start)
			if took < tt.took || took > tt.took+50*time.Millisecond {
				t.Errorf("took %v, want %v", took, tt.took)
			}
			if r.Before[KindTimeout].Count != tt.before || r.Failed[KindTimeout].Count != tt.timedOut || r.Failed[KindUnanswered].Count != tt.unanswered || r.Calls == 0 {
				t.Errorf("before %v, then %+v", r.Before, r.Counts)
			}
			if why := r.Nothing(); !errors.Is(why, ErrNothing) || tt.before > 0 && !strings.Contains(why.Error(), "in the warm-up: 3 timeout") {
				t.Errorf("got %v", why)
			}
			time.Sleep(time.Hour) // so that the server notices
		})
	}
}

// Ending early still gives a result.
func TestEarly(t *testing.T) {
	for _, rate := range []float64{0, 50} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second+time.Millisecond)
			defer cancel()
			d := inBubble(t, 0, 0)
			if rate == 0 {
				d = inBubble(t, 0, time.Hour) // a closed loop would never pause in the bubble
				d.config.Timeout = 100 * time.Millisecond
			}
			r, err := Run(ctx, Config{Dialer: d, Connections: 3, Rate: rate, WarmUp: time.Second, Duration: time.Hour})
			if err != nil || !r.Early || r.Took != 2*time.Second+time.Millisecond || r.Calls < 6 {
				t.Errorf("%v, %+v", err, r)
			}
			time.Sleep(time.Hour) // so that the server notices
		})
	}
}

// What a schedule says of times agrees with what it says of tickets.
func TestSchedule(t *testing.T) {
	start := time.Now()
	for _, ramp := range []time.Duration{0, time.Second, time.Minute} {
		s := newSchedule(start, 333, ramp)
		for k := range int64(20_000) {
			at := s.at(k)
			if got := s.before(at); got != k && s.at(k-1) != at {
				t.Fatalf("ramp %v: %d are due before ticket %d", ramp, got, k)
			}
			if got := s.before(at.Add(1)); got < k+1 {
				t.Fatalf("ramp %v: %d are due with ticket %d", ramp, got, k)
			}
		}
		if got := s.before(start.Add(ramp)); got < int64(333*ramp.Seconds()/2)-1 || got > int64(333*ramp.Seconds()/2)+1 {
			t.Errorf("ramp %v: %d are due within it", ramp, got)
		}
	}
}

// A server may close connections that are idle, from the first moment on; no request is
// lost by it.
func TestIdleConnections(t *testing.T) {
	const idle = 2 * time.Second
	synctest.Test(t, func(t *testing.T) {
		d := inBubble(t, 0, 0)
		dial := d.dial
		d.dial = func(ctx context.Context, from *net.Dialer, addr string) (net.Conn, error) {
			c, err := dial(ctx, from, addr)
			return &idleConn{Conn: c, idle: idle, used: time.Now()}, err
		}
		r, err := Run(t.Context(), Config{Dialer: d, Connections: 10, Rate: 2, WarmUp: time.Second, Duration: 20 * time.Second})
		if err != nil || r.Calls != 40 {
			t.Fatalf("%v, %+v", err, r.Counts)
		}
		if r.Failures() != 0 || r.Opened < 40 {
			t.Errorf("%+v, %d opened", r.Counts, r.Opened)
		}
	})
}

// idleConn is a connection whose server closes it when it has not been used for a time.
type idleConn struct {
	net.Conn
	idle time.Duration
	used time.Time
}

func (c *idleConn) Write(b []byte) (int, error) {
	if time.Since(c.used) > c.idle {
		return 0, io.ErrClosedPipe
	}
	c.used = time.Now()
	return c.Conn.Write(b)
}
