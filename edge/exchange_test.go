package edge

import (
	"testing"

	"github.com/ommer/ommer/schema"
)

// An answer that waits for others must not keep the message that it came in: one of
// each would hold a thousand of them.
func TestAnswersOfBatchAreCopied(t *testing.T) {
	message := []byte(`{"hash":"0x00"} and thirty other answers`)
	s := new(session)
	s.node = new(node)
	for _, batch := range []bool{true, false} {
		x := newExchange(s, 2)
		x.batch = batch
		x.pending.Store(3) // nothing is complete
		c := &x.calls[0]
		c.exchange = x
		c.Answered(schema.Answer{Result: message[:15:15]})
		if string(c.answer.Result) != string(message[:15]) {
			t.Errorf("batch %v: got %s", batch, c.answer.Result)
		}
		if copied := &c.answer.Result[0] != &message[0]; copied != batch {
			t.Errorf("batch %v: copied %v", batch, copied)
		}
	}
}
