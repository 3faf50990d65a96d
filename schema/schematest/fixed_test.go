package schematest_test

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/schematest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	first  = schema.Question{Block: schema.Number(1)}
	second = schema.Question{Block: schema.Tagged(schema.Latest), Index: 1}
	third  = schema.Question{Block: schema.BlockHash(schema.Hash{3})}
)

func newFixed(t *testing.T) *schematest.Fixed {
	f := schematest.NewFixed(map[schema.Question]string{first: `{"n":1}`, second: `{"n":2}`})
	t.Cleanup(f.Stop)
	return f
}

func TestFixedConformance(t *testing.T) {
	known := map[schema.Question]string{first: `{"n":1}`, second: `{"n":2}`}
	tests := []struct {
		name  string
		start func(t *testing.T) schematest.Subject
	}{
		{"stalled and stopped", func(t *testing.T) schematest.Subject {
			f := newFixed(t)
			return schematest.Subject{
				Resolver: f,
				Known:    known,
				Stall:    func() func() { f.Hold(); return f.Release },
				Stop:     f.Stop,
			}
		}},
		{"no more than a Resolver", func(t *testing.T) schematest.Subject {
			return schematest.Subject{Resolver: newFixed(t), Known: known}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { schematest.Conformance(t, tt.start) })
	}
}

// ask puts q to f. The answer, once there is one, can be taken from the channel.
func ask(f *schematest.Fixed, q schema.Question, deadline time.Time) <-chan schema.Answer {
	c := make(chan schema.Answer, 1)
	f.Resolve(q, deadline, schema.ReceiverFunc(func(a schema.Answer) { c <- a }))
	return c
}

// taken returns the answer that is there already.
func taken(t *testing.T, c <-chan schema.Answer) string {
	t.Helper()
	select {
	case a := <-c:
		if a.Err != nil {
			return a.Err.Code.String()
		}
		return string(a.Result)
	default:
		return "none"
	}
}

func TestFixedAnswersAtOnce(t *testing.T) {
	f := newFixed(t)
	f.Set(third, schema.Answer{Err: &schema.Error{Code: schema.Pruned}})
	tests := []struct {
		name string
		q    schema.Question
		want string
	}{
		{"known", first, `{"n":1}`},
		{"another", second, `{"n":2}`},
		{"set to fail", third, "pruned"},
		{"unknown", schema.Question{Block: schema.Number(9)}, "null"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := taken(t, ask(f, tt.q, time.Time{})); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	if got := f.Asked(); got != len(tests) {
		t.Errorf("asked %d times, want %d", got, len(tests))
	}
}

func TestFixedHold(t *testing.T) {
	f := newFixed(t)
	f.Hold()
	a, b, again := ask(f, first, time.Time{}), ask(f, second, time.Time{}), ask(f, first, time.Time{})
	if got, want := f.Waiting(), []schema.Question{first, second, first}; !slices.Equal(got, want) {
		t.Errorf("waiting: %v, want %v", got, want)
	}
	if f.ReleaseOne(third) {
		t.Error("released what was not asked")
	}
	if !f.ReleaseOne(second) || taken(t, b) != `{"n":2}` {
		t.Error("the second was not released")
	}
	if !f.ReleaseOne(first) || taken(t, a) != `{"n":1}` || taken(t, again) != "none" {
		t.Error("not the oldest was released")
	}
	f.Release()
	if got := taken(t, again); got != `{"n":1}` {
		t.Errorf("after Release: %s", got)
	}
	if got := taken(t, ask(f, first, time.Time{})); got != `{"n":1}` {
		t.Errorf("asked after Release: %s", got)
	}
}

func TestFixedStop(t *testing.T) {
	f := newFixed(t)
	f.Hold()
	held := ask(f, first, time.Time{})
	f.Stop()
	if got := taken(t, held); got != "draining" {
		t.Errorf("held: %s", got)
	}
	if got := taken(t, ask(f, first, time.Time{})); got != "draining" {
		t.Errorf("asked later: %s", got)
	}
}
