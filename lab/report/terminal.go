package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"kurabe/lab/result"
	"kurabe/lab/study"
)

// Widths of a terminal that are used: below the least, lines break anyway.
const (
	leastWidth = 40
	mostWidth  = 160
)

// gap stands between two columns.
const gap = "  "

// Terminal writes the report as plain text of at most width columns, the answer first.
// Characters of East Asian scripts count as two columns, all of ambiguous width as one.
func Terminal(w io.Writer, f *result.File, width int) error {
	v, err := newView(f)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, v.terminal(width)); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	return nil
}

func (v *view) terminal(width int) string {
	p := &printer{width: min(max(width, leastWidth), mostWidth)}
	p.head(v)
	for _, one := range v.workloads {
		p.workload(v, one)
	}
	for _, l := range v.ladders() {
		p.limits(v.limits(l))
	}
	p.sources(v)
	p.endnotes(v)
	return p.b.String()
}

// printer collects lines.
type printer struct {
	b     strings.Builder
	width int
}

func (p *printer) line(s string) {
	// A space that keeps words together is none to those who search the text.
	p.b.WriteString(strings.TrimRight(strings.ReplaceAll(s, "\u00a0", " "), " "))
	p.b.WriteByte('\n')
}

func (p *printer) blank() { p.b.WriteByte('\n') }

// say writes running text; lines after the first are indented.
func (p *printer) say(s string, indent int) {
	for _, l := range wrap(s, p.width, indent) {
		p.line(l)
	}
}

func (p *printer) head(v *view) {
	p.say(label(v.def.Name)+": "+reasonWords(v.def.Question), 2)
	p.say(v.runWords(), 2)
	p.blank()
	if text := v.warning(); text != "" {
		p.say(text, 2)
		p.blank()
	}
	if len(v.workloads) == 0 {
		return
	}
	first := v.workloads[0]
	for _, s := range v.answers(first.Name) {
		p.say(s.String(), 2)
	}
	p.say(v.noise(first.Name), 2)
	if len(v.workloads) > 1 {
		p.say("Under "+workloadTitle(first)+"; the tables have the other loads too.", 2)
	}
}

// runWords say what was measured on what.
func (v *view) runWords() string {
	parts := []string{v.engine()}
	if cores := clean(v.host("cores")); cores != "" {
		parts = append(parts, cores+" cores")
	}
	parts = append(parts, plural(int64(v.blocks), "block", "blocks")+" of at most "+count(int64(v.def.Plan.BlocksMax)),
		plural(int64(len(v.file.Trials)), "trial", "trials"), "run "+clean(v.file.Study.ID))
	return strings.Join(parts, ", ")
}

func (p *printer) workload(v *view, w study.Workload) {
	c := v.comparison(w)
	p.blank()
	p.say(c.Workload+" ("+c.Load+")", 2)
	columns := []column{{title: "variant", keep: 9}}
	for _, source := range c.Sources {
		columns = append(columns, column{title: "publ. " + v.sourceMark(source), right: true, keep: 4})
	}
	columns = append(columns,
		column{title: "measured", right: true, keep: 6}, column{title: "ratio", right: true, keep: 8},
		column{title: "95 % interval", keep: 7}, column{title: "verdict", keep: 8}, column{title: "trials", right: true, keep: 2})
	var rows [][]string
	for _, r := range c.Rows {
		cells := append([]string{r.Label}, r.Published...)
		trials := none
		if r.Trials > 0 {
			trials = count(int64(r.Trials))
		}
		rows = append(rows, append(cells, r.Median, r.Ratio, r.Interval, r.Verdict, trials))
	}
	p.line(strings.Repeat(" ", 2) + cut("measured: median "+c.Metric, p.width-2))
	p.table(columns, rows)
	for _, r := range c.Rows {
		if r.Note != "" && r.Verdict != notSupported { // the end says that once
			p.say(r.Label+" "+r.Verdict+": "+r.Note, 2)
		}
	}
	p.grid(v.figures(w))
	if g := v.statements(w); g != nil && len(g.Rows) > terminalRows {
		p.say(fmt.Sprintf("%s: %d rows, which the page has.", g.Title, len(g.Rows)), 2)
	} else {
		p.grid(g)
	}
}

// terminalRows is how long a list may be on a terminal; the page has all of it.
const terminalRows = 24

// column of a table. What has the least to keep goes first when the table is too wide;
// names are wrapped before anything that is wanted goes.
type column struct {
	title string
	right bool
	keep  int
	width int
}

// Bounds of a column of names.
const (
	leastName = 14
	spareKeep = 3 // a column that is wanted less goes before names are wrapped
)

// measureColumns gives each column the width of its widest text.
func measureColumns(columns []column, rows [][]string) {
	for n := range columns {
		columns[n].width = cells(columns[n].title)
		for _, r := range rows {
			columns[n].width = max(columns[n].width, cells(r[n]))
		}
	}
}

// table drops the least wanted columns until the rest fits beside the names, which are
// in the first column and are wrapped.
func (p *printer) table(columns []column, rows [][]string) {
	measureColumns(columns, rows)
	shown := make([]int, len(columns))
	for n := range columns {
		shown[n] = n
	}
	var dropped []string
	for len(shown) > 1 {
		over := -p.width - len(gap)
		for _, n := range shown {
			over += columns[n].width + len(gap)
		}
		worst := 1
		for k := range shown[1:] {
			if columns[shown[1+k]].keep <= columns[shown[worst]].keep {
				worst = 1 + k
			}
		}
		if room := columns[0].width - over; over <= 0 || room >= leastName && columns[shown[worst]].keep >= spareKeep {
			columns[0].width -= max(over, 0)
			break
		}
		dropped = append(dropped, columns[shown[worst]].title)
		shown = slices.Delete(shown, worst, worst+1)
	}
	p.rows(columns, shown, rows)
	if len(dropped) > 0 {
		p.say("(no room for: "+strings.Join(dropped, ", ")+")", 1)
	}
}

// rows prints the columns that are shown, below their titles.
func (p *printer) rows(columns []column, shown []int, rows [][]string) {
	title := make([]string, len(columns))
	for n, c := range columns {
		title[n] = c.title
	}
	for _, r := range slices.Concat([][]string{title}, rows) {
		name := wrap(r[shown[0]], columns[shown[0]].width, 1)
		if len(name) == 0 {
			name = []string{""}
		}
		line := padRight(name[0], columns[shown[0]].width)
		for _, n := range shown[1:] {
			text := cut(r[n], columns[n].width)
			if columns[n].right {
				line += gap + padLeft(text, columns[n].width)
			} else {
				line += gap + padRight(text, columns[n].width)
			}
		}
		p.line(cut(line, p.width))
		for _, rest := range name[1:] {
			p.line(rest)
		}
	}
}

// grid prints a table of figures. Columns that do not fit go into a table below, with
// the names again.
func (p *printer) grid(g *grid) {
	if g == nil {
		return
	}
	columns := make([]column, len(g.Columns))
	for n, title := range g.Columns {
		columns[n] = column{title: cut(title, 24), right: n >= g.Names}
	}
	rows := make([][]string, len(g.Rows))
	for n, r := range g.Rows {
		rows[n] = r.Cells
	}
	measureColumns(columns, rows)
	p.blank()
	p.say(g.Title, 2)
	names := 0
	for n := range g.Names {
		columns[n].width = min(columns[n].width, p.width/3)
		names += columns[n].width + len(gap)
	}
	for from := g.Names; from < len(columns); {
		shown, used := make([]int, g.Names), names
		for n := range shown {
			shown[n] = n
		}
		for from < len(columns) && (len(shown) == g.Names || used+columns[from].width <= p.width) {
			shown = append(shown, from)
			used += columns[from].width + len(gap)
			from++
		}
		p.rows(columns, shown, rows)
	}
	if g.More != "" {
		p.say("("+g.More+")", 1)
	}
}

// limits prints what limits each point as running text: a column for each number of
// clients would be wider than terminals are.
func (p *printer) limits(g *grid) {
	p.blank()
	p.say(g.Title+":", 2)
	for _, r := range g.Rows {
		if r.Muted {
			continue // the twin's, which the page has
		}
		var parts []string
		for n, cell := range r.Cells[1:] {
			parts = append(parts, g.Columns[n+1]+" "+cell)
		}
		p.say("- "+r.Cells[0]+": "+strings.Join(parts, "; "), 2)
	}
}

func (p *printer) sources(v *view) {
	all := sources(v.def.Published)
	if len(all) == 0 {
		return
	}
	p.blank()
	for n, s := range all {
		p.say(fmt.Sprintf("[%d] %s", n+1, s), 4)
	}
}

// endnotes are what was excluded, what could not be had, and how to go on.
func (p *printer) endnotes(v *view) {
	if len(v.missing) > 0 {
		p.blank()
		for _, m := range v.missing {
			p.say("Not supported by this target: "+m.Name+": "+m.Reason, 2)
		}
	}
	if g := v.incidents(); g != nil {
		p.blank()
		p.say(g.Title+":", 2)
		for _, r := range g.Rows[:min(len(g.Rows), terminalRows)] {
			p.say(fmt.Sprintf("- trial %s, block %s, %s, %s: %s (%s); %s", r.Cells[0], r.Cells[1], r.Cells[2], r.Cells[3], r.Cells[4], r.Cells[5], r.Cells[6]), 2)
		}
		if more := len(g.Rows) - terminalRows; more > 0 {
			p.say(fmt.Sprintf("and %d more, which the page has", more), 2)
		} else if g.More != "" {
			p.say(g.More, 2)
		}
	}
	if command := v.command(); command != "" {
		p.blank()
		p.say(fmt.Sprintf("Run again: %s (seed %d)", command, v.file.Study.Seed), 2)
	}
}
