package load_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

// raw is a server that sends these bytes to everybody who has sent a request, or
// anything else, and closes. It returns its address.
func raw(t *testing.T, response string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				req, err := http.ReadRequest(bufio.NewReader(c))
				if err == nil {
					_, _ = io.Copy(io.Discard, req.Body)
				}
				_, _ = io.WriteString(c, response)
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		serving.Wait()
	})
	return ln.Addr().String()
}
