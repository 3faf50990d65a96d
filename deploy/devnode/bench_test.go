package devnode

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/rpc"
)

// BenchmarkOpen reads, checks and indexes 8192 real blocks.
func BenchmarkOpen(b *testing.B) {
	path := sepolia(b, sepolia21)
	b.ReportAllocs()
	for b.Loop() {
		c, err := openChain(Config{Blocks: path, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			b.Fatal(err)
		}
		if err := c.close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUncle answers without HTTP: from the cache, and rendered anew each time.
func BenchmarkUncle(b *testing.B) {
	c, err := openChain(Config{Blocks: sepolia(b, sepolia21), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer c.close()
	e := &ethAPI{chain: c}
	for _, cached := range []bool{true, false} {
		name := "cached"
		if !cached {
			name = "rendered"
			c.answers.byNumber.Clear()
			c.answers.size.Store(maxCache)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if u, err := e.GetUncleByBlockNumberAndIndex(rpc.LatestBlockNumber, 1); err != nil || u == nil {
					b.Fatal(u, err)
				}
			}
		})
	}
}

// BenchmarkHTTP is one question of one client after another, and a batch of a
// header and two uncles.
func BenchmarkHTTP(b *testing.B) {
	n := start(b, Config{Blocks: sepolia(b, sepolia21)})
	for _, c := range []struct{ name, body string }{
		{"uncle", `{"jsonrpc":"2.0","id":1,"method":"eth_getUncleByBlockNumberAndIndex","params":["0x2bfff","0x0"]}`},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x2bfff",false]},` +
			`{"jsonrpc":"2.0","id":2,"method":"eth_getUncleByBlockNumberAndIndex","params":["0x2bfff","0x0"]},` +
			`{"jsonrpc":"2.0","id":3,"method":"eth_getUncleByBlockNumberAndIndex","params":["0x2bfff","0x1"]}]`},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				res, err := http.Post(n.URL(), "application/json", strings.NewReader(c.body))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, res.Body); err != nil {
					b.Fatal(err)
				}
				res.Body.Close()
			}
		})
	}
}
