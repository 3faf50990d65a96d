package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// ours and geths are cells of one second.
func ours(conns int, requests uint64, edge, nats, worker time.Duration) cell {
	return cell{Path: pathWS, Conns: conns, Requests: requests, Took: time.Second, P50: time.Millisecond, P99: 2 * time.Millisecond,
		CPU: cpu{Edge: edge, NATS: nats, Worker: worker, Geth: time.Millisecond, Load: 10 * time.Millisecond}}
}

func geths(conns int, requests uint64, used time.Duration) cell {
	return cell{Path: pathGeth, Conns: conns, Requests: requests, Took: time.Second, CPU: cpu{Geth: used, Edge: time.Millisecond}}
}

func TestRows(t *testing.T) {
	const ms = time.Millisecond
	r := report{Cells: []cell{
		ours(64, 1000, 20*ms, 10*ms, 5*ms), geths(64, 500, 50*ms), // 2 x, 35 us of 100 us
		geths(64, 1000, 100*ms), ours(64, 3000, 60*ms, 30*ms, 15*ms), // 3 x, 35 us of 100 us
		ours(64, 2000, 40*ms, 20*ms, 140*ms), geths(64, 500, 50*ms), // 4 x, 100 us of 100 us
		ours(2000, 100, ms, ms, ms),
	}}
	want := [][]row{{
		{Path: pathWS, Conns: 64, PerSecond: 2000, Lowest: 1000, Highest: 3000, P50: 1, P99: 2,
			Edge: 20, NATS: 10, Worker: 5, Ours: 35, Geth: 0.5, Load: 5, RateToGeth: 3, CPUToGeth: 0.35},
		{Path: pathGeth, Conns: 64, PerSecond: 500, Lowest: 500, Highest: 1000, Edge: 2, Ours: 2, Geth: 100},
	}, {
		{Path: pathWS, Conns: 2000, PerSecond: 100, Lowest: 100, Highest: 100, P50: 1, P99: 2,
			Edge: 10, NATS: 10, Worker: 10, Ours: 30, Geth: 10, Load: 100},
	}}
	if diff := cmp.Diff(want, r.rows(), cmpopts.EquateApprox(1e-9, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPrint(t *testing.T) {
	r := report{
		Cells: []cell{
			ours(64, 1000, time.Second, 0, 0), geths(64, 500, time.Second),
			{Path: pathBare, Conns: 64, Requests: 4000, Took: time.Second, CPU: cpu{Echo: 20 * time.Millisecond}},
		},
		Idle: []idleMemory{
			{Path: pathWS, Conns: 1000, Before: 10 << 20, After: 10<<20 + 512_000, Settled: true},
			{Path: pathWSS, Conns: 1000, Before: 10 << 20, After: 12 << 20},
		},
	}
	var b strings.Builder
	if err := r.print(&b); err != nil {
		t.Fatal(err)
	}
	var fields []string
	for line := range strings.Lines(b.String()) {
		fields = append(fields, strings.Join(strings.Fields(line), " "))
	}
	got := strings.Join(fields, "\n")
	for _, want := range []string{
		"ws 1000 (1000 1000) 1.00 2.00 1000.0 0.0 0.0 1000.0 1.0 0.0 10.0 2.00 0.50 0.25",
		"geth 500 (500 500) 0.00 0.00 2.0 0.0 0.0 2.0 2000.0 0.0 0.0 - - -",
		"bare-nbio 4000 (4000 4000) 0.00 0.00 0.0 0.0 0.0 0.0 0.0 5.0 0.0 - - -",
		"ws 10.0 10.5 512",
		"wss 10.0 12.0 2097 (not at rest)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no line %q in\n%s", want, b.String())
		}
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0}, {[]float64{7}, 7}, {[]float64{3, 1}, 2}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5},
	} {
		given := slices.Clone(tt.values)
		if got := median(tt.values); got != tt.want {
			t.Errorf("of %v: %v, want %v", tt.values, got, tt.want)
		}
		if !slices.Equal(given, tt.values) {
			t.Errorf("%v was changed to %v", given, tt.values)
		}
	}
}
