//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/coder/websocket"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/ommer/ommer/deploy/testchain"
)

// The chains: the trunk, and a branch that leaves it behind block lastShared.
var (
	trunkShape  = testchain.Shape{Length: trunkLength, London: 40, Merge: merge}
	branchShape = testchain.Shape{Length: 124, London: 40, Merge: merge, Fork: lastShared}
)

const (
	trunkLength = 128
	merge       = 112
	lastShared  = 80
)

// How many messages are generated, and from what. Another seed is given by OMMER_SEED
// in the environment.
const (
	generated   = 5000
	defaultSeed = 1
)

// oracle compares the programs with geth, which they have for their upstream.
type oracle struct {
	geth          *geth
	fleet         *fleet
	key           string
	trunk, branch []*types.Block
	gethHTTP      *httpCaller
	gethWS        *wsCaller
	http, https   *httpCaller
	ws, wss       *wsCaller
}

// TestOracle asks geth and the programs in front of it the same, and wants the same
// answers but for what is in allowances.
func TestOracle(t *testing.T) {
	o := startOracle(t)
	parts := []struct {
		name string
		run  func(*testing.T, *comparison)
	}{
		{"examples", o.examples},
		{"before a forkchoice", o.tags},
		{"every block", o.everyBlock},
		{"generated", o.generated},
		{"reorg", o.reorg},
	}
	total := newComparison()
	for _, part := range parts {
		t.Run(part.name, func(t *testing.T) {
			c := newComparison()
			part.run(t, c)
			t.Log(c)
			total.add(c)
		})
	}
	t.Logf("all together %v", total)
}

// startOracle has geth import both chains, the branch up to the merge. The trunk is
// canonical, and nothing is safe or final yet.
func startOracle(t *testing.T) *oracle {
	t.Helper()
	genesis, err := trunkShape.Genesis()
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{}
	for _, c := range []struct {
		to    *[]*types.Block
		shape testchain.Shape
	}{{&o.trunk, trunkShape}, {&o.branch, branchShape}} {
		if *c.to, err = c.shape.Blocks(); err != nil {
			t.Fatal(err)
		}
	}
	checkChains(t, o.trunk, o.branch)
	o.geth = startGeth(t, genesis, o.branch[:merge], o.trunk)
	if head := o.geth.blockNumber(t); head != uint64(len(o.trunk)-1) {
		t.Fatalf("geth's head is block %d, want %d", head, len(o.trunk)-1)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	o.gethHTTP = &httpCaller{http: &http.Client{Transport: transport}, url: "http://" + o.geth.http}
	if o.gethWS, err = dialWS(t.Context(), "ws://"+o.geth.ws, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.gethWS.conn.CloseNow() }) // nothing is left to say

	o.fleet, o.key = startFleet(t, "http://"+o.geth.http, size{edges: 1, workers: 1})
	e := o.fleet.edges[0]
	o.http, o.https = o.fleet.httpCaller(e, false, o.key), o.fleet.httpCaller(e, true, o.key)
	o.ws, o.wss = o.fleet.mustWS(e, false, o.key), o.fleet.mustWS(e, true, o.key)
	return o
}

// checkChains makes sure that there is something to compare: uncles from before and
// after London, none to two in a block, of each age that the protocol allows.
func checkChains(t *testing.T, chains ...[]*types.Block) {
	t.Helper()
	for _, blocks := range chains {
		var counts [3]int
		var depths [7]int
		london, merged := 0, 0
		for _, b := range blocks {
			counts[len(b.Uncles())]++
			for _, u := range b.Uncles() {
				depths[b.NumberU64()-u.Number.Uint64()]++
				if u.BaseFee != nil {
					london++
				}
			}
			if b.Difficulty().Sign() == 0 {
				merged++
			}
		}
		uncles := counts[1] + 2*counts[2]
		if slices.Contains(counts[:], 0) || slices.Contains(depths[1:], 0) || london == 0 || london == uncles || merged == 0 {
			t.Errorf("a chain of %d blocks, %d of them merged: %v with 0, 1, 2 uncles, depths 1 to 6: %v, %d of them with a base fee",
				len(blocks), merged, counts, depths[1:], london)
		}
		t.Logf("%d blocks, %d of them after the merge; with 0, 1, 2 uncles: %v; uncles 1 to 6 generations up: %v; with a base fee: %d of %d",
			len(blocks), merged, counts, depths[1:], london, uncles)
	}
}

// everywhere puts a message to geth and to the programs, over each transport.
//
// Geth closes a WebSocket after what is no JSON. We do not, so there our answer has to
// be the one over HTTP. That is what it has to be to any message: what is not text is
// left out (RFC 6455 has a close code for it).
func (o *oracle) everywhere(t *testing.T, c *comparison, message string) {
	t.Helper()
	geth, ours := o.ask(t, o.gethHTTP, message), o.ask(t, o.http, message)
	c.compare(t, "HTTP", message, geth, ours)
	c.compare(t, "HTTPS", message, geth, o.ask(t, o.https, message))
	if !utf8.ValidString(message) {
		return // no text message can have it
	}
	for _, way := range []struct {
		name string
		*wsCaller
	}{{"WS", o.ws}, {"WSS", o.wss}} {
		if got := o.askWS(t, way.wsCaller, message, len(ours) == 0); !bytes.Equal(got, ours) {
			c.different++
			t.Errorf("%s: asked %.1000q\nover HTTP %.600s\nover WS   %.600s", way.name, message, ours, got)
		}
	}
	if a, err := readAnswers(geth); len(bytes.TrimSpace([]byte(message))) > 0 && err == nil && !(len(a.list) == 1 && a.list[0].fails(-32700, "")) {
		c.compare(t, "WS", message, o.askWS(t, o.gethWS, message, len(geth) == 0), ours)
	}
}

// ask asks over HTTP.
func (o *oracle) ask(t *testing.T, c *httpCaller, message string) []byte {
	t.Helper()
	answer, err := c.call(t.Context(), []byte(message))
	if err != nil {
		t.Fatalf("asked %.1000q: %v", message, err)
	}
	return answer
}

// askWS asks over a WebSocket. To see that a message is not answered it sends another
// one that is.
func (o *oracle) askWS(t *testing.T, c *wsCaller, message string, silent bool) []byte {
	t.Helper()
	answer, err := []byte(nil), error(nil)
	ctx, cancel := context.WithTimeout(t.Context(), callTime)
	defer cancel()
	if silent {
		if err = c.conn.Write(ctx, websocket.MessageText, []byte(message)); err == nil {
			const next = `{"jsonrpc":"2.0","id":"next","method":""}`
			if answer, err = c.call(ctx, []byte(next)); err == nil && bytes.Contains(answer, []byte(`"id":"next"`)) {
				return nil
			}
		}
	} else {
		answer, err = c.call(ctx, []byte(message))
	}
	if err != nil {
		t.Fatalf("asked %.1000q over a WebSocket: %v", message, err)
	}
	return answer
}

func callText(id int, method, block string, index int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":[%q,"%#x"]}`, id, method, block, index)
}

// tags compares every tag.
func (o *oracle) tags(t *testing.T, c *comparison) {
	for _, tag := range []string{"latest", "earliest", "pending", "safe", "finalized"} {
		for index := range 4 {
			o.everywhere(t, c, callText(index, byNumber, tag, index))
		}
	}
}

// examples makes sure that each allowance is needed.
func (o *oracle) examples(t *testing.T, c *comparison) {
	for _, a := range allowances {
		before := c.allowed[a.name]
		o.everywhere(t, c, a.example)
		if c.allowed[a.name] == before {
			t.Errorf("there is no difference that %q would have to allow: %s", a.name, a.reason)
		}
	}
}

// trunkChoice is the trunk as the consensus client sees it. Of what is safe and final
// there are uncles.
func (o *oracle) trunkChoice(head int) forkchoice {
	return forkchoice{head: o.trunk[head], safe: o.trunk[104], finalized: o.trunk[76]}
}

func (o *oracle) branchChoice(head int) forkchoice {
	return forkchoice{head: o.branch[head], safe: o.branch[103], finalized: o.trunk[76]}
}

// everyBlock compares every index of every block of both chains, and of what is none.
func (o *oracle) everyBlock(t *testing.T, c *comparison) {
	o.geth.choose(t, o.trunkChoice(len(o.trunk)-1))
	o.tags(t, c)
	o.numbers(t, c, 4)
	id := 0
	for _, b := range slices.Concat(o.trunk, o.branch[lastShared+1:]) {
		for index := range 4 {
			id++
			o.everywhere(t, c, callText(id, byHash, b.Hash().Hex(), index))
		}
		if parent := b.ParentHash().Hex(); b.NumberU64() == 0 {
			o.everywhere(t, c, callText(id, byHash, parent, 0)) // of no block
		}
		for _, u := range b.Uncles() {
			o.everywhere(t, c, callText(id, byHash, u.Hash().Hex(), 0)) // geth has its header only
		}
	}
	t.Logf("%d blocks of the trunk and %d of the branch, %d of which geth knows", len(o.trunk), len(o.branch)-lastShared-1, merge-lastShared-1)
}

// numbers compares some indexes of every block by its number, and of numbers beyond
// the head.
func (o *oracle) numbers(t *testing.T, c *comparison, indexes int) {
	t.Helper()
	for number := range uint64(len(o.trunk) + 4) {
		for index := range indexes {
			o.everywhere(t, c, callText(int(number), byNumber, hexutil.EncodeUint64(number), index))
		}
	}
	for _, number := range []string{"0x10000", "0xffffffff", "0x100000000", "0x7fffffffffffffff"} {
		o.everywhere(t, c, callText(0, byNumber, number, 0))
	}
}

// generated compares generated messages.
func (o *oracle) generated(t *testing.T, c *comparison) {
	seed := uint64(defaultSeed)
	if given := os.Getenv("OMMER_SEED"); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("OMMER_SEED: %v", err)
		}
	}
	t.Logf("OMMER_SEED=%d", seed)
	var hashes []string
	for _, b := range slices.Concat(o.trunk, o.branch[lastShared+1:]) {
		hashes = append(hashes, b.Hash().Hex())
	}
	g := newGenerator(seed, hashes, uint64(len(o.trunk)+8))
	for range generated {
		o.everywhere(t, c, g.message())
	}
}
