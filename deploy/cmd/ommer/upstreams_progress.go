package main

import (
	"fmt"
	"io"
	"sync"
)

// checkProgress says on a terminal what is being found out of each node.
type checkProgress struct {
	mu    sync.Mutex
	bar   *progress
	names []string
	now   []string // of each node; "" when it is done
}

func newCheckProgress(w io.Writer, names []string) *checkProgress {
	p := &checkProgress{bar: newProgress(w, 0), names: names, now: make([]string, len(names))}
	for i := range p.now {
		p.now[i] = "waiting"
	}
	return p
}

func (p *checkProgress) tell(node int, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now[node] = what
	if !p.bar.terminal {
		return
	}
	done, last := 0, ""
	for i, now := range p.now {
		if now == "" {
			done++
		} else if last == "" {
			last = fmt.Sprintf(", %s: %s", p.names[i], now)
		}
	}
	p.bar.say(fmt.Sprintf("%d of %d nodes checked%.80s", done, len(p.now), last))
}

func (p *checkProgress) end() { p.bar.clear() }
