package run

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kurabe/lab/study"
	"kurabe/lab/target"
)

// untouched is a target that must not be asked for anything but what it is.
type untouched struct {
	halted
	t *testing.T
}

func (u *untouched) Check(context.Context, *study.Study) (map[string]string, error) {
	u.t.Error("the target is asked to try a study that cannot be read")
	return nil, nil
}

// A script that cannot be read is the study's mistake, and no missing feature.
func TestScriptMistakeEndsTheRun(t *testing.T) {
	s, err := study.Builtin("general-log")
	if err != nil {
		t.Fatal(err)
	}
	s.Workloads = []study.Workload{{Name: "mine", Generator: study.GeneratorOwn, Script: "SELECT 1;\n\\set x random(1,\n", Mode: study.ModeClosed, Clients: 1}}
	path := filepath.Join(t.TempDir(), "mistake.jsonl")
	on := &untouched{halted{about: target.About{Engine: study.MariaDB, Kind: target.KindPrivate}}, t}
	err = Run(t.Context(), Options{Study: s, Target: on, Path: path, Folder: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), `workload "mine": script, line 2`) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a result file was made")
	}
}
