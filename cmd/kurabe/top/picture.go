package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"

	"kurabe"
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
	sampled                     int // seconds of the last minute
	rows                        []row
	sessions                    []kurabe.ActiveSession
	unlisted                    string // why there are no sessions
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
	// calls is the executions of a statement each second, latency the milliseconds of one; both are
	// known where counted.
	calls, latency float64
	counted        bool
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
		out = append(out, "", fmt.Sprintf("  LOAD %sby %s, last minute", p.rates("CALLS/S", "MS"), strings.ToUpper(p.by)))
		out = append(out, p.tables(columns, lines-len(out))...)
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

// tables are the table of the load and that of the sessions, which share the lines: a third at
// least for the load.
func (p picture) tables(columns, lines int) []string {
	sessions := p.sessionLines(columns)
	const linesMin = 6 // for both
	if lines < linesMin {
		sessions = nil
	}
	var out []string
	for _, r := range p.rows[:min(len(p.rows), max(lines/3, lines-len(sessions), 0))] {
		calls, latency := "", ""
		if r.counted {
			calls = fmt.Sprintf("%.1f", r.calls)
		}
		if r.calls > 0 {
			latency = fmt.Sprintf("%.2f", r.latency)
		}
		out = append(out, fmt.Sprintf("%6.2f %s%s  %s", r.load, p.rates(calls, latency), fit(orNone(r.name), max(columns/2-8, 8)), r.waits()))
	}
	return append(out, sessions...)
}

// rates are the columns of counters, where there are any.
func (p picture) rates(calls, latency string) string {
	if !slices.ContainsFunc(p.rows, func(r row) bool { return r.counted }) {
		return ""
	}
	return fmt.Sprintf("%8s %9s ", calls, latency)
}

// session is a line of the table of sessions.
type session struct {
	kurabe.ActiveSession
	blocks int // so many others
}

// rank orders what is worth a look first: what blocks others, then what is blocked.
func (s session) rank() int {
	switch {
	case s.blocks > 0 && s.Blocker == 0:
		return 0
	case s.blocks > 0:
		return 1
	case s.Blocker != 0:
		return 2
	}
	return 3
}

// blocking are the sessions, and those that block them while they are within no statement.
func (p picture) blocking() (list []session) {
	for _, s := range p.sessions {
		list = append(list, session{ActiveSession: s})
	}
	for _, s := range p.sessions {
		if s.Blocker == 0 {
			continue
		}
		n := slices.IndexFunc(list, func(l session) bool { return l.ID == s.Blocker })
		if n < 0 {
			n = len(list)
			list = append(list, session{ActiveSession: kurabe.ActiveSession{ID: s.Blocker, User: s.BlockerUser, Wait: "idle", Statement: s.BlockerStatement, Seconds: -1}})
		}
		list[n].blocks++
	}
	slices.SortStableFunc(list, func(x, y session) int {
		return cmp.Or(cmp.Compare(x.rank(), y.rank()), cmp.Compare(y.blocks, x.blocks), cmp.Compare(y.Seconds, x.Seconds))
	})
	return list
}

// sessionLines say who waits for what, and who blocks whom.
func (p picture) sessionLines(columns int) []string {
	list := p.blocking()
	switch {
	case p.unlisted != "":
		return []string{"", "SESSIONS are not known: " + p.unlisted}
	case len(list) == 0:
		return nil
	}
	known := func(n int64, least int64) string {
		if n < least {
			return ""
		}
		return fmt.Sprint(n)
	}
	name := max(columns/8, 8)
	form := func(id, seconds, user, wait, blocks, blocker, statement string) string {
		return fmt.Sprintf("%7s %5s %s %s %6s %7s %s", id, seconds, fit(user, name), fit(wait, 2*name), blocks, blocker, statement)
	}
	out := []string{"", form("SESSION", "SEC", "USER", "WAIT", "BLOCKS", "BLOCKER", "STATEMENT")}
	for _, s := range list {
		out = append(out, form(known(s.ID, 0), known(s.Seconds, 0), s.User, waitOf(s.WaitType, s.Wait), known(int64(s.blocks), 1), known(s.Blocker, 1), s.Statement))
	}
	return out
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
		item := fmt.Sprintf(" %c %s %.2f ", symbols[n%len(symbols)], w.name, sum/float64(max(p.sampled, 1)))
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
