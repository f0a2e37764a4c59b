package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kurabe"
)

// StopAll ends every proxy and every server of this host cleanly, once Run has returned. The
// assignments stay: the next service starts them again. Servers that follow others
// end after those, so that they have all of their log.
func (a *Agent) StopAll(ctx context.Context) error {
	saved, err := a.loadSaved()
	if err != nil {
		return err
	}
	var first, last []kurabe.Assignment
	for _, s := range saved {
		if s.Role != nil && s.Role.Duty == kurabe.DutyFollow {
			last = append(last, s)
		} else {
			first = append(first, s)
		}
	}
	return errors.Join(a.proxies.StopAll(ctx), a.stopAll(ctx, first), a.stopAll(ctx, last))
}

// stopAll ends servers beside each other.
func (a *Agent) stopAll(ctx context.Context, saved []kurabe.Assignment) error {
	var wait sync.WaitGroup
	errs := make([]error, len(saved))
	for n, s := range saved {
		e, ok := a.Engines[s.Engine]
		if !ok || s.Goal != kurabe.GoalRunning {
			continue
		}
		wait.Go(func() {
			if err := e.Stop(ctx, s); err != nil {
				errs[n] = fmt.Errorf("%s: %w", s.Name, err)
				return
			}
			// What was reported last is true no more.
			r := kurabe.InstanceReport{Host: a.Host, Instance: s.Instance, Generation: s.Generation}
			if w, ok := a.workers.Find(s.Instance); ok {
				r = w.Reported
				r.Done, r.Running, r.PID = false, false, 0
				r.Role = stoppedRole(r.Role)
			}
			if err := a.Link.PutReport(ctx, r); err != nil {
				errs[n] = fmt.Errorf("%s: report: %w", s.Name, err)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// stoppedRole is what stays true of a server of a group that was stopped.
func stoppedRole(r *kurabe.RoleReport) *kurabe.RoleReport {
	if r == nil {
		return nil
	}
	return &kurabe.RoleReport{Epoch: r.Epoch, StartedSeq: r.StartedSeq, SteppedDown: r.SteppedDown, Discarded: r.Discarded, Position: r.Position}
}
