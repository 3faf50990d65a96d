//go:build e2e

package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// hugeAnswer is what a huge answer has, far more than a worker may read of it.
const hugeAnswer = 100 << 20

// chunk is written again and again.
var chunk = bytes.Repeat([]byte("a"), 64<<10)

// bomb is an answer of hugeAnswer bytes, compressed.
var bomb = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte(`[{"jsonrpc":"2.0","id":1,"result":"`))
	for n := 0; n < hugeAnswer && err == nil; n += len(chunk) {
		_, err = z.Write(chunk)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(err) // a buffer takes everything
	}
	return b.Bytes()
})

// fill writes chunks until size is reached or nobody reads on. Zero is no end.
func fill(w http.ResponseWriter, begin string, size int) {
	if _, err := w.Write([]byte(begin)); err != nil {
		return
	}
	for n := 0; size == 0 || n < size; n += len(chunk) {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

// instant sends something else than the answer.
func instant(contentType, body string) func(*liar, http.ResponseWriter, *http.Request, []byte) {
	return func(_ *liar, w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body)) // the worker may have gone
	}
}

// lieAnswers are about the form of answers, and the way they are sent.
func lieAnswers() []*lie {
	renumber := func(replies []reply) []reply {
		for i := range replies {
			replies[i].ID = fmt.Appendf(nil, "%d", 1_000_000+i)
		}
		return replies
	}
	return []*lie{
		{name: "other ids", kind: odd, mix: renumber},
		{name: "the ids of others in the batch", kind: word, // so that some null stands for the block
			bad: map[setup]string{liarFirst: same, liarSecond: same, liarHedged: same},
			mix: func(replies []reply) []reply {
				for i := range replies {
					k := len(replies) - 1 - i
					if i < k {
						replies[i].ID, replies[k].ID = replies[k].ID, replies[i].ID
					}
				}
				return replies
			}},
		{name: "a batch in another order", kind: odd, mix: func(replies []reply) []reply {
			slices.Reverse(replies)
			return replies
		}},
		{name: "more answers than calls", kind: strange, mix: func(replies []reply) []reply {
			return append(replies, renumber(slices.Clone(replies))...)
		}},
		{name: "two answers to each call, the second one null", kind: strange, mix: func(replies []reply) []reply {
			for _, r := range slices.Clone(replies) {
				r.nothing()
				replies = append(replies, r)
			}
			return replies
		}},
		{
			name: "two answers to each call, the first one null", kind: strange,
			bad: map[setup]string{liarAlone: "go-ethereum's client takes the first of them", liarFirst: first},
			mix: func(replies []reply) []reply {
				again := slices.Clone(replies)
				for i := range again {
					again[i].nothing()
				}
				return append(again, replies...)
			},
		},
		{name: "the last answer of a batch is missing", kind: strange, mix: func(replies []reply) []reply { return replies[:len(replies)-1] }},
		{name: "an empty batch", kind: odd, mix: func([]reply) []reply { return []reply{} }},
		{name: "a batch is refused by one error", kind: odd, send: func(_ *liar, w http.ResponseWriter, _ *http.Request, answer []byte) {
			if answer[0] == '[' {
				answer = []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches are not supported"}}`)
			}
			_, _ = w.Write(answer) // the worker may have gone
		}},
		{name: "JSON-RPC 1.0", kind: strange, tell: func(_ *liar, _ call, r *reply) { r.Version = "1.0" }},
		{name: "neither result nor error", kind: strange, tell: func(_ *liar, c call, r *reply) {
			if c.ofBlock() || c.ofUncle() {
				r.Result, r.Error = nil, nil
			}
		}},
		{name: "result and error", kind: strange, tell: func(_ *liar, c call, r *reply) {
			if c.ofBlock() || c.ofUncle() {
				result := r.Result
				r.fails(-32000, "no")
				r.Result = result
			}
		}},
		{name: "a number in place of each block", kind: broken, tell: ofBlocks(func(r *reply) { r.Result = json.RawMessage("1") })},
		{name: "HTML with status 200", kind: broken, send: instant("text/html", "<html><body>Just a moment...</body></html>")},
		{name: "nothing with status 200", kind: broken, send: instant("application/json", "")},
		{name: "JSON that ends early", kind: broken, send: func(_ *liar, w http.ResponseWriter, _ *http.Request, answer []byte) {
			_, _ = w.Write(answer[:len(answer)*2/3]) // the worker may have gone
		}},
		{name: "the connection ends early", kind: broken, send: func(_ *liar, w http.ResponseWriter, _ *http.Request, answer []byte) {
			w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
			_, _ = w.Write(answer[:len(answer)*2/3]) // the worker may have gone
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}},
		{name: "no answer", kind: broken, send: func(l *liar, _ http.ResponseWriter, r *http.Request, _ []byte) { l.wait(r.Context(), callTime) }},
		{name: "byte by byte", kind: broken, send: func(l *liar, w http.ResponseWriter, r *http.Request, answer []byte) {
			for i := range answer {
				if _, err := w.Write(answer[i : i+1]); err != nil || http.NewResponseController(w).Flush() != nil || !l.wait(r.Context(), 50*time.Millisecond) {
					return
				}
			}
		}},
		{name: "an answer of 100 MB", kind: broken, costly: true, send: func(_ *liar, w http.ResponseWriter, _ *http.Request, _ []byte) {
			fill(w, `[{"jsonrpc":"2.0","id":1,"result":"`, hugeAnswer)
		}},
		{name: "an answer without end", kind: broken, costly: true, send: func(_ *liar, w http.ResponseWriter, _ *http.Request, _ []byte) {
			fill(w, `[{"jsonrpc":"2.0","id":1,"result":"`, 0)
		}},
		{name: "blank space without end", kind: broken, costly: true, send: func(l *liar, w http.ResponseWriter, r *http.Request, _ []byte) {
			for {
				if _, err := w.Write([]byte(" ")); err != nil || http.NewResponseController(w).Flush() != nil || !l.wait(r.Context(), pollEvery) {
					return
				}
			}
		}},
		{name: "100 MB in 100 kB of gzip", kind: broken, costly: true, send: func(_ *liar, w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb()) // the worker may have gone
		}},
		{name: "gzip that is none", kind: broken, send: func(_ *liar, w http.ResponseWriter, _ *http.Request, answer []byte) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(answer) // the worker may have gone
		}},
		{name: "a redirection to another host", kind: broken, send: func(l *liar, w http.ResponseWriter, r *http.Request, _ []byte) {
			http.Redirect(w, r, l.stranger()+r.URL.Path, http.StatusTemporaryRedirect)
		}},
	}
}

// stranger is the URL of a host that has no business here: to be asked anything fails
// the test.
func (l *liar) stranger() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.elsewhere == nil {
		var once sync.Once
		l.elsewhere = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			once.Do(func() { l.tb.Errorf("a host was asked that the node has named: %s %s", r.Method, r.URL.Path) })
		}))
		l.tb.Cleanup(l.elsewhere.Close)
	}
	return l.elsewhere.URL
}

// lieFrames are about WebSockets.
func lieFrames() []*lie {
	write := func(ctx context.Context, conn *websocket.Conn, kind websocket.MessageType, texts ...[]byte) error {
		for _, text := range texts {
			if err := conn.Write(ctx, kind, text); err != nil {
				return err
			}
		}
		return nil
	}
	return []*lie{
		{name: "WebSocket: closed in the middle of a message", kind: broken, ws: true, frame: func(ctx context.Context, conn *websocket.Conn, answer []byte) error {
			w, err := conn.Writer(ctx, websocket.MessageText)
			if err == nil {
				_, err = w.Write(answer[:len(answer)/2])
			}
			if err != nil {
				return err
			}
			return conn.CloseNow()
		}},
		{name: "WebSocket: closed in place of an answer", kind: broken, ws: true, frame: func(_ context.Context, conn *websocket.Conn, _ []byte) error {
			return conn.Close(websocket.StatusTryAgainLater, "come again")
		}},
		{name: "WebSocket: binary messages", kind: odd, ws: true, frame: func(ctx context.Context, conn *websocket.Conn, answer []byte) error {
			return write(ctx, conn, websocket.MessageBinary, answer)
		}},
		{name: "WebSocket: notifications that nobody wants", kind: odd, ws: true, frame: func(ctx context.Context, conn *websocket.Conn, answer []byte) error {
			news := []byte(`{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x1","result":{"number":"0x1"}}}`)
			call := []byte(`{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`)
			return write(ctx, conn, websocket.MessageText, news, call, news, answer, news)
		}},
		{name: "WebSocket: a message that is no JSON", kind: broken, ws: true, frame: func(ctx context.Context, conn *websocket.Conn, answer []byte) error {
			return write(ctx, conn, websocket.MessageText, answer[:len(answer)/2])
		}},
		{name: "WebSocket: a message of 100 MB", kind: broken, ws: true, costly: true, frame: func(ctx context.Context, conn *websocket.Conn, _ []byte) error {
			w, err := conn.Writer(ctx, websocket.MessageText)
			for n := 0; n < hugeAnswer && err == nil; n += len(chunk) {
				_, err = w.Write(chunk)
			}
			return err
		}},
		{name: "WebSocket: no answer", kind: broken, ws: true, frame: func(context.Context, *websocket.Conn, []byte) error { return nil }},
	}
}
