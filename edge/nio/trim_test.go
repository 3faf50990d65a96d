//go:build !notrim

package nio

import (
	"bytes"
	"crypto/tls"
	"reflect"
	"testing"
)

// tlsAllocations: the client's side alone has one.
const tlsAllocations = 1

// TestTrim fails when a release of Go has changed crypto/tls so that an idle
// connection keeps its buffers. The service works all the same, with about twice
// the memory for each TLS connection.
func TestTrim(t *testing.T) {
	if !fields.known {
		t.Fatal("crypto/tls.Conn is not what trim.go expects: see to findFields")
	}
	for name, version := range map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			l := start(t, Config{})
			opened, trimmed := make(chan *Conn, 1), make(chan [2]int, 100)
			addr := listen(t, l, serverTLS(), func(c *Conn) Handler {
				opened <- c
				return &session{conn: c, read: func(s *session) {
					echo(s)
					raw, hand, _ := fields.buffers(c.secure.tls)
					trimmed <- [2]int{raw.Cap(), hand.Cap()}
				}}
			})
			c := dial(t, addr, version)
			wait(t, "opening", opened)
			got := wait(t, "reading", trimmed)
			for _, size := range []int{10, 5000, 16 << 10} {
				exchange(t, c, fill(size))
			}
			// The last of the calls came to the end of what there was.
			eventually(t, "taking the buffers back", func() bool {
				for len(trimmed) > 0 {
					got = <-trimmed
				}
				return got == [2]int{0, 0}
			})
			exchange(t, c, fill(40<<10))
		})
	}
}

//nolint:unused // reflect reads the fields
func TestTrimOfAnotherLayout(t *testing.T) {
	type renamed struct {
		raw, hand bytes.Buffer
		input     bytes.Reader
	}
	type retyped struct {
		rawInput, hand []byte
		input          bytes.Reader
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[renamed](), reflect.TypeFor[retyped]()} {
		if f := findFields(typ); f.known {
			t.Errorf("%v is taken for tls.Conn", typ)
		}
	}
}
