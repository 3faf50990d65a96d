package check

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Layout of the table. What does not fit is wrapped; nodes that do not fit beside each
// other get a table of their own.
const (
	lineWidth  = 100
	labelWidth = 11
	gap        = 2
	leastWidth = 24 // of a column
	beside     = 3  // columns at most
)

// Print writes the reports for people: a row for each fact, a column for each node,
// then what to make of each. A fact that speaks against a node begins with "!", which
// colour only repeats.
func Print(w io.Writer, reports []Report, colour bool) error {
	p := &printer{colour: colour}
	var asked []Report // of the others there is nothing to tell but why
	for i := range reports {
		if reports[i].Error == "" {
			asked = append(asked, reports[i])
		}
	}
	for group := range slices.Chunk(asked, beside) {
		p.table(group)
		p.line("")
	}
	for i := range reports {
		p.words(&reports[i])
	}
	_, err := io.WriteString(w, p.text.String())
	return err
}

type printer struct {
	text   strings.Builder
	colour bool
}

// mark is how a cell is coloured.
type mark uint8

const (
	plain mark = iota
	good
	doubtful
	bad
)

var colours = map[mark]string{good: "\x1b[32m", doubtful: "\x1b[33m", bad: "\x1b[31m"}

// cell is one value.
type cell struct {
	text string
	mark mark
}

func ok(format string, args ...any) cell { return cell{text: fmt.Sprintf(format, args...)} }
func warn(format string, args ...any) cell {
	return cell{"! " + fmt.Sprintf(format, args...), doubtful}
}
func fail(format string, args ...any) cell { return cell{"! " + fmt.Sprintf(format, args...), bad} }

// table writes the facts of a few nodes side by side.
func (p *printer) table(reports []Report) {
	width := max(leastWidth, (lineWidth-labelWidth)/len(reports)-gap)
	header := make([]cell, len(reports))
	for i := range reports {
		header[i] = cell{text: reports[i].Node}
	}
	p.row("", header, width)
	for _, row := range rows {
		cells, told := make([]cell, len(reports)), false
		for i := range reports {
			cells[i] = row.cell(&reports[i])
			told = told || cells[i] != unknown && cells[i] != nothing
		}
		if told {
			p.row(row.label, cells, width)
		}
	}
}

// row writes one row, in as many lines as its longest cell takes.
func (p *printer) row(label string, cells []cell, width int) {
	lines, most := make([][]string, len(cells)), 0
	for i, c := range cells {
		lines[i] = wrap(c.text, width)
		most = max(most, len(lines[i]))
	}
	for k := range most {
		if k > 0 {
			label = ""
		}
		line, owed := pad(label, labelWidth), 0 // owed: blanks, if anything follows
		for i, c := range cells {
			text := ""
			if k < len(lines[i]) {
				text = lines[i][k]
			}
			if text != "" {
				line += strings.Repeat(" ", owed) + p.paint(text, c.mark)
				owed = 0
			}
			owed += width + gap - utf8.RuneCountInString(text)
		}
		p.line(strings.TrimRight(line, " "))
	}
}

// words writes what to make of a node.
func (p *printer) words(r *Report) {
	const indent = "  "
	p.line(r.Node)
	for _, text := range r.Untrue {
		p.paragraph(indent, fail("untrue: %s", text))
	}
	shade := map[Lookups]mark{All: good, Part: doubtful, None: bad}[r.Lookups]
	p.paragraph(indent, cell{r.Words, shade})
	for _, text := range r.Advice {
		p.paragraph(indent, cell{text: text})
	}
	for _, fact := range slices.Sorted(maps.Keys(r.Unknown)) {
		if why := r.Unknown[fact]; !strings.Contains(r.Words, why) {
			p.paragraph(indent, cell{text: "? " + fact + ": " + why})
		}
	}
}

func (p *printer) paragraph(indent string, c cell) {
	for _, line := range wrap(c.text, lineWidth-len(indent)) {
		p.line(indent + p.paint(line, c.mark))
	}
}

func (p *printer) paint(text string, m mark) string {
	if !p.colour || m == plain {
		return text
	}
	return colours[m] + text + "\x1b[0m"
}

func (p *printer) line(text string) {
	p.text.WriteString(text)
	p.text.WriteByte('\n')
}

func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

// wrap breaks text between words, and words that are too long anywhere.
func wrap(text string, width int) (lines []string) {
	line := []rune{}
	for _, word := range strings.Fields(text) {
		letters := []rune(word)
		if len(line) > 0 && len(line)+1+len(letters) > width {
			lines, line = append(lines, string(line)), nil
		}
		if len(line) > 0 {
			line = append(line, ' ')
		}
		line = append(line, letters...)
		for len(line) > width {
			lines, line = append(lines, string(line[:width])), line[width:]
		}
	}
	return append(lines, string(line))
}
