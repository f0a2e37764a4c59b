package run

import (
	"context"
	"fmt"
	"maps"

	"kurabe/lab/result"
	"kurabe/lab/study"
)

// triesMax is how often a run tries a cell of a block: once more after a failure or a
// disturbance. The last try counts though the machine was disturbed again, as
// unsettled: how much that matters the twin says. A resumed run has as many tries of its
// own: by then the server that was away may be back.
const triesMax = 2

// block runs every cell of which the file has no trial that counts.
func (r *runner) block(ctx context.Context, block int) error {
	counts, position := r.had(block)
	tries := map[study.Cell]int{} // since this start
	cells := r.cells(block)
	ready := (block - 1) * len(cells)
	for _, cell := range cells {
		if counts[cell] {
			ready++
		}
	}
	for pass := range triesMax {
		for _, cell := range cells {
			if counts[cell] || tries[cell] > pass {
				continue
			}
			if err := context.Cause(ctx); err != nil {
				return err
			}
			tries[cell]++
			position++
			r.done = ready + len(tries) // a cell that is tried again is no other trial
			status, err := r.cell(ctx, block, position, cell, tries[cell] == triesMax)
			if err != nil {
				return err
			}
			counts[cell] = result.Counts(status)
		}
	}
	for _, cell := range cells {
		if cell.Variant == r.Study.Baseline && !counts[cell] {
			return fmt.Errorf("the baseline %s failed %d times under %s in block %d: %s", cell.Variant, triesMax, cell.Workload, block, r.lastReason(cell))
		}
	}
	r.done = block * len(cells)
	return nil
}

func (r *runner) lastReason(cell study.Cell) string {
	reason := ""
	for _, t := range r.file.Trials {
		if t.Variant == cell.Variant && t.Workload == cell.Workload {
			reason = t.Reason
		}
	}
	return reason
}

// cell runs one trial and writes it down.
func (r *runner) cell(ctx context.Context, block, position int, cell study.Cell, last bool) (status string, err error) {
	r.Say(r.progress(Progress{Stage: "trial", Block: block, Cell: cell}))
	t := &trial{runner: r, last: last, record: result.Trial{
		Block: block, Position: position, Variant: cell.Variant, Workload: cell.Workload,
		Seed: study.TrialSeed(r.seed, block, cell.Workload),
	}}
	err = t.run(ctx)
	if ctx.Err() != nil {
		return "", context.Cause(ctx) // by half: not written down
	}
	r.measured++
	if err != nil {
		t.record.Status, t.record.Reason, t.record.Phases = result.StatusFailed, err.Error(), nil
	}
	if t.settings != nil && !maps.Equal(t.settings, r.file.Settings[cell.Variant]) {
		if err := r.append(result.Settings{Variant: cell.Variant, Values: t.settings}); err != nil {
			return "", err
		}
	}
	if err := r.append(t.record); err != nil {
		return "", err
	}
	for _, e := range t.events {
		if err := r.append(e); err != nil {
			return "", err
		}
	}
	r.Say(r.progress(Progress{Stage: "trial", Block: block, Cell: cell, Status: t.record.Status, Reason: t.record.Reason, File: r.file}))
	return t.record.Status, nil
}
