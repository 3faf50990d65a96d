package check

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/ommer/ommer/workers/upstream/upstreamtest"
)

func TestFaultyNodes(t *testing.T) {
	chain := testChain()
	// The first block with a body to miss.
	const first = 14
	reply := func(status int, body string) func(*upstreamtest.Node) {
		return func(n *upstreamtest.Node) {
			n.Handle(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			})
		}
	}
	blocks := func(f func(block string, index int, object map[string]any) (map[string]any, error)) func(*upstreamtest.Node) {
		return func(n *upstreamtest.Node) {
			n.Falsify(func(_, block string, index int, object map[string]any) (map[string]any, error) {
				return f(block, index, object)
			})
		}
	}
	// dropped makes a node that has dropped the blocks below first.
	dropped := func(f func(index int, object map[string]any) (map[string]any, error)) func(*upstreamtest.Node) {
		return blocks(func(block string, index int, object map[string]any) (map[string]any, error) {
			if below(first, block) {
				return f(index, object)
			}
			return object, nil
		})
	}
	edit := func(uncle bool, f func(object map[string]any)) func(*upstreamtest.Node) {
		return blocks(func(_ string, index int, object map[string]any) (map[string]any, error) {
			if object != nil && (index >= 0) == uncle {
				f(object)
			}
			return object, nil
		})
	}
	batches := func(upTo int, refuse func(calls []call) string) func(*upstreamtest.Node) {
		return func(n *upstreamtest.Node) {
			intercept(n, func(calls []call, batch bool) string {
				if batch && len(calls) > upTo {
					return refuse(calls)
				}
				return ""
			})
		}
	}
	without := func(method string) func(*upstreamtest.Node) {
		return func(n *upstreamtest.Node) {
			intercept(n, func(calls []call, batch bool) string {
				if calls[0].Method != method || batch {
					return ""
				}
				return calls[0].refused(-32601, "the method "+method+" does not exist/is not available")
			})
		}
	}
	wantFrom := func(r *Report) bool { return r.History.From == first && !r.History.All }
	for _, tt := range []struct {
		name  string
		fault func(n *upstreamtest.Node)
		want  Lookups
		words string // part of the words, the advice or what is untrue
		holds func(r *Report) bool
	}{
		{"pruned, by code", dropped(func(int, map[string]any) (map[string]any, error) {
			return nil, &upstreamtest.Error{Code: 4444, Message: "pruned history unavailable"}
		}), Part, "archive of the blocks below 14", wantFrom},
		{"pruned, by text", dropped(func(int, map[string]any) (map[string]any, error) {
			return nil, &upstreamtest.Error{Code: -32000, Message: "old data not available due to pruning"}
		}), Part, "holds blocks from 14 on", wantFrom},
		{"pruned, by null", dropped(func(int, map[string]any) (map[string]any, error) { return nil, nil }),
			Part, "ommer archive build --help", wantFrom},
		{"headers without bodies", dropped(func(index int, object map[string]any) (map[string]any, error) {
			if index >= 0 {
				return nil, nil
			}
			object["uncles"] = []string{}
			return object, nil
			// Block 12 has an empty body, which is no body to miss; below it 11 has two uncles.
		}), Part, "holds blocks from", func(r *Report) bool { return r.History.From == first }},
		{"headers alone", blocks(func(_ string, index int, object map[string]any) (map[string]any, error) {
			if index >= 0 {
				return nil, nil
			}
			object["uncles"] = []string{}
			return object, nil
		}), None, "holds back the uncles of block", func(r *Report) bool { return r.History == nil }},
		{"no uncles for a block that has them", blocks(func(_ string, index int, object map[string]any) (map[string]any, error) {
			if index >= 0 {
				return nil, nil
			}
			return object, nil
		}), None, "holds back the uncles of block", func(r *Report) bool { return r.Uncles.ByHash == Withheld }},
		{"only the first uncle", blocks(func(block string, index int, object map[string]any) (map[string]any, error) {
			if index == 1 {
				return nil, nil
			}
			return object, nil
		}), None, "holds back", func(r *Report) bool { return r.Uncles.ByNumber == Withheld }},
		{"false uncle", edit(true, func(o map[string]any) { o["extraData"] = "0x00" }), None, "the header commits to",
			func(r *Report) bool {
				return r.Uncles.ByNumber == False && r.Uncles.ByHash == False && len(r.Untrue) == 2
			}},
		{"unreadable uncle", edit(true, func(o map[string]any) { o["nonce"] = "0x0" }), Part, "cannot be read",
			func(r *Report) bool { return r.Uncles.ByNumber == Failed }},
		{"wrong hash", edit(false, func(o map[string]any) { o["gasUsed"] = "0x1" }), None, "its hash is said to be",
			func(r *Report) bool { return len(r.Untrue) == maxUntrue }},
		{"another block in its place", func(n *upstreamtest.Node) {
			shifted := append(upstreamtest.Chain{}, chain...)
			shifted[1] = chain[2]
			n.SetChain(shifted)
		}, None, "block 2 in place of block 1", nil},
		{"header with a new field", edit(false, func(o map[string]any) { o["gasUsed"], o["fieldOfTheFuture"] = "0x1", "0x1" }),
			Part, `"fieldOfTheFuture"`, func(r *Report) bool { return len(r.Untrue) == 0 }},
		{"counts uncles where none are", func(n *upstreamtest.Node) {
			n.SetChain(chain[:3])
			intercept(n, func(calls []call, batch bool) string {
				if !batch {
					return ""
				}
				var list []string
				for _, c := range calls {
					list = append(list, c.result(`"0x1"`))
				}
				return "[" + strings.Join(list, ",") + "]"
			})
		}, None, "whose header commits to none", nil},
		{"not the chain that it names", func(n *upstreamtest.Node) { n.SetChainID(1) }, None, "whose genesis block is 0xd4e567",
			func(r *Report) bool { return r.Chain.Name == "mainnet" && r.Uncles.ByNumber == Verified }},

		{"no batches: one error", batches(0, func([]call) string {
			return `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batches are not allowed"}}`
		}), None, "a lookup is one batch of 3 calls", func(r *Report) bool { return *r.Batch == 0 && r.Uncles.ByNumber == Verified }},
		{"batches of 10, as geth refuses more", batches(10, func(calls []call) string {
			return "[" + calls[0].refused(-32600, "batch too large") + "]"
		}), All, "takes batches of 64 calls", func(r *Report) bool { return *r.Batch == 10 && r.Unknown["batch"] == "" }},

		{"no method by number", without("eth_getUncleByBlockNumberAndIndex"), None, "does not have eth_getUncleByBlockNumberAndIndex",
			func(r *Report) bool { return r.Uncles.ByNumber == Absent && r.Uncles.ByHash == Verified }},
		{"no method by hash", without("eth_getUncleByBlockHashAndIndex"), None, "does not have eth_getUncleByBlockHashAndIndex", nil},
		{"syncing", func(n *upstreamtest.Node) {
			results(n, map[string]string{"eth_syncing": `{"startingBlock":"0x0","currentBlock":"0x5","highestBlock":"0x9"}`})
		}, Part, "still syncing", func(r *Report) bool { return *r.Syncing }},
		{"no uncles in its blocks", func(n *upstreamtest.Node) { n.SetChain(chain[:3]) }, All, "no block with uncles found in 2 samples",
			func(r *Report) bool {
				return r.Uncles.ByNumber == Answered && r.Uncles.ByHash == Answered && r.Uncles.Block == nil
			}},
		{"nothing but a genesis block", func(n *upstreamtest.Node) { n.SetChain(chain[:1]) }, All, "no block with uncles", nil},
		{"state at an old block", func(n *upstreamtest.Node) { results(n, map[string]string{"eth_getBalance": `"0x1"`}) },
			All, "All", func(r *Report) bool { return r.State.Held && r.State.Block == 1 }},
		{"no state at an old block", func(n *upstreamtest.Node) {
			intercept(n, func(calls []call, _ bool) string {
				if calls[0].Method == "eth_getBalance" {
					return calls[0].refused(-32000, "missing trie node")
				}
				return ""
			})
		}, All, "All", func(r *Report) bool { return !r.State.Held }},
		{"a name that draws on the terminal", func(n *upstreamtest.Node) {
			results(n, map[string]string{"web3_clientVersion": `"Geth/\u001b[2J\u009b1m\u202e` + upstreamtest.Secret + strings.Repeat("x", 500) + `"`})
		}, All, "All", func(r *Report) bool { return strings.HasPrefix(*r.Client, "Geth/") && len(*r.Client) < 2*maxClient }},

		{"status 401 with the key", reply(401, "no such key: "+upstreamtest.Secret), None, "Is the key in the URL right", nil},
		{"status 403 with the key", reply(403, upstreamtest.Secret), None, "HTTP status 403", nil},
		{"status 404", reply(404, "not here"), None, "with its whole path", nil},
		{"status 500", reply(500, upstreamtest.Secret), None, "cannot be reached", nil},
		{"HTML", reply(200, "<html>"+upstreamtest.Secret), None, "not JSON-RPC", nil},
		{"JSON of another kind", reply(200, `"`+upstreamtest.Secret+`"`), None, "not JSON-RPC", nil},
		{"an error with the key", reply(200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"\u202ebad\u009b key `+upstreamtest.Secret+`"}}`), None, "?bad? key ***", nil},
		{"no chain ID", func(n *upstreamtest.Node) { n.SetChainID(0) }, None, "0 is no chain ID", nil},
		{"redirects", func(n *upstreamtest.Node) {
			n.Handle(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
				http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
			})
		}, None, "redirections are not followed", nil},
		{"cuts the connection", func(n *upstreamtest.Node) {
			n.Handle(func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) })
		}, None, "cannot be reached", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			node := upstreamtest.Start(t, chain)
			tt.fault(node)
			r := check(t, soon, node.URL)[0]
			text := strings.Join(append(append([]string{r.Words}, r.Advice...), r.Untrue...), "\n")
			if r.Lookups != tt.want || !strings.Contains(text, tt.words) {
				t.Errorf("lookups: %s, want %s and %q; %s", r.Lookups, tt.want, tt.words, text)
			}
			if tt.holds != nil && !tt.holds(&r) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestRefusedBatchOverWebSocket has a node refuse batches by an error that names no call,
// so that go-ethereum's client waits for an answer until its time is over.
func TestRefusedBatchOverWebSocket(t *testing.T) {
	t.Parallel()
	node := upstreamtest.Start(t, testChain())
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := new(websocket.Upgrader).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		for {
			_, message, err := conn.ReadMessage()
			if err != nil {
				return
			}
			answer := []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no batches here"}}`)
			if message[0] != '[' {
				answer = post(t, node.URL, message)
			}
			if err := conn.WriteMessage(websocket.TextMessage, answer); err != nil {
				return
			}
		}
	}))
	defer gateway.Close()
	r := check(t, shortly, "ws"+strings.TrimPrefix(gateway.URL, "http"))[0]
	if r.Batch == nil || *r.Batch != 0 || r.Lookups != None || r.Uncles.ByHash != Verified {
		t.Errorf("%s\n%+v", r.Words, r)
	}
}

// post asks a node and returns its answer.
func post(t *testing.T, url string, message []byte) []byte {
	resp, err := http.Post(url, "application/json", bytes.NewReader(message))
	if err != nil {
		t.Error(err)
		return nil
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return answer
}
