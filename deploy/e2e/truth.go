//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/ommer/ommer/workers/archive"
)

// The methods of the service.
const (
	byNumber = "eth_getUncleByBlockNumberAndIndex"
	byHash   = "eth_getUncleByBlockHashAndIndex"
)

// What the file of real blocks holds.
const (
	sepoliaBlocks     = 8192
	sepoliaWithUncles = 647
	sepoliaUncles     = 1273
)

// block is what is true of a block.
type block struct {
	number    uint64
	hash      common.Hash
	uncleHash common.Hash // of the list of its uncles
	uncles    []common.Hash
}

// sepoliaFile returns the path of the file of real blocks.
var sepoliaFile = sync.OnceValues(func() (string, error) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/ethereum/go-ethereum").Output()
	if err != nil {
		return "", fmt.Errorf("find the go-ethereum module: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "core", "rawdb", "eradb", "testdata", "sepolia-00021-b8814b14.era1"), nil
})

// readSepolia reads every block of the file.
var readSepolia = sync.OnceValues(func() ([]block, error) {
	path, err := sepoliaFile()
	if err != nil {
		return nil, err
	}
	file, err := archive.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read from
	var blocks []block
	for b, err := range file.Blocks() {
		if err != nil {
			return nil, err
		}
		known := block{number: b.Header.Number.Uint64(), hash: b.Header.Hash(), uncleHash: b.Header.UncleHash}
		for _, u := range b.Uncles {
			known.uncles = append(known.uncles, u.Hash())
		}
		blocks = append(blocks, known)
	}
	return blocks, nil
})

// sepolia returns the path of the file of real blocks, those with uncles and those
// without.
func sepolia(tb testing.TB) (path string, with, without []block) {
	tb.Helper()
	path, err := sepoliaFile()
	if err != nil {
		tb.Fatal(err)
	}
	blocks, err := readSepolia()
	if err != nil {
		tb.Fatal(err)
	}
	uncles := 0
	for _, b := range blocks {
		if len(b.uncles) == 0 {
			without = append(without, b)
			continue
		}
		with = append(with, b)
		uncles += len(b.uncles)
	}
	if len(blocks) != sepoliaBlocks || len(with) != sepoliaWithUncles || uncles != sepoliaUncles {
		tb.Fatalf("%s has %d blocks, %d of them with %d uncles; want %d, %d, %d",
			path, len(blocks), len(with), uncles, sepoliaBlocks, sepoliaWithUncles, sepoliaUncles)
	}
	return path, with, without
}

// newest is the last of the blocks.
func newest(with, without []block) block {
	head := with[len(with)-1]
	if last := without[len(without)-1]; last.number > head.number {
		head = last
	}
	return head
}

// unknown is a block that there is not: one after the head, with a hash of something
// else.
func unknown(head block) block { return block{number: head.number + 1, hash: head.uncleHash} }

// question is a lookup whose answer is known.
type question struct {
	block  *block
	index  int
	byHash bool
}

// want is the hash of the uncle, false when the answer is null.
func (q question) want() (common.Hash, bool) {
	if q.index >= len(q.block.uncles) {
		return common.Hash{}, false
	}
	return q.block.uncles[q.index], true
}

// appendCall appends the question as a JSON-RPC call.
func (q question) appendCall(dst []byte, id int) []byte {
	method, selector := byNumber, fmt.Sprintf("%#x", q.block.number)
	if q.byHash {
		method, selector = byHash, q.block.hash.Hex()
	}
	return fmt.Appendf(dst, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":[%q,"%#x"]}`, id, method, selector, q.index)
}

// String is the call's parameters, for messages.
func (q question) String() string {
	if q.byHash {
		return fmt.Sprintf("%v[%d]", q.block.hash, q.index)
	}
	return fmt.Sprintf("%d[%d]", q.block.number, q.index)
}

// unclesOf lists every uncle of the blocks.
func unclesOf(blocks []block, byHash bool) (qs []question) {
	for i := range blocks {
		for k := range blocks[i].uncles {
			qs = append(qs, question{&blocks[i], k, byHash})
		}
	}
	return qs
}
