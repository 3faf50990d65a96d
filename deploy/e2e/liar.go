//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// liarSecret stands in the URLs of a liar as a provider's key does. It must be seen
// nowhere else.
const liarSecret = "0a1b2c3d4e5f-the-liars-key"

// liar stands before a node, over HTTP and WebSocket, and passes its answers on, but
// for one lie at a time.
type liar struct {
	url, wsURL string
	host       string // by which logs and metrics name it

	tb     testing.TB
	node   string // URL
	client *http.Client
	gone   chan struct{} // closed when the test ends

	mu        sync.Mutex
	lie       *lie             // nil: the truth
	elsewhere *httptest.Server // see stranger

	lookups atomic.Int64 // messages that asked for a block by number or hash
	heads   atomic.Int64 // messages about the head and others about no such block, answered
}

// startLiar stands before a node until the test ends. It says the truth until told
// otherwise.
func startLiar(tb testing.TB, node string) *liar {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	l := &liar{tb: tb, node: node, client: &http.Client{Transport: transport}, gone: make(chan struct{})}
	server := httptest.NewServer(l)
	tb.Cleanup(func() {
		close(l.gone)
		server.CloseClientConnections()
		server.Close()
		transport.CloseIdleConnections()
	})
	l.host = strings.TrimPrefix(server.URL, "http://")
	l.url = server.URL + "/v3/" + liarSecret
	l.wsURL = "ws" + strings.TrimPrefix(l.url, "http")
	return l
}

// begin has it tell a lie from now on.
func (l *liar) begin(lie *lie) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lie = lie
}

func (l *liar) current() *lie {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lie == nil {
		return new(lie)
	}
	return l.lie
}

// call is what a worker asks for.
type call struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

// block is the number, tag or hash that the call is about, empty if none.
func (c call) block() (block string) {
	if len(c.Params) > 0 {
		_ = json.Unmarshal(c.Params[0], &block) // empty if it is none
	}
	return block
}

// number is the number of the block that the call is about, false if it names none.
func (c call) number() (uint64, bool) {
	block := c.block()
	n, err := strconv.ParseUint(strings.TrimPrefix(block, "0x"), 16, 64)
	return n, err == nil && len(block) < len("0x")+64
}

func (c call) ofUncle() bool { return strings.HasPrefix(c.Method, "eth_getUncleByBlock") }
func (c call) ofBlock() bool { return strings.HasPrefix(c.Method, "eth_getBlockBy") }
func (c call) byHash() bool  { return strings.Contains(c.Method, "Hash") }

// index is that of the uncle, -1 if the call is about none.
func (c call) index() int {
	var text string
	if !c.ofUncle() || len(c.Params) < 2 || json.Unmarshal(c.Params[1], &text) != nil {
		return -1
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(text, "0x"), 16, 31)
	if err != nil {
		return -1
	}
	return int(n)
}

// reply is what is said to a call. Its members stand as they are sent.
type reply struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// fails makes an error of it.
func (r *reply) fails(code int, message string) {
	r.Result, r.Error = nil, fmt.Appendf(nil, `{"code":%d,"message":%q}`, code, message)
}

// nothing makes null of it.
func (r *reply) nothing() { r.Result, r.Error = json.RawMessage("null"), nil }

// object is the block or uncle that it tells of, nil if none.
func (r *reply) object() (members map[string]json.RawMessage) {
	_ = json.Unmarshal(r.Result, &members) // nil if it is none
	return members
}

func (r *reply) say(members map[string]json.RawMessage) {
	r.Result, _ = json.Marshal(members) // of raw messages that were decoded or are our own
}

// ServeHTTP answers one message, or those of a WebSocket.
func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		l.serveWS(w, r)
		return
	}
	message, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	lie := l.current()
	answer := l.answer(r.Context(), lie, message)
	w.Header().Set("Content-Type", "application/json")
	if lie.send != nil {
		lie.send(l, w, r, answer)
		return
	}
	_, _ = w.Write(answer) // the worker may have gone
}

func (l *liar) serveWS(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow() //nolint:errcheck // it may have ended
	conn.SetReadLimit(maxMessage)
	ctx, cancel := context.WithCancel(context.Background()) // that of the request ends with the upgrade
	defer cancel()
	context.AfterFunc(ctx, func() { _ = conn.CloseNow() })
	go func() {
		select {
		case <-l.gone:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		_, message, err := conn.Read(ctx)
		if err != nil {
			return
		}
		lie := l.current()
		answer := l.answer(ctx, lie, message)
		send := conn.Write
		if lie.frame != nil {
			send = func(ctx context.Context, _ websocket.MessageType, answer []byte) error {
				return lie.frame(ctx, conn, answer)
			}
		}
		if send(ctx, websocket.MessageText, answer) != nil {
			return
		}
	}
}

// answer is the node's answer to a message, with the lie.
func (l *liar) answer(ctx context.Context, lie *lie, message []byte) []byte {
	calls, batch := readCalls(message)
	lookup := false
	for _, c := range calls {
		_, numbered := c.number()
		lookup = lookup || (c.ofBlock() || c.ofUncle()) && (numbered || len(c.block()) == len("0x")+64)
	}
	if lookup {
		l.lookups.Add(1)
		if lie.slow > 0 && !l.wait(ctx, lie.slow) {
			return nil
		}
	} else {
		defer l.heads.Add(1)
	}
	replies := l.truth(ctx, calls)
	if lie.tell != nil {
		for i := range replies {
			lie.tell(l, calls[i], &replies[i])
		}
	}
	if batch && lie.mix != nil {
		replies = lie.mix(replies)
	}
	var answer []byte
	if batch {
		answer, _ = json.Marshal(replies) // of raw messages that were decoded or are our own
	} else if len(replies) == 1 {
		answer, _ = json.Marshal(replies[0]) // likewise
	}
	return answer
}

func readCalls(message []byte) (calls []call, batch bool) {
	if json.Unmarshal(message, &calls) == nil {
		return calls, true
	}
	calls = make([]call, 1)
	_ = json.Unmarshal(message, &calls[0]) // the node will say what is wrong with it
	return calls, false
}

// truth is what the node answers.
func (l *liar) truth(ctx context.Context, calls []call) []reply {
	if len(calls) == 0 {
		return nil
	}
	type versioned struct {
		Version string `json:"jsonrpc"`
		call
	}
	batch := make([]versioned, len(calls))
	for i, c := range calls {
		batch[i] = versioned{"2.0", c}
	}
	replies, err := l.ask(ctx, batch)
	if err != nil || len(replies) != len(calls) {
		if ctx.Err() == nil {
			select {
			case <-l.gone:
			default:
				l.tb.Errorf("the node answers %d of %d calls: %v", len(replies), len(calls), err)
			}
		}
		return make([]reply, len(calls))
	}
	return replies
}

func (l *liar) ask(ctx context.Context, batch any) (replies []reply, err error) {
	message, err := json.Marshal(batch)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.node, bytes.NewReader(message))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	return replies, json.NewDecoder(resp.Body).Decode(&replies)
}

// instead makes a reply what the node answers to another call.
func (l *liar) instead(r *reply, method string, params ...any) {
	c := call{ID: r.ID, Method: method}
	for _, p := range params {
		raw, _ := json.Marshal(p) // strings and numbers
		c.Params = append(c.Params, raw)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	*r = l.truth(ctx, []call{c})[0]
}

// wait lets time pass, or returns false as soon as nobody waits for the answer.
func (l *liar) wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
	case <-l.gone:
	}
	return false
}
