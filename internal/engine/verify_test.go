package engine

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/volume"
)

func TestProblemsAreBounded(t *testing.T) {
	v := &verifying{}
	for range 3 * kurabe.VerifyProblemsMax {
		v.add("%s", strings.Repeat("é", 2*kurabe.VerifyProblemCharsMax)+"\xff")
	}
	if n := len(v.result.Problems); n != kurabe.VerifyProblemsMax {
		t.Errorf("%d problems", n)
	}
	if n := len([]rune(v.result.Problems[0])); n != kurabe.VerifyProblemCharsMax {
		t.Errorf("%d characters", n)
	}
}

// A file of another size, a missing one and other content are damage; a disk without
// room is not.
func TestVerifyTellsDamageFromHindrance(t *testing.T) {
	data := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(data, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("sound", "sound")
	write("longer", "longer now")
	sum, _, err := volume.SumFile(t.Context(), filepath.Join(data, "sound"), volume.NewPace(0))
	if err != nil {
		t.Fatal(err)
	}
	v := &verifying{}
	known := []volume.File{{Path: "sound", Size: 5, Sum: sum, Summed: true}, {Path: "longer", Size: 6}, {Path: "gone", Size: 1}, {Path: "../away", Size: 1}}
	if err := v.compareSizes(data, known); err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(v.result.Problems, "\n"); len(v.result.Problems) != 3 || !strings.Contains(said, "longer has 10 bytes, and had 6") ||
		!strings.Contains(said, "gone is missing") || !strings.Contains(said, "../away") {
		t.Errorf("%s", said)
	}
	// A clone was not read on the way.
	v = &verifying{}
	cloned := []volume.File{{Path: "sound", Size: 5}}
	if err := v.compareSums(t.Context(), data, known[:1], cloned, 0); err != nil || len(v.result.Problems) > 0 {
		t.Fatalf("%v, %v", v.result.Problems, err)
	}
	write("sound", "s0und")
	if err := v.compareSums(t.Context(), data, known[:1], cloned, 0); err != nil || len(v.result.Problems) != 1 {
		t.Errorf("%v, %v", v.result.Problems, err)
	}
	v = &verifying{home: Home{Dir: data}}
	if err := v.full([]string{"PANIC: No space left on device"}); err == nil {
		t.Error("a full disk passes for damage")
	}
	if err := v.full([]string{"invalid page"}); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if !hinders(ended.Err()) || hinders(errors.New("the list is not the one that was written")) {
		t.Error("hindrances are not told from damage")
	}
}

// What a killed verification leaves is a folder, and processes that work in it or
// beside its data.
func TestSweepVerified(t *testing.T) {
	base := t.TempDir()
	l := &Lifecycle{c: Config{Homes: filepath.Join(base, "instances")}}
	s := &Snapshots{engines: map[kurabe.EngineName]*Lifecycle{kurabe.Postgres: l}}
	if err := s.SweepVerified(t.Context()); err != nil {
		t.Fatalf("without a folder: %v", err)
	}
	home := filepath.Join(l.scratchDir(), "snap-left")
	var left []*exec.Cmd
	for _, dir := range []string{"data", filepath.Join("data.private.tmp", "run")} {
		path := filepath.Join(home, dir)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		p := exec.CommandContext(t.Context(), "sleep", "60")
		p.Dir = path
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		left = append(left, p)
	}
	if err := os.MkdirAll(filepath.Join(l.scratchDir(), "snap-half.removed.tmp", "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.SweepVerified(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range left {
		// A minute later, without the sweep.
		if err := p.Wait(); err == nil {
			t.Error("a process came to its own end")
		}
	}
	if entries, err := os.ReadDir(l.scratchDir()); err != nil || len(entries) > 0 {
		t.Errorf("left %v, %v", entries, err)
	}
}
