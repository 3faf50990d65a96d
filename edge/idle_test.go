package edge

import "testing"

func TestLeavingAge(t *testing.T) {
	for _, tt := range []struct {
		name  string
		count map[int]int
		room  int
		want  int
	}{
		{"none are idle", nil, 16, ages / idleMin},
		{"fewer than there is room for", map[int]int{63: 3, 20: 5}, 16, ages / idleMin},
		{"the oldest take all the room", map[int]int{63: 10, 40: 10, 20: 10}, 16, 40},
		{"just enough", map[int]int{63: 16, 40: 10}, 16, 63},
		{"those in use stay", map[int]int{ages/idleMin - 1: 1000, 0: 1000}, 16, ages / idleMin},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var count [ages]int
			for age, n := range tt.count {
				count[age] = n
			}
			if got := leavingAge(&count, tt.room); got != tt.want {
				t.Errorf("from age %d on, want %d", got, tt.want)
			}
		})
	}
}
