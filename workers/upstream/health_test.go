package upstream

import (
	"errors"
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
	for _, tt := range []struct {
		err            error
		first, longest time.Duration
	}{
		{ErrFailed, firstPenalty, longestPenalty},
		{ErrUntrue, firstUntruth, longestUntruth},
	} {
		synctest.Test(t, func(t *testing.T) {
			var h health
			h.failed(time.Now(), tt.err)
			for want := tt.first; want < 4*tt.longest; want *= 2 {
				want := min(want, tt.longest)
				h.failed(time.Now(), tt.err) // one that was under way changes nothing
				time.Sleep(want - 1)
				if !h.last(time.Now()) {
					t.Fatalf("%v: the penalty of %v is over too early", tt.err, want)
				}
				time.Sleep(time.Nanosecond)
				if h.last(time.Now()) {
					t.Fatalf("%v: the penalty of %v is not over", tt.err, want)
				}
				h.failed(time.Now(), tt.err)
			}
		})
	}
}

// A false answer is neither made good by right ones nor forgotten by the next time.
func TestHealthRemembersUntruth(t *testing.T) {
	now := time.Now()
	var h health
	h.failed(now, ErrUntrue)
	if h.succeeded(now); !h.last(now) || h.reason() == nil {
		t.Error("one right answer made good for a false one")
	}
	if h.failed(now, ErrUnreachable); !errors.Is(h.reason(), ErrUntrue) {
		t.Errorf("a false answer is forgotten over %v", h.reason())
	}
	now = now.Add(firstUntruth)
	if h.succeeded(now); h.reason() != nil {
		t.Fatal("down for good")
	}
	h.failed(now, ErrUntrue)
	if now = now.Add(firstUntruth); !h.last(now) {
		t.Error("the second penalty is no longer than the first")
	}
	now = now.Add(memory + time.Second)
	h.succeeded(now)
	h.failed(now, ErrUntrue)
	if now = now.Add(firstUntruth); h.last(now) {
		t.Error("it is remembered for more than an hour")
	}
}

// After the penalty one lookup finds out; meanwhile the others go elsewhere.
func TestHealthIsProbedByOne(t *testing.T) {
	now := time.Now()
	var h health
	h.failed(now, ErrFailed)
	now = now.Add(firstPenalty)
	if h.last(now) {
		t.Fatal("nobody may find out")
	}
	if h.probe(); !h.last(now) {
		t.Error("two may find out at a time")
	}
	if h.landed(); h.last(now) {
		t.Error("nobody may find out any more")
	}
	h.probe()
	h.landed()
	if changed, _ := h.succeeded(now); !changed || h.last(now) {
		t.Error("down in spite of an answer")
	}
	if h.probe(); h.last(now) {
		t.Error("a node that is up is probed")
	}
}

// A node that fails more often than not is down, though never three times in a row.
func TestHealthFailsMostly(t *testing.T) {
	now := time.Now()
	var sometimes, mostly health
	sometimes.succeeded(now)
	mostly.succeeded(now)
	for range 3 * leastOutcomes {
		now = now.Add(50 * time.Millisecond)
		sometimes.failed(now, ErrFailed)
		sometimes.succeeded(now)
		sometimes.succeeded(now)
		mostly.failed(now, ErrFailed)
		mostly.failed(now, ErrFailed)
		if mostly.reason() != nil {
			break
		}
		mostly.succeeded(now)
	}
	if sometimes.reason() != nil || mostly.reason() == nil {
		t.Errorf("one of three failed: %v, two of three: %v", sometimes.reason(), mostly.reason())
	}
}

func TestHealthPolled(t *testing.T) {
	for _, tt := range []struct {
		name    string
		err     error
		penalty time.Duration // 0: it is up at once
	}{
		{"was out of reach", ErrUnreachable, 0},
		{"kept silent", fmt.Errorf("%w: %w", ErrUnreachable, errNoAnswer), firstPenalty},
		{"was untrue", ErrUntrue, firstUntruth},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var h health
			now := time.Now()
			h.failed(now, tt.err)
			if got, _ := h.polled(now); got != (tt.penalty == 0) {
				t.Errorf("up %v after a penalty of %v", got, tt.penalty)
			}
			h.polled(now.Add(tt.penalty))
			if err := h.reason(); err != nil {
				t.Errorf("down after the penalty: %v", err)
			}
			if tt.penalty == 0 {
				return
			}
			if h.failed(now.Add(tt.penalty), ErrUnreachable); h.reason() == nil {
				t.Error("up after one more failure, though no lookup was ever answered")
			}
		})
	}
}
