package nio

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// stuck holds its poller until it is told to go on.
type stuck struct {
	in   chan struct{}
	once sync.Once
	hold chan struct{}
	conn *Conn
}

func (s *stuck) Readable() {
	s.once.Do(func() {
		close(s.in)
		<-s.hold
	})
	s.conn.Close(nil)
}
func (*stuck) Drained()     {}
func (*stuck) Expired()     {}
func (*stuck) Closed(error) {}

// TestPing: the answer comes when every poller has come to it, and not before.
func TestPing(t *testing.T) {
	l := start(t, Config{Pollers: 3})
	s := &stuck{in: make(chan struct{}), hold: make(chan struct{})}
	addr := listen(t, l, nil, func(c *Conn) Handler { s.conn = c; return s })
	<-l.Started()
	ping := func() <-chan struct{} {
		done := make(chan struct{})
		l.Ping(func() { close(done) })
		return done
	}
	for range 100 { // each byte is an event of its own
		<-ping()
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	<-s.in
	answered := ping()
	p := l.engine.pings
	for p.left.Load() > 1 { // the free pollers come to it
		time.Sleep(time.Millisecond)
	}
	select {
	case <-answered:
		t.Error("answered while a poller was held up")
	default:
	}
	close(s.hold)
	<-answered
	<-ping()
}

// Nothing is called where nobody runs.
func TestPingOutsideRun(t *testing.T) {
	l, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	l.Ping(func() { t.Error("called before Run") })
	ran := make(chan error, 1)
	go func() { ran <- l.Run(t.Context()) }()
	<-l.Started()
	if err := l.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-ran; err != nil {
		t.Error(err)
	}
	l.Ping(func() { t.Error("called after Close") })
}
