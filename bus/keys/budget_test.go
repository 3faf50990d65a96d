package keys

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestBudget(t *testing.T) {
	const second = int64(time.Second)
	type step struct {
		at    int64
		calls int // 1 is a single call
		wait  time.Duration
	}
	for _, c := range []struct {
		name        string
		rate, burst int
		steps       []step
	}{
		{"one a second", 1, 0, []step{{0, 1, 0}, {0, 1, time.Second}, {second / 4, 1, 3 * time.Second / 4}, {second, 1, 0}, {second, 1, time.Second}}},
		{"burst is the rate", 3, 0, []step{{0, 1, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, 333333334}, {second / 2, 1, 0}, {second / 2, 1, 166666668}}},
		{"burst above the rate", 1, 3, []step{{0, 1, 0}, {0, 1, 0}, {0, 1, 0}, {0, 1, time.Second}}},
		{"a pause saves up no more than the burst", 10, 2, []step{{100 * second, 1, 0}, {100 * second, 1, 0}, {100 * second, 1, 100 * time.Millisecond}}},
		{"a batch goes into debt", 2, 2, []step{{0, 10, 0}, {0, 1, 4500 * time.Millisecond}, {4 * second, 1, 500 * time.Millisecond}, {5 * second, 1, 0}}},
		{"what is refused costs nothing", 1, 1, []step{{0, 1, 0}, {1, 1, time.Second - 1}, {2, 1, time.Second - 2}, {second, 1, 0}}},
		{"the highest rate", MaxRate, 1, []step{{0, 1, 0}, {0, 1, time.Microsecond}, {1000, 1, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b budget
			p := newPace(c.rate, c.burst)
			for i, s := range c.steps {
				wait := b.take(s.at, p)
				if wait == 0 {
					b.charge(s.calls-1, p)
				}
				if wait != s.wait {
					t.Errorf("step %d: wait %v, want %v", i, wait, s.wait)
				}
			}
		})
	}
}

// TestBudgetKeepsTheRate: whatever is asked when, no window has more calls than the
// burst, the rate for its length, and what its last message holds beyond one call.
// And nobody waits longer than was said.
func TestBudgetKeepsTheRate(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		rate, burst, most := 1+r.IntN(200), 1+r.IntN(50), 1+r.IntN(20)
		p := newPace(rate, burst)
		type admitted struct {
			at    int64
			calls int
		}
		var b budget
		var in []admitted
		for now := int64(0); len(in) < 200; now += r.Int64N(int64(3*most) * int64(time.Second) / int64(rate)) {
			n := 1 + r.IntN(most)
			wait := b.take(now, p)
			if wait == 0 {
				b.charge(n-1, p)
				in = append(in, admitted{now, n})
				continue
			}
			if b.take(now+int64(wait)-1, p) == 0 {
				t.Fatalf("seed %d: let in before the %v were over", seed, wait)
			}
			if wait := b.take(now+int64(wait), p); wait != 0 {
				t.Fatalf("seed %d: %v more after the wait", seed, wait)
			}
			in = append(in, admitted{now + int64(wait), 1})
			now += int64(wait)
		}
		for i := range in {
			calls := 0
			for _, a := range in[i:] {
				window := float64(a.at-in[i].at) / float64(time.Second)
				if calls++; float64(calls) > float64(burst)+float64(rate)*window+1e-6 {
					t.Fatalf("seed %d: rate %d, burst %d: %d calls begin within %vs", seed, rate, burst, calls, window)
				}
				calls += a.calls - 1
			}
		}
	}
}

// TestBudgetAmongMany: many at the same moment get what one would.
func TestBudgetAmongMany(t *testing.T) {
	const burst = 1000
	var b budget
	var in atomic.Int64
	var wg sync.WaitGroup
	p := newPace(1, burst)
	for range 8 {
		wg.Go(func() {
			for range burst {
				if b.take(0, p) == 0 {
					in.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if got := in.Load(); got != burst {
		t.Errorf("%d were let in, want %d", got, burst)
	}
}

func TestEntryWithSettingsAllocatesNothing(t *testing.T) {
	var e Entry
	e.apply(Settings{Rate: 10, Burst: MaxRate, Origins: []string{"https://b.example", "https://a.example"}, Networks: []string{"mainnet"}, Methods: []string{"eth_getUncleByBlockHashAndIndex"}})
	origin := []byte("https://a.example")
	if n := testing.AllocsPerRun(100, func() {
		_, origins := e.AllowsOrigin(origin)
		_, ok := e.Admit()
		if !ok || !origins || !e.AllowsNetwork("mainnet") || e.AllowsMethod(1) || !e.AllowsMethod(2) {
			t.Fatal("wrong answers")
		}
		e.Charge(3)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAdmit(b *testing.B) {
	for _, c := range []struct {
		name string
		s    Settings
	}{{"no rate", Settings{}}, {"rate", Settings{Rate: MaxRate}}} {
		b.Run(c.name, func(b *testing.B) {
			var e Entry
			e.apply(c.s)
			b.ReportAllocs()
			for b.Loop() {
				e.Admit()
			}
		})
	}
}
