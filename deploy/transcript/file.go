package transcript

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Kind says how a file's lines are meant. See the package comment.
type Kind string

// The kinds.
const (
	Calls     Kind = "calls"
	HTTP      Kind = "http"
	WebSocket Kind = "websocket"
)

// File is a file of conversations.
type File struct {
	Path          string
	Kind          Kind
	Conversations []*Conversation

	head  []string // the lines before the first conversation
	flags []string // of the edge, for every conversation
}

// Conversation is one connection and what is said on it.
type Conversation struct {
	// Row is what of Rows this is about, Variant tells it from others about the same.
	Row, Variant string
	// Flags are those that the edge is to be started with.
	Flags []string

	settings []string // of a key of its own
	ways     []string // the only ones in which it is played; empty: all
	world    string   // the only one in which it is played; empty: both
	byID     bool     // frames that follow one another are sorted
	title    string
	line     int // of the title
	steps    []step
}

// Marks of the lines of a conversation.
const (
	sent    = "-->"
	heard   = "<--"
	act     = "!"
	remark  = "" // blank lines, comments and directives
	heading = "== "
)

// What is heard besides bytes.
const (
	nothing  = "(nothing)"
	end      = "(end)"
	anything = "?"
	skipped  = "..."
)

// step is lines of one mark that follow one another.
type step struct {
	mark  string
	lines []string // without the mark
	line  int      // of the first, from 1
}

// ReadDir reads every *.txt of a folder.
func ReadDir(dir string) ([]*File, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("transcript: no files in %s, %w", dir, err)
	}
	var files []*File
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f, err := Parse(path, string(text))
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// Parse reads a file. Its errors begin with path and line.
func Parse(path, text string) (*File, error) {
	f := &File{Path: path}
	var c *Conversation
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		var err error
		switch title, isTitle := strings.CutPrefix(line, heading); {
		case isTitle:
			c = &Conversation{title: title, line: i + 1, Flags: slices.Clone(f.flags)}
			c.Row, c.Variant, _ = strings.Cut(title, ": ")
			f.Conversations = append(f.Conversations, c)
		case c == nil:
			f.head = append(f.head, line)
			err = f.directive(line)
		default:
			err = c.add(f.Kind, line, i+1)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
	}
	if f.Kind == "" || len(f.Conversations) == 0 {
		return nil, fmt.Errorf("%s: no kind or no conversation", path)
	}
	for _, c := range f.Conversations {
		if err := c.check(f.Kind); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, c.line, err)
		}
	}
	return f, nil
}

// directive takes a line of the file's head.
func (f *File) directive(line string) error {
	word, ok := strings.CutPrefix(line, "# ")
	switch {
	case line == "" || strings.HasPrefix(line, "//"):
		return nil
	case !ok:
		return fmt.Errorf("not understood before the first conversation: %q", line)
	case strings.HasPrefix(word, "--"):
		f.flags = append(f.flags, word)
	case f.Kind == "" && slices.Contains([]Kind{Calls, HTTP, WebSocket}, Kind(strings.TrimPrefix(word, "kind "))):
		f.Kind = Kind(strings.TrimPrefix(word, "kind "))
	default:
		return fmt.Errorf("unknown directive: %s", word)
	}
	return nil
}

// directive takes one of a conversation.
func (c *Conversation) directive(word string) error {
	what, why, _ := strings.Cut(word, ": ")
	setting, isSetting := strings.CutPrefix(word, "key ")
	switch over, isOver := strings.CutPrefix(what, "only over "); {
	case isSetting:
		c.settings = append(c.settings, setting)
		return nil
	case strings.HasPrefix(word, "--"):
		c.Flags = append(c.Flags, word)
		return nil
	case word == "answers by id":
		c.byID = true
		return nil
	case isOver:
		c.ways = strings.Split(over, ", ")
	case what == InProcess+" only":
		c.world = InProcess
	case what == EndToEnd+" only":
		c.world = EndToEnd
	default:
		return fmt.Errorf("unknown directive: %s", word)
	}
	if why == "" {
		return fmt.Errorf("%s: no reason is given", word)
	}
	return nil
}

// add takes a line of a conversation.
func (c *Conversation) add(kind Kind, line string, number int) error {
	mark, rest := remark, line
	for _, m := range []string{sent, heard, act} {
		if after, ok := strings.CutPrefix(line, m); ok && (after == "" || after[0] == ' ') {
			mark, rest = m, strings.TrimPrefix(after, " ")
		}
	}
	switch word, isDirective := strings.CutPrefix(line, "# "); {
	case mark != remark:
	case isDirective:
		if err := c.directive(word); err != nil {
			return err
		}
	case line != "" && !strings.HasPrefix(line, "//"):
		return fmt.Errorf("not understood: %q", line)
	}
	if last := len(c.steps) - 1; last >= 0 && c.steps[last].mark == mark && kind != Calls {
		c.steps[last].lines = append(c.steps[last].lines, rest)
		return nil
	}
	c.steps = append(c.steps, step{mark, []string{rest}, number})
	return nil
}

// check looks at the conversation as a whole.
func (c *Conversation) check(kind Kind) error {
	if c.Row == "" || strings.TrimSpace(c.title) != c.title {
		return fmt.Errorf("a title is a row, or a row and a variant: %q", c.title)
	}
	var before string
	answers := 0
	for _, s := range c.steps {
		if s.mark == remark {
			continue
		}
		if kind == Calls && (s.mark == heard) != (before == sent) {
			return fmt.Errorf("line %d: each line sent must be followed by what is heard", s.line)
		}
		if s.mark == heard {
			answers++
		}
		if s.mark == act {
			for _, l := range s.lines {
				if !acts.MatchString(l) {
					return fmt.Errorf("line %d: unknown act %q", s.line, l)
				}
			}
		}
		before = s.mark
	}
	if kind == Calls && before == sent || answers == 0 {
		return fmt.Errorf("%s: nothing is heard", c.title)
	}
	return nil
}

// ended says whether the last word is that the connection ends.
func (c *Conversation) ended() bool {
	for _, s := range slices.Backward(c.steps) {
		if s.mark != remark {
			return s.mark == heard && s.lines[len(s.lines)-1] == end
		}
	}
	return false
}

// needs says whether an act is in the conversation.
func (c *Conversation) needs(name string) bool {
	return slices.ContainsFunc(c.steps, func(s step) bool { return s.mark == act && slices.Contains(s.lines, name) })
}

// Text returns the file as it is to be written.
func (f *File) Text() string {
	var b strings.Builder
	line := func(mark, rest string) {
		b.WriteString(mark)
		if mark != "" && rest != "" {
			b.WriteByte(' ')
		}
		b.WriteString(rest)
		b.WriteByte('\n')
	}
	for _, l := range f.head {
		line("", l)
	}
	for _, c := range f.Conversations {
		line("", heading+c.title)
		for _, s := range c.steps {
			for _, l := range s.lines {
				line(s.mark, l)
			}
		}
	}
	return b.String()
}
