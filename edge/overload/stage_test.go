package overload

import (
	"testing"
	"time"
)

// looks is what a ladder is shown, a tick apart each.
type looks struct {
	times  int
	memory float64
	delay  float64
	want   Stage // after the last of them
}

func TestLadder(t *testing.T) {
	const calm = int(leaveAfter/tick) + 1 // looks: the first begins the calm
	for _, tt := range []struct {
		name  string
		looks []looks
	}{
		{"nothing", []looks{{100, 0.8, 0.4, Normal}}},
		{"each stage of memory", []looks{{1, 0.849, 0, Normal}, {1, 0.85, 0, NoKeepAlive}, {1, 0.9, 0, RefuseConns}, {1, 0.95, 0, RefuseRequests}}},
		{"each stage of delay", []looks{{1, 0, 0.49, Normal}, {1, 0, 0.5, RefuseConns}, {1, 0, 1, RefuseRequests}}},
		{"up at once, from the bottom to the top", []looks{{1, 0, 0, Normal}, {1, 2, 0, RefuseRequests}}},
		{"the worse of both", []looks{{1, 0.86, 0.5, RefuseConns}, {1, 0.96, 0.5, RefuseRequests}}},
		{"down one by one", []looks{
			{1, 1, 1, RefuseRequests},
			{calm - 1, 0, 0, RefuseRequests}, {1, 0, 0, RefuseConns},
			{calm - 1, 0, 0, RefuseConns}, {1, 0, 0, NoKeepAlive},
			{calm - 1, 0, 0, NoKeepAlive}, {1, 0, 0, Normal},
		}},
		{"down as far as the pressure allows", []looks{
			{1, 1, 0, RefuseRequests}, {calm, 0.82, 0, RefuseConns}, {100, 0.82, 0, RefuseConns},
			{calm, 0.8, 0, NoKeepAlive}, {100, 0.8, 0, NoKeepAlive}, {calm, 0.76, 0, Normal},
		}},
		{"not while one of both stays", []looks{{1, 1, 1, RefuseRequests}, {100, 0, 0.95, RefuseRequests}, {calm, 0, 0.85, RefuseConns}, {100, 0, 0.5, RefuseConns}}},
		{"just below the threshold is not calm", []looks{{1, 0.85, 0, NoKeepAlive}, {100, 0.84, 0, NoKeepAlive}}},
		{"what comes back begins the calm anew", []looks{
			{1, 0.85, 0, NoKeepAlive}, {calm - 1, 0, 0, NoKeepAlive}, {1, 0.8, 0, NoKeepAlive},
			{calm - 1, 0, 0, NoKeepAlive}, {1, 0, 0, Normal},
		}},
		{"up again in the middle of the way down", []looks{{1, 1, 0, RefuseRequests}, {calm + 5, 0, 0, RefuseConns}, {1, 0.95, 0, RefuseRequests}, {calm - 1, 0, 0, RefuseRequests}, {1, 0, 0, RefuseConns}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l ladder
			now := time.Unix(1, 0)
			for i, s := range tt.looks {
				var got Stage
				for range s.times {
					now = now.Add(tick)
					got = l.step(now, pressure{memory: s.memory, delay: s.delay})
				}
				if got != s.want {
					t.Fatalf("looks %d: stage %v, want %v", i, got, s.want)
				}
			}
		})
	}
}

// A pressure that swings around a threshold changes the stage once, not each time.
func TestLadderDoesNotFlap(t *testing.T) {
	for s := NoKeepAlive; s <= RefuseRequests; s++ {
		for r := range resources {
			var l ladder
			now, changes := time.Unix(1, 0), 0
			for i := range 1000 {
				var p pressure
				p[r] = thresholds[s][r] * (1 - 0.2*float64(i%2))
				was := l.stage
				now = now.Add(tick)
				if l.step(now, p) != was {
					changes++
				}
			}
			if changes != 1 {
				t.Errorf("%s around the threshold of %v: %d changes", resourceNames[r], s, changes)
			}
		}
	}
}
