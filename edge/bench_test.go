package edge_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// BenchmarkCalls is what the edge itself costs for each call, by how they come: every
// question is answered at once. One connection, client included.
func BenchmarkCalls(b *testing.B) {
	for _, bm := range []struct {
		name            string
		requests, batch int // in one write; calls in each
	}{
		{"single", 1, 1},
		{"pipelined", 16, 1},
		{"batch", 1, 100},
		{"large batch", 1, 1000},
	} {
		b.Run(bm.name, func(b *testing.B) {
			f := start(b, nil)
			body := lookup(1, 7)
			if bm.batch > 1 {
				body = "[" + strings.Repeat(body+",", bm.batch-1) + body + "]"
			}
			c := f.dial(b, false)
			_ = c.SetDeadline(time.Time{})
			r, sent := bufio.NewReaderSize(c, 256<<10), strings.Repeat(post(testKey, body), bm.requests)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := io.WriteString(c, sent); err != nil {
					b.Fatal(err)
				}
				for range bm.requests {
					resp, err := http.ReadResponse(r, nil)
					if err != nil {
						b.Fatal(err)
					}
					if n, err := io.Copy(io.Discard, resp.Body); err != nil || n < int64(20*bm.batch) {
						b.Fatal(fmt.Errorf("%d bytes, %w", n, err))
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*bm.requests*bm.batch), "ns/call")
		})
	}
}
