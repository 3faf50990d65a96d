package nio

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

func TestTimeouts(t *testing.T) {
	l := start(t, Config{})
	for _, tc := range []struct {
		name    string
		prepare func(c *Conn)
		want    time.Duration // 0: never
	}{
		{"set", func(c *Conn) { c.SetTimeout(300 * time.Millisecond) }, 300 * time.Millisecond},
		{"moved later", func(c *Conn) {
			c.SetTimeout(100 * time.Millisecond)
			c.SetTimeout(600 * time.Millisecond)
		}, 600 * time.Millisecond},
		{"moved earlier", func(c *Conn) {
			c.SetTimeout(time.Hour)
			c.SetTimeout(200 * time.Millisecond)
		}, 200 * time.Millisecond},
		{"removed", func(c *Conn) {
			c.SetTimeout(100 * time.Millisecond)
			c.SetTimeout(0)
		}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			expired := make(chan time.Time, 10)
			began := make(chan time.Time, 1)
			addr := listen(t, l, nil, func(c *Conn) Handler {
				began <- time.Now()
				tc.prepare(c)
				return &session{conn: c, expire: func(*session) { expired <- time.Now() }}
			})
			dial(t, addr, 0)
			start := wait(t, "opening", began)
			if tc.want > 0 {
				if got := wait(t, "Expired", expired).Sub(start); got < tc.want {
					t.Errorf("expired after %v, want %v", got, tc.want)
				}
			}
			select {
			case <-expired:
				t.Error("expired once more than was asked for")
			case <-time.After(3 * tick):
			}
		})
	}
}

// TestTimeoutWhileOpening has a time-out pass before the session is there.
func TestTimeoutWhileOpening(t *testing.T) {
	l := start(t, Config{})
	expired := make(chan struct{}, 1)
	addr := listen(t, l, nil, func(c *Conn) Handler {
		c.SetTimeout(1)
		passed := l.wheel.elapsed() + 2
		eventually(t, "passing the time-out", func() bool {
			l.wheel.mu.Lock()
			defer l.wheel.mu.Unlock()
			return l.wheel.now >= passed
		})
		return &session{conn: c, expire: func(*session) { expired <- struct{}{} }}
	})
	dial(t, addr, 0)
	wait(t, "Expired", expired)
}

// TestWheelModel moves the time-outs of many connections about, far beyond the
// length of the wheel, and compares with what a plain list of times says.
func TestWheelModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w wheel
		w.init()
		rng := rand.New(rand.NewPCG(1, 2))
		conns := make([]*Conn, 200)
		due := map[*Conn]time.Time{}
		for i := range conns {
			conns[i] = &Conn{}
			w.add(conns[i])
		}
		for step := range 5000 {
			time.Sleep(time.Duration(rng.Int64N(int64(tick))))
			for range 5 {
				c := conns[rng.IntN(len(conns))]
				switch d := time.Duration(rng.Int64N(int64(200 * time.Second))); rng.IntN(10) {
				case 0:
					w.set(c, 0)
					delete(due, c)
				case 1:
					d = time.Duration(rng.Int64N(int64(time.Second))) + 1
					fallthrough
				default:
					w.set(c, d)
					due[c] = time.Now().Add(d)
				}
			}
			if rng.IntN(3) == 0 {
				continue // the wheel can be late
			}
			now := time.Now()
			for _, c := range w.advance(w.elapsed(), nil) {
				at, ok := due[c]
				if !ok || now.Before(at) {
					t.Fatalf("step %d: expired at %v, due %v (%v)", step, now, at, ok)
				}
				delete(due, c)
			}
			for _, at := range due {
				if now.Sub(at) >= 2*tick {
					t.Fatalf("step %d: not expired %v after its time", step, now.Sub(at))
				}
			}
		}
		if got := len(w.appendAll(nil)); got != len(conns) {
			t.Errorf("%d connections are in the wheel, want %d", got, len(conns))
		}
		for _, c := range conns {
			w.remove(c)
			w.set(c, time.Second) // too late
		}
		if got := len(w.appendAll(nil)); got != 0 {
			t.Errorf("%d connections are left in the wheel", got)
		}
	})
}

func BenchmarkSetTimeout(b *testing.B) {
	var w wheel
	w.init()
	c := &Conn{}
	w.add(c)
	b.ReportAllocs()
	for b.Loop() {
		w.set(c, time.Minute)
	}
}
