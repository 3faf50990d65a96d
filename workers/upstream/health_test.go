package upstream

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestHealthGoesDownAfterFailures(t *testing.T) {
	var h health
	now := time.Now()
	h.succeeded(now)
	for i := 1; i < failuresUntilDown; i++ {
		if h.failed(now, ErrFailed) || h.reason() != nil {
			t.Fatalf("down after %d failures", i)
		}
	}
	h.succeeded(now) // starts the count anew
	for i := 1; i < failuresUntilDown; i++ {
		h.failed(now, ErrFailed)
	}
	if !h.failed(now, ErrFailed) || h.reason() == nil || !h.last(now) {
		t.Fatal("still up after the last failure")
	}
	if changed, downFor := h.succeeded(now.Add(time.Second)); !changed || downFor != time.Second || h.last(now) {
		t.Errorf("after an answer: changed %v, down for %v", changed, downFor)
	}
}

func TestHealthFirstFailureCounts(t *testing.T) {
	now := time.Now()
	var fresh health
	if !fresh.failed(now, ErrUnreachable) {
		t.Error("a node that was never reached is not down")
	}
	var liar health
	liar.succeeded(now)
	if !liar.failed(now, fmt.Errorf("%w: told so", ErrUntrue)) {
		t.Error("a node that told an untruth is not down")
	}
}

func TestHealthPenaltyGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h health
		h.failed(time.Now(), ErrUntrue)
		for want := firstPenalty; want < 4*longestPenalty; want *= 2 {
			want := min(want, longestPenalty)
			h.failed(time.Now(), ErrUntrue) // one that was under way changes nothing
			time.Sleep(want - 1)
			if !h.last(time.Now()) {
				t.Fatalf("the penalty of %v is over too early", want)
			}
			time.Sleep(time.Nanosecond)
			if h.last(time.Now()) {
				t.Fatalf("the penalty of %v is not over", want)
			}
			h.failed(time.Now(), ErrUntrue)
		}
	})
}

func TestHealthPolled(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want bool // up at once
	}{
		{"was out of reach", ErrUnreachable, true},
		{"kept silent", fmt.Errorf("%w: %w", ErrUnreachable, errNoAnswer), false},
		{"was untrue", ErrUntrue, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var h health
			now := time.Now()
			h.failed(now, tt.err)
			if got, _ := h.polled(now); got != tt.want {
				t.Errorf("up %v, want %v", got, tt.want)
			}
			h.polled(now.Add(firstPenalty))
			if err := h.reason(); err != nil {
				t.Errorf("down after the penalty: %v", err)
			}
		})
	}
}
