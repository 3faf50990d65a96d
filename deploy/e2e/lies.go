//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// kind is what a lie must lead to, besides that no caller gets something false.
type kind string

const (
	untrue  kind = "untrue"  // it contradicts itself or the question: counted as such, logged, the node set aside
	broken  kind = "broken"  // no answer that could be used: counted, logged, the node set aside
	full    kind = "full"    // the node refuses more: -32005 from it alone, set aside
	pruned  kind = "pruned"  // the node has not the block any more: 4444 from it alone
	strange kind = "strange" // unusual: right or an error
	odd     kind = "odd"     // unusual, but true: the right answer from it alone
	word    kind = "word"    // nothing in it is false by itself: from it alone it is believed
)

// lie is one way in which a node can answer what it should not.
type lie struct {
	name string
	kind kind
	// ws has the node asked over WebSocket.
	ws bool
	// before has the lie told before the worker first asks, since it is about what
	// workers ask for by themselves.
	before bool
	// costly lies are asked for few blocks.
	costly bool
	// slow is how long lookups take, answers to what is asked in the background do not.
	slow time.Duration
	// bad says where, as of now, callers get something else than they should, and
	// why. It is logged, and does not fail the test.
	bad map[setup]string

	tell  func(l *liar, c call, r *reply)                                      // changes an answer
	mix   func([]reply) []reply                                                // changes those of a batch
	send  func(l *liar, w http.ResponseWriter, r *http.Request, answer []byte) // sends them in its own way
	frame func(ctx context.Context, conn *websocket.Conn, answer []byte) error // likewise over WebSocket
}

// headerFields are the members of a block object that its hash is made of.
var headerFields = []string{
	"parentHash", "sha3Uncles", "miner", "stateRoot", "transactionsRoot", "receiptsRoot", "logsBloom", "difficulty", "number",
	"gasLimit", "gasUsed", "timestamp", "extraData", "mixHash", "nonce", "baseFeePerGas",
}

// inTurn changes one member of each object it is given: each time the next one.
func inTurn(change func(members map[string]json.RawMessage, name string)) func(*reply) {
	var told atomic.Uint64
	return func(r *reply) {
		members := r.object()
		for members != nil {
			name := headerFields[(told.Add(1)-1)%uint64(len(headerFields))]
			if _, ok := members[name]; ok {
				change(members, name)
				r.say(members)
				return
			}
		}
	}
}

// another changes the last digit of a value, so that it keeps its form.
func another(members map[string]json.RawMessage, name string) {
	text := strings.Trim(string(members[name]), `"`)
	last := "1"
	if strings.HasSuffix(text, "1") {
		last = "2"
	}
	if text == "0x" { // no extra data
		members[name] = json.RawMessage(`"0x00"`)
		return
	}
	members[name] = json.RawMessage(`"` + text[:len(text)-1] + last + `"`)
}

func without(members map[string]json.RawMessage, name string) { delete(members, name) }

// rehash gives a block object the hash that its fields have.
func rehash(members map[string]json.RawMessage) {
	raw, err := json.Marshal(members)
	var h types.Header
	if err == nil {
		err = json.Unmarshal(raw, &h)
	}
	if err != nil {
		panic(fmt.Sprintf("a header that cannot be read: %v", err)) // it was made here
	}
	members["hash"], _ = json.Marshal(h.Hash()) // a hash always has a form
}

// ofUncles tells a lie in place of each uncle that there is.
func ofUncles(change func(*reply)) func(*liar, call, *reply) {
	return func(_ *liar, c call, r *reply) {
		if c.ofUncle() && r.object() != nil {
			change(r)
		}
	}
}

// ofBlocks tells a lie in place of each block that there is, and that was asked for
// by number or hash.
func ofBlocks(change func(*reply)) func(*liar, call, *reply) {
	return func(_ *liar, c call, r *reply) {
		if _, numbered := c.number(); c.ofBlock() && (numbered || c.byHash()) && r.object() != nil {
			change(r)
		}
	}
}

// Reasons why callers get, as of now, something else than they should; see lie.bad.
const (
	first = "until the others have told of theirs, safe and finalized are the first node's word"
	same  = "an uncle of the same number is a block that proves itself, from whoever is asked"
	race  = "the chain is that of the node that answers first, not of the first in the list"
)

// lies are all of them, new ones each time. other is the branch: blocks that are as
// good as those of the chain, but for not being in it.
func lies(other []*types.Block) []*lie {
	return slices.Concat(lieUncles(), lieBlocks(other), lieHeads(), lieRefusals(), lieAnswers(), lieFrames())
}

// lieUncles are about the uncles of blocks.
func lieUncles() []*lie {
	uncle := func(r *reply, l *liar, block string, index int) {
		method := byNumber
		if len(block) == len("0x")+64 {
			method = byHash
		}
		l.instead(r, method, block, hexutil.EncodeUint64(uint64(index)))
	}
	return []*lie{
		{name: "an uncle's field is another, each in turn", kind: untrue, tell: ofUncles(inTurn(another))},
		{name: "the same over WebSocket", kind: untrue, ws: true, tell: ofUncles(inTurn(another))},
		{name: "an uncle's field is missing, each in turn", kind: untrue, tell: ofUncles(inTurn(without))},
		{name: "an uncle of another block", kind: untrue, tell: func(l *liar, c call, r *reply) {
			if c.ofUncle() && r.object() != nil {
				uncle(r, l, "0xb", 0)
			}
		}},
		{name: "an uncle where there is none", kind: strange, tell: func(l *liar, c call, r *reply) {
			if c.ofUncle() && r.object() == nil {
				uncle(r, l, "0xb", 0)
			}
		}},
		{name: "uncles 0 and 1 the wrong way round", kind: untrue, tell: func(l *liar, c call, r *reply) {
			if c.ofUncle() && c.index() <= 1 {
				uncle(r, l, c.block(), 1-c.index())
			}
		}},
		{name: "uncle 0 twice", kind: untrue, tell: func(l *liar, c call, r *reply) {
			if c.ofUncle() && c.index() == 1 {
				uncle(r, l, c.block(), 0)
			}
		}},
		{name: "null for every uncle", kind: pruned, tell: ofUncles((*reply).nothing)},
		{name: "null for uncle 0", kind: strange, tell: func(_ *liar, c call, r *reply) {
			if c.index() == 0 {
				r.nothing()
			}
		}},
		{name: "the second uncle is missing everywhere", kind: untrue, tell: func(_ *liar, c call, r *reply) {
			members := r.object()
			var uncles []string
			switch {
			case c.index() == 1:
				r.nothing()
			case c.ofBlock() && json.Unmarshal(members["uncles"], &uncles) == nil && len(uncles) == 2:
				members["uncles"], _ = json.Marshal(uncles[:1]) // strings
				r.say(members)
			}
		}},
	}
}

// lieBlocks are about the blocks that have them.
func lieBlocks(other []*types.Block) []*lie {
	// branch answers calls by number from the branch, where it has such a block.
	branch := func(l *liar, c call, r *reply) {
		n, numbered := c.number()
		if !numbered || n <= lastShared || n >= merge {
			return
		}
		switch hash := other[n].Hash().Hex(); {
		case c.ofUncle():
			l.instead(r, byHash, hash, hexutil.EncodeUint64(uint64(c.index())))
		case c.ofBlock():
			l.instead(r, "eth_getBlockByHash", hash, false)
		}
	}
	const (
		outvoted = "nothing of it is false by itself, and nodes are not compared"
	)
	return []*lie{
		{name: "a block's field is another, each in turn", kind: untrue, tell: ofBlocks(inTurn(another))},
		{name: "a block's field is missing, each in turn", kind: untrue, tell: ofBlocks(inTurn(without))},
		{name: "a block's field and its hash are others", kind: strange, tell: ofBlocks(func(r *reply) {
			members := r.object()
			another(members, "extraData")
			rehash(members)
			r.say(members)
		})},
		{name: "no uncles, and a hash that fits", kind: word, bad: map[setup]string{liarFirst: outvoted}, tell: func(l *liar, c call, r *reply) {
			ofUncles((*reply).nothing)(l, c, r)
			ofBlocks(func(r *reply) {
				members := r.object()
				members["sha3Uncles"], _ = json.Marshal(types.EmptyUncleHash) // a hash always has a form
				members["uncles"] = json.RawMessage("[]")
				rehash(members)
				r.say(members)
			})(l, c, r)
		}},
		{name: "a block of another branch for its number", kind: word, bad: map[setup]string{liarFirst: outvoted}, tell: branch},
		{name: "a block of another number", kind: untrue, tell: func(l *liar, c call, r *reply) {
			if _, numbered := c.number(); numbered || c.byHash() {
				switch {
				case c.ofBlock() && r.object() != nil:
					l.instead(r, "eth_getBlockByNumber", "0xb", false)
				case c.ofUncle():
					l.instead(r, byNumber, "0xb", hexutil.EncodeUint64(uint64(c.index())))
				}
			}
		}},
		{name: "null for every block", kind: word, tell: func(l *liar, c call, r *reply) {
			ofBlocks((*reply).nothing)(l, c, r)
			ofUncles((*reply).nothing)(l, c, r)
		}},
		{name: "null for every block by hash", kind: word, tell: func(_ *liar, c call, r *reply) {
			if c.byHash() {
				r.nothing()
			}
		}},
		{
			name: "null for a block, but not for its uncles", kind: broken,
			tell: ofBlocks((*reply).nothing),
		},
		{
			name: "another chain, all of a sudden", kind: word,
			bad: map[setup]string{liarFirst: "the chain is asked for again with each new head, and each 5 s"},
			tell: func(l *liar, c call, r *reply) {
				if c.Method == "eth_chainId" {
					r.Result = json.RawMessage(`"0x53a"`)
				}
				branch(l, c, r)
			},
		},
		{
			name: "another chain from the start", kind: word, before: true,
			bad: map[setup]string{liarFirst: race, liarSecond: race, liarHedged: race},
			tell: func(l *liar, c call, r *reply) {
				if c.Method == "eth_chainId" {
					r.Result = json.RawMessage(`"0x53a"`)
				}
				branch(l, c, r)
			},
		},
	}
}

// lieHeads are about the head of the chain. The node says one thing of it wherever it
// can be asked for it.
func lieHeads() []*lie {
	const far = "0x10000000000" // 2^40
	number := func(c call, r *reply, value string) bool {
		if c.Method == "eth_blockNumber" {
			r.Result = json.RawMessage(`"` + value + `"`)
			return true
		}
		return false
	}
	invent := func(r *reply, value string) { // a block with a hash that fits
		members := r.object()
		if members == nil {
			return
		}
		members["number"] = json.RawMessage(`"` + value + `"`)
		members["sha3Uncles"], _ = json.Marshal(types.EmptyUncleHash) // a hash always has a form
		members["uncles"] = json.RawMessage("[]")
		rehash(members)
		r.say(members)
	}
	behind := func(l *liar, c call, r *reply) bool {
		if number(c, r, "0xa") {
			return true
		}
		if block := c.block(); c.ofBlock() && (block == "latest" || block == "safe" || block == "finalized") {
			l.instead(r, "eth_getBlockByNumber", "0xa", false)
			return true
		} else if c.ofUncle() && (block == "latest" || block == "safe" || block == "finalized") {
			l.instead(r, byNumber, "0xa", hexutil.EncodeUint64(uint64(c.index())))
			return true
		}
		return false
	}
	return []*lie{
		{name: "the head is 100 blocks behind", kind: word, before: true, bad: map[setup]string{liarFirst: first}, tell: func(l *liar, c call, r *reply) { behind(l, c, r) }},
		{name: "the same, and later blocks are null", kind: word, before: true, bad: map[setup]string{liarFirst: first}, tell: func(l *liar, c call, r *reply) {
			if n, numbered := c.number(); !behind(l, c, r) && (c.ofBlock() || c.ofUncle()) && numbered && n > 10 {
				r.nothing()
			}
		}},
		{name: "the head's number is 2^40", kind: strange, before: true, tell: func(_ *liar, c call, r *reply) { number(c, r, far) }},
		{name: "the head is a block of number 2^40", kind: word, before: true, bad: map[setup]string{liarFirst: first}, tell: func(_ *liar, c call, r *reply) {
			if !number(c, r, far) && c.ofBlock() && c.block() == "latest" {
				invent(r, far)
			}
		}},
		{name: "the finalized block is above the head", kind: word, before: true, bad: map[setup]string{liarFirst: first}, tell: func(_ *liar, c call, r *reply) {
			if block := c.block(); c.ofBlock() && (block == "finalized" || block == "safe") {
				invent(r, far)
			}
		}},
	}
}

// lieRefusals are errors of nodes and what stands before them.
func lieRefusals() []*lie {
	refuse := func(code int, message string) func(*liar, call, *reply) {
		return func(_ *liar, c call, r *reply) {
			if c.ofBlock() || c.ofUncle() {
				r.fails(code, message)
			}
		}
	}
	list := []*lie{
		{name: "HTTP status 429 and Retry-After", kind: full, send: func(_ *liar, w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests", http.StatusTooManyRequests)
		}},
		{name: "error -32005", kind: full, tell: refuse(-32005, "daily request count exceeded, request rate limited")},
		{name: "HTTP status 503", kind: broken, send: func(_ *liar, w http.ResponseWriter, _ *http.Request, _ []byte) {
			http.Error(w, "no backend", http.StatusServiceUnavailable)
		}},
		{name: "HTTP status 403 with the key in it", kind: broken, send: func(_ *liar, w http.ResponseWriter, _ *http.Request, _ []byte) {
			http.Error(w, `{"error":"the key `+liarSecret+` is disabled"}`, http.StatusForbidden)
		}},
		{name: "error -32603 with the key in it", kind: broken, tell: refuse(-32603, "no quota for /v3/"+liarSecret)},
	}
	// What clients say where history is pruned: go-ethereum's core/history, Nethermind's
	// "Pruned history unavailable" with more behind it, Erigon's turbo/jsonrpc, a
	// provider's, and reth's.
	for name, said := range map[string]rpcError{
		"pruned, as go-ethereum says it": {Code: 4444, Message: "pruned history unavailable"},
		"pruned, as Nethermind says it":  {Code: 4444, Message: "Pruned history unavailable. Block: 0x1"},
		"pruned, as Erigon says it":      {Code: -32000, Message: "history has been pruned for this block"},
		"pruned, as a provider says it":  {Code: -32701, Message: "History has been pruned for this block"},
		"pruned, as reth says it":        {Code: 4444, Message: "pruned history unavailable: requested 1, earliest available 100"},
	} {
		list = append(list, &lie{name: name, kind: pruned, tell: func(_ *liar, c call, r *reply) {
			if _, numbered := c.number(); (c.ofBlock() || c.ofUncle()) && (numbered || c.byHash()) && r.object() != nil {
				r.fails(said.Code, said.Message)
			}
		}})
	}
	slices.SortStableFunc(list[len(list)-5:], func(a, b *lie) int { return strings.Compare(a.name, b.name) })
	return list
}
