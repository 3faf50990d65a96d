package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

// rendered is a block and its uncles as a node sends them, with a number of hashes of
// transactions.
func rendered(t testing.TB, b *types.Block, transactions int) (block json.RawMessage, uncles []json.RawMessage) {
	t.Helper()
	marshal := func(v any) json.RawMessage {
		enc, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return enc
	}
	members := make(map[string]any)
	if err := json.Unmarshal(marshal(b.Header()), &members); err != nil {
		t.Fatal(err)
	}
	hashes := make([]common.Hash, 0, len(b.Uncles()))
	for _, u := range b.Uncles() {
		hashes = append(hashes, u.Hash())
		uncles = append(uncles, marshal(u))
	}
	members["uncles"], members["transactions"] = hashes, make([]common.Hash, transactions)
	for len(uncles) < MaxUncles {
		uncles = append(uncles, json.RawMessage("null"))
	}
	return marshal(members), uncles
}

// smallBlock is block 7 with a number of uncles.
func smallBlock(uncles int) *types.Block {
	var list []*types.Header
	for i := range uncles {
		list = append(list, &types.Header{Number: big.NewInt(6), Difficulty: big.NewInt(int64(i)), Extra: []byte{}})
	}
	header := &types.Header{Number: big.NewInt(7), Difficulty: big.NewInt(1), Extra: []byte{}, UncleHash: types.CalcUncleHash(list)}
	return types.NewBlockWithHeader(header).WithBody(types.Body{Uncles: list})
}

// FuzzAnswer gives a block and its uncles as a node may send them. What is accepted
// has to be consistent, down to the last byte that is hashed.
func FuzzAnswer(f *testing.F) {
	for n := range 3 {
		block, uncles := rendered(f, smallBlock(n), n)
		f.Add(uint64(7), []byte(block), []byte(uncles[0]), []byte(uncles[1]))
	}
	f.Add(uint64(0), []byte("null"), []byte("null"), []byte("{}"))
	f.Add(uint64(0), []byte(`{"hash":"0x","uncles":[]}`), []byte("[]"), []byte(`"x"`))
	f.Fuzz(func(t *testing.T, number uint64, block, first, second []byte) {
		for _, raw := range [][]byte{block, first, second} {
			if !json.Valid(raw) { // go-ethereum's client has refused it
				return
			}
		}
		var n node
		n.scrub = newScrubber("http://h.example")
		header, said, err := n.readBlock(rpc.BatchElem{}, block, schema.Number(number))
		if err != nil {
			return
		}
		if header.Hash() != *said.Hash || header.Number.Uint64() != number {
			t.Fatalf("accepted block %v with hash %v as %d with %v", header.Number, header.Hash(), number, said.Hash)
		}
		uncles, err := n.readUncles(header.UncleHash, said, []json.RawMessage{first, second}, make([]rpc.BatchElem, MaxUncles))
		if err == nil && types.CalcUncleHash(uncles) != header.UncleHash {
			t.Fatalf("accepted %d uncles that are not those of the header", len(uncles))
		}
	})
}

func TestTransactionsAreNotInTheWay(t *testing.T) {
	block, _ := rendered(t, smallBlock(0), 0)
	const none = `"transactions":[]`
	for _, tt := range []struct{ name, member string }{
		{"none", none},
		{"hashes", `"transactions":["0x01","0x02"]`},
		{"objects", `"transactions":[{"accessList":[{"storageKeys":["0x01"]}]},{"accessList":[]}]`},
		{"spaces", `"transactions" : [ "0x01" ]`},
		{"a string that looks like it", `"extra":"\"transactions\":[","transactions":[]`},
		{"a member of a member", `"extra":{"transactions":[[1],2]},"transactions":["0x01"]`},
		{"left out", `"size":"0x1"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var n node
			n.scrub = newScrubber("http://h.example")
			raw := json.RawMessage(strings.Replace(string(block), none, tt.member, 1))
			if !json.Valid(raw) || string(raw) == string(block) && tt.member != none {
				t.Fatal("the test's block is not what it should be")
			}
			if _, _, err := n.readBlock(rpc.BatchElem{}, raw, schema.Number(7)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestKeptConnectionIsReplaced has a node that drops each kept connection at its
// second request: no lookup may notice.
func TestKeptConnectionIsReplaced(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	var mu sync.Mutex
	used := make(map[string]bool)
	node.Handle(func(w http.ResponseWriter, r *http.Request, node http.Handler) {
		mu.Lock()
		again := used[r.RemoteAddr]
		used[r.RemoteAddr] = true
		mu.Unlock()
		if again {
			panic(http.ErrAbortHandler)
		}
		node.ServeHTTP(w, r)
	})
	s := newSet(t, Config{URLs: []string{node.URL}, Registerer: prometheus.NewRegistry()})
	for range 5 {
		if _, found, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(5)); !found || err != nil {
			t.Fatalf("found %v, %v", found, err)
		}
	}
	if n := testutil.ToFloat64(s.nodes[0].metrics.lookups.WithLabelValues("unreachable")); n > 0 {
		t.Errorf("%v lookups have failed and were asked again", n)
	}
}

// Without verification what is false is passed on, and what is missing is seen.
func TestBelieve(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	node.Falsify(func(_, block string, index int, o map[string]any) (map[string]any, error) {
		switch {
		case block == "0x5" && index == 1:
			o["gasUsed"] = "0x7"
		case block == "0x8" && index == 1, block == testChain()[8].Hash().Hex() && index == 1:
			return nil, nil
		}
		return o, nil
	})
	s := newSet(t, Config{URLs: []string{node.URL}, Believe: true})
	b, found, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(5))
	if err != nil || !found || b.Uncles[1].GasUsed != 7 {
		t.Errorf("a false uncle: found %v, %v", found, err)
	}
	if _, _, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(8)); !errors.Is(err, ErrPruned) {
		t.Errorf("a missing uncle: %v, want ErrPruned", err)
	}
	node.Falsify(nil)
	checkLookup(t, s, 5)
}

// BenchmarkVerify is the cost of reading a block with two uncles, by the number of its
// transactions, with and without verifying it.
func BenchmarkVerify(b *testing.B) {
	for _, believe := range []bool{false, true} {
		for _, transactions := range []int{0, 200, 3000} {
			b.Run(fmt.Sprintf("believe-%v/transactions-%d", believe, transactions), func(b *testing.B) {
				block, uncles := rendered(b, testChain()[5], transactions)
				n := node{believe: believe}
				b.SetBytes(int64(len(block)))
				b.ReportAllocs()
				for b.Loop() {
					header, said, err := n.readBlock(rpc.BatchElem{}, block, schema.Number(5))
					if err != nil {
						b.Fatal(err)
					}
					if _, err := n.readUncles(header.UncleHash, said, uncles, make([]rpc.BatchElem, MaxUncles)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
