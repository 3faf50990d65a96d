package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// parentCommand is the argument that makes the test's binary start a child, tell its
// id and wait.
const parentCommand = "be-a-parent"

func beAParent() error {
	p, err := Start(os.TempDir(), "child", "/bin/sleep", "1000")
	if err != nil {
		return err
	}
	fmt.Println(p.PID())
	return p.Wait(context.Background(), func(context.Context) error { return errors.New("never") })
}

// A child ends with its parent, whatever ended that.
func TestOutlivesNobody(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the kernel does not see to it elsewhere")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self, parentCommand)
	parent.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	id, notNumber := strconv.Atoi(strings.TrimSpace(line))
	if err := errors.Join(err, notNumber); err != nil {
		t.Fatal(errors.Join(err, parent.Process.Kill(), parent.Wait()))
	}
	if !runs(id) {
		t.Error("the child does not run")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	for end := time.After(ReadyTimeout); runs(id); {
		select {
		case <-time.After(time.Millisecond):
		case <-end:
			t.Fatal("the child outlives its parent")
		}
	}
}

// runs says whether a process is there and no zombie, which it is until somebody waits
// for it.
func runs(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(b), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}
