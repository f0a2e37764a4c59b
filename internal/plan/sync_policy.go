package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/event"
)

// noteSyncPolicy notes whether commits may continue without a standby. They may until a standby
// has had every commit; a change of the policy alone stops no commit.
func (d *draft) noteSyncPolicy() {
	g := d.group
	policy := d.next.Settings[kurabe.ParameterStandbyLost]
	switch {
	case !strings.EqualFold(policy, kurabe.StandbyLostBlock) || !d.status.Applied.MultiAZ || d.status.Move != "":
		g.RequireStandby = false
	case len(g.SyncSet) > 0 && !g.RequireStandby:
		d.because("commits go on alone no more: " + kurabe.ParameterStandbyLost + " is " + policy)
		g.RequireStandby = true
	}
}

// shrinkWhileBlocked is shrinkSyncSet under the policy block, where commits wait for as long as it
// takes. A silent sync set keeps the right to take over, unless one of it has to be rebuilt, or
// the primary was restarted and keeps clients out that could at least read. Commits wait in either
// case.
func (d *draft) shrinkWhileBlocked(s primaryState) {
	g := d.group
	anew := slices.ContainsFunc(g.SyncSet, func(id kurabe.InstanceID) bool {
		r, a := d.reported(id), d.assigned(id)
		return d.isBeingRebuilt(id) || r != nil && a != nil && d.dataIsBroken(r, *a)
	})
	reads := s.leading && !s.writing && d.w.Spec.Engine.CopiesWhileCommitsWait()
	switch {
	case anew:
		d.because(fmt.Sprintf("%v has to be made anew; commits wait", g.SyncSet))
	case reads:
		d.because(fmt.Sprintf("clients may read without %v; commits wait", g.SyncSet))
	default:
		return
	}
	d.setSyncSet(nil)
}

// tellBlocked writes when commits begin to wait for a standby, and when they continue.
func (d *draft) tellBlocked() {
	g, s, since := d.group, d.primaryState(), d.status.BlockedAt
	if d.next.Goal != kurabe.GoalRunning {
		d.status.BlockedAt = time.Time{}
		return
	}
	known := !s.lost && s.report != nil && s.report.Role != nil && s.report.Role.Epoch == g.Epoch && s.report.Running && !s.report.Role.Unresponsive
	waits := g.RequireStandby && known && !slices.ContainsFunc(g.SyncSet, func(id kurabe.InstanceID) bool { return !slices.Contains(s.report.Role.SilentFollowers, id) })
	switch {
	case !g.RequireStandby && !since.IsZero():
		d.tell(event.CommitsGoOn.With(", with one server alone until a standby has every commit", since.UTC().Format(time.RFC3339)))
		d.status.BlockedAt = time.Time{}
	case g.RequireStandby && known && !waits && !since.IsZero():
		d.tell(event.CommitsGoOn.With(": another server has them", since.UTC().Format(time.RFC3339)))
		d.status.BlockedAt = time.Time{}
	case waits && since.IsZero():
		exit := ""
		if !d.w.Spec.Engine.CopiesWhileCommitsWait() {
			exit = ". If that server has to be made anew, reboot the DB instance: no copy can be made while commits wait"
		}
		d.tell(event.CommitsWait.With(kurabe.ParameterStandbyLost).And(exit))
		d.status.BlockedAt = d.w.Now
	}
	if !d.status.BlockedAt.IsZero() {
		d.because("commits wait since " + d.status.BlockedAt.UTC().Format(time.RFC3339))
	}
}
