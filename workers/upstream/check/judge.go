package check

import (
	"fmt"
	"strings"

	"github.com/ommer/ommer/workers/upstream"
)

// What Ommer asks of a node.
const (
	lookupBatch = 1 + upstream.MaxUncles // a lookup is one batch: the block and its uncles
	rowBatch    = 64                     // of blocks, when an archive is built from a node
	farBehind   = 16                     // blocks; heads are taken one after the other
	slowMS      = 1000                   // for a small call, of the 3 s that workers give a node
)

// vital are the facts without which it is not known what a node can do.
var vital = []struct{ fact, words string }{
	{"history", "its first block could not be found out: "},
	{"uncles", "its uncles could not be checked: "},
	{"verification", "its headers cannot be verified: "},
}

// judge says what Ommer would use the node for, and what to add.
func (r *Report) judge() {
	r.Advice = []string{}
	if because := r.unusable(); because != "" {
		r.Lookups, r.Words = None, "No lookups: "+because+"."
		return
	}
	var only []string
	if r.Syncing != nil && *r.Syncing {
		only = append(only, "it is still syncing")
		r.advise("Wait until it has the whole chain; until then it answers null for blocks that it does not have yet.")
	}
	if short := r.shortHistory(); short != "" {
		only = append(only, short)
	}
	for _, v := range vital {
		if why := r.Unknown[v.fact]; why != "" {
			only = append(only, v.words+why)
		}
	}
	r.note()
	if len(only) > 0 {
		r.Lookups, r.Words = Part, "Lookups in part: "+strings.Join(only, "; ")+"."
		return
	}
	r.Lookups, r.Words = All, "All lookups"+r.proof()+"."
}

func (r *Report) advise(format string, args ...any) {
	r.Advice = append(r.Advice, fmt.Sprintf(format, args...))
}

// unusable is why no lookup could be answered, empty when some could.
func (r *Report) unusable() string {
	switch {
	case r.Error != "":
		r.adviseError()
		return r.Error
	case r.Chain.Other != "":
		r.advise("Leave it out: all nodes of a worker serve one chain.")
		return "it does not serve " + r.Chain.Other
	case len(r.Untrue) > 0:
		r.advise("Leave it out: workers pass over what is false, and then over the node.")
		return "what it says is false, see above"
	case r.Head == nil:
		return "it shows no head: " + r.Unknown["head"]
	case r.Batch != nil && *r.Batch < lookupBatch:
		r.advise("Allow batches there: a lookup is one batch of %d calls.", lookupBatch)
		return "it takes no batches: " + r.Unknown["batch"]
	case r.Uncles == nil:
		return ""
	}
	for _, m := range []struct {
		name string
		Method
	}{{"eth_getUncleByBlockNumberAndIndex", r.Uncles.ByNumber}, {"eth_getUncleByBlockHashAndIndex", r.Uncles.ByHash}} {
		switch m.Method {
		case Absent:
			r.advise("Allow the method there.")
			return "it does not have " + m.name
		case Withheld:
			r.advise("Give workers another node or an archive, see 'ommer archive build --help'.")
			return fmt.Sprintf("it holds back the uncles of block %d", *r.Uncles.Block)
		}
	}
	return ""
}

func (r *Report) adviseError() {
	switch {
	case strings.Contains(r.Error, "status 401"), strings.Contains(r.Error, "status 403"):
		r.advise("Is the key in the URL right, and allowed from here?")
	case strings.Contains(r.Error, "not JSON-RPC"), strings.Contains(r.Error, "status 404"), strings.Contains(r.Error, "bad handshake"):
		r.advise("Is this the address of the node's JSON-RPC, with its whole path?")
	case strings.Contains(r.Error, "status 3"):
		r.advise("It sends elsewhere: give that address itself; redirections are not followed.")
	}
}

// shortHistory is what the node's history lacks, empty when no block with uncles is
// missing.
func (r *Report) shortHistory() string {
	h := r.History
	if h == nil || h.All || r.afterMerge() {
		return ""
	}
	r.advise("Give workers an archive of the blocks below %d too, see 'ommer archive build --help'.", h.From)
	if r.Uncles != nil && r.Uncles.Merged {
		return fmt.Sprintf("it holds blocks from %d on, which are from after the merge and have no uncles", h.From)
	}
	return fmt.Sprintf("it holds blocks from %d on", h.From)
}

// afterMerge says that the chain never had uncles.
func (r *Report) afterMerge() bool {
	f := known[r.Chain.ID]
	return f.work && f.lastWork == 0
}

// note advises on what keeps no lookup from being answered.
func (r *Report) note() {
	if b := r.Head.Behind; b != nil && *b > farBehind {
		r.advise("It is %d blocks behind: name it after the others.", *b)
	}
	if r.Latency != nil && r.Latency.MedianMS > slowMS {
		r.advise("It is slow: name it after the others.")
	}
	if r.Finalized != nil && r.Finalized.Number == nil {
		r.advise("It has no finalized block: what is asked by number is looked up again whenever the head moves.")
	}
	if b := r.Batch; b != nil && *b < rowBatch && !r.afterMerge() {
		r.advise("'ommer archive build' cannot read it: that takes batches of %d calls.", rowBatch)
	}
	if why := r.Unknown["batch"]; r.Batch == nil && why != "" {
		r.advise("Batches could not be tried: %s.", why)
	}
}

// proof says how well it is known.
func (r *Report) proof() string {
	u := r.Uncles
	switch {
	case u == nil:
		return ""
	case u.Block != nil:
		return ""
	case u.Merged, r.afterMerge():
		return ", which are null: no block of this chain can have uncles"
	default:
		return fmt.Sprintf(", as far as can be seen: no block with uncles found in %d samples", u.Samples)
	}
}
