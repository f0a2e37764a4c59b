package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

// cloneTimes measures what a file system that clones gives without clients: one
// snapshot after another of files that rest, and of files of which a second of updates
// has moved some blocks each time; then restores, and the command that does both.
func cloneTimes(ctx context.Context, r *bed.Run, engine string, size float64, s *snapshotLab) error {
	what := func(text string) string {
		return fmt.Sprintf("%s %g GB, clone: %s", bed.EngineTitle[engine], size, text)
	}
	const many = 10
	var names []string
	take := func(count int, updates bool) ([]float64, error) {
		var seconds []float64
		for n := range count {
			if err := s.prepare(ctx, &snapshotArm{pace: -1}); err != nil {
				return nil, err
			}
			began := time.Now()
			if err := s.takeSnapshot(ctx); err != nil {
				return nil, err
			}
			seconds = append(seconds, time.Since(began).Seconds())
			names = append(names, s.taken)
			r.Out.Sample("idle-clone", map[string]any{"engine": engine, "gb": size, "n": n + 1, "updates": updates, "seconds": seconds[n]})
			if !updates {
				continue
			}
			load, err := startOpenLoad(ctx, s.i.Target, s.rows, snapshotRate, r.Rng.Uint64())
			if err != nil {
				return nil, err
			}
			_ = bed.Wait(ctx, time.Second)
			if err := load.stop(); err != nil {
				return nil, err
			}
		}
		return seconds, nil
	}
	idle, err := take(many/2, false)
	if err != nil {
		return err
	}
	r.Out.Row(bed.Row{Bench: "snapshot", What: what("no clients, nothing changed in between"), Value: spread(idle, "s"), Note: "from the request until available, asked every 10 ms",
		Bar: fmt.Sprintf("≤ %g s", idleCloneBar), Verdict: bed.Verdict(stat.Median(idle) <= idleCloneBar)})
	after, err := take(many, true)
	if err != nil {
		return err
	}
	r.Out.Row(bed.Row{Bench: "snapshot", What: what("no clients, the first, second, fifth and tenth, a second of updates in between"),
		Value: fmt.Sprintf("%.2f, %.2f, %.2f, %.2f s", after[0], after[1], after[many/2-1], after[many-1]), Note: "each block that moved is one more extent to clone"})
	if err := restoreTimes(ctx, r, engine, size, s, what); err != nil {
		return err
	}
	var failure error
	for _, name := range names {
		failure = errors.Join(failure, s.removeNamed(ctx, name))
	}
	s.taken = ""
	return failure
}

// restoreTimes measures restores of the newest snapshot and clones by the command.
func restoreTimes(ctx context.Context, r *bed.Run, engine string, size float64, s *snapshotLab, what func(string) string) error {
	ways := []struct {
		name string
		bar  float64
		make func(ctx context.Context, name string) error
	}{
		{"restore until a client has logged in", restoreBar, s.restore},
		{"the command kurabe clone", cloneCommandBar, cloneCommand(r, s)},
	}
	for _, w := range ways {
		var seconds []float64
		for n := range bed.Pick(r, 3, 1) {
			name := fmt.Sprintf("made-%d", n)
			began := time.Now()
			if err := w.make(ctx, name); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			seconds = append(seconds, time.Since(began).Seconds())
			r.Out.Sample("restore", map[string]any{"engine": engine, "gb": size, "way": w.name, "seconds": seconds[n]})
			if err := s.Remove(ctx, name); err != nil {
				return err
			}
		}
		r.Out.Row(bed.Row{Bench: "snapshot", What: what(w.name), Value: spread(seconds, "s"), Bar: fmt.Sprintf("≤ %g s", w.bar), Verdict: bed.Verdict(stat.Median(seconds) <= w.bar)})
	}
	return nil
}

// restore makes an instance of the newest snapshot and returns when a client has
// logged in.
func (s *snapshotLab) restore(ctx context.Context, name string) error {
	_, err := s.Api.RestoreDBInstanceFromDBSnapshot(ctx, &rds.RestoreDBInstanceFromDBSnapshotInput{
		DBInstanceIdentifier: aws.String(name), DBSnapshotIdentifier: aws.String(s.taken), BackupRetentionPeriod: aws.Int32(0),
		DBInstanceClass: aws.String(s.MicroClass()), // memory is not what is measured
	})
	if err != nil {
		return err
	}
	i, err := s.WaitStatus(ctx, name, "available")
	if err != nil {
		return err
	}
	return i.Login(ctx)
}

// cloneCommand runs kurabe clone as a person would.
func cloneCommand(r *bed.Run, s *snapshotLab) func(context.Context, string) error {
	return func(ctx context.Context, name string) error {
		cmd := exec.CommandContext(ctx, r.Bin, "clone", s.i.Name, name, "--class", s.MicroClass(), "--data", s.Data, "--region", bed.Region,
			"--endpoint", aws.ToString(s.Api.Options().BaseEndpoint))
		cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+bed.AccessKey, "AWS_SECRET_ACCESS_KEY="+s.Secret)
		return runTool(cmd)
	}
}
