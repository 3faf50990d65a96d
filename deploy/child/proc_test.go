package child

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	// Fields 3 to 13, then utime 250, stime 50, and the times of children.
	const rest = " S 1 2 3 4 5 6 7 8 9 10 250 50 900 900 20 0 8 0 12345\n"
	for name, line := range map[string]string{
		"plain":                   "42 (ommer-edge)" + rest,
		"spaces in the name":      "42 (a b c)" + rest,
		"parentheses in the name": "42 (a) S 9 9 9 9 (b)" + rest,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parseStat([]byte(line)); err != nil || got != 3*time.Second {
				t.Errorf("got %v, %v, want 3s", got, err)
			}
		})
	}
	for name, line := range map[string]string{
		"empty":       "",
		"no name":     "42",
		"cut off":     "42 (x) S 1 2 3 4 5 6 7 8 9 10 250",
		"no number":   "42 (x) S 1 2 3 4 5 6 7 8 9 10 many 50 0",
		"over 40 bit": "42 (x) S 1 2 3 4 5 6 7 8 9 10 1 9999999999999 0",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parseStat([]byte(line)); !errors.Is(err, errProc) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestParseRSS(t *testing.T) {
	const good = "Name:\tVmRSS:\nVmHWM:\t  9000 kB\nVmRSS:\t    1234 kB\nRssAnon:\t 1 kB\n"
	if got, err := parseRSS([]byte(good)); err != nil || got != 1234<<10 {
		t.Errorf("got %d, %v", got, err)
	}
	for name, text := range map[string]string{
		"none":       "Name:\tx\nState:\tZ (zombie)\n",
		"other unit": "Name:\tx\nVmRSS:\t 1 MB\n",
		"no number":  "Name:\tx\nVmRSS:\t many kB\n",
		"empty":      "",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parseRSS([]byte(text)); !errors.Is(err, errProc) {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
}

// What /proc says of this process is what the kernel says by another way.
func TestOwnProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	begun, err := OwnCPU()
	if err != nil {
		t.Fatal(err)
	}
	own := begun
	for own < begun+200*time.Millisecond {
		if own, err = OwnCPU(); err != nil {
			t.Fatal(err)
		}
	}
	stat, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	own, _ = OwnCPU()
	// Two numbers rounded down to ticks, and what was used between the readings.
	if off := own - stat; off < -tick || off > 10*tick {
		t.Errorf("/proc says %v, getrusage %v", stat, own)
	}

	before, err := RSS(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const grown = 64 << 20
	// Not from Go's heap, of which the race detector keeps shadows.
	block, err := syscall.Mmap(-1, 0, grown, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(block); i += 1 << 10 {
		block[i] = 1
	}
	after, err := RSS(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Munmap(block); err != nil {
		t.Error(err)
	}
	if got := after - before; got < grown/2 || got > 2*grown {
		t.Errorf("%d bytes more, want about %d", got, grown)
	}
}

func TestNoProcess(t *testing.T) {
	if _, err := CPU(-1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("CPU of no process: %v", err)
	}
	if _, err := RSS(-1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("memory of no process: %v", err)
	}
}
