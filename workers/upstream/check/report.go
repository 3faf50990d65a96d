package check

import (
	"strings"
	"unicode"

	"github.com/ommer/ommer/workers/upstream"
)

// Report is what was found out about one node. A nil field was not found out, and
// Unknown says why, or has no meaning for this node.
type Report struct {
	// Node is its URL as far as it may be shown.
	Node string `json:"node"`
	// Transport is http, https, ws or wss.
	Transport string `json:"transport"`

	// Lookups says which ones Ommer could have answered by this node.
	Lookups Lookups `json:"lookups"`
	// Words is the same in a sentence, Advice what can be done about it.
	Words  string   `json:"words"`
	Advice []string `json:"advice"`

	// Error is why the node could not be asked at all.
	Error string `json:"error,omitempty"`
	// Untrue lists what the node said that is false.
	Untrue []string `json:"untrue"`
	// Unknown says why facts are missing, by their name here.
	Unknown map[string]string `json:"unknown"`

	Client    *string  `json:"client"` // web3_clientVersion
	Chain     *Chain   `json:"chain"`
	Head      *Head    `json:"head"`
	Safe      *Tag     `json:"safe"`
	Finalized *Tag     `json:"finalized"`
	Syncing   *bool    `json:"syncing"`
	Latency   *Latency `json:"latency"`
	Uncles    *Uncles  `json:"uncles"`
	History   *History `json:"history"`
	State     *State   `json:"state"`
	// Batch is the largest number of calls in one batch that was accepted, of those
	// that were tried: 100, 30, 10, 3; 0 means none of them.
	Batch *int `json:"batch"`
	// Compression says that an HTTP answer came compressed. Nil over WebSocket.
	Compression *bool `json:"compression"`
	// Subscribe says that eth_subscribe to newHeads works. Nil over HTTP.
	Subscribe *bool `json:"subscribe"`

	// Calls and Requests are what the check took; a batch is one request.
	Calls    int     `json:"calls"`
	Requests int     `json:"requests"`
	Seconds  float64 `json:"seconds"`
}

// Lookups is how much a node can do.
type Lookups string

// The values of Lookups.
const (
	All  Lookups = "all"
	Part Lookups = "part"
	None Lookups = "none"
)

// Chain is which one a node serves.
type Chain struct {
	ID      uint64 `json:"id"`
	Name    string `json:"name,omitempty"`    // of chains that are known here
	Genesis string `json:"genesis,omitempty"` // hash of block 0
	// Other says what other nodes have that this one differs from.
	Other string `json:"other,omitempty"`
}

// Head is a node's latest block.
type Head struct {
	Number uint64 `json:"number"`
	Hash   string `json:"hash"`
	// AgeSeconds is from its timestamp until it was asked for.
	AgeSeconds int64 `json:"age_seconds"`
	// Behind is how many blocks the best of the nodes was ahead.
	Behind *uint64 `json:"behind"`
}

// Tag is the block that a tag stands for; no number where the node has none.
type Tag struct {
	Number *uint64 `json:"number"`
}

// Latency is how fast small calls are answered.
type Latency struct {
	// FirstMS is the time until the first answer, connecting and TLS included.
	FirstMS float64 `json:"first_ms"`
	// MedianMS is of Calls further ones, one after the other.
	MedianMS float64 `json:"median_ms"`
	Calls    int     `json:"calls"`
}

// Uncles is how a node answers the two methods.
type Uncles struct {
	ByNumber Method `json:"by_number"`
	ByHash   Method `json:"by_hash"`
	// Block has the uncles that the answers were verified with.
	Block *uint64 `json:"block"`
	// Samples blocks of First to Last were looked at, Found of them have uncles.
	Samples int    `json:"samples"`
	Found   int    `json:"found"`
	First   uint64 `json:"first"`
	Last    uint64 `json:"last"`
	// Merged says that all blocks that the node holds are from after the merge, when
	// uncles ended (EIP-3675).
	Merged bool `json:"merged"`
}

// Method is how a node answers one of the methods.
type Method string

// The values of Method.
const (
	Verified Method = "verified" // the uncles hash to what their block's header says
	Answered Method = "answered" // null for a block without uncles; no other was found
	Withheld Method = "withheld" // none, or too few, for a block that has them
	False    Method = "false"    // other uncles than the block's
	Absent   Method = "absent"   // the node does not have the method
	Failed   Method = "failed"   // Unknown says how
)

// History is which blocks a node holds whole. A header alone does not count.
type History struct {
	// From is the lowest one, beside the genesis block, which nodes always hold.
	From uint64 `json:"from"`
	All  bool   `json:"all"`
}

// State is whether a node knows accounts at its lowest block.
type State struct {
	Block uint64 `json:"block"`
	Held  bool   `json:"held"`
}

// maxUntrue bounds Untrue: one falsehood is enough to know.
const maxUntrue = 5

func (r *Report) untrue(text string) {
	if len(r.Untrue) < maxUntrue {
		r.Untrue = append(r.Untrue, strings.ReplaceAll(text, upstream.ErrUntrue.Error()+": ", ""))
	}
}

// printable is text without what a terminal or a line of text would not survive.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if c == '\ufffd' || !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, text)
}

// Document is what is written for programs. report.schema.json describes it.
type Document struct {
	Version string   `json:"version"` // of the program
	Nodes   []Report `json:"nodes"`
}
