package edge

import "testing"

// What strangers can have an edge hold is a part of the memory that it has.
func TestLimitsOfMemory(t *testing.T) {
	for _, tt := range []struct {
		name             string
		given            Limits
		budget           uint64
		input, unwritten int
	}{
		{"a small container", Limits{}, 192 << 20, 24 << 20, 48 << 20},
		{"a large machine", Limits{}, 1 << 40, 512 << 20, 512 << 20},
		{"nobody knows", Limits{}, 0, 512 << 20, 512 << 20},
		{"as told", Limits{InputTotal: 1, UnwrittenTotal: 2}, 192 << 20, 1, 2},
	} {
		if got := tt.given.ofMemory(tt.budget); got.InputTotal != tt.input || got.UnwrittenTotal != tt.unwritten {
			t.Errorf("%s: %d and %d, want %d and %d", tt.name, got.InputTotal, got.UnwrittenTotal, tt.input, tt.unwritten)
		}
	}
}

func TestKebab(t *testing.T) {
	for name, want := range map[string]string{"Body": "body", "ConnsPerAddr": "conns-per-addr", "InFlightTotal": "in-flight-total"} {
		if got := kebab(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
