package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
	"github.com/gorilla/websocket"

	"github.com/ommer/ommer/workers/upstream"
)

// maxResponse bounds an answer. The largest asked for is a block with the hashes of its
// transactions.
const maxResponse = 8 << 20

// A node that refuses because it is asked too much is asked again, after a pause. Free
// plans of providers allow a few calls per second.
const (
	tries        = 3
	defaultPause = time.Second
)

// node is one that is being checked, by one goroutine.
type node struct {
	*Report
	url   string // has secrets
	scrub upstream.Scrubber
	said  func(what string)

	client *rpc.Client
	http   *http.Client // nil for WebSocket
	gzip   atomic.Bool  // an HTTP answer came compressed

	callTime, batchTime, pause time.Duration

	facts  facts
	blocks map[uint64]*block // those that were asked for by number
}

func newNode(r *Report, raw string, timeout time.Duration, said func(string)) *node {
	n := &node{
		Report: r, url: raw, scrub: upstream.NewScrubber(raw), said: said,
		callTime: timeout / 4,
		// Over WebSocket a refused batch may stay without an answer, as its error
		// names no call. There are four sizes to try.
		batchTime: timeout / 8,
		pause:     min(defaultPause, timeout/8),
		blocks:    make(map[uint64]*block),
	}
	r.Unknown, r.Untrue = make(map[string]string), []string{}
	if u, err := url.Parse(raw); err == nil {
		r.Transport = u.Scheme
	}
	return n
}

// check fills in the Report, as far as it comes in this time.
func (n *node) check(ctx context.Context, timeout time.Duration) {
	began := time.Now()
	defer func() { n.Seconds = math.Round(milliseconds(time.Since(began))) / 1000 }()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	n.said("connecting")
	if err := n.connect(ctx); err != nil {
		n.Error = err.Error()
		return
	}
	defer n.close()
	for _, part := range []struct {
		what string
		find func(context.Context)
	}{
		{"measuring the latency", n.findLatency},
		{"asking what it is", n.findIdentity},
		{"asking for its head", n.findHead},
		{"looking for its first block", n.findHistory},
		{"trying batches, and looking for uncles", n.findUncles},
		{"trying eth_subscribe", n.findSubscribe},
	} {
		n.said(part.what)
		part.find(ctx)
	}
	if n.http != nil {
		gzip := n.gzip.Load()
		n.Compression = &gzip
	}
}

// unknown records why a fact is missing.
func (n *node) unknown(fact string, err error) { n.Unknown[fact] = err.Error() }

// connect makes the client and has the node tell its chain.
func (n *node) connect(ctx context.Context) error {
	var options []rpc.ClientOption
	if strings.HasPrefix(n.Transport, "http") {
		n.http = upstream.NewHTTPClient(1, maxResponse)
		n.http.Transport = &observer{next: n.http.Transport, gzip: &n.gzip}
		options = []rpc.ClientOption{rpc.WithHTTPClient(n.http)}
	} else {
		options = []rpc.ClientOption{rpc.WithWebsocketMessageSizeLimit(maxResponse), rpc.WithWebsocketDialer(websocket.Dialer{
			Proxy: http.ProxyFromEnvironment, NetDialContext: dialUntil(ctx),
		})}
	}
	began := time.Now()
	dialing, cancel := context.WithTimeout(ctx, n.callTime)
	defer cancel()
	client, err := rpc.DialOptions(dialing, n.url, options...)
	if err != nil {
		return n.clean(err)
	}
	n.client = client
	if err := n.findChain(ctx); err != nil {
		n.close()
		return err
	}
	n.Latency = &Latency{FirstMS: milliseconds(time.Since(began))}
	return nil
}

// dialUntil makes connections that end with ctx. A handshake of gorilla/websocket v1.4
// looks at nothing but the deadline of its context, and would outlast Ctrl-C.
func dialUntil(ctx context.Context) func(context.Context, string, string) (net.Conn, error) {
	return func(dialing context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(dialing, network, addr)
		if err == nil {
			context.AfterFunc(ctx, func() { _ = conn.Close() })
		}
		return conn, err
	}
}

func (n *node) close() {
	n.client.Close()
	if n.http != nil {
		n.http.CloseIdleConnections()
	}
}

// refusal is an error of a call, clean of secrets, with the code that the node gave.
type refusal struct {
	error
	code int // 0: there was none
}

func (r refusal) Unwrap() error { return r.error }

// refused says that the node itself answered with an error.
func refused(err error) bool {
	r, ok := errors.AsType[refusal](err)
	return ok && r.code != 0
}

// absent says that the node does not have the method: JSON-RPC 2.0, and EIP-1474's
// "method not supported".
func absent(err error) bool {
	r, ok := errors.AsType[refusal](err)
	return ok && (r.code == -32601 || r.code == -32004)
}

// clean takes from an error what must not be seen of it.
func (n *node) clean(err error) error {
	r := refusal{error: n.scrub.CallError(err)}
	if said, ok := errors.AsType[rpc.Error](err); ok {
		r.code = said.ErrorCode()
	}
	if text := r.Error(); text != printable(text) {
		r.error = cleaned{text: printable(text), error: r.error}
	}
	return r
}

// cleaned is an error in other words.
type cleaned struct {
	text string
	error
}

func (c cleaned) Error() string { return c.text }
func (c cleaned) Unwrap() error { return c.error }

// call makes one call.
func (n *node) call(ctx context.Context, result any, method string, args ...any) error {
	return n.again(ctx, n.callTime, func(ctx context.Context) error {
		n.Calls++
		n.Requests++
		if err := n.client.CallContext(ctx, result, method, args...); err != nil {
			return n.clean(err)
		}
		return nil
	})
}

// batch sends a batch. Its error is about all of it, or that the node has had too much;
// those of the elements are left as they came.
func (n *node) batch(ctx context.Context, batch []rpc.BatchElem) error {
	return n.again(ctx, n.batchTime, func(ctx context.Context) error {
		n.Calls += len(batch)
		n.Requests++
		if err := n.client.BatchCallContext(ctx, batch); err != nil {
			return n.clean(err)
		}
		for i := range batch {
			if err := batch[i].Error; err != nil {
				if err = n.clean(err); errors.Is(err, upstream.ErrOverloaded) {
					return err // some providers count the calls, and refuse the last ones
				}
			}
		}
		return nil
	})
}

// again calls f until the node does not find itself overloaded.
func (n *node) again(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	for try := 1; ; try++ {
		err := within(ctx, limit, f)
		if ctx.Err() != nil && err != nil {
			return fmt.Errorf("%w: the time for the check is over", upstream.ErrUnreachable)
		}
		if try == tries || !errors.Is(err, upstream.ErrOverloaded) {
			return err
		}
		select {
		case <-time.After(time.Duration(try) * n.pause):
		case <-ctx.Done():
			return err
		}
	}
}

func within(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return f(ctx)
}

// observer sees whether answers come compressed.
type observer struct {
	next http.RoundTripper
	gzip *atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (o *observer) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.next.RoundTrip(r)
	if err == nil && resp.Uncompressed {
		o.gzip.Store(true)
	}
	return resp, err
}

// CloseIdleConnections lets http.Client's method of this name reach the transport.
func (o *observer) CloseIdleConnections() {
	if c, ok := o.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
