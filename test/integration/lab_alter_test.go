//go:build integration

package integration

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kurabe/internal/harness"
	"kurabe/lab/dial"
	"kurabe/lab/result"
	"kurabe/lab/run"
	"kurabe/lab/study"
	"kurabe/lab/target"
)

// Variants that the test adds to the built-in study.
const (
	variantBlocked = "add-column-blocked" // a reader of a second is in the way
	variantRefused = "refused"            // the engine does not make it
	variantUntrue  = "untrue"             // it is made, and does not do what it says
)

// alterStudy is the built-in one with every change, cut down to seconds.
func alterStudy(t *testing.T, engine string) *study.Study {
	t.Helper()
	s, err := study.Builtin("alter")
	if err == nil {
		s, err = study.ForEngine(s, engine)
	}
	if err == nil {
		s, err = study.Scaled(s, 0.01)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Workloads = slices.DeleteFunc(s.Workloads, func(w study.Workload) bool { return w.Name != "open" })
	s.Published = nil
	second := study.Duration(time.Second)
	s.Plan = study.Plan{BlocksMin: 2, BlocksMax: 2, Warm: second / 5, WarmMax: second / 5, Measure: second / 2, DuringMin: second, After: second / 2}
	return study.WithTwin(s)
}

func variantOf(t *testing.T, s *study.Study, name string) study.Variant {
	t.Helper()
	n := slices.IndexFunc(s.Variants, func(v study.Variant) bool { return v.Name == name })
	if n < 0 {
		t.Fatalf("no variant %s", name)
	}
	return s.Variants[n]
}

// runAlter measures and gives what the file holds.
func runAlter(t *testing.T, s *study.Study, on target.Target) *result.File {
	t.Helper()
	dir := harness.Folder(t, false)
	path := filepath.Join(dir, "alter.jsonl")
	if err := run.Run(t.Context(), run.Options{Study: s, Target: on, Path: path, Folder: dir}); err != nil {
		t.Fatal(err)
	}
	f, err := result.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// eachPlain is a server by its URL for each engine.
func eachPlain(t *testing.T, test func(t *testing.T, engine string, on target.Target)) {
	for _, engine := range []string{study.Postgres, study.MariaDB} {
		t.Run(engine, func(t *testing.T) {
			if _, err := os.Stat("/usr/sbin/mariadbd"); engine == study.MariaDB && err != nil {
				t.Skip(err)
			}
			on, err := target.URL(t.Context(), plain(t, engine), target.Options{})
			if err != nil {
				t.Fatal(err)
			}
			test(t, engine, on)
		})
	}
}

// blocking leases servers on which a session reads the table of a blocked variant from
// before the load on, until a second after the change has begun to wait for it.
type blocking struct {
	target.Target
	t     *testing.T
	table string
}

func (b blocking) Lease(ctx context.Context, v study.Variant) (*target.Lease, error) {
	lease, err := b.Target.Lease(ctx, v)
	if err != nil || v.Name != variantBlocked {
		return lease, err
	}
	reader, err := dial.Open(ctx, lease.Direct)
	if err == nil {
		err = reader.Exec(ctx, "BEGIN", "SELECT count(*) FROM "+b.table)
	}
	if err != nil {
		return nil, errors.Join(err, lease.Release(ctx))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer reader.Close()
		b.stay(lease.Direct)
	}()
	release := lease.Release
	lease.Release = func(ctx context.Context) error {
		<-done
		return release(ctx)
	}
	return lease, nil
}

// stay returns a second after somebody has begun to wait for a lock of a table.
func (b blocking) stay(s dial.Server) {
	question := "SELECT count(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table metadata lock' AND INFO LIKE 'ALTER%'"
	if s.Engine == study.Postgres {
		question = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'AccessExclusiveLock'"
	}
	look, err := dial.Open(b.t.Context(), s)
	if err != nil {
		b.t.Error(err)
		return
	}
	defer look.Close()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		<-tick.C
		rows, err := look.Rows(b.t.Context(), question)
		if err != nil {
			b.t.Error(err)
			return
		}
		if rows[0][0] != "0" {
			<-time.After(time.Second) // that long it is in the way
			return
		}
	}
	b.t.Error("the change never waited for the reader")
}

// Every change of the built-in study is made, seen and undone, on both engines; a blocked
// one is a gap of those who write.
func TestLabAlter(t *testing.T) {
	onceIsEnough(t)
	eachPlain(t, func(t *testing.T, engine string, on target.Target) {
		s := alterStudy(t, engine)
		blocked := variantOf(t, s, "add-column")
		blocked.Name = variantBlocked
		s.Variants = append(s.Variants, blocked)
		if !harness.Whole() {
			s.Plan.BlocksMin, s.Plan.BlocksMax = 1, 1 // another block makes the same changes again
		}
		f := runAlter(t, s, blocking{on, t, s.Workloads[0].Table()})
		for _, v := range s.Variants {
			if why := f.Study.Unsupported[v.Name]; why != "" {
				if _, err := exec.LookPath(study.ToolPtOSC); v.Tool != study.ToolPtOSC || err == nil || !strings.Contains(why, "percona-toolkit") {
					t.Errorf("%s: %s", v.Name, why)
				}
				continue
			}
			counted := 0
			for n := range f.Trials {
				trial := &f.Trials[n]
				if trial.Variant != v.Name {
					continue
				}
				if trial.Status == result.StatusFailed {
					t.Errorf("%s: %s", v.Name, trial.Reason)
					continue
				}
				if trial.Counts() {
					counted++
				}
				alterTrial(t, f, v, trial)
			}
			if counted != s.Plan.BlocksMin {
				t.Errorf("%s: %d trials count", v.Name, counted)
			}
		}
	})
}

// alterTrial checks what one trial tells.
func alterTrial(t *testing.T, f *result.File, v study.Variant, trial *result.Trial) {
	t.Helper()
	kinds := map[string][]float64{}
	for _, e := range f.Events {
		if e.Of(trial) {
			kinds[e.Kind] = append(kinds[e.Kind], e.AtMs)
		}
	}
	begin, end := kinds[result.EventChangeBegin], kinds[result.EventChangeEnd]
	during := trial.Phase(result.PhaseDuring)
	if during == nil || len(begin) != 1 || len(end) != 1 {
		t.Errorf("%s: events %v, phases %v", v.Name, kinds, trial.Phases)
		return
	}
	const border = 5 // ms, between two clocks
	if begin[0] < during.StartMs-border || end[0] < begin[0] || end[0] > during.StartMs+during.Ms+border {
		t.Errorf("%s: the change is from %g to %g ms, its phase from %g for %g", v.Name, begin[0], end[0], during.StartMs, during.Ms)
	}
	sheet := result.NewSheet(trial)
	for _, name := range []string{"change_s", "qps@idle", "resp_p95@idle", "resp_min@idle", "resp_avg@during", "resp_max@during", "resp_p95@after", "resp_p95@during/idle"} {
		if x, ok := sheet.Value(name); !ok || x <= 0 {
			t.Errorf("%s: %s is %g, %v", v.Name, name, x, ok)
		}
	}
	steps := len(study.Statements(v.Change, f.Study.Engine)) - 1
	if got := len(kinds[result.EventStep]); v.Tool == "" && got != steps || v.Tool != "" && got < 4 {
		t.Errorf("%s: %d steps", v.Name, got)
	}
	gap, ok := sheet.Value("gap_max@during")
	t.Logf("%s: change %g ms, longest gap %g ms, waits for locks at %v, checkpoints at %v", v.Name, trial.ChangeMs, gap, kinds[result.EventLockWait], kinds[result.EventCheckpoint])
	if v.Name != variantBlocked {
		return
	}
	slowest, _ := sheet.Value("resp_max@during")
	if !ok || gap < 800 || slowest < 800 || trial.ChangeMs < 900 {
		t.Errorf("%s: a gap of %g ms, a response of %g ms, a change of %g ms; the reader stayed for a second", v.Name, gap, slowest, trial.ChangeMs)
	}
	// The watch looks every tenth of a second, and later on a busy machine.
	if waits := kinds[result.EventLockWait]; len(waits) < 2 || waits[0] < begin[0] || waits[1] <= waits[0] {
		t.Errorf("%s: waits for locks at %v", v.Name, waits)
	}
}

// A change that the engine refuses, and one that does not do what it says, fail their
// trials with the reason, and the others are measured.
func TestLabAlterIsTrue(t *testing.T) {
	onceIsEnough(t)
	eachPlain(t, func(t *testing.T, engine string, on target.Target) {
		s := alterStudy(t, engine)
		truth := variantOf(t, s, "add-column")
		refused, untrue := truth, truth
		refused.Name, untrue.Name = variantRefused, variantUntrue
		refused.Change = map[string][]string{
			study.Postgres: {"ALTER TABLE {table} ALTER COLUMN c TYPE integer USING c::integer"},
			study.MariaDB:  {"ALTER TABLE {table} MODIFY COLUMN k bigint NOT NULL DEFAULT 0, ALGORITHM=INSTANT"},
		}
		untrue.Change = map[string][]string{"": {"SELECT 2"}}
		s.Variants = append(s.Variants[:0:0], variantOf(t, s, "sham"), truth, refused, untrue)
		s.Plan.BlocksMin, s.Plan.BlocksMax = 1, 1
		f := runAlter(t, study.WithTwin(s), on)
		want := map[string]string{
			"sham": "", "add-column": "", variantUntrue: "the change was not made",
			variantRefused: map[string]string{study.Postgres: "cannot be cast automatically", study.MariaDB: "ALGORITHM=INSTANT"}[engine],
		}
		for name, reason := range want {
			seen := 0
			for _, trial := range f.Trials {
				if trial.Variant != name {
					continue
				}
				seen++
				if failed := trial.Status == result.StatusFailed; failed != (reason != "") || !strings.Contains(trial.Reason, reason) {
					t.Errorf("%s: %s (%s), want %q", name, trial.Status, trial.Reason, reason)
				}
			}
			if seen == 0 {
				t.Errorf("%s was not tried", name)
			}
		}
	})
}
