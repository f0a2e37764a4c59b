package top

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"
)

// picture is what is shown of an instance.
type picture struct {
	name, engine, class, status string
	at                          time.Time
	cpus                        int // 0: unlimited or unknown
	iopsMax, throughputMax      float64
	kept                        bool // load is kept
	by                          string
	waits                       []wait
	rows, blocked               []row
	metrics                     map[string]float64
}

// wait is the load of one wait event in each second, the oldest first.
type wait struct {
	name    string
	seconds []float64
}

type partOf struct {
	name string
	load float64
}

// row is a line of a table: a load in sessions, and its parts.
type row struct {
	name  string
	load  float64
	parts []partOf
}

// symbols stand for wait events, colours beside them.
const symbols = "#*+=o%@x"

// render draws a picture of some columns and lines. Status is said in the first line.
func (p picture) render(columns, lines int, status string, colour bool) string {
	high := min(max(lines/3, 3), 12)
	out := []string{
		fmt.Sprintf("%s  %s  %s  %s  %s", p.name, p.status, status, p.engine, p.class),
		p.metricsLine(),
	}
	if !p.kept {
		out = append(out, "Load is not kept. To keep it: aws rds modify-db-instance --db-instance-identifier "+p.name+" --enable-performance-insights --apply-immediately")
	} else {
		out = append(out, p.chart(max(columns-7, 1), high)...)
		out = append(out, p.legend(columns)...)
		out = append(out, "", fmt.Sprintf("LOAD   by %s, last minute", strings.ToUpper(p.by)))
		blockers := p.blockers(columns)
		const rowsMin = 3
		room := max(lines-len(out)-len(blockers), rowsMin) // the blockers are not pushed out
		for _, r := range p.rows[:min(len(p.rows), room)] {
			out = append(out, fmt.Sprintf("%6.2f %s  %s", r.load, fit(orNone(r.name), max(columns/2-8, 8)), r.waits()))
		}
		out = append(out, blockers...)
	}
	out = out[:min(len(out), max(lines, 1))]
	for n, line := range out {
		out[n] = strings.TrimRight(fit(line, columns), " ")
		if colour && p.kept && n >= 2 && n < 2+high {
			out[n] = paint(out[n])
		}
	}
	return strings.Join(out, "\n") + "\n"
}

func orNone(name string) string {
	if name == "" {
		return "(none)"
	}
	return name
}

func (r row) waits() string {
	var list []string
	for _, w := range r.parts {
		list = append(list, fmt.Sprintf("%s %.2f", w.name, w.load))
	}
	return strings.Join(list, ", ")
}

// blockers says which statements wait for which.
func (p picture) blockers(columns int) []string {
	var out []string
	for _, r := range p.blocked {
		for _, b := range r.parts {
			out = append(out, fmt.Sprintf("%6.2f %s  %s", b.load, fit(orNone(r.name), max(columns/2-8, 8)), b.name))
		}
	}
	if out == nil {
		return nil
	}
	return append([]string{"", "LOAD   " + fit("BLOCKED", max(columns/2-8, 8)) + "  BY"}, out...)
}

// metricsLine tells CPU, connections and I/O, with the limit where there is one.
func (p picture) metricsLine() string {
	value := func(form string, scale float64, names ...string) string {
		sum, known := 0.0, false
		for _, name := range names {
			v, have := p.metrics[name]
			sum, known = sum+v, known || have
		}
		if !known {
			return "-"
		}
		return fmt.Sprintf(form, sum/scale)
	}
	limit := func(most float64) string {
		if most == 0 {
			return ""
		}
		return fmt.Sprintf(" of %.0f", most)
	}
	return "CPU " + value("%.0f %%", 1, "CPUUtilization") + "  connections " + value("%.0f", 1, "DatabaseConnections") +
		"  IOPS " + value("%.0f", 1, "ReadIOPS", "WriteIOPS") + limit(p.iopsMax) +
		"  MiB/s " + value("%.1f", 1<<20, "ReadThroughput", "WriteThroughput") + limit(p.throughputMax)
}

// chart stacks the load by wait event, the oldest second at the left, with a line at the
// class's vCPUs.
func (p picture) chart(columns, lines int) []string {
	sums := make([][]float64, columns) // by column, then by wait event
	top := max(float64(p.cpus), 1)
	for x := range sums {
		all := 0.0
		for _, w := range p.waits {
			from := x * len(w.seconds) / columns
			to := max((x+1)*len(w.seconds)/columns, from+1)
			sum := 0.0
			for _, v := range w.seconds[from:to] {
				sum += v
			}
			all += sum / float64(to-from)
			sums[x] = append(sums[x], all)
		}
		top = max(top, all)
	}
	var out []string
	for y := range lines {
		high, low := top*float64(lines-y)/float64(lines), top*float64(lines-y-1)/float64(lines)
		line := []byte(strings.Repeat(" ", columns))
		limit := p.cpus > 0 && float64(p.cpus) <= high && float64(p.cpus) > low
		for x := range line {
			if limit {
				line[x] = '-'
			}
			for n := len(sums[x]) - 1; n >= 0; n-- {
				if sums[x][n] > (high+low)/2 {
					line[x] = symbols[n%len(symbols)]
				}
			}
		}
		label := fmt.Sprintf("%6.1f", high)
		if limit {
			label = fmt.Sprintf("%d vCPU", p.cpus)
		}
		out = append(out, fit(label, 6)+"|"+string(line))
	}
	return out
}

// legend names the wait events with their load in the last minute.
func (p picture) legend(columns int) []string {
	list := []string{"      "}
	for n, w := range p.waits {
		last := w.seconds[max(0, len(w.seconds)-int(tableTime/time.Second)):]
		sum := 0.0
		for _, v := range last {
			sum += v
		}
		item := fmt.Sprintf(" %c %s %.2f ", symbols[n%len(symbols)], w.name, sum/float64(max(len(last), 1)))
		if len(list[len(list)-1])+len(item) > columns {
			list = append(list, "      ")
		}
		list[len(list)-1] += item
	}
	if len(p.waits) == 0 {
		list[0] += " no session was active"
	}
	return list
}

// paint colours the symbols of a line of the chart.
func paint(line string) string {
	var b strings.Builder
	for at, r := range line {
		if n := strings.IndexRune(symbols, r); n >= 0 && at > 6 {
			fmt.Fprintf(&b, "\x1b[%dm%c\x1b[0m", 31+n%6, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// fit cuts or pads a text to columns of a terminal. What cannot be printed is shown as a space:
// a statement must not command the terminal.
func fit(text string, columns int) string {
	var b strings.Builder
	used := 0
	for _, r := range text {
		if !unicode.IsPrint(r) {
			r = ' '
		}
		w := 1
		switch kind := width.LookupRune(r).Kind(); {
		case unicode.Is(unicode.Mn, r):
			w = 0
		case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
			w = 2
		}
		if used+w > columns {
			break
		}
		b.WriteRune(r)
		used += w
	}
	return b.String() + strings.Repeat(" ", max(columns-used, 0))
}
