package edge_test

import (
	"bufio"
	"io"
	"testing"
	"time"

	"github.com/ommer/ommer/schema"
	"github.com/ommer/ommer/schema/schematest"
)

// explosive panics for one block and answers the others.
type explosive struct{ *schematest.Fixed }

func (e *explosive) Resolve(q schema.Question, d time.Time, to schema.Receiver) {
	if q.Block == schema.Number(0xdead) {
		panic("boom")
	}
	e.Fixed.Resolve(q, d, to)
}

// A failure in one session must not reach another.
func TestPanicEndsOneSessionOnly(t *testing.T) {
	f := start(t, func(c *edgeConfig) { c.Resolver = &explosive{schematest.NewFixed(uncles())} })
	other := f.dial(t, false)
	r := bufio.NewReader(other)
	for range 3 {
		c := f.dial(t, false)
		io.WriteString(c, post(testKey, lookup(1, 0xdead)))
		if got, _ := io.ReadAll(c); len(got) > 0 {
			t.Errorf("the failed session answered %q", got)
		}
		io.WriteString(other, post(testKey, lookup(2, 2)))
		if _, body := response(t, r); body != answer(2, 2) {
			t.Error(body)
		}
	}
	key := f.keys.Lookup([]byte(testKey))
	eventually(t, "the share of what failed", func() bool { return key.Lookups.Load() == 0 })
}
