package snapshot

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Variables of the process that limited ends in.
const (
	limitEnv = "OMMER_TEST_FILE_LIMIT"
	outEnv   = "OMMER_TEST_OUT"
)

func TestMain(m *testing.M) {
	limited()
	os.Exit(m.Run())
}

// limited writes in a process whose files cannot grow beyond a limit: a write beyond it
// fails as one to a full disk does.
func limited() {
	var limit uint64
	if _, err := fmt.Sscan(os.Getenv(limitEnv), &limit); err != nil {
		return
	}
	err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit})
	if err == nil {
		err = Write(os.Getenv(outEnv), some(5000))
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// TestFullDisk runs out of room at the start, in the middle and with the last line.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hot")
	if err := Write(path, some(10)); err != nil {
		t.Fatal(err)
	}
	size := len(encoded(t, some(5000)))
	for _, limit := range []int{0, size / 2, size - 1} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", limitEnv, limit), outEnv+"="+path)
		text, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(text), "file too large") || !strings.Contains(string(text), path) {
			t.Errorf("with room for %d bytes: %v, %s", limit, err, text)
		}
		if got, err := Read(path, sepolia); err != nil || len(got) != 10 {
			t.Errorf("the old file has %d blocks, %v", len(got), err)
		}
		if got := files(t, path); len(got) != 1 {
			t.Errorf("left behind: %q", got)
		}
	}
}
