package upstream

import (
	"bytes"
	"context"
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
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

var testChain = sync.OnceValue(func() upstreamtest.Chain { return upstreamtest.Generate(24, 24, "main") })

func newSet(t testing.TB, cfg Config) *Set {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func ctxFor(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func checkBlock(t testing.TB, got Block, want *types.Block) {
	t.Helper()
	if got.Header.Hash() != want.Hash() {
		t.Errorf("block %v, want %v", got.Header.Hash(), want.Hash())
	}
	if types.CalcUncleHash(got.Uncles) != want.UncleHash() || len(got.Uncles) != len(want.Uncles()) {
		t.Errorf("block %v: %d uncles that are not its own %d", want.Number(), len(got.Uncles), len(want.Uncles()))
	}
}

func TestBlock(t *testing.T) {
	chain := testChain()
	node := upstreamtest.Start(t, chain)
	for _, tt := range []struct{ name, url string }{{"http", node.URL}, {"websocket", node.WSURL}} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSet(t, Config{URLs: []string{tt.url}})
			for n, want := range chain {
				for _, sel := range []schema.Selector{schema.Number(uint64(n)), schema.BlockHash(schema.Hash(want.Hash()))} {
					got, found, err := s.Block(ctxFor(t, 10*time.Second), sel)
					if err != nil || !found {
						t.Fatalf("%v: found %v, %v", sel, found, err)
					}
					checkBlock(t, got, want)
					if got.Final {
						t.Errorf("%v is final on a chain without finality", sel)
					}
				}
			}
			if id, ok := s.ChainID(); !ok || id != upstreamtest.ChainID {
				t.Errorf("chain %d, %v", id, ok)
			}
		})
	}
}

func TestBlockIsOneRoundTrip(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	s := newSet(t, Config{URLs: []string{node.URL}})
	if _, _, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(1)); err != nil { // connects
		t.Fatal(err)
	}
	before := node.Requests.Load()
	if _, _, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(5)); err != nil {
		t.Fatal(err)
	}
	if got := node.Requests.Load() - before; got != 1 {
		t.Errorf("%d requests for a block with two uncles, want 1", got)
	}
}

func TestBlockByTag(t *testing.T) {
	chain := testChain()
	node := upstreamtest.Start(t, chain[:24]) // the head has two uncles
	s := newSet(t, Config{URLs: []string{node.URL}})
	ask := func(tag schema.Tag) (Block, bool) {
		t.Helper()
		b, found, err := s.Block(ctxFor(t, 10*time.Second), schema.Tagged(tag))
		if err != nil {
			t.Fatalf("%v: %v", tag, err)
		}
		return b, found
	}
	for _, tag := range []schema.Tag{schema.Pending, schema.Safe, schema.Finalized} {
		if _, found := ask(tag); found {
			t.Errorf("%v found where the node has none", tag)
		}
	}
	b, _ := ask(schema.Latest)
	checkBlock(t, b, chain[23])
	b, _ = ask(schema.Earliest)
	checkBlock(t, b, chain[0])
	node.SetFinalized(8)
	b, _ = ask(schema.Finalized)
	checkBlock(t, b, chain[8])
}

func TestBlockPending(t *testing.T) {
	chain := testChain()
	node := upstreamtest.Start(t, chain)
	// A node with a pending block: block 5 without what is not settled yet.
	proxy := upstreamtest.Start(t, chain)
	proxy.Handle(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		pendingProxy(t, w, r, node)
	})
	node.Falsify(func(_, block string, index int, object map[string]any) (map[string]any, error) {
		if block == "0x5" && index < 0 {
			object["hash"], object["nonce"], object["miner"] = nil, nil, nil
		}
		return object, nil
	})
	s := newSet(t, Config{URLs: []string{proxy.URL}})
	b, found, err := s.Block(ctxFor(t, 10*time.Second), schema.Tagged(schema.Pending))
	if err != nil || !found || b.Header != nil {
		t.Fatalf("found %v, header %v, %v", found, b.Header, err)
	}
	if types.CalcUncleHash(b.Uncles) != chain[5].UncleHash() {
		t.Errorf("%d uncles that are not those of the pending block", len(b.Uncles))
	}
}

// pendingProxy passes a request on with block 0x5 in place of the pending one.
func pendingProxy(t *testing.T, w http.ResponseWriter, r *http.Request, node *upstreamtest.Node) {
	var body bytes.Buffer
	if _, err := body.ReadFrom(r.Body); err != nil {
		t.Error(err)
	}
	req := strings.ReplaceAll(body.String(), `"pending"`, `"0x5"`)
	resp, err := http.Post(node.URL, "application/json", strings.NewReader(req))
	if err != nil {
		t.Error(err)
		return
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close() //nolint:errcheck // of a test's answer that was read
	body.Reset()
	if _, err := body.ReadFrom(resp.Body); err != nil {
		t.Error(err)
	}
	_, _ = w.Write(body.Bytes())
}

func TestBlockNotFound(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	other := upstreamtest.Start(t, testChain())
	s := newSet(t, Config{URLs: []string{node.URL, other.URL}})
	for _, sel := range []schema.Selector{schema.Number(99), schema.Number(1 << 62), schema.BlockHash(schema.Hash{1})} {
		if _, found, err := s.Block(ctxFor(t, 10*time.Second), sel); found || err != nil {
			t.Errorf("%v: found %v, %v", sel, found, err)
		}
	}
}

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

func run(t *testing.T, s *Set) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal("did not come true within 10 s")
		}
		time.Sleep(2 * time.Millisecond) // polls a condition
	}
}

func TestFinality(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	node.SetFinalized(8)
	s := newSet(t, Config{URLs: []string{node.URL}, PollInterval: 5 * time.Millisecond})
	run(t, s)
	eventually(t, func() bool { f, ok := s.Finalized(); return ok && f == 8 })
	if latest, ok := s.Latest(); !ok || latest != 24 {
		t.Errorf("latest %d, %v", latest, ok)
	}
	for n, want := range map[uint64]bool{0: true, 8: true, 9: false, 24: false} {
		b, _, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(n))
		if err != nil || b.Final != want {
			t.Errorf("block %d: final %v, want %v (%v)", n, b.Final, want, err)
		}
	}
	node.SetFinalized(16)
	eventually(t, func() bool { f, _ := s.Finalized(); return f == 16 })
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
		{"hung", whole(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }), ErrUnreachable},
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
			selectors := []schema.Selector{schema.Number(5), schema.BlockHash(schema.Hash(chain[5].Hash()))}
			if tt.name == anotherBlock {
				selectors = selectors[:1]
			}
			faulty, sound := upstreamtest.Start(t, chain), upstreamtest.Start(t, chain)
			tt.fault(faulty)
			cfg := Config{ChainID: upstreamtest.ChainID, MaxResponse: 256 << 10, CallTimeout: 300 * time.Millisecond}

			cfg.URLs = []string{faulty.URL}
			alone := newSet(t, cfg)
			for _, sel := range selectors {
				_, found, err := alone.Block(ctxFor(t, 500*time.Millisecond), sel)
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
				b, found, err := backed.Block(ctxFor(t, 5*time.Second), sel)
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

func TestLimits(t *testing.T) {
	node := upstreamtest.Start(t, testChain())
	s := newSet(t, Config{URLs: []string{node.URL}, InFlight: 2, Waiting: 3, Registerer: prometheus.NewRegistry()})
	if _, _, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(5)); err != nil {
		t.Fatal(err)
	}
	held := make(chan struct{})
	node.Handle(func(w http.ResponseWriter, r *http.Request, node http.Handler) {
		<-held
		node.ServeHTTP(w, r)
	})
	results := make(chan error, 5)
	for range cap(results) {
		go func() {
			_, _, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(5))
			results <- err
		}()
	}
	eventually(t, func() bool { return s.nodes[0].waiting.Load() == 3 && len(s.nodes[0].slots) == 2 })
	if _, _, err := s.Block(ctxFor(t, 10*time.Second), schema.Number(5)); !errors.Is(err, ErrOverloaded) {
		t.Errorf("beyond the limit: %v, want ErrOverloaded", err)
	}
	close(held)
	for range cap(results) {
		if err := <-results; err != nil {
			t.Errorf("within the limit: %v", err)
		}
	}
	lookups := s.nodes[0].metrics.lookups
	if found, refused := testutil.ToFloat64(lookups.WithLabelValues("found")), testutil.ToFloat64(lookups.WithLabelValues("overloaded")); found != 6 || refused != 1 {
		t.Errorf("counted %v found and %v overloaded, want 6 and 1", found, refused)
	}
}

func TestRegistersTwiceInTurn(t *testing.T) {
	reg := prometheus.NewRegistry()
	cfg := Config{URLs: []string{"http://127.0.0.1:1", "http://127.0.0.1:1/other-key"}, Registerer: reg}
	first := newSet(t, cfg)
	if _, err := New(cfg); err == nil {
		t.Error("the metrics of two sets were taken by one registry")
	}
	first.Close()
	newSet(t, cfg)
}

func BenchmarkBlock(b *testing.B) {
	node := upstreamtest.Start(b, testChain())
	s := newSet(b, Config{URLs: []string{node.URL}})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, found, err := s.Block(ctx, schema.Number(5)); err != nil || !found {
			b.Fatal(found, err)
		}
	}
}
