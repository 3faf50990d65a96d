package transcript

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Tally counts what was played.
type Tally struct {
	Conversations int            // played at all
	Played        int            // each way in which one was
	Exchanges     int            // comparisons
	Differences   int            // among them
	Ways          map[string]int // conversations, by way
	Left          []string       // titles of those that belong to the other world
}

// Add adds another tally.
func (t *Tally) Add(o *Tally) {
	t.Conversations += o.Conversations
	t.Played += o.Played
	t.Exchanges += o.Exchanges
	t.Differences += o.Differences
	t.Left = append(t.Left, o.Left...)
	for name, n := range o.Ways {
		if t.Ways == nil {
			t.Ways = map[string]int{}
		}
		t.Ways[name] += n
	}
}

func (t *Tally) String() string {
	var each []string
	for name, n := range t.Ways {
		each = append(each, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(each)
	return fmt.Sprintf("%d conversations, %d times (%s), %d exchanges, %d differences; left out here: %q",
		t.Conversations, t.Played, strings.Join(each, ", "), t.Exchanges, t.Differences, t.Left)
}

// Play plays every conversation of the file in w, in every way there is for it, as
// subtests of t. With update, what is heard in the first way takes the place of what
// is written, and the other ways are held to it; see Text.
func (f *File) Play(t *testing.T, w World, update bool, tally *Tally) {
	if tally.Ways == nil {
		tally.Ways = map[string]int{}
	}
	edges := map[string]*Edge{}
	for _, c := range f.Conversations {
		if c.world != "" && c.world != w.Name() {
			tally.Left = append(tally.Left, c.title)
			continue
		}
		tally.Conversations++
		chosen, err := c.waysOf(f.Kind)
		if err != nil {
			t.Fatalf("%s:%d: %v", f.Path, c.line, err)
		}
		for i, way := range chosen {
			name := strings.Join(c.Flags, " ")
			if edges[name] == nil && !c.needs(stop) {
				edges[name] = w.Edge(t, c.Flags)
			}
			t.Run(c.title+"/"+way.name, func(t *testing.T) {
				p := play{t: t, world: w, edge: edges[name], file: f, c: c, way: way, update: update && i == 0, tally: tally}
				if c.needs(stop) {
					p.edge = w.Edge(t, c.Flags)
				}
				p.run()
			})
			tally.Played++
			tally.Ways[way.name]++
		}
	}
}

// play is one conversation played in one way.
type play struct {
	t      *testing.T
	world  World
	edge   *Edge
	file   *File
	c      *Conversation
	way    way
	update bool
	tally  *Tally

	speaker speaker
	key     string
	revoke  func()
	asked   int // lookups before the first line
	stalled int // clients given up before it
}

func (p *play) run() {
	source := p.world.Source()
	p.key = p.edge.Key
	if p.c.needs(revoke) || len(p.c.settings) > 0 {
		p.key, p.revoke = p.world.NewKey(p.t, fmt.Sprintf("conversation %d", p.tally.Played), p.c.settings)
		p.eventually("the new key to be known", func() error { return p.keyIs(true) })
	}
	if p.c.needs(givenUp) {
		p.stalled = p.gaveUp()
	}
	p.asked = source.Asked()
	defer source.Reset()
	s, err := newSpeaker(p.t.Context(), p.file.Kind, p.c, p.way, p.edge, p.key)
	if err != nil {
		p.t.Fatal(err)
	}
	defer s.close()
	p.speaker = s
	for i := range p.c.steps {
		step := &p.c.steps[i]
		switch step.mark {
		case sent:
			if err := s.say(step.lines); err != nil {
				p.t.Fatalf("%s:%d: %v", p.file.Path, step.line, err)
			}
		case heard:
			p.compare(step, s.hear(step.lines))
		case act:
			for _, l := range step.lines {
				p.act(l)
			}
		}
		if p.t.Failed() {
			return // what follows would only repeat it
		}
	}
	if p.c.ended() {
		return
	}
	if more := s.rest(); more != nil {
		p.append(more)
	}
}

// compare holds what was heard to what is written.
func (p *play) compare(s *step, got []string) {
	p.t.Helper()
	p.tally.Exchanges++
	if slices.Equal(got, s.lines) {
		return
	}
	if p.update {
		s.lines = got
		return
	}
	p.differ(s.line, got, s.lines)
}

// append takes what came after the last line.
func (p *play) append(more []string) {
	p.t.Helper()
	last := len(p.c.steps) - 1
	for p.c.steps[last].mark != heard {
		last--
	}
	s := &p.c.steps[last]
	if p.update && slices.Equal(more, []string{end}) && p.file.Kind != Calls {
		s.lines = append(s.lines, end)
		return
	}
	p.differ(s.line, more, []string{"(nothing more, and the connection stays)"})
}

func (p *play) differ(line int, got, want []string) {
	p.t.Helper()
	p.tally.Differences++
	marked := func(lines []string) string { return heard + " " + strings.Join(lines, "\n"+heard+" ") }
	p.t.Errorf("%s:%d: got\n%s\nwant\n%s", p.file.Path, line, marked(got), marked(want))
}

var errNotYet = errors.New("not yet")
