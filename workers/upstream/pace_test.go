package upstream

import (
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	var p pace
	now := time.Now()
	if _, ok := p.slowest(); ok || p.cost(now) != 0 {
		t.Error("something is known of a node that was never asked")
	}
	for i := range 1000 {
		now = now.Add(10 * time.Millisecond)
		d := 4 * time.Millisecond
		if i%20 == 0 {
			d = 80 * time.Millisecond
		}
		p.took(now, d, true)
	}
	// The bound of the bucket is at most a quarter more.
	if got, ok := p.slowest(); !ok || got < 80*time.Millisecond || got > 100*time.Millisecond {
		t.Errorf("99 %% within %v, want 80 ms", got)
	}
	if got := p.best(); got != 4*time.Millisecond {
		t.Errorf("best %v, want 4 ms", got)
	}
	p.took(now, time.Second, true)
	if got := p.cost(now); got != float64(time.Second) {
		t.Errorf("after a slow one: %v", time.Duration(got))
	}
	if got := p.cost(now.Add(paceHalf)); got != float64(time.Second)/2 {
		t.Errorf("some time later: %v", time.Duration(got))
	}
	for range 1000 {
		now = now.Add(20 * time.Millisecond)
		p.took(now, 4*time.Millisecond, true)
	}
	if got := time.Duration(p.cost(now)); got > 100*time.Millisecond {
		t.Errorf("after many quick ones: %v", got)
	}
}

func TestPaceOfAnything(t *testing.T) {
	var p pace
	now := time.Now()
	for _, d := range []time.Duration{-time.Second, 0, 1, time.Microsecond, firstPace, time.Hour, 1 << 62} {
		for range leastPaces {
			p.took(now, d, true)
		}
		if got, ok := p.slowest(); !ok || got < firstPace || got > 5*time.Minute {
			t.Errorf("%v: %v", d, got)
		}
	}
}
