package bus

import (
	"testing"

	"github.com/ommer/ommer/schema"
)

// sendAll publishes what a lane has, in messages of up to maxBundle questions.
func sendAll(t *testing.T, l *lane) (messages int) {
	t.Helper()
	out := l.take(nil)
	for i, b := range out {
		if n := b.Frames(); n > maxBundle || n < maxBundle && i < len(out)-1 {
			t.Errorf("message %d of %d has %d questions", i, len(out), n)
		}
	}
	l.done()
	return len(out)
}

func TestLaneBlamesOnlyWhatIsUnconfirmed(t *testing.T) {
	l := &lane{limit: 128}
	blamed := func() (out []uint32) {
		for _, b := range l.blame() {
			out = append(out, b.index)
		}
		return out
	}
	add := func(i uint32) {
		seq, wake := l.add(i, schema.Request{ID: uint64(i)})
		if wake != (len(l.out) == 1 && l.out[0].Frames() == 1) {
			t.Errorf("question %d: wake %v", i, wake)
		}
		if seq != l.given {
			t.Errorf("question %d has place %d, want the last, %d", i, seq, l.given)
		}
	}
	for i := range uint32(100) { // the ring grows once
		add(i)
	}
	if got := blamed(); len(got) != 0 || l.mark() != 0 {
		t.Fatalf("blamed %v, marked %d, and nothing was published", got, l.mark())
	}
	if got := sendAll(t, l); got != 4 {
		t.Errorf("%d messages", got)
	}
	if got := blamed(); len(got) != 100 || got[0] != 0 || got[99] != 99 || l.mark() != 100 {
		t.Fatalf("blamed %v, marked %d", got, l.mark())
	}
	l.confirm(97)
	l.confirm(5) // never backwards
	if got := blamed(); len(got) != 3 || got[0] != 97 {
		t.Fatalf("blamed %v", got)
	}
	if l.stale() {
		t.Error("stale at the first look")
	}
	if !l.stale() {
		t.Error("not stale at the second")
	}
	add(100)
	l.lost()
	if l.stale() || len(blamed()) != 0 {
		t.Error("the link is lost, and questions are still blamed")
	}
	if sendAll(t, l); len(blamed()) != 1 {
		t.Error("what was published after the loss is not blamed")
	}
	for i := range uint32(1000) { // a silent link: bounded
		add(i)
	}
	sendAll(t, l)
	if got := blamed(); len(got) != 128 || got[127] != 999 {
		t.Errorf("blamed %d, up to %d", len(got), got[len(got)-1])
	}
}
