package child

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestProcess(t *testing.T) {
	t.Setenv("OMMER_SECRET", "not for children")
	p, err := Start(t.TempDir(), "shell", "/bin/sh", "-c", `echo "ready [$OMMER_SECRET]"; exec sleep 1000`)
	if err != nil {
		t.Fatal(err)
	}
	notYet := errors.New("not yet")
	err = p.Wait(t.Context(), func(context.Context) error {
		if strings.Contains(string(p.Tail()), "ready []") {
			return nil
		}
		return notYet
	})
	if err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Wait(ctx, func(context.Context) error { return notYet }); !errors.Is(err, notYet) || !strings.Contains(err.Error(), "ready []") {
		t.Errorf("waited in vain: %v", err)
	}
	for range 2 { // the second time it has ended
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	}
	if _, err := CPU(p.PID()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the process is still there: %v", err)
	}
	if err := (*Process)(nil).Stop(); err != nil {
		t.Error(err)
	}
}

// A process that has ended says so, and takes no signal.
func TestSignal(t *testing.T) {
	p, err := Start(t.TempDir(), "sleep", "/bin/sleep", "1000")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Ended():
		t.Fatal("it has ended by itself")
	default:
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	<-p.Ended()
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Errorf("a signal to one that has ended: %v", err)
	}
}

// A process is told something, and its input stays open until it is stopped.
func TestStartWith(t *testing.T) {
	p, err := StartWith([]byte("listen\n"), t.TempDir(), "shell", "/bin/sh", "-c", `read word; echo "told to $word"; read more; echo ended`)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Wait(t.Context(), func(context.Context) error {
		if strings.Contains(string(p.Tail()), "told to listen") {
			return nil
		}
		return errors.New("not yet")
	})
	if err != nil {
		t.Error(err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if strings.Contains(string(p.Tail()), "ended") {
		t.Error("its input ended before it was stopped")
	}
}

func TestProcessFails(t *testing.T) {
	p, err := Start(t.TempDir(), "shell", "/bin/sh", "-c", "echo no such luck; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	err = p.Wait(t.Context(), func(context.Context) error { return errors.New("not yet") })
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("got %v", err)
	}
	if _, err := Start(t.TempDir(), "none", "/no/such/program"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestFreeAddrs(t *testing.T) {
	addrs, err := FreeAddrs(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, a := range addrs {
		if seen[a] || !strings.HasPrefix(a, "127.0.0.1:") || strings.HasSuffix(a, ":0") {
			t.Errorf("address %s", a)
		}
		seen[a] = true
	}
}
