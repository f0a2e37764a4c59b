package main

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
)

// cloneTimes measures what a file system that clones gives without clients: one
// snapshot after another of files that rest, and of files of which a second of updates
// has moved some blocks each time; then restores, and the command that does both.
func (r *run) cloneTimes(ctx context.Context, engine string, size float64, s *snapshotLab) error {
	what := func(text string) string { return fmt.Sprintf("%s %g GB, clone: %s", engineTitle[engine], size, text) }
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
			r.out.sample("idle-clone", map[string]any{"engine": engine, "gb": size, "n": n + 1, "updates": updates, "seconds": seconds[n]})
			if !updates {
				continue
			}
			load, err := startOpenLoad(ctx, s.i.target, s.rows, snapshotRate, r.rng.Uint64())
			if err != nil {
				return nil, err
			}
			pauseFor(ctx, time.Second)
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
	r.out.row(row{Bench: "snapshot", What: what("no clients, nothing changed in between"), Value: spread(idle, "s"), Note: "from the request until available, asked every 10 ms",
		Bar: fmt.Sprintf("≤ %g s", idleCloneBar), Verdict: verdict(stat.Median(idle) <= idleCloneBar)})
	after, err := take(many, true)
	if err != nil {
		return err
	}
	r.out.row(row{Bench: "snapshot", What: what("no clients, the first, second, fifth and tenth, a second of updates in between"),
		Value: fmt.Sprintf("%.2f, %.2f, %.2f, %.2f s", after[0], after[1], after[many/2-1], after[many-1]), Note: "each block that moved is one more extent to clone"})
	if err := r.restoreTimes(ctx, engine, size, s, what); err != nil {
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
func (r *run) restoreTimes(ctx context.Context, engine string, size float64, s *snapshotLab, what func(string) string) error {
	ways := []struct {
		name string
		bar  float64
		make func(ctx context.Context, name string) error
	}{
		{"restore until a client has logged in", restoreBar, s.restore},
		{"the command kurabe clone", cloneCommandBar, r.cloneCommand(s)},
	}
	for _, w := range ways {
		var seconds []float64
		for n := range pick(r, 3, 1) {
			name := fmt.Sprintf("made-%d", n)
			began := time.Now()
			if err := w.make(ctx, name); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			seconds = append(seconds, time.Since(began).Seconds())
			r.out.sample("restore", map[string]any{"engine": engine, "gb": size, "way": w.name, "seconds": seconds[n]})
			if err := s.remove(ctx, name); err != nil {
				return err
			}
		}
		r.out.row(row{Bench: "snapshot", What: what(w.name), Value: spread(seconds, "s"), Bar: fmt.Sprintf("≤ %g s", w.bar), Verdict: verdict(stat.Median(seconds) <= w.bar)})
	}
	return nil
}

// restore makes an instance of the newest snapshot and returns when a client has
// logged in.
func (s *snapshotLab) restore(ctx context.Context, name string) error {
	_, err := s.api.RestoreDBInstanceFromDBSnapshot(ctx, &rds.RestoreDBInstanceFromDBSnapshotInput{
		DBInstanceIdentifier: aws.String(name), DBSnapshotIdentifier: aws.String(s.taken), BackupRetentionPeriod: aws.Int32(0),
		DBInstanceClass: aws.String(s.microClass()), // memory is not what is measured
	})
	if err != nil {
		return err
	}
	i, err := s.waitStatus(ctx, name, "available")
	if err != nil {
		return err
	}
	return i.login(ctx)
}

// cloneCommand runs kurabe clone as a person would.
func (r *run) cloneCommand(s *snapshotLab) func(context.Context, string) error {
	return func(ctx context.Context, name string) error {
		cmd := exec.CommandContext(ctx, r.bin, "clone", s.i.name, name, "--class", s.microClass(), "--data", s.data, "--region", region,
			"--endpoint", aws.ToString(s.api.Options().BaseEndpoint))
		cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+accessKey, "AWS_SECRET_ACCESS_KEY="+s.secret)
		return runTool(cmd)
	}
}
