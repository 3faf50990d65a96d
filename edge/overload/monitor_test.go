package overload

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// scene is a Monitor in a bubble, over a lane and a heap of the test's.
type scene struct {
	*Monitor
	reg     *prometheus.Registry
	log     bytes.Buffer
	changes []Stage

	late atomic.Pointer[func(n int) time.Duration] // of the lane's n-th mark
	held atomic.Uint64
}

const testBudget = 1000

var onTime = func(int) time.Duration { return 0 }

// watch runs a test beside a Monitor whose delay limit is a second.
func watch(t *testing.T, change func(*Limits), test func(t *testing.T, s *scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, marks := &scene{reg: prometheus.NewRegistry()}, 0
		s.late.Store(&onTime)
		l := Limits{Delay: time.Second}
		if change != nil {
			change(&l)
		}
		m, err := New(Config{
			Limits: l, Registerer: s.reg,
			Logger: slog.New(slog.NewTextHandler(&s.log, nil)),
			Lanes: []Lane{
				{Name: "on time", Mark: func(arrived func()) { arrived() }},
				{Name: "late", Mark: func(arrived func()) {
					marks++
					time.AfterFunc((*s.late.Load())(marks), arrived)
				}},
			},
			Changed: func(st Stage) { s.changes = append(s.changes, st) },
		})
		if err != nil {
			t.Fatal(err)
		}
		m.heap = &heap{budget: testBudget, read: func() usage { return usage{held: s.held.Load()} }, collect: func() {}}
		s.Monitor = m
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			m.Run(ctx)
			close(ended)
		}()
		test(t, s)
		stop()
		<-ended
		time.Sleep(10 * time.Minute) // marks that are on their way end with the bubble
	})
}

// after lets time pass.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestMonitorOfMemory(t *testing.T) {
	watch(t, nil, func(t *testing.T, s *scene) {
		for _, step := range []struct {
			held uint64
			want Stage
		}{{500, Normal}, {860, NoKeepAlive}, {910, RefuseConns}, {960, RefuseRequests}} {
			s.held.Store(step.held)
			after(tick)
			if s.Stage() != step.want {
				t.Errorf("with %d of %d: %v, want %v", step.held, testBudget, s.Stage(), step.want)
			}
			if refuses := s.Err() != nil; refuses != (step.want >= RefuseConns) {
				t.Errorf("at %v: Err %v", step.want, s.Err())
			}
		}
		if err := s.Err(); err == nil || err.Error() != "overload: refuse requests (memory 96 %, delay 0 % of the limit)" {
			t.Error(err)
		}
		if err := testutil.GatherAndCompare(s.reg, strings.NewReader(`
			# HELP ommer_edge_overload_pressure How much of what may be taken is taken, 1 for all of it.
			# TYPE ommer_edge_overload_pressure gauge
			ommer_edge_overload_pressure{resource="delay"} 0
			ommer_edge_overload_pressure{resource="memory"} 0.96
			# HELP ommer_edge_overload_stage What is shed: 0 nothing, 1 keep-alive, 2 new connections, 3 requests.
			# TYPE ommer_edge_overload_stage gauge
			ommer_edge_overload_stage 3
		`)); err != nil {
			t.Error(err)
		}
		s.held.Store(100)
		after(time.Minute)
		want := []Stage{NoKeepAlive, RefuseConns, RefuseRequests, RefuseConns, NoKeepAlive, Normal}
		if !slices.Equal(s.changes, want) {
			t.Errorf("changes %v, want %v", s.changes, want)
		}
		lines := strings.Split(strings.TrimSpace(s.log.String()), "\n")
		if len(lines) != len(want) {
			t.Fatalf("%d log lines for %d changes:\n%s", len(lines), len(want), &s.log)
		}
		for _, part := range []string{`level=WARN`, `stage="refuse requests"`, `was="refuse connections"`, `memory=960`, `memory_percent=96`, `delay_percent=0`} {
			if !strings.Contains(lines[2], part) {
				t.Errorf("the log does not say %s: %s", part, lines[2])
			}
		}
	})
}

func TestMonitorOfDelay(t *testing.T) {
	for _, tt := range []struct {
		name string
		late func(n int) time.Duration
		want Stage // the highest in a minute
	}{
		{"busy, in time", func(int) time.Duration { return 400 * time.Millisecond }, Normal},
		{"half of the limit", func(int) time.Duration { return 600 * time.Millisecond }, RefuseConns},
		{"beyond the limit", func(int) time.Duration { return 1100 * time.Millisecond }, RefuseRequests},
		{"far beyond it", func(int) time.Duration { return 7 * time.Second }, RefuseRequests},
		{"never", func(int) time.Duration { return 3 * time.Minute }, RefuseRequests},
		{"a long moment now and then", func(n int) time.Duration { return time.Duration(n%20/19) * 1500 * time.Millisecond }, Normal},
		{"many moments", func(n int) time.Duration { return time.Duration(n%2) * 900 * time.Millisecond }, Normal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			watch(t, nil, func(t *testing.T, s *scene) {
				highest := Normal
				s.late.Store(&tt.late)
				for range 600 {
					after(tick)
					highest = max(highest, s.Stage())
				}
				if highest != tt.want {
					t.Errorf("it came to %v, want %v", highest, tt.want)
				}
				s.late.Store(&onTime)
				after(5 * time.Minute) // until marks that hang have come
				if s.Stage() != Normal {
					t.Errorf("still %v when nothing is late", s.Stage())
				}
			})
		})
	}
}

// One pause of everything, the Monitor with it, is none of its lanes' fault.
func TestMonitorSurvivesPause(t *testing.T) {
	q := &queue{Lane: Lane{Mark: func(func()) {}}}
	now := time.Unix(1, 0)
	for range 20 {
		q.look(now)
		q.late.Store(0)
		now = now.Add(tick)
	}
	now = now.Add(10 * time.Second)
	if late := q.look(now); late != 0 {
		t.Errorf("after a pause it is %v late", late)
	}
	q.look(now)
	q.late.Store(int64(9 * time.Second)) // the mark was on its way meanwhile
	for range 5 {
		if late := q.look(now.Add(tick)); late > 0 && len(q.marks) > 1 {
			t.Errorf("one late mark makes it %v late", late)
		}
		q.late.Store(0)
		now = now.Add(tick)
	}
}

func TestMonitorOff(t *testing.T) {
	watch(t, func(l *Limits) { l.Off = true }, func(t *testing.T, s *scene) {
		s.held.Store(2 * testBudget)
		after(time.Minute)
		if s.Stage() != Normal || len(s.changes) > 0 {
			t.Errorf("%v after %v", s.Stage(), s.changes)
		}
		if p := s.state.Load().ratio[memory]; p != 2 {
			t.Errorf("a pressure of %v is reported, want 2", p)
		}
	})
}

// Without a budget there is only the delay.
func TestMonitorWithoutBudget(t *testing.T) {
	m, err := New(Config{Limits: Limits{Delay: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	m.heap = nil
	m.look()
	if p := m.state.Load().ratio[memory]; m.Stage() != Normal || p != 0 {
		t.Errorf("%v at a pressure of %v", m.Stage(), p)
	}
}

func BenchmarkStage(b *testing.B) {
	m, err := New(Config{})
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		if m.Stage() >= RefuseRequests {
			n++
		}
	}
	_ = n
}

// BenchmarkLook is what a look costs, ten times a second.
func BenchmarkLook(b *testing.B) {
	m, err := New(Config{
		Limits: Limits{Memory: 1 << 40, Delay: time.Second},
		Lanes:  []Lane{{Mark: func(arrived func()) { arrived() }}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.look()
	}
}
