package nio

import (
	"os"
	"strconv"
	"testing"
)

// TestAdopter fails when a release of nbio no longer lets its pollers be found.
// The service works all the same, but half-closed connections get no answer.
func TestAdopter(t *testing.T) {
	l := start(t, Config{Pollers: 3})
	<-l.Started()
	exchange(t, dial(t, listen(t, l, nil, echoing(nil)), 0), []byte("it runs"))
	if len(l.engine.epolls) != 3 {
		t.Fatalf("the pollers' descriptors are %v, want three", l.engine.epolls)
	}
	for _, fd := range l.engine.epolls {
		if got, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd)); err != nil || got != "anon_inode:[eventpoll]" {
			t.Errorf("descriptor %d is %q (%v), want an epoll", fd, got, err)
		}
	}
}
