package engine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kurabe"
)

// TestSettingsOfAnotherGroup: what the engine cannot read is not current, whatever is in it.
func TestSettingsOfAnotherGroup(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("without root the engine is of the service's own group")
	}
	dir, gid := t.TempDir(), os.Getgid()
	if err := os.WriteFile(filepath.Join(dir, "a.conf"), []byte("x"), 0o640); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"a.conf": "x"}
	if !current(dir, files, gid) {
		t.Error("a file of the engine's group is not current")
	}
	if current(dir, files, gid+1) {
		t.Error("a file of another group is current")
	}
}

// TestHomeThatWasCutOff: a folder that whoever made it died over is there, and not yet what
// the engine may write to.
func TestHomeThatWasCutOff(t *testing.T) {
	l := NewLifecycle(Config{Homes: t.TempDir()}, nil)
	a := kurabe.Assignment{Instance: "db-A", Goal: kurabe.GoalRunning}
	i := l.instance(a)
	has := func() bool {
		o, err := l.Observe(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		return o.Home
	}
	if err := l.makeHome(i); err != nil || !has() {
		t.Fatalf("made: %v, and there: %v", err, has())
	}
	for _, d := range homeDirs(i) {
		if err := os.Chmod(d.path, 0o755); err != nil || has() {
			t.Errorf("%s without its mode (%v) counts", d.path, err)
		}
		if err := l.makeHome(i); err != nil || !has() {
			t.Fatalf("made again: %v, and there: %v", err, has())
		}
	}
	if os.Getuid() != 0 {
		return // nothing can be another's
	}
	if err := os.Chown(i.Home.LogDir(), 12345, -1); err != nil || has() {
		t.Errorf("a folder of another owner (%v) counts", err)
	}
}

// TestRemovalThatWasCutOff: an instance whose service died while its folder was removed is
// not gone before the rest of that is.
func TestRemovalThatWasCutOff(t *testing.T) {
	l := NewLifecycle(Config{Homes: t.TempDir()}, nil)
	a := kurabe.Assignment{Instance: "db-A~2", Goal: kurabe.GoalAbsent}
	rest := l.instance(a).Home.Dir + ".removed.tmp"
	if err := os.MkdirAll(filepath.Join(rest, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	o, err := l.Observe(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if steps := Next(a, o); !slices.Equal(steps, []StepName{StepRemoveHome}) {
		t.Fatalf("the steps are %v", steps)
	}
	if err := l.removeHome(t.Context(), l.instance(a)); err != nil {
		t.Fatal(err)
	}
	if o, err = l.Observe(t.Context(), a); err != nil || o.Remains || exists(rest) {
		t.Errorf("something remains: %v, %v", o, err)
	}
}
