package child

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// tick is the unit of CPU time in /proc: 1/USER_HZ, which Linux has kept at 1/100 s
// on every architecture that Go runs on.
const tick = 10 * time.Millisecond

// errProc: a file of /proc does not look as proc(5) says.
var errProc = errors.New("cannot be read")

// CPU returns the user and system time that a process has used so far.
func CPU(pid int) (time.Duration, error) {
	name := fmt.Sprintf("/proc/%d/stat", pid)
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	d, err := parseStat(b)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return d, nil
}

// parseStat returns utime plus stime of proc(5)'s stat, its fields 14 and 15. The
// second one is the program's name in parentheses, which may hold anything, so
// counting begins after the last one.
func parseStat(b []byte) (time.Duration, error) {
	i := bytes.LastIndexByte(b, ')')
	fields := bytes.Fields(b[i+1:]) // from the third on
	const utime, stime = 14 - 3, 15 - 3
	if i < 0 || len(fields) <= stime {
		return 0, errProc
	}
	user, err1 := strconv.ParseUint(string(fields[utime]), 10, 40)
	system, err2 := strconv.ParseUint(string(fields[stime]), 10, 40)
	if err := errors.Join(err1, err2); err != nil {
		return 0, fmt.Errorf("%w: %w", errProc, err)
	}
	return time.Duration(user+system) * tick, nil
}

// OwnCPU returns the user and system time of this process.
func OwnCPU() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, fmt.Errorf("getrusage: %w", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// RSS returns the resident memory of a process in bytes.
func RSS(pid int) (int64, error) {
	name := fmt.Sprintf("/proc/%d/status", pid)
	b, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	n, err := parseRSS(b)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// parseRSS returns VmRSS of proc(5)'s status.
func parseRSS(b []byte) (int64, error) {
	_, rest, found := bytes.Cut(b, []byte("\nVmRSS:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	value, inKB := bytes.CutSuffix(line, []byte(" kB"))
	n, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 50)
	if !found || !inKB || err != nil {
		return 0, fmt.Errorf("VmRSS %w: %.50s", errProc, line)
	}
	return n << 10, nil
}
