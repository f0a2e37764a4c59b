package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"kurabe/lab/stat"
	"kurabe/test/bench/bed"
)

// accountsBar is how much longer anything may take with a user for each instance than with
// one for all.
const accountsBar = 1.05

// accountDeeds are what is measured of each block, in this order.
var accountDeeds = []string{"create → available", "snapshot", "restore → available"}

// accountsArm is one of the two services, and its seconds by deed.
type accountsArm struct {
	name    string
	l       *bed.Lab
	seconds map[string][]float64 // by deed; one of each block
}

// Accounts measures what it costs that each instance has a user of its own.
func Accounts(ctx context.Context, r *bed.Run) (failure error) {
	if os.Getuid() != 0 {
		r.Out.Row(bed.Row{Bench: "accounts", What: "a user for each instance / one for all", Value: bed.NotMeasured, Note: "needs root"})
		return nil
	}
	var arms []*accountsArm
	defer func() {
		for _, a := range arms {
			failure = errors.Join(failure, a.l.Close())
		}
	}()
	for _, of := range []struct {
		name  string
		flags []string
	}{{"own", nil}, {"one for all", []string{"--account-ids", "none"}}} {
		l, err := r.NewLab()
		if err != nil {
			return err
		}
		l.Flags = of.flags
		arms = append(arms, &accountsArm{name: of.name, l: l})
		if _, err := l.Start(ctx); err != nil {
			return err
		}
		if err := l.FindEngines(ctx); err != nil {
			return err
		}
	}
	for _, engine := range []string{bed.Postgres, bed.MariaDB} {
		if r.Engine != "" && r.Engine != engine {
			continue
		}
		if arms[0].l.Engines[engine] == "" {
			r.NotInstalled("accounts", bed.EngineTitle[engine])
			continue
		}
		if err := accountBlocks(ctx, r, engine, arms); err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
		for _, deed := range accountDeeds {
			ratio := stat.PairedRatio(arms[0].seconds[deed], arms[1].seconds[deed], bed.SpeedLevel)
			r.Out.Row(bed.Row{
				Bench: "accounts", What: bed.EngineTitle[engine] + ", " + deed + ": a user of its own / one for all", Value: bed.FormatRatio(ratio),
				Bar: fmt.Sprintf("≤ %.2f", accountsBar), Verdict: bed.AtMost(ratio.Interval, accountsBar),
				Note: fmt.Sprintf("%d interleaved blocks in random order, medians %.3f and %.3f s", ratio.Pairs, stat.Median(arms[0].seconds[deed]), stat.Median(arms[1].seconds[deed])),
			})
		}
	}
	return nil
}

// accountBlocks has both services do all deeds in each block, in random order. The first
// block, in which templates are made, is thrown away.
func accountBlocks(ctx context.Context, r *bed.Run, engine string, arms []*accountsArm) error {
	for _, a := range arms {
		a.seconds = map[string][]float64{}
	}
	for block := range r.Blocks + 1 {
		for position, n := range r.Rng.Perm(len(arms)) {
			took, err := arms[n].deeds(ctx, engine, fmt.Sprintf("%s-%d", engine, block))
			if err != nil {
				return fmt.Errorf("%s: %w", arms[n].name, err)
			}
			r.Out.Sample("accounts", map[string]any{"engine": engine, "block": block, "position": position, "arm": arms[n].name, "seconds": took})
			if block == 0 {
				continue
			}
			for deed, seconds := range took {
				arms[n].seconds[deed] = append(arms[n].seconds[deed], seconds)
			}
		}
	}
	return nil
}

// deeds does each once, and removes what it made.
func (a *accountsArm) deeds(ctx context.Context, engine, name string) (map[string]float64, error) {
	s := &snapshotLab{Lab: a.l}
	i, err := s.Create(ctx, bed.Order{Name: name, Engine: engine, Class: s.MicroClass()})
	if err != nil {
		return nil, err
	}
	s.i = i
	took := map[string]float64{accountDeeds[0]: i.Took.Seconds()}
	began := time.Now()
	if err := s.takeNamed(ctx, name); err != nil {
		return nil, err
	}
	took[accountDeeds[1]] = time.Since(began).Seconds()
	began = time.Now()
	if err := s.restore(ctx, name+"-restored"); err != nil {
		return nil, err
	}
	took[accountDeeds[2]] = time.Since(began).Seconds()
	return took, errors.Join(s.Remove(ctx, name, name+"-restored"), s.removeNamed(ctx, name))
}
