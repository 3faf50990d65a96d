package nio

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestRefuse: new connections end, those that are there go on, and it can be undone.
func TestRefuse(t *testing.T) {
	l := start(t, Config{})
	for name, setup := range map[string]struct {
		addr    string
		version uint16
	}{
		"plain": {listen(t, l, nil, echoing(nil)), 0},
		"TLS":   {listen(t, l, serverTLS(), echoing(nil)), tls.VersionTLS13},
	} {
		t.Run(name, func(t *testing.T) {
			before := testutil.ToFloat64(l.metrics.refused[refusedOverload])
			old := dial(t, setup.addr, setup.version)
			exchange(t, old, []byte("hello"))
			l.Refuse(true)
			c, err := net.Dial("tcp", setup.addr)
			if err == nil {
				_ = c.SetDeadline(time.Now().Add(10 * time.Second))
				if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
					t.Error("a new connection was served")
				}
				_ = c.Close()
			}
			exchange(t, old, []byte("still here"))
			if got := testutil.ToFloat64(l.metrics.refused[refusedOverload]) - before; got != 1 {
				t.Errorf("%v connections were counted as refused, want 1", got)
			}
			l.Refuse(false)
			exchange(t, dial(t, setup.addr, setup.version), []byte("hello again"))
		})
	}
}

// TestEachTimed: every connection with a time-out comes, with the right one, also
// beyond what the wheel can tell apart.
func TestEachTimed(t *testing.T) {
	l := start(t, Config{})
	times := []time.Duration{0, 3 * time.Second, 30 * time.Second, time.Minute, time.Hour}
	opened := make(chan *Conn, len(times))
	addr := listen(t, l, nil, func(c *Conn) Handler {
		opened <- c
		return &session{conn: c}
	})
	want := map[*Conn]time.Duration{}
	for _, d := range times {
		dial(t, addr, 0)
		c := <-opened
		c.SetTimeout(time.Hour) // moved earlier or later since
		c.SetTimeout(d)
		if d > 0 {
			want[c] = d
		}
	}
	eventually(t, "all to belong to their poller", func() bool {
		got := 0
		l.EachTimed(func(*Conn, time.Duration) { got++ })
		return got == len(want)
	})
	l.EachTimed(func(c *Conn, left time.Duration) {
		if d := want[c]; left > d+2*tick || left < d-10*time.Second {
			t.Errorf("a time-out of %v has %v left", d, left)
		}
		delete(want, c)
	})
	if len(want) > 0 {
		t.Errorf("%d connections did not come", len(want))
	}
}
