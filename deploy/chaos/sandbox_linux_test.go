package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests of the sandbox run this program again: as the part outside, as the one
// inside, and as an upstream in there.
func TestMain(m *testing.M) {
	switch {
	case slices.Contains(os.Args, upstreamCommand):
		os.Exit(exitCode(command(context.Background(), os.Args[1:])))
	case os.Getenv(outsideMark) != "" && !inSandbox():
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		os.Exit(exitCode(enterSandbox(ctx, []string{"-test.run=^" + os.Getenv(outsideMark) + "$", "-test.v"})))
	}
	os.Exit(m.Run())
}

// outsideMark names the test that is to be run in a sandbox.
const outsideMark = "CHAOS_TEST"

// inside runs a test in a sandbox, and returns what it writes and the process that
// stands outside.
func inside(t *testing.T, test string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	if err := checkTools(); err != nil {
		t.Skip(err)
	}
	attr, err := sandboxAttr()
	if err != nil {
		t.Skip(err)
	}
	probe := exec.Command("true")
	if probe.SysProcAttr = attr; probe.Run() != nil {
		t.Skip("needs the right to make namespaces")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), outsideMark+"="+test)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewReader(out)
}

// someMachine makes a machine with a node on it.
func someMachine(t *testing.T, number int) *machine {
	t.Helper()
	name := []string{"one", "two"}[number]
	h, err := makeHost(t.Context(), name, fmt.Sprintf("10.77.0.%d", 10+number))
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{host: h, role: upstream, dir: t.TempDir(), health: healthPath, port: upstreamPort}
	m.command = []string{os.Args[0], upstreamCommand, "", m.at(upstreamPort)}
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
	if err := m.process.Wait(t.Context(), m.well); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestFaultsHappen(t *testing.T) {
	_, out := inside(t, "TestInsideFaultsHappen")
	all, err := io.ReadAll(out)
	if err != nil || !strings.Contains(string(all), "--- PASS: TestInsideFaultsHappen") {
		t.Errorf("%v: %s", err, all)
	}
}

// Each fault is seen while it lasts, by nobody but whom it concerns, and no longer.
func TestInsideFaultsHappen(t *testing.T) {
	if !inSandbox() {
		t.Skip("run by TestFaultsHappen")
	}
	ctx := t.Context()
	if err := furnishSandbox(ctx); err != nil {
		t.Fatal(err)
	}
	one, two := someMachine(t, 0), someMachine(t, 1)
	hub := host{addr: hubAddr}
	cutOff := func(way, percent int) func(context.Context, *fault) error {
		return func(ctx context.Context, f *fault) error { return f.target.hold(ctx, f.table(), way, percent, hub) }
	}
	for name, c := range map[string]struct {
		begin, heal func(context.Context, *fault) error
		heard       bool // all the same
	}{
		"cut both ways": {cutOff(bothWays, 100), mend, false},
		"cut from peer": {cutOff(fromPeer, 100), mend, false},
		"cut to peer":   {cutOff(toPeer, 100), mend, false},
		"lossy":         {cutOff(bothWays, 1), mend, true},
		"killed":        {kill, revive, false},
		"ended":         {term, revive, false},
		"frozen":        {freeze, thaw, false},
		"slow":          {slow, quicken, true},
	} {
		f := &fault{number: 7, target: one}
		if err := c.begin(ctx, f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		// A signal may take a moment, and what is lost is sent again.
		for end := time.Now().Add(10 * time.Second); ; {
			err := one.well(ctx)
			if (err == nil) == c.heard {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: heard: %v, error: %v", name, !c.heard, err)
			}
		}
		if err := two.well(ctx); err != nil {
			t.Errorf("%s: the other one: %v", name, err)
		}
		if err := errors.Join(one.crashed(), two.crashed()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.heal(ctx, f); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := one.process.Wait(ctx, one.well); err != nil {
			t.Errorf("%s, and healed: %v", name, err)
		}
	}
	if err := one.process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := one.ended(ctx); err != nil || one.crashed() == nil {
		t.Errorf("it was ended by somebody else, and nobody sees: %v", err)
	}
	if err := errors.Join(one.stop(), two.stop()); err != nil {
		t.Error(err)
	}
}

// However the part outside ends, nothing is left of the one inside: only then does what
// both write come to its end.
func TestNothingIsLeft(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		cmd, out := inside(t, "TestInsideStays")
		for line := ""; !strings.HasPrefix(line, "it runs"); {
			var err error
			if line, err = out.ReadString('\n'); err != nil {
				t.Fatalf("it does not run: %v", err)
			}
		}
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, out)
			ended <- err
		}()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%v: something still runs", s)
		}
	}
}

// TestInsideStays is the part inside of TestNothingIsLeft.
func TestInsideStays(t *testing.T) {
	if !inSandbox() {
		t.Skip("run by TestNothingIsLeft")
	}
	if err := furnishSandbox(t.Context()); err != nil {
		t.Fatal(err)
	}
	someMachine(t, 0)
	os.Stdout.WriteString("it runs\n")
	select {}
}
