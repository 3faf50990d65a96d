package overload

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCgroupLimit(t *testing.T) {
	const none1 = "9223372036854771712\n" // what version 1 says where there is no limit
	for _, tt := range []struct {
		name       string
		membership string
		files      map[string]string
		want       uint64
	}{
		{"version 2, in a container", "0::/\n", map[string]string{"memory.max": "536870912\n"}, 512 << 20},
		{"version 2, a service", "0::/system.slice/ommer.service\n", map[string]string{
			"system.slice/memory.max": "max\n", "system.slice/ommer.service/memory.max": "1000000\n"}, 1_000_000},
		{"version 2, the smallest of the way up", "0::/a/b\n", map[string]string{"a/memory.max": "1000\n", "a/b/memory.max": "2000\n"}, 1000},
		{"version 2, the host's path in a container", "0::/kubepods/pod1/c1\n", map[string]string{"memory.max": "4096\n"}, 4096},
		{"version 2, without a limit", "0::/a\n", map[string]string{"a/memory.max": "max\n"}, 0},
		{"version 1", "9:name=systemd:/x\n4:cpuset,memory:/docker/c1\n0::/\n", map[string]string{
			"memory/memory.limit_in_bytes": none1, "memory/docker/c1/memory.limit_in_bytes": "3000\n"}, 3000},
		{"version 1, without a limit", "4:memory:/\n", map[string]string{"memory/memory.limit_in_bytes": none1}, 0},
		{"version 1, another controller", "5:memoryless:/\n", map[string]string{"memory/memory.limit_in_bytes": "5\n"}, 0},
		{"nothing there", "0::/a\n4:memory:/b\n", nil, 0},
		{"no list of groups", "x\n\n:\n", map[string]string{"memory.max": "5\n"}, 0},
		{"a path that leads out", "0::/../..\n", map[string]string{"memory.max": "6\n"}, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range tt.files {
				file := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := cgroupLimit([]byte(tt.membership), root); got != tt.want {
				t.Errorf("%d, want %d", got, tt.want)
			}
		})
	}
}

func TestAutomaticBudget(t *testing.T) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	machine := uint64(info.Totalram) * uint64(info.Unit)
	was := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(was)
	if got := (Limits{}).Budget(); got == 0 || got > machine/4*3 {
		t.Errorf("the budget is %d of %d", got, machine)
	}
	debug.SetMemoryLimit(123 << 20)
	if got := (Limits{}).Budget(); got != 123<<20 {
		t.Errorf("the budget is %d, want GOMEMLIMIT", got)
	}
}
