package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/ommer/ommer/deploy/child"
	"github.com/ommer/ommer/edge/certs"
)

// Both yardsticks give the answer, again and again on one connection, and end with
// their input.
func TestYardsticks(t *testing.T) {
	qs, answer := asked(1)
	pair, err := certs.SelfSigned(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(pair.Cert)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		y    yardstick
		ca   []byte
	}{
		{name: "bare nbio"},
		{name: "net/http", y: yardstick{CertFile: pair.Cert, KeyFile: pair.Key}, ca: ca},
	} {
		t.Run(tt.name, func(t *testing.T) {
			addrs, err := child.FreeAddrs(1)
			if err != nil {
				t.Fatal(err)
			}
			tt.y.Addr, tt.y.Answer = addrs[0], fmt.Appendf(nil, `{"jsonrpc":"2.0","id":0000000000,"result":%s}`, answer(qs[0].Params))
			in, end := io.Pipe()
			done := make(chan error, 1)
			go func() { done <- tt.y.serve(in) }()
			d, err := newDialer(endpoint{Addr: tt.y.Addr, Path: "/", CA: tt.ca}, qs)
			if err != nil {
				t.Fatal(err)
			}
			for dialer := (net.Dialer{}); ; { // until it listens
				c, err := dialer.DialContext(t.Context(), "tcp", tt.y.Addr)
				if err == nil {
					_ = c.Close()
					break
				}
				select {
				case err := <-done:
					t.Fatal("it ended: ", err)
				case <-time.After(time.Millisecond):
				}
			}
			c, err := d.Dial(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if _, err := c.Ask(0); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			_ = end.Close()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
