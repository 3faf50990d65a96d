package overload

import (
	"bufio"
	"bytes"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// available is the memory of the container, or of the machine if that has less or
// there is no container.
func available() uint64 {
	var info unix.Sysinfo_t
	machine := uint64(0)
	if unix.Sysinfo(&info) == nil {
		machine = uint64(info.Totalram) * uint64(info.Unit)
	}
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return machine
	}
	limit := cgroupLimit(membership, "/sys/fs/cgroup")
	if limit == 0 || machine > 0 && machine < limit {
		return machine
	}
	return limit
}

// cgroupLimit is the smallest memory limit of the groups that the process is in, 0
// when there is none. membership is /proc/self/cgroup (cgroups(7)), root where the
// groups are mounted. In a container the paths may be those of the host, which it does
// not see, while its own group is the root: so each folder on the way up counts if it
// is there.
func cgroupLimit(membership []byte, root string) (limit uint64) {
	for lines := bufio.NewScanner(bytes.NewReader(membership)); lines.Scan(); {
		field := strings.SplitN(lines.Text(), ":", 3) // hierarchy, controllers, path
		if len(field) < 3 {
			continue
		}
		mount, file := root, "memory.max" // version 2
		if field[1] != "" {
			if !strings.Contains(","+field[1]+",", ",memory,") {
				continue
			}
			mount, file = path.Join(root, "memory"), "memory.limit_in_bytes"
		}
		for dir := path.Clean("/" + field[2]); ; dir = path.Dir(dir) {
			text, err := os.ReadFile(path.Join(mount, dir, file))
			// "max" is no number. Version 1 says no with a number near 2^63.
			if n, bad := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil && n < 1<<60 && (limit == 0 || n < limit) {
				limit = n
			}
			if dir == "/" {
				break
			}
		}
	}
	return limit
}
