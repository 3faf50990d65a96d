//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// startPruned stands before a node as if it had dropped some blocks: it answers
// every call about one of them as go-ethereum does where history was pruned
// (core/history, EIP-4444). It returns its URL.
func startPruned(tb testing.TB, n *node, dropped ...block) string {
	tb.Helper()
	target, err := url.Parse(n.url)
	if err != nil {
		tb.Fatal(err)
	}
	selectors := map[string]bool{}
	for _, b := range dropped {
		selectors[fmt.Sprintf("%#x", b.number)] = true
		selectors[b.hash.Hex()] = true
	}
	transport := &http.Transport{}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = transport
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if answers := prunedAnswers(body, selectors); answers != nil {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(answers) // the worker may have gone
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	tb.Cleanup(func() {
		server.Close()
		transport.CloseIdleConnections()
	})
	return server.URL
}

// prunedAnswers answers a batch that is about a dropped block. It is nil for any
// other message.
func prunedAnswers(body []byte, dropped map[string]bool) []byte {
	var calls []struct {
		ID     json.RawMessage `json:"id"`
		Params []any           `json:"params"`
	}
	if json.Unmarshal(body, &calls) != nil {
		return nil // a single call: workers send those about the node only
	}
	answers := []byte{'['}
	for i, c := range calls {
		selector, _ := append(c.Params, "")[0].(string)
		if !dropped[selector] {
			return nil
		}
		if i > 0 {
			answers = append(answers, ',')
		}
		answers = fmt.Appendf(answers, `{"jsonrpc":"2.0","id":%s,"error":{"code":4444,"message":"pruned history unavailable"}}`, c.ID)
	}
	return append(answers, ']')
}
