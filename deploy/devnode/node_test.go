package devnode

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/ommer/ommer/workers/archive"
)

// TestAnswers holds what a caller is answered, byte for byte. It asks the sample
// chain: 64 blocks, none, one or two uncles by number modulo 3 from 8 to 59.
func TestAnswers(t *testing.T) {
	n := start(t, Config{})
	const zero = `"0x0000000000000000000000000000000000000000000000000000000000000000"`
	for _, c := range []struct{ name, method, params, want string }{
		{"block number", "eth_blockNumber", `[]`, `"result":"0x3f"`},
		{"network", "net_version", `[]`, `"result":"1337"`},
		{"syncing", "eth_syncing", `[]`, `"result":false`},
		{"count by number", "eth_getUncleCountByBlockNumber", `["0xb"]`, `"result":"0x2"`},
		{"count of none", "eth_getUncleCountByBlockNumber", `["0x9"]`, `"result":"0x0"`},
		{"count beyond the head", "eth_getUncleCountByBlockNumber", `["0x40"]`, `"result":null`},
		{"count by unknown hash", "eth_getUncleCountByBlockHash", `[` + zero + `]`, `"result":null`},
		{"index beyond the uncles", "eth_getUncleByBlockNumberAndIndex", `["0xb","0x2"]`, `"result":null`},
		{"highest index", "eth_getUncleByBlockNumberAndIndex", `["0xb","0xffffffffffffffff"]`, `"result":null`},
		{"block beyond the head", "eth_getUncleByBlockNumberAndIndex", `["0x40","0x0"]`, `"result":null`},
		{"highest block", "eth_getUncleByBlockNumberAndIndex", `["0x7fffffffffffffff","0x0"]`, `"result":null`},
		{"unknown hash", "eth_getUncleByBlockHashAndIndex", `[` + zero + `,"0x0"]`, `"result":null`},
		{"latest", "eth_getUncleByBlockNumberAndIndex", `["latest","0x0"]`, `"result":null`},
		{"block beyond the head, whole", "eth_getBlockByNumber", `["0x40",false]`, `"result":null`},
		{"pending uncle", "eth_getUncleByBlockNumberAndIndex", `["pending","0x0"]`, `"error":{"code":-32000,"message":"pending block is not available"}`},
		{"pending block", "eth_getBlockByNumber", `["pending",false]`, `"error":{"code":-32000,"message":"pending block is not available"}`},
		{"full transactions", "eth_getBlockByNumber", `["latest",true]`, `"error":{"code":-32000,"message":"` + errFullTx.Error() + `"}`},
		{"number without prefix", "eth_getUncleByBlockNumberAndIndex", `["3","0x0"]`, `"error":{"code":-32602,"message":"invalid argument 0: hex string without 0x prefix"}`},
		{"number with zeros", "eth_getUncleByBlockNumberAndIndex", `["0x03","0x0"]`, `"error":{"code":-32602,"message":"invalid argument 0: hex number with leading zero digits"}`},
		{"number too large", "eth_getUncleByBlockNumberAndIndex", `["0x8000000000000000","0x0"]`, `"error":{"code":-32602,"message":"invalid argument 0: block number larger than int64"}`},
		{"short hash", "eth_getUncleByBlockHashAndIndex", `["0x00","0x0"]`, `"error":{"code":-32602,"message":"invalid argument 0: hex string has length 2, want 64 for common.Hash"}`},
		{"index with zeros", "eth_getUncleByBlockNumberAndIndex", `["0xb","0x00"]`, `"error":{"code":-32602,"message":"invalid argument 1: json: cannot unmarshal hex number with leading zero digits into Go value of type hexutil.Uint"}`},
		{"no index", "eth_getUncleByBlockNumberAndIndex", `["0xb"]`, `"error":{"code":-32602,"message":"missing value for required argument 1"}`},
		{"too many", "eth_getUncleByBlockNumberAndIndex", `["0xb","0x0",1]`, `"error":{"code":-32602,"message":"too many arguments, want at most 2"}`},
		{"unknown method", "eth_getUncle", `[]`, `"error":{"code":-32601,"message":"the method eth_getUncle does not exist/is not available"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := post(t, n, `{"jsonrpc":"2.0","id":1,"method":"`+c.method+`","params":`+c.params+`}`)
			if want := `{"jsonrpc":"2.0","id":1,` + c.want + `}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// TestTags compares the answers to tags with those to the numbers they stand for.
func TestTags(t *testing.T) {
	n := start(t, Config{Blocks: sepolia(t, sepolia21)})
	get := func(block string) string {
		return post(t, n, `{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["`+block+`",false]}`)
	}
	first, last := get("0x2a000"), get("0x2bfff")
	for tag, want := range map[string]string{"latest": last, "safe": last, "finalized": last, "earliest": first} {
		if got := get(tag); got != want {
			t.Errorf("%s: got %s\nwant %s", tag, got, want)
		}
	}
	if got := get("0x29fff"); !strings.Contains(got, `"result":null`) {
		t.Errorf("the block before the file: %s, want null", got)
	}
}

// TestBatch sends what a gateway sends for a missed block, and a mixture.
func TestBatch(t *testing.T) {
	n := start(t, Config{})
	got := post(t, n, `[{"jsonrpc":"2.0","id":"a","method":"eth_getUncleCountByBlockNumber","params":["0xb"]},
		{"jsonrpc":"2.0","method":"eth_blockNumber"},
		{"jsonrpc":"2.0","id":2,"method":"eth_getUncleByBlockNumberAndIndex","params":["0xb","0x7"]},
		{"jsonrpc":"2.0","id":3,"method":"eth_nothing"}]`)
	want := `[{"jsonrpc":"2.0","id":"a","result":"0x2"},{"jsonrpc":"2.0","id":2,"result":null},` +
		`{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"the method eth_nothing does not exist/is not available"}}]`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := post(t, n, `[]`), `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"empty batch"}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	big := "[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"eth_chainId"},`, maxBatch) + `{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}]`
	if got := post(t, n, big); !strings.Contains(got, "batch too large") {
		t.Errorf("a batch of %d: %.100s, want a refusal", maxBatch+1, got)
	}
}

// TestSampleUncles counts what the sample chain promises.
func TestSampleUncles(t *testing.T) {
	c, err := openChain(Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(64) {
		b, err := c.block(i)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		if i >= 8 && i < 60 {
			want = int(i % 3)
		}
		if got := len(b.Uncles()); got != want {
			t.Errorf("block %d has %d uncles, want %d", i, got, want)
		}
	}
}

func TestLifecycle(t *testing.T) {
	n, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	addr := strings.TrimPrefix(n.URL(), "http://")
	if _, err := New(Config{Addr: addr}); !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), addr) {
		t.Errorf("a second node at %s: %v, want address in use", addr, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	c := dial(t, n)
	ask(t, c, "eth_blockNumber", [][]any{nil})
	c.Close()
	stop()
	if err := <-done; err != nil {
		t.Errorf("Run: %v, want nil after a stop", err)
	}
	if err := n.Close(); err != nil {
		t.Errorf("Close after Run: %v", err)
	}

	// The same address again, the client's connection notwithstanding.
	again := start(t, Config{Addr: addr})
	ask(t, dial(t, again), "eth_blockNumber", [][]any{nil})
}

// TestCloseWithoutRun must leave neither the port nor a goroutine behind.
func TestCloseWithoutRun(t *testing.T) {
	n, err := New(Config{Blocks: sepolia(t, sepolia00)})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := New(Config{Addr: strings.TrimPrefix(n.URL(), "http://")})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestManyClients has the first answers rendered by several requests at once.
func TestManyClients(t *testing.T) {
	n := start(t, Config{Blocks: sepolia(t, sepolia21)})
	var params [][]any
	for i := range 200 {
		params = append(params, []any{"0x2bf" + string("0123456789abcdef"[i/16]) + string("0123456789abcdef"[i%16]), "0x0"})
	}
	results := make([]string, 4)
	var wg sync.WaitGroup
	for g := range results {
		c := dial(t, n)
		wg.Go(func() {
			for _, r := range ask(t, c, "eth_getUncleByBlockNumberAndIndex", params) {
				results[g] += string(r)
			}
		})
	}
	wg.Wait()
	for g := range results {
		if results[g] != results[0] || !strings.Contains(results[0], "0x") {
			t.Errorf("client %d was answered otherwise than client 0", g)
		}
	}
}

// sampleBlocks returns the RLP of each block of the sample chain.
func sampleBlocks(t testing.TB) [][]byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(sampleRLP))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var blocks [][]byte
	for len(data) > 0 {
		_, rest, err := rlp.SplitList(data)
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, data[:len(data)-len(rest)])
		data = rest
	}
	return blocks
}

func write(t *testing.T, dir, name string, parts ...[]byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, bytes.Join(parts, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFolder serves several files: two that meet, one apart, and what is no block
// file beside them.
func TestFolder(t *testing.T) {
	blocks, dir := sampleBlocks(t), t.TempDir()
	write(t, dir, "b.rlp", blocks[20:30]...)
	write(t, dir, "a.rlp", blocks[5:20]...)
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	for _, b := range blocks[40:50] {
		w.Write(b)
	}
	w.Close()
	write(t, dir, "c.rlp.gz", z.Bytes())
	write(t, dir, "README.txt", []byte("no blocks"))
	if err := os.Symlink(sepolia(t, sepolia21), filepath.Join(dir, sepolia21)); err != nil {
		t.Fatal(err)
	}

	c := dial(t, start(t, Config{Blocks: dir}))
	for number, want := range map[string]string{
		"0x4": "null", "0x5": `"0x0"`, "0x13": `"0x1"`, "0x14": `"0x2"`, "0x1d": `"0x2"`,
		"0x1e": "null", "0x27": "null", "0x28": `"0x1"`, "0x31": `"0x1"`, "0x32": "null", "0x2a000": `"0x0"`,
	} {
		got := ask(t, c, "eth_getUncleCountByBlockNumber", [][]any{{number}})
		if s := string(got[0]); s != want {
			t.Errorf("block %s: %s uncles, want %s", number, s, want)
		}
	}
}

// TestRefusedBlocks lists what cannot be served; each error says which file and why.
func TestRefusedBlocks(t *testing.T) {
	blocks := sampleBlocks(t)
	whole, err := os.ReadFile(sepolia(t, sepolia21))
	if err != nil {
		t.Fatal(err)
	}
	reencoded := func(n int, change func(*types.Header, *types.Body)) []byte {
		var b types.Block
		if err := rlp.DecodeBytes(blocks[n], &b); err != nil {
			t.Fatal(err)
		}
		h, body := b.Header(), b.Body()
		change(h, body)
		raw, err := rlp.EncodeToBytes(types.NewBlockWithHeader(h).WithBody(*body))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for _, c := range []struct {
		name  string
		write func(dir string) string
		want  string
	}{
		{"missing", func(dir string) string { return filepath.Join(dir, "none.era1") }, "no such file"},
		{"an empty folder", func(dir string) string { return dir }, "holds no *.era1"},
		{"an empty file", func(dir string) string { return write(t, dir, "x.rlp") }, "too short"},
		{"text", func(dir string) string { return write(t, dir, "x.txt", []byte("text")) }, "byte 0: no block"},
		{"a truncated era1 file", func(dir string) string { return write(t, dir, "x.era1", whole[:len(whole)/2]) }, "truncated"},
		{"an altered era1 file", func(dir string) string {
			altered := bytes.Clone(whole)
			altered[len(altered)/2] ^= 1
			return write(t, dir, "x.era1", altered)
		}, archive.ErrDamaged.Error()},
		{"a truncated export", func(dir string) string { return write(t, dir, "x.rlp", blocks[0], blocks[1][:100]) }, "no block"},
		{"a gap in an export", func(dir string) string { return write(t, dir, "x.rlp", blocks[0], blocks[2]) }, "does not follow block 0"},
		{"another parent", func(dir string) string {
			b := reencoded(9, func(h *types.Header, _ *types.Body) { h.ParentHash[0] ^= 1 })
			return write(t, dir, "x.rlp", blocks[8], b)
		}, "the parent is"},
		{"uncles left out", func(dir string) string {
			return write(t, dir, "x.rlp", reencoded(11, func(_ *types.Header, b *types.Body) { b.Uncles = nil }))
		}, "sha3Uncles"},
		{"files that overlap", func(dir string) string {
			write(t, dir, "a.rlp", blocks[0:3]...)
			write(t, dir, "b.rlp", blocks[2:5]...)
			return dir
		}, "both hold block 2"},
		{"files of two chains", func(dir string) string {
			write(t, dir, "a.rlp", blocks[0:3]...)
			write(t, dir, "b.rlp", reencoded(3, func(h *types.Header, _ *types.Body) { h.ParentHash[0] ^= 1 }))
			return dir
		}, "does not continue"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := c.write(t.TempDir())
			n, err := New(Config{Blocks: path})
			if err == nil {
				n.Close()
				t.Fatal("New: got no error")
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want an error with %q and the path", err, c.want)
			}
		})
	}
}

// TestExportLimit bounds what an export may take, decompressed.
func TestExportLimit(t *testing.T) {
	l := loader{chain: new(chain), left: 1000}
	if _, err := l.export("x", bytes.NewReader(sampleRLP)); err == nil || !strings.Contains(err.Error(), "use era1 files") {
		t.Errorf("got %v, want a refusal", err)
	}
}

// TestCacheLimit fills the cache; what no longer fits is answered all the same.
func TestCacheLimit(t *testing.T) {
	c, err := openChain(Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c.answers.size.Store(maxCache)
	for range 2 {
		if a, err := c.answersOf(11); err != nil || len(a.uncles) != 2 {
			t.Errorf("got %v, %v, want 2 uncles", a, err)
		}
	}
	if c.answers.get(11) != nil {
		t.Error("a full cache took one more")
	}
}
