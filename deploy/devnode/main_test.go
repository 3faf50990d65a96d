package devnode

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/rpc"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sepolia returns the path of an era1 file of real blocks that the go-ethereum
// module carries.
func sepolia(tb testing.TB, name string) string {
	tb.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ethereum/go-ethereum").Output()
	if err != nil {
		tb.Fatalf("find go-ethereum: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "core", "rawdb", "eradb", "testdata", name)
}

const (
	sepolia00 = "sepolia-00000-643a00f7.era1"
	sepolia21 = "sepolia-00021-b8814b14.era1"
)

// start runs a node until the test ends.
func start(tb testing.TB, cfg Config) *Node {
	tb.Helper()
	n, err := New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	tb.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		stop()
		if err := <-done; err != nil {
			tb.Errorf("Run: %v", err)
		}
	})
	return n
}

// dial returns a client of n that is closed when the test ends.
func dial(tb testing.TB, n *Node) *rpc.Client {
	tb.Helper()
	t := &http.Transport{}
	c, err := rpc.DialOptions(tb.Context(), n.URL(), rpc.WithHTTPClient(&http.Client{Transport: t}))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close(); t.CloseIdleConnections() })
	return c
}

// post sends a body as it is and returns the answer.
func post(tb testing.TB, n *Node, body string) string {
	tb.Helper()
	res, err := http.Post(n.URL(), "application/json", strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		tb.Fatalf("status %d, %v: %s", res.StatusCode, err, b)
	}
	return string(bytes.TrimSpace(b))
}

// ask makes many calls of one method in batches and returns the results.
func ask(tb testing.TB, c *rpc.Client, method string, params [][]any) []json.RawMessage {
	tb.Helper()
	results := make([]json.RawMessage, len(params))
	for from := 0; from < len(params); from += 500 {
		batch := make([]rpc.BatchElem, min(500, len(params)-from))
		for i := range batch {
			batch[i] = rpc.BatchElem{Method: method, Args: params[from+i], Result: &results[from+i]}
		}
		if err := c.BatchCallContext(tb.Context(), batch); err != nil {
			tb.Fatal(err)
		}
		for i := range batch {
			if batch[i].Error != nil {
				tb.Fatalf("%s%v: %v", method, params[from+i], batch[i].Error)
			}
		}
	}
	return results
}
