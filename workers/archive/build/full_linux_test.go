package build

import (
	"bytes"
	"context"
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
	fromEnv  = "OMMER_TEST_FROM"
	outEnv   = "OMMER_TEST_OUT"
)

// limited builds in a process whose files cannot grow beyond a limit: a write beyond
// it fails as one to a full disk does.
func limited() {
	var limit uint64
	if _, err := fmt.Sscan(os.Getenv(limitEnv), &limit); err != nil {
		return
	}
	err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit})
	if err == nil {
		err = Build(context.Background(), Config{From: os.Getenv(fromEnv), Out: os.Getenv(outEnv)})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// TestFullDisk runs out of room while the journal is written and while the file is,
// and then has room.
func TestFullDisk(t *testing.T) {
	dir := folder(t)
	want := build(t, Config{From: dir})
	out := filepath.Join(t.TempDir(), "out.uncles")
	for _, limit := range []int{4096, 100_000, len(want) - 100} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", limitEnv, limit), fromEnv+"="+dir, outEnv+"="+out)
		text, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(text), "file too large") || !strings.Contains(string(text), out) {
			t.Errorf("with room for %d bytes: %v, %s", limit, err, text)
		}
		if _, err := os.Stat(out); err == nil {
			t.Fatal("there is a file")
		}
		if left := besides(t, out); len(left) > 1 {
			t.Errorf("left behind: %q, want the journal alone", left)
		}
	}
	if !bytes.Equal(build(t, Config{From: dir, Out: out}), want) {
		t.Error("another file than in one go")
	}
}
