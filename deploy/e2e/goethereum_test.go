//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/gorilla/websocket"
)

// dialRPC dials an edge with go-ethereum's client.
func (f *fleet) dialRPC(ctx context.Context, e *edge, scheme, key string) (*rpc.Client, error) {
	path := map[string]string{"https": "/v3/", "wss": "/ws/v3/"}[scheme]
	transport := &http.Transport{TLSClientConfig: f.tls(), MaxIdleConnsPerHost: 1}
	f.tb.Cleanup(transport.CloseIdleConnections)
	return rpc.DialOptions(ctx, scheme+"://"+e.named(f.tb)+path+key,
		rpc.WithHTTPClient(&http.Client{Transport: transport}),
		rpc.WithWebsocketDialer(websocket.Dialer{TLSClientConfig: f.tls()}))
}

// mustRPC is dialRPC until the test ends.
func (f *fleet) mustRPC(t *testing.T, e *edge, scheme, key string) *rpc.Client {
	t.Helper()
	c, err := f.dialRPC(t.Context(), e, scheme, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// lookUp asks for an uncle as a header, and for its hash, which the header has to
// have. It is nil for null.
func lookUp(ctx context.Context, c *rpc.Client, method string, block any, index int) (*types.Header, error) {
	var raw json.RawMessage
	if err := c.CallContext(ctx, &raw, method, block, hexutil.Uint(index)); err != nil {
		return nil, err
	}
	var header *types.Header
	var named *struct{ Hash string }
	if err := errors.Join(json.Unmarshal(raw, &header), json.Unmarshal(raw, &named)); err != nil || header == nil {
		return nil, err
	}
	if got := header.Hash().Hex(); got != named.Hash {
		return nil, fmt.Errorf("the header hashes to %s, hash is %s", got, named.Hash)
	}
	return header, nil
}

// TestGoEthereum looks up with go-ethereum's rpc.Client and ethclient.
func TestGoEthereum(t *testing.T) {
	_, with, without := sepolia(t)
	s := startStates(t, with[0])
	checks := 0
	for _, scheme := range []string{"https", "wss"} {
		c := s.mustRPC(t, s.main, scheme, s.key)
		t.Run(scheme+"/lookups", func(t *testing.T) { checks += rpcLookups(t, s, c, with, without) })
		t.Run(scheme+"/batch", func(t *testing.T) { checks += rpcBatch(t, c, with) })
		t.Run(scheme+"/many at a time", func(t *testing.T) { checks += rpcTogether(t, c, with) })
		checks += rpcRefusals(t, s, scheme, with[0])
	}
	for name, test := range map[string]func(*testing.T, *states){
		"https/wrong key": rpcWrongKeyHTTPS, "wss/wrong key": rpcWrongKeyWSS, "wss/revoked key": rpcRevokedKey,
		"over the rate": rpcOverRate,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
		checks++
	}
	t.Run("wss/too many in flight", func(t *testing.T) { rpcCrowded(t, s, with[0]) })
	t.Run("ethclient", func(t *testing.T) { checks += 1 + ethclientBlocks(t, s, with) })
	t.Logf("go-ethereum: %d checks", checks)
}

// wantHeader holds an answer to what is true.
func wantHeader(t *testing.T, q question, header *types.Header, err error) {
	t.Helper()
	hash, some := q.want()
	if err != nil || (header != nil) != some || some && header.Hash() != hash {
		t.Errorf("%v: got %v, %v", q, header, err)
	}
}

// rpcLookups asks one after the other, over one connection, for what there is and
// for what there is not.
func rpcLookups(t *testing.T, s *states, c *rpc.Client, with, without []block) (checks int) {
	head := newest(with, without)
	gone := unknown(head)
	qs := append(unclesOf(with[:50], false), unclesOf(with[:50], true)...)
	for _, b := range []*block{&with[0], &without[0], &gone} {
		qs = append(qs, question{b, len(b.uncles), false}, question{b, len(b.uncles), true})
	}
	before := s.main.mustMetric(t, "ommer_nio_accepted_total")
	for _, q := range qs {
		method, selector := byNumber, any(hexutil.Uint64(q.block.number))
		if q.byHash {
			method, selector = byHash, q.block.hash
		}
		h, err := lookUp(t.Context(), c, method, selector, q.index)
		wantHeader(t, q, h, err)
		checks++
	}
	for i := range len(head.uncles) + 1 {
		h, err := lookUp(t.Context(), c, byNumber, rpc.LatestBlockNumber, i)
		wantHeader(t, question{block: &head, index: i}, h, err)
		checks++
	}
	if opened := s.main.mustMetric(t, "ommer_nio_accepted_total") - before; opened > 1 {
		t.Errorf("%v connections for %d lookups", opened, checks)
	}
	return checks
}

// rpcBatch sends a batch with one wrong call in it.
func rpcBatch(t *testing.T, c *rpc.Client, with []block) (checks int) {
	qs := unclesOf(with[:50], true)
	headers := make([]*types.Header, len(qs))
	var batch []rpc.BatchElem
	for i, q := range qs {
		batch = append(batch, rpc.BatchElem{Method: byHash, Args: []any{q.block.hash, hexutil.Uint(q.index)}, Result: &headers[i]})
	}
	batch = append(batch, rpc.BatchElem{Method: byNumber, Args: []any{"3", "0x0"}, Result: new(any)})
	if err := c.BatchCallContext(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	for i, q := range qs {
		wantHeader(t, q, headers[i], batch[i].Error)
	}
	wantRPC(t, batch[len(qs)].Error, -32602, "invalid argument 0: hex string without 0x prefix")
	return len(batch)
}

// rpcTogether has many calls in flight.
func rpcTogether(t *testing.T, c *rpc.Client, with []block) (checks int) {
	qs := unclesOf(with[:50], false)
	headers, errs := make([]*types.Header, len(qs)), make([]error, len(qs))
	var all sync.WaitGroup
	for i, q := range qs {
		all.Go(func() {
			headers[i], errs[i] = lookUp(t.Context(), c, byNumber, hexutil.Uint64(q.block.number), q.index)
		})
	}
	all.Wait()
	for i, q := range qs {
		wantHeader(t, q, headers[i], errs[i])
	}
	return len(qs)
}

// rpcRefusals asks what is answered with an error.
func rpcRefusals(t *testing.T, s *states, scheme string, dropped block) (checks int) {
	for _, r := range []struct {
		name    string
		edge    *edge
		method  string
		block   any
		code    int
		message string
	}{
		{"wrong parameters", s.main, byNumber, "3", -32602, "invalid argument 0: hex string without 0x prefix"},
		{"unknown method", s.main, "eth_mining", "0x1", -32601, "the method eth_mining does not exist/is not available"},
		{"pruned history", s.pruned, byHash, dropped.hash, 4444, "pruned history unavailable"},
		{"no node in time", s.lost, byHash, dropped.hash, -32002, "request timed out"},
	} {
		t.Run(scheme+"/"+r.name, func(t *testing.T) {
			_, err := lookUp(t.Context(), s.mustRPC(t, r.edge, scheme, s.key), r.method, r.block, 0)
			wantRPC(t, err, r.code, r.message)
		})
		checks++
	}
	return checks
}

func rpcWrongKeyHTTPS(t *testing.T, s *states) {
	_, err := lookUp(t.Context(), s.mustRPC(t, s.main, "https", "wrong-key"), byNumber, "latest", 0)
	e, ok := errors.AsType[rpc.HTTPError](err)
	if !ok || e.StatusCode != http.StatusUnauthorized || !strings.Contains(string(e.Body), `"invalid API key"`) {
		t.Errorf("got %v, want an HTTPError with status 401 and what is wrong", err)
	}
}

func rpcWrongKeyWSS(t *testing.T, s *states) {
	if _, err := s.dialRPC(t.Context(), s.main, "wss", "wrong-key"); !unauthorized(err) {
		t.Errorf("got %v, want status 401", err)
	}
}

// unauthorized says whether a handshake was refused with 401. The status is in the
// text only.
func unauthorized(err error) bool {
	return errors.Is(err, websocket.ErrBadHandshake) && strings.Contains(err.Error(), "HTTP status 401")
}

// rpcRevokedKey goes on after its key is revoked: the client dials anew by itself,
// and says why that fails.
func rpcRevokedKey(t *testing.T, s *states) {
	key := s.createKey("short-lived")
	var c *rpc.Client
	eventually(t, soon, "the key to be good", func() (err error) {
		c, err = s.dialRPC(t.Context(), s.main, "wss", key)
		return err
	})
	t.Cleanup(c.Close)
	if _, stderr, code := s.keys("revoke", "short-lived"); code != 0 {
		t.Fatal(stderr)
	}
	eventually(t, soon, "the key to be refused", func() error {
		if _, err := lookUp(t.Context(), c, byNumber, "latest", 0); !unauthorized(err) {
			return fmt.Errorf("got %w, want status 401", err)
		}
		return nil
	})
}

// rpcOverRate asks after a batch that its key pays for.
func rpcOverRate(t *testing.T, s *states) {
	key := s.createKey("limited", "--rate", "1")
	https := s.mustRPC(t, s.main, "https", key)
	batch := make([]rpc.BatchElem, 100)
	for i := range batch {
		batch[i] = rpc.BatchElem{Method: byNumber, Args: []any{"latest", "0x0"}, Result: new(json.RawMessage)}
	}
	eventually(t, soon, "the key to be good", func() error { return https.BatchCallContext(t.Context(), batch) })

	_, err := lookUp(t.Context(), https, byNumber, "latest", 0)
	e, ok := errors.AsType[rpc.HTTPError](err)
	if !ok || e.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(e.Body), `"rate limit exceeded"`) {
		t.Errorf("got %v, want an HTTPError with status 429 and why", err)
	}
	_, err = lookUp(t.Context(), s.mustRPC(t, s.main, "wss", key), byNumber, "latest", 0)
	wantRPC(t, err, -32005, "rate limit exceeded")
	if d, ok := errors.AsType[rpc.DataError](err); !ok || !strings.Contains(fmt.Sprint(d.ErrorData()), "allowed_rps:1 ") {
		t.Errorf("got %v, want the rate in its data", err)
	}
}

// rpcCrowded asks twice where one may be in flight and none is answered. One is let
// in, whichever it is.
func rpcCrowded(t *testing.T, s *states, b block) {
	c := s.mustRPC(t, s.slow, "wss", s.key)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 2)
	for range cap(ended) {
		go func() {
			_, err := lookUp(ctx, c, byHash, b.hash, 0)
			ended <- err
		}()
	}
	wantRPC(t, <-ended, -32005, "too many requests in flight")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the other one: got %v, want that it waits", err)
	}
}

// wantRPC wants a JSON-RPC error as go-ethereum raises it.
func wantRPC(t *testing.T, err error, code int, message string) {
	t.Helper()
	e, ok := errors.AsType[rpc.Error](err)
	if !ok || e.ErrorCode() != code || e.Error() != message {
		t.Errorf("got %v, want error %d, %s", err, code, message)
	}
}

// ethclientBlocks gets blocks with ethclient.Client, which looks up the uncles of each
// in a batch and takes no block without them. Blocks come from a node, as they do
// where only uncles are sent to this service.
func ethclientBlocks(t *testing.T, s *states, with []block) (checks int) {
	node, edge := toward(t, startNode(t, "").url, nil), toward(t, "https://"+s.main.named(t)+"/v3/"+s.key, s.tls())
	both := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		to := node
		if bytes.Contains(body, []byte(byHash)) {
			to = edge
		}
		// The node serves no transactions; these blocks have none.
		body = bytes.Replace(body, []byte(",true]"), []byte(",false]"), 1)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		to.ServeHTTP(w, r)
	}))
	t.Cleanup(both.Close)
	c, err := ethclient.DialContext(t.Context(), both.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	for _, b := range with[:20] {
		got, err := c.BlockByNumber(t.Context(), new(big.Int).SetUint64(b.number))
		if err != nil {
			t.Errorf("block %d: %v", b.number, err)
			continue
		}
		if got.Hash() != b.hash || len(got.Uncles()) != len(b.uncles) || types.CalcUncleHash(got.Uncles()) != got.UncleHash() {
			t.Errorf("block %d: got %v with uncles that hash to %v, want %v and %v",
				b.number, got.Hash(), types.CalcUncleHash(got.Uncles()), b.hash, got.UncleHash())
		}
		checks++
	}
	return checks
}

// toward forwards whatever comes to one URL.
func toward(t *testing.T, to string, config *tls.Config) http.Handler {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: config}
	t.Cleanup(transport.CloseIdleConnections)
	return &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL, r.Out.Host = target, ""
	}}
}
