//go:build e2e

package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// setup is what stands behind a worker. It names a folder, hence no comma.
type setup string

const (
	liarAlone  setup = "liar alone"
	liarFirst  setup = "liar then honest"
	liarSecond setup = "honest then liar"
	liarHedged setup = "slow honest then liar"
)

var setups = []setup{liarAlone, liarFirst, liarSecond, liarHedged}

// slowness is what the slow honest node takes for a lookup: long enough for a hedge.
const slowness = 150 * time.Millisecond

// lyingNetwork is no public one: its chain is generated.
const lyingNetwork = "lies"

// lyingHead is the head of the chain. Like the blocks that are safe and final it has
// uncles, so that a wrong answer to a tag is seen.
const lyingHead = 110

// lying is what the lies are told in: geth, and what is true of its chain.
type lying struct {
	geth          *geth
	chain, branch []*types.Block
	tags          map[string]*types.Block

	mu    sync.Mutex
	table map[string]map[setup]*verdict // by the lie's name
}

// TestLies has a node in front of a real one tell each lie in four set-ups, each with a
// worker that knows nothing yet, and asks for blocks by number, hash and tag.
//
// No caller may get a wrong uncle or a false null, and where an honest node stands beside
// the liar, each gets the right answer. A lie that can be proved is counted, the node is
// named in the log, without the secret of its URL, and asked last for a while.
//
// What no verification finds is the word of a node about the block that stands at a
// number, if it is the only node: that there is none, or another one of the same number
// that is whole in itself. Of these the table says what callers were told.
func TestLies(t *testing.T) {
	genesis, err := trunkShape.Genesis()
	if err != nil {
		t.Fatal(err)
	}
	s := &lying{table: map[string]map[setup]*verdict{}}
	if s.chain, err = trunkShape.Blocks(); err != nil {
		t.Fatal(err)
	}
	if s.branch, err = branchShape.Blocks(); err != nil {
		t.Fatal(err)
	}
	s.geth = startGeth(t, genesis, s.branch[:lyingHead], s.chain[:lyingHead+1])
	choice := forkchoice{head: s.chain[lyingHead], safe: s.chain[104], finalized: s.chain[76]}
	s.geth.choose(t, choice)
	s.tags = map[string]*types.Block{"latest": choice.head, "safe": choice.safe, "finalized": choice.finalized, "earliest": s.chain[0]}

	began := time.Now()
	t.Run("told", func(t *testing.T) {
		for _, beside := range setups {
			t.Run(string(beside), func(t *testing.T) {
				t.Parallel()
				f := newFleet(t)
				f.startNATS()
				key := f.createKey("lies")
				f.startEdge("--network", lyingNetwork)
				for _, l := range lies(s.branch) {
					t.Run(l.name, func(t *testing.T) { s.tell(t, f, key, beside, l) })
				}
			})
		}
	})
	t.Logf("after %v\n%s", time.Since(began).Round(time.Second), s)
}

// tell has a lie told in a set-up. A machine that stalls makes of an honest node one that
// does not answer, which is not what is looked at here: then it is told again.
func (s *lying) tell(t *testing.T, f *fleet, key string, beside setup, told *lie) {
	var v *verdict
	var faults []string
	for range 3 {
		v = s.try(t, f, key, beside, told)
		if faults = v.faults(beside, told); len(faults) == 0 || !v.stalled {
			break
		}
	}
	s.record(t, beside, told, v, faults)
}

// try has a worker hear it that knows nothing yet.
func (s *lying) try(t *testing.T, f *fleet, key string, beside setup, told *lie) *verdict {
	node := "http://" + s.geth.http
	l := startLiar(t, node)
	from := l.url
	if told.ws {
		from = l.wsURL
	}
	urls := from
	switch beside {
	case liarFirst:
		urls = from + "," + node
	case liarSecond:
		urls = node + "," + from
	case liarHedged:
		slow := startLiar(t, node)
		slow.begin(&lie{slow: slowness})
		urls = slow.url + "," + from
	}
	if told.before {
		l.begin(told)
	}
	part := &fleet{tb: t, certs: f.certs, natsAddr: f.natsAddr, natsStore: f.natsStore, nats: f.nats}
	w := part.startWorker(urls, "--network", lyingNetwork)
	if beside != liarAlone || !told.before {
		waitReady(t, w.process, w.admin)
		waitReady(t, f.edges[0].process, f.edges[0].admin)
	}
	eventually(t, soon, "the worker to ask for the head", func() error {
		if l.heads.Load() < 2 {
			return errors.New("it has not")
		}
		return nil
	})
	l.begin(told)

	v := &verdict{}
	c := f.httpCaller(f.edges[0], false, key)
	many, few := s.probes(told.costly)
	v.ask(t, c, many)
	before := l.lookups.Load()
	if beside == liarFirst {
		for _, p := range few {
			v.ask(t, c, []probe{p})
		}
	}
	v.later, v.of = int(l.lookups.Load()-before), len(few)
	if v.seen(t, l, w, told.kind == odd); beside == liarFirst && told.kind == broken {
		// What is not answered is counted when its time is up.
		for end := time.Now().Add(soon); !v.counted() && time.Now().Before(end); {
			v.seen(t, l, w, false)
		}
	}
	if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.cmd.Process.Pid)); told.costly && err == nil { // Linux
		t.Logf("memory of the worker, at most: %s", peak.FindSubmatch(status)[1])
	}
	w.stop()
	return v
}

// probes are many questions for a first look, and one for each of some more blocks.
func (s *lying) probes(costly bool) (many, few []probe) {
	add := func(method, block string, b *types.Block, indexes int) {
		for index := range indexes {
			many = append(many, probe{method, block, index, unclesOfBlock(b)[index%2]})
			if index == 2 {
				many[len(many)-1].want = common.Hash{}
			}
		}
	}
	first, last := 62, lyingHead
	if costly {
		first = lyingHead - 8
	}
	for n := first; n <= last; n++ {
		b := s.chain[n]
		if n%2 == 0 {
			add(byNumber, hexutil.EncodeUint64(uint64(n)), b, 3)
		} else {
			add(byHash, b.Hash().Hex(), b, 3)
		}
	}
	for tag, b := range s.tags {
		add(byNumber, tag, b, 2)
	}
	side := s.branch[lyingHead-2] // a block that geth has and that is not in the chain
	add(byHash, side.Hash().Hex(), side, 2)
	many = append(many,
		probe{byNumber, hexutil.EncodeUint64(lyingHead + 1), 0, common.Hash{}},
		probe{byHash, s.chain[5].TxHash().Hex(), 0, common.Hash{}})
	for n := 12; n < 60; n++ {
		if uncles := unclesOfBlock(s.chain[n]); uncles[0] != (common.Hash{}) && len(few) < 24 {
			few = append(few, probe{byNumber, hexutil.EncodeUint64(uint64(n)), 0, uncles[0]})
		}
	}
	return many, few
}

var peak = regexp.MustCompile(`(?m)^VmHWM:\s*(.*)$`)

var series = regexp.MustCompile(`(?m)^ommer_upstream_lookups_total\{network="[^"]+",outcome="([a-z_]+)",upstream="([^"]+)"\} (\S+)$`)

// seen looks at what the worker tells of the liar, which may be as honest as the others.
func (v *verdict) seen(t *testing.T, l *liar, w *worker, honest bool) {
	t.Helper()
	_, text, err := w.get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	v.outcomes = map[string]float64{}
	for _, m := range series.FindAllStringSubmatch(text, -1) {
		var count float64
		if _, err := fmt.Sscan(m[3], &count); err != nil {
			t.Fatal(err)
		}
		liar := strings.Contains(m[2], l.host)
		if liar {
			v.outcomes[m[1]] += count
		}
		v.stalled = v.stalled || (!liar || honest) && m[1] == "unreachable" && count > 0
	}
	out, log := w.output()
	for line := range strings.Lines(log) {
		v.warned = v.warned || strings.Contains(line, "level=WARN") && strings.Contains(line, l.host)
	}
	if strings.Contains(out+log+text, liarSecret) {
		t.Error("the worker tells the secret of the node's URL")
	}
}

// faults is what a verdict has that the lie must not lead to.
func (v *verdict) faults(beside setup, told *lie) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	refused := 0
	for code, n := range v.codes {
		refused += n
		if !slices.Contains([]int{-32002, -32005, -32603, 4444}, code) {
			fault("error %d", code)
		}
	}
	alone := beside == liarAlone
	if v.wrong+v.null > 0 && !(alone && told.kind == word) {
		fault("%d wrong uncles, %d false nulls", v.wrong, v.null)
	}
	if refused > 0 && (!alone || told.kind == odd) {
		fault("%d errors in place of the right answer", refused)
	}
	if want := map[kind]int{pruned: 4444, full: -32005}[told.kind]; alone && want != 0 && v.codes[want] == 0 {
		fault("no error %d", want)
	}
	if beside == liarFirst && (told.kind == untrue || told.kind == broken || told.kind == full || told.kind == pruned) {
		if told.kind == untrue && v.outcomes["untrue"] == 0 || !v.counted() {
			fault("it is not counted: %v", v.outcomes)
		}
		if told.kind != pruned && !v.warned {
			fault("the log does not name the node")
		}
		if told.kind != pruned && v.later > v.of/2 {
			fault("it got %d of %d lookups after that", v.later, v.of)
		}
	}
	return faults
}

// counted says whether a lookup of the liar has failed.
func (v *verdict) counted() bool {
	for outcome := range v.outcomes {
		if outcome != "found" && outcome != "none" {
			return true
		}
	}
	return false
}

// record puts a verdict into the table.
func (s *lying) record(t *testing.T, beside setup, told *lie, v *verdict, faults []string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.table[told.name] == nil {
		s.table[told.name] = map[setup]*verdict{}
	}
	s.table[told.name][beside] = v
	v.fault, v.known = strings.Join(faults, "; "), told.bad[beside]
	text := fmt.Sprintf("%s\n%s", v.fault, strings.Join(v.examples, "\n"))
	switch {
	case v.fault == "" && v.known != "":
		t.Logf("no longer so, or not this time: %s", v.known)
	case v.fault == "":
	case v.known != "":
		t.Logf("as it is now, since %s: %s", v.known, text)
	default:
		t.Error(text)
	}
}

// String is the table.
func (s *lying) String() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "What callers got: answers that were right, and what the others were. \"later\" is how many lookups the liar\n"+
		"still got, with an honest node behind it, of those that came once it was known.\n\n%-50s", "lie")
	for _, beside := range setups {
		fmt.Fprintf(&b, " | %-24s", beside)
	}
	b.WriteString(" | later\n")
	for _, l := range lies(s.branch) {
		row := s.table[l.name]
		fmt.Fprintf(&b, "%-50s", l.name)
		for _, beside := range setups {
			text := "-"
			if v := row[beside]; v != nil {
				text = v.String()
			}
			fmt.Fprintf(&b, " | %-24s", text)
		}
		if v := row[liarFirst]; v != nil {
			fmt.Fprintf(&b, " | %d/%d", v.later, v.of)
		}
		b.WriteByte('\n')
	}
	for _, l := range lies(s.branch) {
		for _, beside := range setups {
			if v := s.table[l.name][beside]; v != nil && v.fault != "" {
				fmt.Fprintf(&b, "\nFalls short: %s, %s: %s. %s", l.name, beside, v.fault, v.known)
			}
		}
	}
	return b.String()
}
