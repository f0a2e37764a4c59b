package run

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/lab/result"
	"kurabe/lab/result/resulttest"
	"kurabe/lab/study"
	"kurabe/lab/target"
)

// begun is the file of a run that ended in the middle, of a load that needs no program.
func begun(t *testing.T, change func(*result.File)) (path string, f *result.File) {
	t.Helper()
	f = resulttest.File(1, resulttest.Options{Blocks: 2, Clean: true})
	f.Study.Definition.Workloads = f.Study.Definition.Workloads[1:]
	var kept []result.Trial
	for _, trial := range f.Trials {
		if trial.Workload == f.Study.Definition.Workloads[0].Name {
			kept = append(kept, trial)
		}
	}
	f.Trials, f.Events, f.Ends = kept, nil, nil
	f.Study.Definition.Plan.BlocksMin, f.Study.Definition.Plan.BlocksMax = 2, 2
	change(f)
	path = filepath.Join(t.TempDir(), "begun.jsonl")
	if err := resulttest.Write(path, f); err != nil {
		t.Fatal(err)
	}
	return path, f
}

// away is a target whose server cannot be reached any more.
type away struct{ halted }

func (a *away) Prepare(_ context.Context, _ *study.Study, _ target.Fill) error { return nil }

// resumed goes on with a file on a target that is away, and says what was tried.
func resumed(t *testing.T, path string, begun *result.File) (tried []result.Trial, failure error) {
	t.Helper()
	on := &away{halted{about: target.About{Engine: begun.Study.Engine, Kind: begun.Study.Target}}}
	failure = Run(t.Context(), Options{Target: on, Path: path, Resume: true, Folder: t.TempDir()})
	after, err := result.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return after.Trials[len(begun.Trials):], failure
}

func failed(trial result.Trial) result.Trial {
	return result.Trial{Block: trial.Block, Position: trial.Position, Variant: trial.Variant, Workload: trial.Workload, Status: result.StatusFailed, Reason: "the server is away"}
}

// A baseline that failed as often as one run tries is tried again by the next one, as is
// any other variant, or a server that was away for a minute would end a study for ever.
func TestResumeTriesFailedCellsAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		which func(f *result.File) string // the variant whose trial of block 1 failed
		tries int
		why   string
	}{
		{"the baseline", func(f *result.File) string { return f.Study.Definition.Baseline }, triesMax, "the baseline"},
		{"another", func(f *result.File) string { return "file" }, triesMax, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			variant := ""
			path, f := begun(t, func(f *result.File) {
				variant = c.which(f)
				for n, trial := range f.Trials {
					if trial.Block == 1 && trial.Variant == variant {
						f.Trials[n] = failed(trial)
						f.Trials = append(f.Trials, failed(trial))
						break
					}
				}
			})
			tried, err := resumed(t, path, f)
			if (err != nil) != (c.why != "") || err != nil && !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v, want %q", err, c.why)
			}
			if len(tried) != c.tries {
				t.Fatalf("%d trials more, want %d: %v", len(tried), c.tries, err)
			}
			for _, trial := range tried {
				if trial.Variant != variant || trial.Block != 1 || !strings.Contains(trial.Reason, errHalted.Error()) {
					t.Errorf("tried %s in block %d: %s", trial.Variant, trial.Block, trial.Reason)
				}
			}
		})
	}
}

// A study that has all that its plan wants is not prepared for nothing.
func TestResumeOfACompleteStudy(t *testing.T) {
	for reason, complete := range map[string]bool{reasonBlocks: true, reasonPrecise: true, reasonInterrupted: false} {
		path, f := begun(t, func(f *result.File) { f.Ends = []result.End{{Reason: reason}} })
		tried, err := resumed(t, path, f)
		if errors.Is(err, ErrComplete) != complete || len(tried) != 0 || !complete && err != nil {
			t.Errorf("%s: %v, %d trials", reason, err, len(tried))
		}
	}
}
