package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/params"

	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

func TestSoundNode(t *testing.T) {
	chain := testChain()
	node := upstreamtest.Start(t, chain)
	node.SetFinalized(40)
	for _, url := range []string{node.URL, node.WSURL} {
		t.Run(url[:strings.Index(url, ":")], func(t *testing.T) {
			r := check(t, soon, url)[0]
			head := chain[len(chain)-1]
			switch {
			case r.Lookups != All, r.Error != "", len(r.Untrue) > 0, len(r.Advice) > 0,
				r.Chain.ID != upstreamtest.ChainID, r.Chain.Genesis != chain[0].Hash().Hex(),
				r.Head.Number != head.NumberU64(), r.Head.Hash != head.Hash().Hex(), *r.Head.Behind != 0,
				*r.Safe.Number != 40, *r.Finalized.Number != 40,
				!r.History.All, r.History.From != 1, *r.Batch != 100,
				r.Uncles.ByNumber != Verified, r.Uncles.ByHash != Verified, upstreamtest.UnclesAt(*r.Uncles.Block) == 0,
				r.Uncles.Samples == 0, r.Uncles.Found == 0, r.Uncles.Found > r.Uncles.Samples,
				r.Latency.Calls != latencyCalls, r.Latency.MedianMS <= 0, r.Latency.FirstMS <= 0:
				t.Errorf("%+v", r)
			}
			if http := r.Transport == "http"; (r.Compression != nil) != http || (r.Subscribe != nil) == http {
				t.Errorf("compression %v, subscribe %v over %s", r.Compression, r.Subscribe, r.Transport)
			}
			if r.Subscribe != nil && !*r.Subscribe {
				t.Errorf("a node with newHeads: %v", r.Unknown)
			}
		})
	}
}

// TestCountsCalls compares what a report says of its cost with what came.
func TestCountsCalls(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	var came atomic.Int64
	intercept(node, func(calls []call, _ bool) string {
		came.Add(int64(len(calls)))
		return ""
	})
	r := check(t, soon, node.URL)[0]
	if int64(r.Calls) != came.Load() || int64(r.Requests) != node.Requests.Load() {
		t.Errorf("%d calls in %d requests; the node saw %d in %d", r.Calls, r.Requests, came.Load(), node.Requests.Load())
	}
	if r.Calls > 130 {
		t.Errorf("%d calls for a node with the whole history; doc.go says about 120", r.Calls)
	}
}

// TestAskedTooMuch has nodes refuse requests now and then, or always a part of a batch.
func TestAskedTooMuch(t *testing.T) {
	allowed := func(most int) func(n *upstreamtest.Node) {
		return func(n *upstreamtest.Node) {
			intercept(n, func(calls []call, batch bool) string {
				if len(calls) <= most {
					return ""
				}
				list := make([]string, len(calls))
				for i, c := range calls {
					if list[i] = c.result(`"0x0"`); i >= most {
						list[i] = c.refused(-32005, "too many requests")
					}
				}
				return "[" + strings.Join(list, ",") + "]"
			})
		}
	}
	for _, tt := range []struct {
		name  string
		fault func(n *upstreamtest.Node)
		batch int
		want  Lookups
	}{
		{"one request in eight", func(n *upstreamtest.Node) {
			var came atomic.Int64
			n.Handle(func(w http.ResponseWriter, r *http.Request, node http.Handler) {
				if came.Add(1)%8 == 1 {
					http.Error(w, upstreamtest.Secret, http.StatusTooManyRequests)
					return
				}
				node.ServeHTTP(w, r)
			})
		}, 100, All},
		{"more than 50 calls of a batch", allowed(50), 30, All},
		{"more than one call", allowed(1), 0, None},
	} {
		t.Run(tt.name, func(t *testing.T) {
			node := upstreamtest.Start(t, testChain())
			tt.fault(node)
			var r Report
			n := newNode(&r, node.URL, soon, func(string) {})
			n.pause = time.Millisecond
			n.check(t.Context(), soon)
			r.judge()
			if r.Lookups != tt.want || *r.Batch != tt.batch {
				t.Errorf("%s, batches of %d, want %s, %d; %s %v", r.Lookups, *r.Batch, tt.want, tt.batch, r.Words, r.Unknown)
			}
		})
	}
}

func TestHungNode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, method string // from which on it hangs
		words        string
		chain        bool // it has told its chain
	}{
		{"at once", "eth_chainId", "no answer in time", false},
		{"when asked for blocks", "eth_getBlockByNumber", "the head is not known", true},
		{"when asked for uncles", "eth_getUncleByBlockNumberAndIndex", "its uncles could not be checked", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			node := upstreamtest.Start(t, testChain())
			node.Handle(func(w http.ResponseWriter, r *http.Request, node http.Handler) {
				var body strings.Builder
				_, _ = io.Copy(&body, r.Body)
				if strings.Contains(body.String(), tt.method) {
					<-r.Context().Done()
					return
				}
				r.Body = io.NopCloser(strings.NewReader(body.String()))
				node.ServeHTTP(w, r)
			})
			sound := upstreamtest.Start(t, testChain())
			reports := check(t, shortly, node.URL, sound.URL)
			r := reports[0]
			if r.Lookups == All || (r.Chain != nil) != tt.chain || !strings.Contains(fmt.Sprint(r), tt.words) {
				t.Errorf("%s\n%v", r.Words, r.Unknown)
			}
			if reports[1].Error != "" {
				t.Errorf("the node beside it: %s", reports[1].Error)
			}
		})
	}
}

func TestSilentWebSocket(t *testing.T) {
	t.Parallel()
	node := upstreamtest.Start(t, testChain())
	hang := make(chan struct{})
	node.Falsify(func(_, block string, _ int, object map[string]any) (map[string]any, error) {
		if block == "0x1" {
			<-hang
		}
		return object, nil
	})
	defer close(hang)
	r := check(t, shortly, node.WSURL)[0]
	if r.Lookups != Part || r.History != nil || r.Unknown["history"] == "" || r.Head == nil {
		t.Errorf("%s\n%v", r.Words, r.Unknown)
	}
}

func TestSeveralNodes(t *testing.T) {
	chain := testChain()
	best, behind, other, fork := upstreamtest.Start(t, chain), upstreamtest.Start(t, chain[:20]), upstreamtest.Start(t, chain), upstreamtest.Start(t, chain)
	other.SetChainID(5)
	elsewhere := append(upstreamtest.Chain{}, chain...)
	elsewhere[0] = chain[3]
	fork.SetChain(elsewhere)
	dead := upstreamtest.Start(t, chain)
	dead.Handle(func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) })
	reports := check(t, soon, dead.URL, behind.URL, best.URL, other.URL, fork.URL, best.URL)
	if d := reports[1].Head.Behind; *d != uint64(len(chain)-20) || reports[1].Lookups != All {
		t.Errorf("%d behind, %s", *d, reports[1].Words)
	}
	if !strings.Contains(strings.Join(reports[1].Advice, "\n"), "30 blocks behind") {
		t.Errorf("no word of it: %q", reports[1].Advice)
	}
	if *reports[2].Head.Behind != 0 || reports[2].Lookups != All {
		t.Errorf("the best: %+v", reports[2])
	}
	for _, r := range reports[3:5] {
		if r.Lookups != None || r.Chain.Other == "" || r.Head.Behind != nil {
			t.Errorf("another chain: %s %+v", r.Words, r.Chain)
		}
	}
	if reports[5].Node != reports[2].Node+"#2" {
		t.Errorf("two nodes are called %s", reports[5].Node)
	}
}

// TestAfterTheMerge checks a chain that has no uncles, and never had.
func TestAfterTheMerge(t *testing.T) {
	config := *params.AllEthashProtocolChanges
	config.TerminalTotalDifficulty = new(big.Int)
	genesis := &core.Genesis{Config: &config, Difficulty: new(big.Int), GasLimit: 30_000_000, BaseFee: big.NewInt(params.InitialBaseFee)}
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), 20, func(_ int, g *core.BlockGen) { g.SetPoS() })
	node := upstreamtest.Start(t, append(upstreamtest.Chain{genesis.ToBlock()}, blocks...))
	r := check(t, soon, node.URL)[0]
	if r.Lookups != All || !r.Uncles.Merged || !strings.Contains(r.Words, "no block of this chain can have uncles") || r.Uncles.ByNumber != Answered {
		t.Errorf("%+v", r)
	}
	// A node with nothing from before the merge of a chain that had uncles.
	node.Falsify(func(_, block string, index int, object map[string]any) (map[string]any, error) {
		for at := 1; at < 7; at++ {
			if block == fmt.Sprintf("%#x", at) {
				return nil, &upstreamtest.Error{Code: 4444, Message: "pruned history unavailable"}
			}
		}
		return object, nil
	})
	r = check(t, soon, node.URL)[0]
	if r.Lookups != Part || r.History.From != 7 || !r.Uncles.Merged || !strings.Contains(r.Words, "after the merge") {
		t.Errorf("%+v", r)
	}
}

func TestMergeIsFound(t *testing.T) {
	n := newNode(new(Report), "http://h.example/", soon, func(string) {})
	head, mined := uint64(1000), uint64(617)
	for number := range head + 1 {
		header := *testChain()[0].Header()
		header.Difficulty = new(big.Int)
		if number <= mined {
			header.Difficulty = big.NewInt(7)
		}
		n.blocks[number] = &block{header: &header}
	}
	for last := mined; last <= head; last++ {
		for _, first := range []uint64{1, 2, mined - 1, mined} {
			n.Uncles = &Uncles{First: first, Last: last}
			if err := n.findMerge(t.Context()); err != nil || n.Uncles.Last != mined || n.Uncles.Merged {
				t.Fatalf("%d to %d: %v, %+v", first, last, err, n.Uncles)
			}
		}
	}
	n.Uncles = &Uncles{First: mined + 1, Last: head}
	if err := n.findMerge(t.Context()); err != nil || !n.Uncles.Merged {
		t.Errorf("from after it: %v, %+v", err, n.Uncles)
	}
}

func TestSpread(t *testing.T) {
	n := newNode(new(Report), "http://h.example/", soon, func(string) {})
	for _, u := range []Uncles{{First: 1, Last: 1}, {First: 1, Last: 50}, {First: 668, Last: 15537393}, {First: 0, Last: 1<<64 - 2}} {
		n.Uncles = &u
		seen := map[uint64]bool{}
		for round := range rounds {
			for _, number := range n.spread(100, round) {
				if number < u.First || number > u.Last {
					t.Fatalf("%d is not of %d to %d", number, u.First, u.Last)
				}
				seen[number] = true
			}
		}
		if want := min(rounds*100, int(min(u.Last-u.First, 1<<32))+1); len(seen) < want {
			t.Errorf("%d to %d: %d blocks, want %d", u.First, u.Last, len(seen), want)
		}
	}
}

// TestStops ends the check of a node that never answers, by each transport.
func TestStops(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	for _, url := range []string{node.URL, node.WSURL} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		node.Handle(func(http.ResponseWriter, *http.Request, http.Handler) {
			cancel()
			<-ended
		})
		if _, err := Run(ctx, Config{URLs: []string{url}, Timeout: time.Hour}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		close(ended)
	}
}

func TestRefusesConfig(t *testing.T) {
	const secret = "0123456789abcdef"
	for name, cfg := range map[string]Config{
		"no URL":   {},
		"too many": {URLs: make([]string, 33)},
		"scheme":   {URLs: []string{"http://h.example/", "ftp://h.example/" + secret}},
		"time":     {URLs: []string{"http://h.example/"}, Timeout: -1},
	} {
		if _, err := Run(t.Context(), cfg); !errors.Is(err, ErrConfig) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
