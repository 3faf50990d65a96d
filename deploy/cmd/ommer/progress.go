package main

import (
	"fmt"
	"io"
	"os"

	"github.com/ommer/ommer/deploy/load"
)

// progress says each second how a load goes: on a terminal in one line that changes,
// elsewhere in a line every few seconds.
type progress struct {
	w           io.Writer
	terminal    bool
	connections int
	ticks       int
	said        bool // anything
}

// elsewhere is how many ticks a line is for where lines stay.
const elsewhere = 5

func newProgress(w io.Writer, connections int) *progress {
	return &progress{w: w, connections: connections, terminal: isTerminal(w)}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *progress) tick(t load.Tick) {
	p.ticks++
	state := "opening, warming up"
	switch {
	case t.Ended:
		state = "waiting for the last answers"
	case t.Measured:
		state = "measuring"
	}
	line := fmt.Sprintf("%3d s  %s: %d of %d connections, %d calls/s, %d failed, p50 %s ms, p99 %s ms",
		p.ticks, state, t.Open, p.connections, t.Right, t.Failures(), load.Milliseconds(t.P50), load.Milliseconds(t.P99))
	if p.terminal || p.ticks%elsewhere == 0 {
		p.say(line)
	}
}

// clearLine empties the line that the cursor is in.
const clearLine = "\r\x1b[K"

// say writes a line in the place of the last one, on a terminal.
func (p *progress) say(line string) {
	p.said = true
	if p.terminal {
		fmt.Fprint(p.w, clearLine+line)
	} else {
		fmt.Fprintln(p.w, line)
	}
}

// end leaves the line.
func (p *progress) end() {
	if p.terminal && p.said {
		fmt.Fprintln(p.w)
	}
}

// clear takes the line away.
func (p *progress) clear() {
	if p.terminal && p.said {
		fmt.Fprint(p.w, clearLine)
	}
}
