//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// fresh is what the workers promise: what may change is told for no longer than that
// after it has (workers.Fresh). It counts from when the node was asked; grace is for
// answers that were on their way.
const (
	fresh = time.Second
	grace = 2 * time.Second
)

// place is a number or a tag.
type place string

// uncles are the hashes of a block's uncles. Zero is null.
type uncles [2]common.Hash

// view is what the chain is under a forkchoice, at each place that may change.
type view struct {
	at map[place]uncles
	// passing is what geth tells while it takes the view up, see reorg in its
	// core/blockchain.go: each of the new blocks is the head for a moment, and before
	// the last one is, there is none at its number.
	passing map[place][]uncles
}

// newView is the truth about the tags, and about numbers from a little before where
// the chains part, which share their blocks up to shared, to a little beyond the head.
func newView(f forkchoice, blocks []*types.Block, shared, beyond uint64) view {
	head := f.head.NumberU64()
	v := view{
		at:      map[place]uncles{"latest": unclesOfBlock(f.head), "safe": unclesOfBlock(f.safe), "finalized": unclesOfBlock(f.finalized)},
		passing: map[place][]uncles{numbered(head): {{}}},
	}
	for number := shared - 8; number < beyond; number++ {
		var at uncles
		if number <= head {
			at = unclesOfBlock(blocks[number])
		}
		v.at[numbered(number)] = at
		if number > shared && number <= head {
			v.passing["latest"] = append(v.passing["latest"], at)
		}
	}
	return v
}

func numbered(number uint64) place { return place(hexutil.EncodeUint64(number)) }

func unclesOfBlock(b *types.Block) (hashes uncles) {
	for i, u := range b.Uncles() {
		hashes[i] = u.Hash()
	}
	return hashes
}

// uncleIn returns the hash of the uncle in an answer, once its fields hash to it; zero
// for null.
func uncleIn(answer []byte, id int) (common.Hash, error) {
	r, err := result(answer, id)
	if err != nil || string(r) == "null" {
		return common.Hash{}, err
	}
	h, err := header(r)
	if err != nil {
		return common.Hash{}, err
	}
	return h.Hash(), nil
}

// askPlace asks for an uncle at a place.
func askPlace(ctx context.Context, c caller, at place, index int) (common.Hash, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	answer, err := c.call(ctx, []byte(callText(index, byNumber, string(at), index)))
	if err != nil {
		return common.Hash{}, err
	}
	return uncleIn(answer, index)
}

// reorg makes geth change its mind, several times, with askers at work.
//
// One worker never tells what was before once it has told what is now. Two do not know
// of each other: for as long as answers are fresh one may be behind.
func (o *oracle) reorg(t *testing.T, c *comparison) {
	for _, b := range o.branch[merge:] {
		o.geth.execute(t, b)
	}
	o.geth.choose(t, o.trunkChoice(len(o.trunk)-1))
	from := newView(o.trunkChoice(len(o.trunk)-1), o.trunk, lastShared, trunkLength+4)
	for _, workers := range []int{1, 2} {
		if workers == 2 {
			w := o.fleet.startWorker("http://" + o.geth.http)
			waitReady(t, w.process, w.admin)
		}
		for _, step := range []struct {
			name   string
			choice forkchoice
			blocks []*types.Block
		}{
			{"to the branch", o.branchChoice(len(o.branch) - 1), o.branch},
			{"back, to a head with uncles", o.trunkChoice(110), o.trunk},
			{"to the branch, to a head with uncles", o.branchChoice(106), o.branch},
			{"back to the trunk", o.trunkChoice(len(o.trunk) - 1), o.trunk},
		} {
			to := newView(step.choice, step.blocks, lastShared, trunkLength+4)
			ok := t.Run(fmt.Sprintf("workers %d/%s", workers, step.name), func(t *testing.T) {
				s := o.newSwitch(from, to, workers == 1)
				s.run(t, func() { o.geth.choose(t, step.choice) })
				o.tags(t, c)
				o.numbers(t, c, 2)
			})
			if !ok {
				return // the next one would begin somewhere else
			}
			from = to
		}
	}
}

// reorgSwitch is one change from one view of the chain to another, and those who look
// at it.
type reorgSwitch struct {
	o        *oracle
	from, to view
	places   []place
	strict   bool // no old answer after a new one, which holds for one worker

	changed  map[place]*[2]atomic.Bool // the new answer was seen there
	deadline atomic.Int64              // when the last old answer may be asked for, in Unix nanoseconds; 0: not yet known

	asked, lateAsked, old, back atomic.Int64 // answers: all, to questions that no old one may answer, old, old after a new one
	stop                        chan struct{}
	failed                      chan error
}

func (o *oracle) newSwitch(from, to view, strict bool) *reorgSwitch {
	s := &reorgSwitch{
		o: o, from: from, to: to, strict: strict, places: slices.Sorted(maps.Keys(to.at)),
		changed: map[place]*[2]atomic.Bool{}, stop: make(chan struct{}), failed: make(chan error, 1),
	}
	for _, at := range s.places {
		s.changed[at] = new([2]atomic.Bool)
	}
	return s
}

// askers is how many ask at a time, each over a connection of its own.
const askers = 8

// run lets askers ask, has the change made, waits until it is seen everywhere, and
// lets them ask on for some questions that no old answer is good for.
func (s *reorgSwitch) run(t *testing.T, change func()) {
	t.Helper()
	edge := s.o.fleet.edges[0]
	var all sync.WaitGroup
	for i := range askers {
		var c caller = s.o.fleet.httpCaller(edge, i%4 == 0, s.o.key)
		if i%2 == 1 {
			c = s.o.fleet.mustWS(edge, i%4 == 1, s.o.key)
		}
		r := rand.New(rand.NewPCG(defaultSeed, uint64(i)))
		all.Go(func() { s.askAround(t.Context(), c, r) })
	}
	defer func() {
		close(s.stop)
		all.Wait()
		select {
		case err := <-s.failed:
			t.Error(err)
		default:
		}
	}()
	s.more(t, &s.asked, 2000)
	change()
	began := time.Now()
	s.deadline.Store(began.Add(fresh + grace).UnixNano())
	eventually(t, soon, "the change to be seen at every number and tag", func() error {
		for _, at := range s.places {
			for index := range 2 {
				got, err := askPlace(t.Context(), s.o.http, at, index)
				if err != nil {
					t.Fatal(err)
				}
				if got != s.to.at[at][index] {
					return fmt.Errorf("uncle %d of %s is still %v", index, at, got)
				}
			}
		}
		return nil
	})
	took := time.Since(began)
	s.more(t, &s.lateAsked, 2000)
	differ := 0
	for _, at := range s.places {
		for index := range 2 {
			if s.from.at[at][index] != s.to.at[at][index] {
				differ++
			}
		}
	}
	t.Logf("%d of %d uncles changed, seen everywhere after %v; %d answers, each of one view or the other; %d old ones after the change, %d of them after a new one",
		differ, 2*len(s.places), took.Round(time.Millisecond), s.asked.Load(), s.old.Load(), s.back.Load())
}

// more waits until a count of answers has grown.
func (s *reorgSwitch) more(t *testing.T, count *atomic.Int64, n int64) {
	t.Helper()
	want := count.Load() + n
	eventually(t, soon, fmt.Sprintf("%d more answers", n), func() error {
		select {
		case err := <-s.failed:
			t.Fatal(err)
		default:
		}
		if got := count.Load(); got < want {
			return fmt.Errorf("%d are missing", want-got)
		}
		return nil
	})
}

// late says whether a question asked at a time may no longer have an old answer.
func (s *reorgSwitch) late(asked time.Time) bool {
	deadline := s.deadline.Load()
	return deadline != 0 && asked.UnixNano() > deadline
}

// askAround asks at random, by number, tag and hash, until the end or the first wrong
// answer.
func (s *reorgSwitch) askAround(ctx context.Context, c caller, r *rand.Rand) {
	for {
		select {
		case <-s.stop:
			return
		default:
		}
		var err error
		if r.IntN(4) == 0 {
			err = s.askHash(ctx, c, r)
		} else {
			err = s.askPlace(ctx, c, s.places[r.IntN(len(s.places))], r.IntN(2))
		}
		if err != nil {
			select {
			case s.failed <- err:
			default: // another one was first
			}
			return
		}
		s.asked.Add(1)
	}
}

// askPlace asks by number or tag. The answer must be that of one view or the other at
// this place, or one that geth passes by, and not old for too long.
func (s *reorgSwitch) askPlace(ctx context.Context, c caller, at place, index int) error {
	changed := &s.changed[at][index]
	asked, after := time.Now(), changed.Load()
	got, err := askPlace(ctx, c, at, index)
	if err != nil {
		return err
	}
	late := s.late(asked)
	if late {
		s.lateAsked.Add(1)
	}
	from, to := s.from.at[at][index], s.to.at[at][index]
	passing := slices.ContainsFunc(s.to.passing[at], func(u uncles) bool { return u[index] == got })
	switch {
	case got == to:
		changed.Store(from != to)
	case got != from && !passing:
		return fmt.Errorf("uncle %d of %s is %v, which it is neither before (%v) nor after (%v)", index, at, got, from, to)
	case late:
		return fmt.Errorf("uncle %d of %s is %v, of before the change, more than %v after it", index, at, got, fresh+grace)
	case passing: // geth may pass by the same more than once
	case after && s.strict:
		return fmt.Errorf("uncle %d of %s is %v again, of before the change, after the new one was seen", index, at, got)
	case after:
		s.back.Add(1)
		fallthrough
	case s.deadline.Load() != 0:
		s.old.Add(1)
	}
	return nil
}

// askHash asks by hash, of both chains. Whatever is canonical, the answer is the same.
func (s *reorgSwitch) askHash(ctx context.Context, c caller, r *rand.Rand) error {
	blocks := s.o.trunk
	if r.IntN(2) == 0 {
		blocks = s.o.branch
	}
	b, index := blocks[r.IntN(len(blocks))], r.IntN(2)
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	answer, err := c.call(ctx, []byte(callText(index, byHash, b.Hash().Hex(), index)))
	if err != nil {
		return err
	}
	got, err := uncleIn(answer, index)
	if err != nil {
		return fmt.Errorf("uncle %d of block %v: %w", index, b.Hash(), err)
	}
	if want := unclesOfBlock(b)[index]; got != want {
		return fmt.Errorf("uncle %d of block %v is %v, want %v", index, b.Hash(), got, want)
	}
	return nil
}
