package nio

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// from connects from another loopback address: on Linux all of 127.0.0.0/8 are there.
func from(ctx context.Context, host byte, addr string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, host)}}
	return d.DialContext(ctx, "tcp", addr)
}

// attacks are ways to keep a handshake waiting. They end with the connection.
var attacks = map[string]func(ctx context.Context, c net.Conn){
	"silence":              func(context.Context, net.Conn) {},
	"half a hello":         func(_ context.Context, c net.Conn) { _, _ = c.Write(hello()[:len(hello())/2]) },
	"a hello and no more":  func(_ context.Context, c net.Conn) { _, _ = c.Write(hello()) },
	"a hello, bit by bit":  trickle,
	"no hello, bit by bit": func(ctx context.Context, c net.Conn) { _, _ = c.Write(hello()[:5]); trickle(ctx, c) },
}

func trickle(ctx context.Context, c net.Conn) {
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for i := range hello() {
		if _, err := c.Write(hello()[i : i+1]); err != nil {
			return
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			return
		}
	}
}

// TestNobodyIsCrowdedOut has strangers from 16 addresses take every place there is,
// and take it again when they lose it, while an honest client goes on opening
// connections. It would fail by its own deadline had it to wait for a time-out of
// theirs.
func TestNobodyIsCrowdedOut(t *testing.T) {
	const addresses, perAddress, places, honest, visits = 16, 12, 128, 4, 10
	l := start(t, Config{HandshakeQueue: places, HandshakeTimeout: time.Minute})
	addr := listen(t, l, serverTLS(), echoing(nil))
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			var strangers sync.WaitGroup
			var attempts atomic.Int64
			for i := range addresses * perAddress {
				strangers.Go(func() {
					for ctx.Err() == nil {
						c, err := from(ctx, byte(2+i%addresses), addr)
						if err != nil {
							return
						}
						attempts.Add(1)
						over := context.AfterFunc(ctx, func() { _ = c.Close() })
						attack(ctx, c)
						_, _ = io.Copy(io.Discard, c)
						over()
						_ = c.Close()
					}
				})
			}
			eventually(t, "the attack", func() bool { return attempts.Load() > 2*addresses*perAddress })
			failures := make(chan error, honest)
			most := 0
			for range honest {
				go func() {
					failures <- func() error {
						for i := range visits {
							if err := securely(addr); err != nil {
								return fmt.Errorf("visit %d: %w", i, err)
							}
						}
						return nil
					}()
				}()
			}
			look := time.NewTicker(time.Millisecond)
			defer look.Stop()
			for left := honest; left > 0; {
				select {
				case err := <-failures:
					left--
					if err != nil {
						t.Error(err)
					}
				case <-look.C:
					l.handshakes.mu.Lock()
					most = max(most, l.handshakes.crowd.size)
					l.handshakes.mu.Unlock()
				}
			}
			if limit := places + l.cfg.Handshakes; most > limit {
				t.Errorf("%d handshakes wait, want %d at most", most, limit)
			}
			end()
			strangers.Wait()
			t.Logf("%d connections of strangers, up to %d handshakes waiting", attempts.Load(), most)
		})
	}
}

// securely opens a connection with TLS and has a byte sent back.
func securely(addr string) error {
	c, err := net.DialTimeout("tcp", addr, 20*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	secure := tls.Client(c, clientTLS(tls.VersionTLS13))
	if _, err := secure.Write([]byte("x")); err != nil {
		return err
	}
	_, err = io.ReadFull(secure, make([]byte, 1))
	return err
}

// TestTurns: one handshake computes at a time and addresses take turns. The address
// with the most makes room.
func TestTurns(t *testing.T) {
	l := start(t, Config{Handshakes: 1, HandshakeQueue: 4, HandshakeTimeout: time.Minute})
	var h held
	addr := listen(t, l, h.tls(), echoing(nil))
	speak := func(host byte) net.Conn {
		c, err := from(t.Context(), host, addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := c.Write(hello()); err != nil {
			t.Fatal(err)
		}
		return c
	}
	speak(2)
	wait(t, "the first one's turn", h.began)
	var many [4]net.Conn
	for i := range many {
		many[i] = speak(2)
		waitingHandshakes(t, l, 0, 0, i+1)
	}
	speak(3)
	refused(t, many[3])
	failed(t, l, failedCrowded, 1)
	waitingHandshakes(t, l, 0, 0, 4)

	var got []byte
	for range 4 {
		h.goOn <- struct{}{}
		got = append(got, wait(t, "the next turn", h.began).(*net.TCPAddr).IP.To4()[3])
		if len(h.began) > 0 {
			t.Error("two compute at a time")
		}
	}
	if want := []byte{2, 3, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("the turns were of 127.0.0.%v, want %v", got, want)
	}
	h.goOn <- struct{}{}
	waitingHandshakes(t, l, 0, 5, 0)
}
