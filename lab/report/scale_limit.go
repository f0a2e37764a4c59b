package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"kurabe/lab/result"
	"kurabe/lab/study"
)

// Limits beyond which a resource is said to limit: a share of what there is, or of the
// samples of active sessions.
const (
	fullShare  = 0.85
	waitsShare = 0.5
)

// figure is a number of a trial, false when it was not measured.
type figure func(*result.Trial) (float64, bool)

// probed is a probe of the phase that is judged.
func (v *view) probed(t *result.Trial, name string) (float64, bool) {
	p := v.judged(t)
	if p == nil {
		return 0, false
	}
	x, ok := p.Probes[name]
	return x, ok
}

// perSecond is a total of that phase by its seconds.
func (v *view) perSecond(t *result.Trial, name string) (float64, bool) {
	x, ok := v.probed(t, name)
	p := v.judged(t)
	if !ok || p.Ms <= 0 {
		return 0, false
	}
	return x / (p.Ms / 1000), true
}

// share divides one figure by another.
func share(over, under figure) figure {
	return func(t *result.Trial) (float64, bool) {
		a, ok := over(t)
		b, also := under(t)
		if !ok || !also || b <= 0 {
			return 0, false
		}
		return a / b, true
	}
}

// cores are those of the machine that the lab ran on.
func (v *view) cores(*result.Trial) (float64, bool) {
	n, err := strconv.ParseFloat(v.host("cores"), 64)
	return n, err == nil && n > 0
}

// processors are those that the server may use: by its class, where the service holds it
// to that; files from before that was probed have those of the machine.
func (v *view) processors(t *result.Trial) (float64, bool) {
	if n, ok := v.probed(t, "cpu_limit_end"); ok {
		return n, n > 0
	}
	return v.cores(t)
}

func (v *view) rate(name string) figure {
	return func(t *result.Trial) (float64, bool) { return v.perSecond(t, name) }
}

func (v *view) probe(name string) figure {
	return func(t *result.Trial) (float64, bool) { return v.probed(t, name) }
}

func (v *view) writeOps(t *result.Trial) (float64, bool)   { return v.perSecond(t, "write_ops") }
func (v *view) writeLimit(t *result.Trial) (float64, bool) { return v.probed(t, "write_ops_limit_end") }

// cpuShare is the processor time of the server as a share of what it may use.
func (v *view) cpuShare(t *result.Trial) (float64, bool) {
	return share(v.rate("cpu_s"), v.processors)(t)
}

// writeRate are bytes to disk a second, MB.
func (v *view) writeRate(t *result.Trial) (float64, bool) {
	bytes, ok := v.perSecond(t, "write_bytes")
	return bytes / 1e6, ok
}

// loadShare is the processor time of the load's generator as a share of its machine's.
func (v *view) loadShare(t *result.Trial) (float64, bool) {
	spent := func(t *result.Trial) (float64, bool) {
		p := v.judged(t)
		if p == nil || p.Load == nil || p.Ms <= 0 {
			return 0, false
		}
		s, ok := p.Load.Generator["cpu_s"]
		return s / (p.Ms / 1000), ok
	}
	return share(spent, v.cores)(t)
}

// waitShare is the part of the samples of active sessions that wait for one of these
// kinds, by the begin of the name.
func (v *view) waitShare(kinds ...string) figure {
	return func(t *result.Trial) (float64, bool) {
		p := v.judged(t)
		if p == nil {
			return 0, false
		}
		all, those := 0, 0
		for name, n := range p.Waits {
			all += n
			if slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(name, kind) }) {
				those += n
			}
		}
		return float64(those) / float64(max(all, 1)), all > 0
	}
}

// Kinds of waits by the begin of their names, of PostgreSQL and of the classes that the
// probe gives MariaDB's states. A session that waits for its turn to write PostgreSQL's
// log waits for the sync of the one before.
var (
	lockWaits   = []string{"Lock:"}
	diskWaits   = []string{"IO:", "LWLock:WALWrite", "LWLock:WALSync", "Commit:"}
	clientWaits = []string{"Client:", "idle in transaction"}
)

// candidate is a resource that may limit.
type candidate struct {
	name string
	used figure
	full float64 // from which share on
	of   string  // what the share is of
}

// candidates in the order in which they are looked at: what is measured against a limit
// comes before what is seen in samples only.
func (v *view) candidates() []candidate {
	return []candidate{
		{"processor", v.cpuShare, fullShare, ""},
		{"write IOPS", share(v.rate("write_ops"), v.probe("write_ops_limit_end")), fullShare, ""},
		{"read IOPS", share(v.rate("read_ops"), v.probe("read_ops_limit_end")), fullShare, ""},
		{"processors of the machine", share(v.rate("host_cpu_s"), v.cores), fullShare, ""},
		{"processors of the load", v.loadShare, fullShare, ""},
		{"locks", v.waitShare(lockWaits...), waitsShare, " of samples"},
		{"disk", v.waitShare(diskWaits...), waitsShare, " of samples"},
		{"client", v.waitShare(clientWaits...), waitsShare, " of samples"},
	}
}

// limit names the resource that limits a variant under a workload, with the figure that
// says so; "" when none of those looked at does.
func (v *view) limit(x variant, w study.Workload) string {
	for _, c := range v.candidates() {
		middle := math.NaN()
		if r := v.over(ladder{w}, x, c.used); len(r) == 1 {
			middle = r[0].middle
		}
		if middle >= c.full {
			return c.name + " " + fixed(100*middle, 0) + "\u00a0%" + c.of
		}
	}
	return ""
}

// limits is the table of what limits each point.
func (v *view) limits(l ladder) *grid {
	g := &grid{
		Title: "Which resource limits each point, " + workloadTitle(l[0]) + " to " + workloadTitle(l[len(l)-1]), Columns: []string{"variant"}, Names: maxColumns + 1,
		Caption: fmt.Sprintf("Processor and IOPS from %s of what the server may use, by its class or by the machine; processors of the machine are load and server together; locks, disk or client from %s of the samples of active sessions. The first that applies, in this order, is named; where none does, nothing that was probed reached its bound.", percent(fullShare), percent(waitsShare)),
	}
	shown := l[:min(len(l), maxColumns)]
	for _, w := range shown {
		g.Columns = append(g.Columns, plural(int64(w.Clients), "client", "clients"))
	}
	for _, x := range v.variants {
		cells := []string{x.label}
		for _, w := range shown {
			cell := orElse(v.limit(x, w), "not named")
			if _, n := v.median("tps", x.Name, w.Name); n == 0 {
				cell = none
			}
			cells = append(cells, cell)
		}
		g.Rows = append(g.Rows, gridRow{Cells: cells, Muted: x.TwinOf != ""})
	}
	if left := len(l) - len(shown); left > 0 {
		g.More = plural(int64(left), "step is", "steps are") + " left out"
	}
	return g
}
