package workers

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/workers/upstream"
)

// answered wakes whoever waits, without an allocation.
type answered chan struct{}

func (c answered) Answered(schema.Answer) { c <- struct{}{} }

func BenchmarkHit(b *testing.B) {
	src := &script{block: func(context.Context, schema.Selector) (upstream.Block, bool, error) { return oneUncle(7), true, nil }}
	deadline := time.Now().Add(time.Hour)
	questions := make([]schema.Question, 1024)
	for i := range questions {
		questions[i].Block = schema.BlockHash(schema.Hash{byte(i), byte(i >> 8)})
	}
	for _, inFlight := range []int{1, 256} {
		b.Run("in-flight-"+strconv.Itoa(inFlight), func(b *testing.B) {
			p := newPool(b, Config{Source: src})
			for _, q := range questions {
				lookup(p, q, deadline)
			}
			to := make(answered, inFlight)
			for range inFlight {
				to <- struct{}{}
			}
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				<-to
				p.Resolve(questions[i&1023], deadline, to)
				i++
			}
			for range inFlight {
				<-to
			}
		})
	}
}

func BenchmarkMiss(b *testing.B) {
	src := &script{block: func(context.Context, schema.Selector) (upstream.Block, bool, error) { return oneUncle(7), true, nil }}
	p := newPool(b, Config{Source: src})
	to := make(answered, 1)
	n := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		p.Resolve(schema.Question{Block: schema.Number(n)}, time.Now().Add(time.Hour), to)
		<-to
		n++
	}
}
