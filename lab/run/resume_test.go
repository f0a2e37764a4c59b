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

// halted is a target on which a resumed run gets no further than its preparation.
type halted struct {
	about target.About
	skip  map[string]string
}

var errHalted = errors.New("halted")

func (h *halted) About(context.Context) (target.About, error) { return h.about, nil }

func (h *halted) Check(context.Context, *study.Study) (map[string]string, error) { return h.skip, nil }

func (h *halted) Prepare(context.Context, *study.Study, target.Fill) error { return errHalted }

func (h *halted) Lease(context.Context, study.Variant) (*target.Lease, error) { return nil, errHalted }

func (h *halted) Close(context.Context) error { return nil }

// A resumed run is the same study on the same kind of target, or none.
func TestResume(t *testing.T) {
	same := target.About{Engine: study.MariaDB, Kind: target.KindPrivate}
	cases := map[string]struct {
		target halted
		why    string // "" when it gets as far as the preparation
	}{
		"the same":             {halted{same, map[string]string{"activity-stream": "none here"}}, ""},
		"more can be had":      {halted{same, nil}, ""},
		"less can be had":      {halted{same, map[string]string{"file": "no disk"}}, "which cannot be had here any more: no disk"},
		"another engine":       {halted{target.About{Engine: study.MySQL, Kind: target.KindPrivate}, nil}, "holds a study of mariadb, and the target is mysql"},
		"another kind of host": {halted{target.About{Engine: study.MariaDB, Kind: target.KindURL}, nil}, "begun on a target of the kind private"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "begun.jsonl")
			begun := resulttest.File(1, resulttest.Options{Blocks: 1, Clean: true})
			// A generator that needs no program, so that the target alone decides.
			begun.Study.Definition.Workloads = begun.Study.Definition.Workloads[1:]
			begun.Trials, begun.Events = nil, nil
			if err := resulttest.Write(path, begun); err != nil {
				t.Fatal(err)
			}
			err := Run(t.Context(), Options{Target: &c.target, Path: path, Resume: true, Folder: t.TempDir()})
			after, readErr := result.Read(path)
			if readErr != nil {
				t.Fatal(readErr)
			}
			if c.why != "" {
				if err == nil || !strings.Contains(err.Error(), c.why) || len(after.Env) != len(begun.Env) {
					t.Errorf("%v, with %d environments", err, len(after.Env))
				}
				return
			}
			if !errors.Is(err, errHalted) || len(after.Env) != len(begun.Env)+1 {
				t.Errorf("%v, with %d environments", err, len(after.Env))
			}
		})
	}
}
