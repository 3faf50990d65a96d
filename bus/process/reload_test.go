package process

import (
	"context"
	"log/slog"
	"os"
	"syscall"
	"testing"
)

// A hang-up is no end: it calls Reload, again and again, and the process goes on.
func TestHangupReloads(t *testing.T) {
	reloaded := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	started := make(chan struct{})
	p := Process{Log: slog.New(slog.DiscardHandler), Reload: func() { reloaded <- struct{}{} }}
	go func() {
		ended <- p.Run(ctx, Part{"wait", func(ctx context.Context) error {
			close(started)
			<-ctx.Done()
			return nil
		}})
	}()
	<-started // signals are listened for before the parts start
	for range 3 {
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		<-reloaded
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
