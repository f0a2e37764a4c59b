//go:build fault

package fault

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kurabe/internal/harness"
)

// TestKillAtEveryStepOfAMoment kills the service before and after the steps of one
// restore to a moment that are other than those of a creation, and within the one that
// takes long; then the private server that recovers one; then the service in a
// verification and an upload of its backup. What comes out is exact all the same.
func TestKillAtEveryStepOfAMoment(t *testing.T) {
	t.Parallel()
	repository := filepath.Join(harness.Folder(t, false), "repository")
	s := harness.Start(t, harness.Options{Fault: true, Args: []string{"--copy-rate", "0", "--backup-repository", repository}})
	s.EachEngine(t, func(t *testing.T, engine string) {
		b := newLogBed(t, s, engine)
		b.pour(t, pourBytes)                   // so that a restore takes its time
		at := b.grows(t).Truncate(time.Second) // MariaDB's log knows no parts of one
		b.grows(t)
		b.stop()
		steps := b.momentSteps(t, at)
		began := time.Now()
		i := b.killMoment(t, steps, at)
		b.compare(t, i, at)
		i.Delete(t)
		t.Logf("%v: %v", steps, time.Since(began).Round(time.Millisecond))
		b.killPrivate(t, at)
		b.killVerification(t)
		b.killUpload(t)
		b.i.Delete(t)
		noOrphans(t, s)
	})
}

// restoreSteps differ for an instance with an origin; TestKillAtEveryStep has them all.
var restoreSteps = map[string]bool{"make-home": true, "restore-snapshot": true, "start": true, "ensure-master": true}

// momentSteps restores once undisturbed, and returns the steps.
func (b *logBed) momentSteps(t *testing.T, at time.Time) []string {
	t.Helper()
	mark := b.s.Log.Mark()
	i := b.restoring(t, "undisturbed-"+b.i.Engine, at)
	i.WaitStatus(t, "available")
	b.compare(t, i, at)
	var steps []string
	for _, step := range b.s.Log.Steps(mark, i.ID) {
		if restoreSteps[step] && !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
	}
	i.Delete(t)
	if !slices.Contains(steps, "restore-snapshot") {
		t.Fatalf("it passed %v", steps)
	}
	return steps
}

// restoring asks for a restore to a moment.
func (b *logBed) restoring(t *testing.T, name string, at time.Time) *harness.Instance {
	t.Helper()
	i, err := b.ask(t, name, at)
	if err != nil {
		t.Fatal(err)
	}
	i.ID = *i.Describe(t).DbiResourceId
	return i
}

// killMoment does one restore in which the service dies at every point, one after the
// other.
func (b *logBed) killMoment(t *testing.T, steps []string, at time.Time) *harness.Instance {
	t.Helper()
	h := holdAt(t, b.s, "before:"+steps[0]) // it dies once it has told all that the test asks
	i := b.restoring(t, "killed-"+b.i.Engine, at)
	h.reached(t)
	b.s.Kill(t)
	for n, point := range points(steps) {
		if n == 0 {
			continue
		}
		if point == "after:restore-snapshot" {
			for _, within := range restorePoints[b.i.Engine] {
				b.s.Arm(t, within)
				b.s.Launch(t)
				b.died(t, within)
			}
		}
		b.s.Arm(t, point)
		b.s.Launch(t)
		b.died(t, point)
	}
	b.s.Start(t)
	i.WaitStatus(t, "available")
	return i
}

// privatePoints are passed while a private server recovers a restore: it has begun, it
// follows the log, it is where it is to be and about to be shut down.
var privatePoints = map[string][]string{
	"postgres": {"after:start-private", "before:stop-private"},
	"mariadb":  {"after:start-private", "after:start-replay", "before:stop-private"},
}

// killPrivate does one restore in which the private server dies at every point, under
// a service that lives: the restore is tried again.
func (b *logBed) killPrivate(t *testing.T, at time.Time) {
	t.Helper()
	began := time.Now()
	points := privatePoints[b.i.Engine]
	h := holdAt(t, b.s, points[0])
	i := b.restoring(t, "private-"+b.i.Engine, at)
	for n := range points {
		h.reached(t)
		killPrivateServer(t, i)
		held := h
		if n+1 < len(points) {
			h = holdAt(t, b.s, points[n+1])
		}
		held.release(t)
	}
	i.WaitStatus(t, "available")
	b.compare(t, i, at)
	i.Delete(t)
	t.Logf("%v: %v", points, time.Since(began).Round(time.Millisecond))
}

// restorePoints are passed within the step that restores: the data is copied, the log is
// there, a private server follows it.
var restorePoints = map[string][]string{
	"postgres": {"after:copy-data", "after:fetch-log", "after:start-private"},
	"mariadb":  {"after:copy-data", "after:fetch-log", "after:start-replay"},
}

// died waits until the service has ended at a point.
func (b *logBed) died(t *testing.T, point string) {
	t.Helper()
	harness.Wait(t, settleTime, "the service dies "+point, func() string {
		if b.s.Running() {
			return "it does not"
		}
		return ""
	})
}

// killWhen starts the service and kills it as soon as a file is there.
func (b *logBed) killWhen(t *testing.T, what, pattern string) {
	t.Helper()
	b.s.Launch(t)
	for deadline := time.Now().Add(settleTime); ; {
		if files, _ := filepath.Glob(pattern); len(files) > 0 { // the pattern is well formed
			b.s.Kill(t)
			return
		}
		if time.Now().After(deadline) || !b.s.Running() {
			t.Fatalf("%s: it is not seen", what)
		}
	}
}

// killVerification kills the service before, in and after a verification, which must
// come to its result all the same and leave nothing.
func (b *logBed) killVerification(t *testing.T) {
	t.Helper()
	scratch := filepath.Join(b.s.Data, "scratch", "*")
	b.s.Arm(t, "before:verify-snapshot")
	b.verify(t, "--no-wait")
	b.died(t, "before:verify-snapshot")
	b.killWhen(t, "a copy is checked", filepath.Join(scratch, "data", "*"))
	b.s.Arm(t, "after:verify-snapshot")
	b.s.Launch(t)
	b.died(t, "after:verify-snapshot")
	b.s.Start(t)
	b.i.WaitEvent(t, "was restored and verified: no damage was found")
	harness.Wait(t, settleTime, "nothing is left of the verifications", func() string {
		left, _ := filepath.Glob(scratch) // the pattern is well formed
		return strings.Join(append(left, strays(b.s, []string{b.i.ID})...), ", ")
	})
}

// verify has the newest backup verified, as people do.
func (b *logBed) verify(t *testing.T, args ...string) (string, error) {
	t.Helper()
	args = append([]string{"verify", b.i.Name, "--endpoint", b.s.URL(), "--data", b.s.Data}, args...)
	cmd := exec.CommandContext(t.Context(), harness.FaultBinary(t), args...)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// killUpload kills the service before and after a snapshot goes into the repository.
func (b *logBed) killUpload(t *testing.T) {
	t.Helper()
	for _, point := range []string{"before:archive-snapshot", "after:archive-snapshot"} {
		b.s.Arm(t, point)
		b.takeSnapshot(t, strings.ReplaceAll(point, ":", "-")+"-"+b.i.Engine)
		b.died(t, point)
		b.s.Start(t)
	}
}
