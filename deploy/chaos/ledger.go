package main

import (
	"slices"
	"sync"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ommer/ommer/deploy/load"
)

// sample is what came of a question.
type sample struct {
	due, done time.Time
	edge      int           // that was asked last
	failure   *load.Failure // nil for the right answer
}

// ledger has what came of all questions since the last fault.
type ledger struct {
	mu      sync.Mutex
	samples []sample
	waiting []time.Time // by client, since when its question is due; zero: none is
}

func newLedger(now time.Time) *ledger {
	b := &ledger{waiting: make([]time.Time, clients)}
	for i := range b.waiting {
		b.waiting[i] = now
	}
	return b
}

// begin notes that a client's question is due, end what came of it.
func (b *ledger) begin(client int, due time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting[client] = due
}

func (b *ledger) end(client int, s sample) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting[client] = time.Time{}
	b.samples = append(b.samples, s)
}

// oldest is the question without an answer that is due longest, false if there is none.
func (b *ledger) oldest() (due time.Time, any bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.waiting {
		if !w.IsZero() && (!any || w.Before(due)) {
			due, any = w, true
		}
	}
	return due, any
}

// span is a stretch of time.
type span struct{ from, to time.Time }

// belongs says whether a question belongs to a fault of that span: if it was due
// before the fault was over, and answered after it began.
func (s span) belongs(x sample) bool { return !x.done.Before(s.from) && x.due.Before(s.to) }

// take removes the samples that keep says, and returns them.
func (b *ledger) take(keep func(sample) bool) (taken []sample) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.samples = slices.DeleteFunc(b.samples, func(s sample) bool {
		if keep(s) {
			taken = append(taken, s)
			return true
		}
		return false
	})
	return taken
}

// goodSince is since when nothing has been wrong, judged by the questions that were
// due after a time: the end of the last failure, and how many right answers there were
// since then at each edge.
func (b *ledger) goodSince(from time.Time) (since time.Time, right [edges]int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	since = from
	for _, s := range b.samples {
		if s.failure != nil && s.done.After(since) {
			since = s.done
		}
	}
	for _, s := range b.samples {
		if s.failure == nil && s.due.After(since) {
			right[s.edge]++
		}
	}
	return since, right
}

// tally is what came of some questions.
type tally struct {
	Asked    int            `json:"asked"`
	Right    int            `json:"right"`
	Wrong    int            `json:"wrong"`
	Failed   map[string]int `json:"failed,omitempty"` // by kind, those that the fault excuses among them
	Bad      int            `json:"not_excused"`
	Examples []string       `json:"examples,omitempty"` // of wrong answers and of failures that nothing excuses
	Gap      time.Duration  `json:"worst_gap_ns"`       // the longest time without any right answer
	P50      time.Duration  `json:"p50_ns"`             // of right answers, from when they were due
	P99      time.Duration  `json:"p99_ns"`
	Max      time.Duration  `json:"max_ns"`
}

// maxExamples is how many failures of a tally are kept to be printed.
const maxExamples = 3

// mostLatency is what histograms have room for.
const mostLatency = 10 * time.Minute

// count adds up what came of the questions of a span. Excused says whether a failure
// is one that had to be expected, and what to call it.
func count(samples []sample, s span, excused func(sample) (label string, ok bool)) tally {
	t := tally{Asked: len(samples), Failed: map[string]int{}}
	latency := hdr.New(1000, int64(mostLatency), 3)
	rights := []time.Time{s.from, s.to}
	for _, x := range samples {
		if x.failure == nil {
			t.Right++
			_ = latency.RecordValue(int64(min(max(x.done.Sub(x.due), 0), mostLatency))) // it is within the bounds
			if x.done.After(s.from) && x.done.Before(s.to) {
				rights = append(rights, x.done)
			}
			continue
		}
		label, ok := excused(x)
		t.Failed[label]++
		wrong := x.failure.Wrong()
		if wrong {
			t.Wrong++
		}
		if !ok || wrong {
			t.Bad++
			if len(t.Examples) < maxExamples {
				t.Examples = append(t.Examples, label+" after "+x.done.Sub(x.due).Round(time.Millisecond).String()+": "+x.failure.Detail)
			}
		}
	}
	slices.SortFunc(rights, time.Time.Compare)
	for i := 1; i < len(rights); i++ {
		t.Gap = max(t.Gap, rights[i].Sub(rights[i-1]))
	}
	t.P50, t.P99 = time.Duration(latency.ValueAtQuantile(50)), time.Duration(latency.ValueAtQuantile(99))
	t.Max = time.Duration(latency.Max())
	return t
}
