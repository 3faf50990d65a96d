package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

func TestLaggingNode(t *testing.T) {
	chain := testChain()
	behind, ahead := upstreamtest.Start(t, chain[:10]), upstreamtest.Start(t, chain)
	s := newSet(t, Config{URLs: []string{behind.URL, ahead.URL}})
	for _, sel := range []schema.Selector{schema.Number(20), schema.BlockHash(schema.Hash(chain[20].Hash()))} {
		b, found, err := s.Block(ctxFor(t, 10*time.Second), sel)
		if err != nil || !found {
			t.Fatalf("%v: found %v, %v", sel, found, err)
		}
		checkBlock(t, b, chain[20])
	}
}

func TestFinalizedBlockThatNobodyHas(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	node.SetFinalized(20)
	node.Falsify(func(_, block string, _ int, object map[string]any) (map[string]any, error) {
		if block == "0x5" {
			return nil, nil
		}
		return object, nil
	})
	s := newSet(t, Config{URLs: []string{node.URL}})
	run(t, s)
	eventually(t, func() bool { _, ok := s.Finalized(); return ok })
	if _, _, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(5)); !errors.Is(err, ErrPruned) {
		t.Errorf("got %v, want ErrPruned", err)
	}
}

func TestFaultyNodes(t *testing.T) {
	chain := testChain()
	whole := func(f func(w http.ResponseWriter, r *http.Request, node http.Handler)) func(*upstreamtest.Node) {
		return func(n *upstreamtest.Node) { n.Handle(f) }
	}
	blocks := func(f func(method string, index int, object map[string]any) (map[string]any, error)) func(*upstreamtest.Node) {
		return func(n *upstreamtest.Node) {
			n.Falsify(func(method, _ string, index int, object map[string]any) (map[string]any, error) {
				return f(method, index, object)
			})
		}
	}
	edit := func(uncle bool, f func(object map[string]any)) func(*upstreamtest.Node) {
		return blocks(func(_ string, index int, object map[string]any) (map[string]any, error) {
			if object != nil && (index >= 0) == uncle {
				f(object)
			}
			return object, nil
		})
	}
	saying := func(code int, text string) func(*upstreamtest.Node) {
		return blocks(func(string, int, map[string]any) (map[string]any, error) {
			return nil, &upstreamtest.Error{Code: code, Message: text}
		})
	}
	reply := func(status int, body string) func(*upstreamtest.Node) {
		return whole(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
	}
	otherChain := upstreamtest.Generate(24, 3, "other")
	const anotherBlock = "another block" // by hash such a node is right
	// Block 5 has two uncles, block 4 one.
	for _, tt := range []struct {
		name  string
		fault func(n *upstreamtest.Node)
		want  error
	}{
		{"hangs", whole(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }), ErrUnreachable},
		{"hangs in the body", whole(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			_, _ = w.Write([]byte(`[{"jsonrpc":`))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}), ErrUnreachable},
		{"cuts the connection", whole(func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }), ErrUnreachable},
		{"status 500", reply(500, "key "+upstreamtest.Secret), ErrUnreachable},
		{"status 429", reply(429, ""), ErrOverloaded},
		{"status 401", reply(401, "no such key: "+upstreamtest.Secret), ErrFailed},
		{"redirects", whole(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}), ErrFailed},
		{"not JSON", reply(200, "<html>"+upstreamtest.Secret), ErrFailed},
		{"JSON of another kind", reply(200, `"text"`), ErrFailed},
		{"empty batch", reply(200, `[]`), ErrFailed},
		{"nulls", reply(200, `[null,null,null]`), ErrFailed},
		{"huge", whole(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			for range 1 << 10 {
				_, _ = w.Write(bytes.Repeat([]byte{' '}, 1<<10))
			}
		}), ErrFailed},
		{"another chain", func(n *upstreamtest.Node) { n.SetChainID(5) }, ErrUntrue},
		{"error with the key", saying(-32000, "bad key "+upstreamtest.Secret), ErrFailed},
		{"no such project", saying(-32000, "project not found"), ErrFailed},
		{"no such method", saying(-32601, "the method does not exist/is not available"), ErrFailed},
		{"rate limited", saying(-32005, "slow down"), ErrOverloaded},
		{"pruned, by code", saying(4444, "pruned history unavailable"), ErrPruned},
		{"pruned, by text", saying(-32000, "old data not available due to pruning"), ErrPruned},
		{"pruned uncles, by code", blocks(func(_ string, index int, o map[string]any) (map[string]any, error) {
			if index >= 0 {
				return nil, &upstreamtest.Error{Code: 4444, Message: "pruned history unavailable"}
			}
			return o, nil
		}), ErrPruned},
		{"pruned bodies: null uncles", blocks(func(_ string, index int, o map[string]any) (map[string]any, error) {
			if index >= 0 {
				return nil, nil
			}
			o["uncles"] = []string{}
			return o, nil
		}), ErrPruned},
		{"null for the second uncle", blocks(func(_ string, index int, o map[string]any) (map[string]any, error) {
			if index == 1 {
				return nil, nil
			}
			return o, nil
		}), ErrPruned},
		{"header changed", edit(false, func(o map[string]any) { o["gasUsed"] = "0x1" }), ErrUntrue},
		{"header changed with its hash", edit(false, func(o map[string]any) {
			o["hash"] = "0x932bdf904546a2287a2c9b2ede37925f698a7657484b172d4e5184f80bdd464d"
		}), ErrUntrue},
		{"header without hash", edit(false, func(o map[string]any) { delete(o, "hash") }), ErrFailed},
		{"header without stateRoot", edit(false, func(o map[string]any) { delete(o, "stateRoot") }), ErrFailed},
		{"header with a new field", edit(false, func(o map[string]any) {
			o["gasUsed"], o["fieldOfTheFuture"] = "0x1", "0x1"
		}), ErrUnknownFields},
		{"hides the uncles", edit(false, func(o map[string]any) { o["sha3Uncles"] = types.EmptyUncleHash }), ErrUntrue},
		{"uncle changed", edit(true, func(o map[string]any) { o["extraData"] = "0x00" }), ErrUntrue},
		{"uncle unreadable", edit(true, func(o map[string]any) { o["nonce"] = "0x0" }), ErrFailed},
		{"uncles swapped", func(n *upstreamtest.Node) {
			n.Falsify(func(_, _ string, index int, o map[string]any) (map[string]any, error) {
				if index < 0 {
					return o, nil
				}
				enc, err := json.Marshal(chain[5].Uncles()[1-index])
				swapped := make(map[string]any)
				return swapped, errors.Join(err, json.Unmarshal(enc, &swapped))
			})
		}, ErrUntrue},
		{anotherBlock, func(n *upstreamtest.Node) {
			shifted := append(upstreamtest.Chain{}, chain...)
			shifted[5] = chain[8]
			n.SetChain(shifted)
		}, ErrUntrue},
		{"another block by hash", func(n *upstreamtest.Node) {
			wrong := upstreamtest.Start(t, otherChain)
			n.Handle(func(w http.ResponseWriter, r *http.Request, node http.Handler) {
				var body bytes.Buffer
				_, _ = body.ReadFrom(r.Body)
				text := strings.ReplaceAll(body.String(), chain[5].Hash().Hex(), otherChain[5].Hash().Hex())
				text = strings.ReplaceAll(text, `"0x5"`, `"0x8"`)
				resp, err := http.Post(wrong.URL, "application/json", strings.NewReader(text))
				if err != nil {
					t.Error(err)
					return
				}
				defer http.DefaultClient.CloseIdleConnections()
				body.Reset()
				_, _ = body.ReadFrom(resp.Body)
				_ = resp.Body.Close()
				_, _ = w.Write(body.Bytes())
			})
		}, ErrUntrue},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			selectors := []schema.Selector{schema.Number(5), schema.BlockHash(schema.Hash(chain[5].Hash()))}
			if tt.name == anotherBlock {
				selectors = selectors[:1]
			}
			faulty, sound := upstreamtest.Start(t, chain), upstreamtest.Start(t, chain)
			tt.fault(faulty)
			cfg := Config{ChainID: upstreamtest.ChainID, MaxResponse: 256 << 10}
			enough := 10 * time.Second
			if strings.HasPrefix(tt.name, "hangs") { // what comes from others may take its time
				cfg.CallTimeout, enough = time.Second, 500*time.Millisecond
			}

			cfg.URLs = []string{faulty.URL}
			alone := newSet(t, cfg)
			for _, sel := range selectors {
				_, found, err := alone.Block(ctxFor(t, enough), sel)
				if found || !errors.Is(err, tt.want) {
					t.Errorf("%v, alone: found %v, %v; want %v", sel, found, err, tt.want)
				}
				if err != nil && strings.Contains(err.Error(), upstreamtest.Secret) {
					t.Errorf("the error shows the URL's secret: %v", err)
				}
			}

			var logged syncBuffer
			cfg.URLs = []string{faulty.URL, sound.URL}
			cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
			backed := newSet(t, cfg)
			for _, sel := range selectors {
				b, found, err := backed.Block(ctxFor(t, 10*time.Second), sel)
				if err != nil || !found {
					t.Fatalf("%v, with a sound node: found %v, %v", sel, found, err)
				}
				checkBlock(t, b, chain[5])
			}
			if strings.Contains(logged.String(), upstreamtest.Secret) {
				t.Errorf("the log shows the URL's secret:\n%s", logged.String())
			}
		})
	}
}

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// TestReorgWithinBatch moves the chain between the block and its uncles: the parts
// of one batch are then of two blocks.
func TestReorgWithinBatch(t *testing.T) {
	before, after := upstreamtest.Generate(24, 3, "before"), upstreamtest.Generate(24, 3, "after")
	node := upstreamtest.Start(t, before)
	s := newSet(t, Config{URLs: []string{node.URL}})
	node.Falsify(func(method, _ string, _ int, object map[string]any) (map[string]any, error) {
		if method == "eth_getBlockByNumber" {
			node.SetChain(after)
		}
		return object, nil
	})
	b, found, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(5))
	if err != nil || !found {
		t.Fatalf("found %v, %v", found, err)
	}
	checkBlock(t, b, before[5])
}

func TestLiarIsAskedLast(t *testing.T) {
	chain := testChain()
	liar, sound := upstreamtest.Start(t, chain), upstreamtest.Start(t, chain)
	liar.Falsify(func(_, _ string, _ int, o map[string]any) (map[string]any, error) {
		if o != nil {
			o["gasUsed"] = "0x1"
		}
		return o, nil
	})
	s := newSet(t, Config{URLs: []string{liar.URL, sound.URL}})
	for range 20 {
		if _, found, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(5)); !found || err != nil {
			t.Fatalf("found %v, %v", found, err)
		}
	}
	if got := liar.Calls.Load(); got > 5 { // two round trips
		t.Errorf("the liar was asked %d times", got)
	}
}

func TestNodeComesUpLate(t *testing.T) {
	chain := testChain()
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes an address and gives it back
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	node := upstreamtest.Start(t, chain)
	for _, scheme := range []string{"http", "ws"} {
		t.Run(scheme, func(t *testing.T) {
			var logged syncBuffer
			s := newSet(t, Config{
				URLs: []string{scheme + "://" + addr + "/" + upstreamtest.Secret}, PollInterval: 5 * time.Millisecond,
				Logger: slog.New(slog.NewTextHandler(&logged, nil)),
			})
			run(t, s)
			eventually(t, func() bool { return strings.Contains(logged.String(), "upstream is down") })
			if _, _, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(5)); !errors.Is(err, ErrUnreachable) {
				t.Fatalf("got %v, want ErrUnreachable", err)
			}
			if err := s.Ready(); err == nil || !strings.Contains(err.Error(), "refused") {
				t.Errorf("ready: %v", err)
			}
			stop := forward(t, addr, node)
			eventually(t, func() bool { return s.Ready() == nil })
			if _, found, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(5)); !found || err != nil {
				t.Errorf("found %v, %v", found, err)
			}
			stop()
			eventually(t, func() bool { return s.Ready() != nil })
			if got := strings.Count(logged.String(), "upstream is down"); got != 2 {
				t.Errorf("%d lines for going down twice:\n%s", got, logged.String())
			}
			if strings.Contains(logged.String(), upstreamtest.Secret) {
				t.Errorf("the log shows the URL's secret:\n%s", logged.String())
			}
		})
	}
}

// forward lets connections to addr through to the node until stop is called.
func forward(t *testing.T, addr string, node *upstreamtest.Node) (stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	track := func(c net.Conn) net.Conn {
		mu.Lock()
		defer mu.Unlock()
		conns = append(conns, c)
		return c
	}
	copyAll := func(dst, src net.Conn) {
		buf := make([]byte, 32<<10)
		for {
			n, err := src.Read(buf)
			if _, werr := dst.Write(buf[:n]); err != nil || werr != nil {
				_ = dst.Close()
				_ = src.Close()
				return
			}
		}
	}
	all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", strings.TrimPrefix(node.URL[:strings.Index(node.URL, "/v3")], "http://"))
			if err != nil {
				t.Error(err)
				return
			}
			track(in)
			track(out)
			all.Go(func() { copyAll(out, in) })
			all.Go(func() { copyAll(in, out) })
		}
	})
	return func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		all.Wait()
	}
}
