package main

import (
	"testing"
	"time"

	"github.com/ommer/ommer/deploy/load"
)

// at is a time, in ms after the fault began.
var began = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }

func TestSpanOfAFault(t *testing.T) {
	s := span{at(0), at(1000)}
	for name, c := range map[string]struct {
		due, done int
		want      bool
	}{
		"answered before it":              {-20, -10, false},
		"on its way as it began":          {-20, 10, true},
		"within it":                       {10, 20, true},
		"answered after all was well":     {990, 1010, true},
		"due after all was well":          {1000, 1010, false},
		"on its way from before to after": {-10, 1010, true},
	} {
		if got := s.belongs(sample{due: at(c.due), done: at(c.done)}); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestCount(t *testing.T) {
	closed, refused, wrong := &load.Failure{Kind: load.KindClosed}, &load.Failure{Kind: load.KindRefused}, &load.Failure{Kind: load.KindWrong}
	all := []sample{
		{due: at(0), done: at(10)},
		{due: at(100), done: at(700)},
		{due: at(100), done: at(110), failure: closed},
		{due: at(100), done: at(120), failure: refused},
		{due: at(100), done: at(130), failure: wrong},
	}
	// A wrong answer is not excused by anything.
	got := count(all, span{at(0), at(1000)}, func(x sample) (string, bool) { return x.failure.Kind, x.failure != refused })
	if got.Asked != 5 || got.Right != 2 || got.Wrong != 1 || got.Bad != 2 || got.Failed[load.KindClosed] != 1 || len(got.Examples) != 2 {
		t.Errorf("got %+v", got)
	}
	if want := 690 * time.Millisecond; got.Gap != want {
		t.Errorf("the worst gap is %v, want %v", got.Gap, want)
	}
	if got := count(all[:1], span{at(0), at(1000)}, nil); got.Gap != 990*time.Millisecond {
		t.Errorf("the worst gap is %v, want 990ms: nothing came until the end", got.Gap)
	}
	if len(got.complaints()) != 1 {
		t.Errorf("complaints: %q", got.complaints())
	}
}

func TestGoodSince(t *testing.T) {
	b := newLedger(began)
	for _, s := range []sample{
		{due: at(-50), done: at(-10), edge: 0},
		{due: at(-50), done: at(300), edge: 0, failure: &load.Failure{Kind: load.KindTimeout}},
		{due: at(310), done: at(320), edge: 1},
		{due: at(200), done: at(340), edge: 1}, // it was due before
	} {
		b.end(0, s)
	}
	since, right := b.goodSince(at(0))
	if !since.Equal(at(300)) || right != [edges]int{0, 1} {
		t.Errorf("good since %v with %v right, want %v and 0, 1", since.Sub(began), right, 300*time.Millisecond)
	}
	b.begin(3, at(-1))
	for i := range b.waiting {
		if i != 3 {
			b.end(i, sample{due: at(400), done: at(401)})
		}
	}
	if due, any := b.oldest(); !any || !due.Equal(at(-1)) {
		t.Errorf("the oldest is due at %v %v", due, any)
	}
	if taken := b.take(span{at(0), at(400)}.belongs); len(taken) != 3 {
		t.Errorf("%d taken, want 3", len(taken))
	}
}
