//go:build e2e

package e2e

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/ommer/ommer/deploy/testchain"
)

// geth is a running go-ethereum. Its consensus client is the test.
type geth struct {
	*process
	http, ws, authrpc string // addresses
	chain             string // folder with its database
	engine            *rpc.Client
}

// startGeth has geth import lists of blocks, one after the other, and serve what
// comes of it. Geth makes canonical whatever it imports last.
//
// The state of every block is kept (archive, hash scheme), since a block can be made
// canonical only where the state of its parent is there.
func startGeth(tb testing.TB, genesis *core.Genesis, imports ...[]*types.Block) *geth {
	tb.Helper()
	dir := tb.TempDir()
	data := []string{"--datadir", filepath.Join(dir, "data"), "--state.scheme", "hash", "--gcmode", "archive"}
	genesisJSON, err := json.Marshal(genesis)
	if err != nil {
		tb.Fatal(err)
	}
	runGeth(tb, data, "init", writeFile(tb, dir, "genesis.json", genesisJSON))
	files := []string{"import"}
	for i, blocks := range imports {
		var b bytes.Buffer
		if err := testchain.Export(&b, blocks); err != nil {
			tb.Fatal(err)
		}
		files = append(files, writeFile(tb, dir, fmt.Sprintf("blocks-%d.rlp", i), b.Bytes()))
	}
	runGeth(tb, data, files...)

	var secret [32]byte
	if _, err := rand.Read(secret[:]); err != nil {
		tb.Fatal(err)
	}
	g := &geth{http: freeAddr(tb), ws: freeAddr(tb), authrpc: freeAddr(tb), chain: filepath.Join(dir, "data", "geth", "chaindata")}
	g.process = start(tb, "geth", "geth", append(data,
		"--networkid", genesis.Config.ChainID.String(), "--syncmode", "full",
		"--http", "--http.port", port(tb, g.http), "--http.api", "eth",
		"--ws", "--ws.port", port(tb, g.ws), "--ws.api", "eth",
		"--authrpc.port", port(tb, g.authrpc), "--authrpc.jwtsecret", writeFile(tb, dir, "jwt.hex", []byte(hex.EncodeToString(secret[:]))),
		"--nodiscover", "--maxpeers", "0", "--port", "0", "--nat", "none", "--ipcdisable")...)
	g.waitListening(tb)
	transport := &http.Transport{}
	tb.Cleanup(transport.CloseIdleConnections)
	g.engine, err = rpc.DialOptions(tb.Context(), "http://"+g.authrpc,
		rpc.WithHTTPClient(&http.Client{Transport: transport, Timeout: callTime}),
		rpc.WithHTTPAuth(func(h http.Header) error { h.Set("Authorization", "Bearer "+token(secret[:])); return nil }))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(g.engine.Close)
	return g
}

// waitListening waits until all of its addresses are open.
func (g *geth) waitListening(tb testing.TB) {
	tb.Helper()
	for _, addr := range []string{g.http, g.ws, g.authrpc} {
		eventually(tb, time.Minute, "geth to listen", func() error {
			if !g.running() {
				tb.Fatalf("geth ended, exit code %d", g.code)
			}
			c, err := net.Dial("tcp", addr)
			if err == nil {
				_ = c.Close() // it was only to see
			}
			return err
		})
	}
}

// restart stops it, has something done to its files, and starts it again. Geth begins to
// heed signals after it begins to listen; until then they kill it, which its files stand.
func (g *geth) restart(tb testing.TB, meanwhile func()) {
	tb.Helper()
	if code := g.stop(); code > 0 {
		tb.Fatalf("geth: exit code %d after SIGTERM", code)
	}
	meanwhile()
	g.process = g.again()
	g.waitListening(tb)
}

// runGeth runs one of geth's commands to its end.
func runGeth(tb testing.TB, flags []string, args ...string) {
	tb.Helper()
	p := start(tb, "geth-"+args[0], "geth", append(append([]string(nil), flags...), args...)...)
	select {
	case <-p.exited:
	case <-time.After(time.Minute):
		tb.Fatalf("geth %s still runs after a minute", args[0])
	}
	if p.code != 0 {
		tb.Fatalf("geth %s: exit code %d\n%s", args[0], p.code, p.tail())
	}
}

// token is a JSON Web Token as the engine API wants it: HS256 over the time of its
// making (execution-apis, src/engine/authentication.md).
func token(secret []byte) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(fmt.Appendf(nil, `{"iat":%d}`, time.Now().Unix()))
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

// forkchoice is what a consensus client says of a chain.
type forkchoice struct{ head, safe, finalized *types.Block }

// choose makes geth follow a forkchoice.
func (g *geth) choose(tb testing.TB, f forkchoice) {
	tb.Helper()
	var r engine.ForkChoiceResponse
	err := g.engine.CallContext(tb.Context(), &r, "engine_forkchoiceUpdatedV1", engine.ForkchoiceStateV1{
		HeadBlockHash: f.head.Hash(), SafeBlockHash: f.safe.Hash(), FinalizedBlockHash: f.finalized.Hash(),
	}, nil)
	if err != nil || r.PayloadStatus.Status != engine.VALID {
		tb.Fatalf("forkchoiceUpdated to block %d: %q, %v", f.head.NumberU64(), r.PayloadStatus.Status, err)
	}
	// It says VALID to what it ignores as well.
	if head := g.blockNumber(tb); head != f.head.NumberU64() {
		tb.Fatalf("geth's head is block %d after forkchoiceUpdated to block %d", head, f.head.NumberU64())
	}
}

// execute gives geth a block from after the merge. It does not become canonical.
func (g *geth) execute(tb testing.TB, b *types.Block) {
	tb.Helper()
	var r engine.PayloadStatusV1
	payload := engine.BlockToExecutableData(b, nil, nil, nil).ExecutionPayload
	err := g.engine.CallContext(tb.Context(), &r, "engine_newPayloadV1", payload)
	if err != nil || r.Status != engine.VALID {
		tb.Fatalf("newPayload of block %d: %q, %v", b.NumberU64(), r.Status, err)
	}
}

// blockNumber is the number of geth's head.
func (g *geth) blockNumber(tb testing.TB) uint64 {
	tb.Helper()
	var n hexutil.Uint64
	if err := g.engine.CallContext(tb.Context(), &n, "eth_blockNumber"); err != nil {
		tb.Fatal(err)
	}
	return uint64(n)
}

func writeFile(tb testing.TB, dir, name string, content []byte) (path string) {
	tb.Helper()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func port(tb testing.TB, addr string) string {
	tb.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		tb.Fatal(err)
	}
	return port
}
