package report

import (
	"testing"

	"kurabe/lab/result"
)

// changePoint changes the trials of one point: those of the fast storage with one client, which
// nothing limits.
func changePoint(f *result.File, change func(*result.Phase)) {
	for n := range f.Trials {
		if t := &f.Trials[n]; t.Variant == "fast" && t.Workload == "clients-1" {
			change(t.Main())
		}
	}
}

// Each resource is named by the figure that shows it, measured against what the server
// may use.
func TestLimitIsNamed(t *testing.T) {
	probe := func(name string, value float64) func(*result.Phase) {
		return func(p *result.Phase) { p.Probes[name] = value }
	}
	waits := func(w map[string]int) func(*result.Phase) { return func(p *result.Phase) { p.Waits = w } }
	const seconds = 20
	for name, c := range map[string]struct {
		change func(*result.Phase)
		want   string
	}{
		"nothing":                {func(*result.Phase) {}, ""},
		"a class of a quarter":   {func(p *result.Phase) { p.Probes["cpu_limit_end"], p.Probes["cpu_s"] = 0.25, 0.24*seconds }, "processor 96\u00a0%"},
		"reads":                  {func(p *result.Phase) { p.Probes["read_ops"], p.Probes["read_ops_limit_end"] = 990*seconds, 1000 }, "read IOPS 99\u00a0%"},
		"writes without a limit": {func(p *result.Phase) { p.Probes["write_ops"] = 1e6; delete(p.Probes, "write_ops_limit_end") }, ""},
		"the machine":            {probe("host_cpu_s", 1.98*seconds), "processors of the machine 99\u00a0%"},
		"the load":               {func(p *result.Phase) { p.Load.Generator = map[string]float64{"cpu_s": 1.9 * seconds} }, "processors of the load 95\u00a0%"},
		"locks":                  {waits(map[string]int{"Lock:row": 6, "Stage:Updating": 4}), "locks 60\u00a0% of samples"},
		"latches are no locks":   {waits(map[string]int{"LWLock:BufferContent": 9, "Stage:Locking": 1}), ""},
		"the log":                {waits(map[string]int{"IO:WALSync": 2, "LWLock:WALWrite": 5, "CPU": 3}), "disk 70\u00a0% of samples"},
		"a commit of MariaDB":    {waits(map[string]int{"Commit:Commit": 7, "Stage:executing": 3}), "disk 70\u00a0% of samples"},
		"the client":             {waits(map[string]int{"idle in transaction": 8, "CPU": 2}), "client 80\u00a0% of samples"},
	} {
		t.Run(name, func(t *testing.T) {
			f := ladderFile(3)
			changePoint(f, c.change)
			v := mustView(t, f)
			for _, x := range v.variants {
				if got := v.limit(x, v.ladders()[0][0]); x.Name == "fast" && got != c.want {
					t.Errorf("%q, want %q", got, c.want)
				}
			}
		})
	}
}

// A limit far above what was measured is not drawn: it would flatten the rest.
func TestNearLimitsAreDrawn(t *testing.T) {
	v := mustView(t, ladderFile(3))
	l := v.ladders()[0]
	p := scalePanel{bound: v.writeLimit}
	if at, ok := v.boundOf(p, l, v.variants[2]); !ok || at != 6000 {
		t.Errorf("%v, %v", at, ok)
	}
	if got := v.reach(p, l, 950); got != 1000 {
		t.Errorf("the axis ends at %v", got)
	}
	if got := v.reach(scalePanel{}, l, 950); got != 950 {
		t.Errorf("without limits the axis ends at %v", got)
	}
}
