package edge_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/ommer/ommer/edge"
)

// TestLeavesAfterAnAnswer stops an edge that shares its port while a client is
// connected that has asked for nothing.
func TestLeavesAfterAnAnswer(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(t *testing.T, f *fixture) net.Conn{
		"fresh": func(t *testing.T, f *fixture) net.Conn { return f.dial(t, false) },
		"TLS":   func(t *testing.T, f *fixture) net.Conn { return f.dial(t, true) },
		"used": func(t *testing.T, f *fixture) net.Conn {
			c := f.dial(t, false)
			fmt.Fprint(c, post(testKey, lookup(0, 7)))
			if resp, body := response(t, bufio.NewReader(c)); body != answer(0, 7) || resp.Close {
				t.Errorf("before the stop: %s %v %s", resp.Status, resp.Header, body)
			}
			return c
		},
		"in the TLS handshake": func(t *testing.T, f *fixture) net.Conn {
			c, err := net.Dial("tcp", f.HTTPS().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			return tls.Client(c, &tls.Config{RootCAs: f.roots, ServerName: "localhost"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, func(c *edge.Config) { c.ReusePort = true })
			c := connect(t, f)
			f.stop()
			eventually(t, "new connections to be refused", func() bool {
				c, err := net.Dial("tcp", f.HTTP().String())
				if err == nil {
					c.Close()
				}
				return errors.Is(err, syscall.ECONNREFUSED)
			})
			fmt.Fprint(c, post(testKey, lookup(1, 8)))
			r := bufio.NewReader(c)
			if resp, body := response(t, r); body != answer(1, 8) || !resp.Close {
				t.Errorf("%s %v %s, want the answer with Connection: close", resp.Status, resp.Header, body)
			}
			if _, err := r.ReadByte(); err == nil {
				t.Error("there is more after the last answer")
			}
		})
	}
}
