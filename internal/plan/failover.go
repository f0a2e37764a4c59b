package plan

import (
	"fmt"
	"slices"
	"time"

	"kurabe"
)

// writerState is what is known of the server that is to write.
type writerState struct {
	report *kurabe.InstanceReport
	// dead: it obeyed this epoch, and has ended or does not answer. Nobody is about to
	// start it.
	dead    bool
	writing bool // under this epoch and under its newest assignment
	// lost: its host is not heard. What it has said may be true no longer.
	lost bool
}

func (d *draft) writerState() writerState {
	g := d.group
	r, a := d.reported(g.Writer), d.assigned(g.Writer)
	s := writerState{report: r}
	if m, _ := g.Member(g.Writer); d.silent(m.Host) {
		// Its lease has ended by now; only a standby that follows it could have given it more.
		s.lost = true
		s.dead = !d.vouched()
		return s
	}
	if r == nil || r.Role == nil || a == nil || a.Role == nil || r.Role.Epoch != g.Epoch {
		return s
	}
	s.writing = r.Running && r.Role.Writing && !r.Role.Stuck && r.Generation == a.Generation
	// A start that was ordered and is not used up is under way, unless it fails.
	ordered := a.Role.Duty == kurabe.DutyWrite && a.Role.StartSeq > r.Role.Started && (r.Failure == nil || r.Failure.Attempts < startTries)
	// One that has a lease may go on when it answers again; its host ends it.
	s.dead = r.Role.Stuck && !a.Role.Leased || !r.Running && !ordered
	return s
}

// candidate is a member of Sync whose server lives, "" when there is none. Only one of
// those has all that was acknowledged.
func (d *draft) candidate() kurabe.InstanceID {
	var best kurabe.InstanceID
	for _, id := range d.group.Sync {
		r := d.heard(id)
		if r == nil || r.Role == nil || !r.Running || r.Role.Stuck || r.Role.Writing {
			continue
		}
		if best == "" || r.Role.Position > d.reported(best).Role.Position {
			best = id
		}
	}
	return best
}

// succeed gives the right to write to a member of Sync when the writer is dead. Without
// one that lives the writer is started again: it has all that was acknowledged, too.
func (d *draft) succeed() {
	g := d.group
	s := d.writerState()
	yields := !s.lost && g.Handover != "" && s.report != nil && s.report.Role != nil && s.report.Role.Yielded && !s.report.Running
	if !s.dead && !yields {
		return
	}
	to := d.candidate()
	if to != "" && !d.fresh(to) {
		d.because(fmt.Sprintf("the host of %s has not spoken lately", to))
		to = ""
	}
	switch {
	case to != "" && yields:
		d.because(fmt.Sprintf("%s has handed over to %s", g.Writer, to))
	case to != "":
		if g.Handover == "" { // or else it was told of when it was ordered
			why := ""
			if s.lost {
				why = ": the host of the writer is not heard"
			}
			d.event("RDS-EVENT-0013", "Multi-AZ instance failover started"+why, "failover")
		}
		d.because(fmt.Sprintf("%s %s; %s has all that was acknowledged", g.Writer, s.trouble(), to))
	default:
		// It is started again, or it answers again, by itself: see startSeq.
		g.Handover = ""
		d.because(fmt.Sprintf("%s %s, and nobody else who has all that was acknowledged can take over", g.Writer, s.trouble()))
		if len(g.Members) > 1 && !s.lost && !s.report.Running && !d.status.Activating {
			d.status.Activating = true
			d.event("RDS-EVENT-0050", "Multi-AZ instance activation started: no standby has every commit, so the same server is started again", "failover")
		}
		return
	}
	g.Handover = ""
	g.Epoch++
	g.Writer = to
	if s.lost {
		m, _ := d.w.Group.Member(d.w.Group.Writer)
		g.Outlasts = g.Epoch
		d.result.Unheard = append(d.result.Unheard, m.Host)
	}
	// Nobody waits for the others until they follow the new writer and have caught up.
	d.setSync(nil)
}

// trouble is why a writer is followed by another one.
func (s writerState) trouble() string {
	if s.lost {
		return "is on a host that is not heard, and its lease has ended"
	}
	return "has ended or does not answer"
}

// changedWriter moves what belongs to the writer.
func (d *draft) changedWriter() {
	g := d.group
	for n, m := range g.Members {
		if m.ID != g.Writer && m.ListensAt == "" {
			g.Members[n].ListensAt = d.ownAddress(d.hostReport(m.Host))
		}
	}
	if r := d.reported(g.Writer); r != nil {
		d.status.SeenCrashes, d.status.SeenOOMKills = r.Crashes, r.OOMKills
	}
	d.status.FailingOver, d.status.Activating = true, false
}

// completeFailover tells that a failover is over once the new server writes: that it is to
// is of no use to clients yet. So it is with one that was started again.
func (d *draft) completeFailover() {
	if !d.status.FailingOver && !d.status.Activating || !d.writerState().writing {
		return
	}
	if d.status.Activating {
		d.status.Activating = false
		d.event("RDS-EVENT-0051", "Multi-AZ instance activation completed", "failover")
	}
	if !d.status.FailingOver {
		return
	}
	d.status.FailingOver = false
	d.event("RDS-EVENT-0049", fmt.Sprintf("Multi-AZ instance failover completed: the writer is in zone %s", d.zone(d.group.Writer)), "failover")
}

func (d *draft) zone(id kurabe.InstanceID) string {
	m, _ := d.group.Member(id)
	return m.Zone
}

// handOver begins a failover in order: for the user who asks for one, or because the
// standby has what the writer would need a restart for.
func (d *draft) handOver() {
	g := d.group
	asked := d.w.Spec.FailoverSeq > d.status.FailoverSeq
	if g.Handover != "" {
		if to := d.candidate(); to == "" || !g.Has(g.Handover) {
			d.because("the failover is called off: no standby has every commit")
			d.event("RDS-EVENT-0034", "Abandoning the failover that was begun: no standby has every commit any more", "failover")
			g.Handover = ""
		}
		return
	}
	s := d.writerState()
	moves := d.movesOff()
	if !asked && !moves && !d.rolled() {
		return
	}
	to := d.candidate()
	if to == "" || !s.writing {
		if asked {
			d.because("the failover that was asked for waits for a standby that has every commit")
		}
		return
	}
	d.status.FailoverSeq = d.w.Spec.FailoverSeq
	g.Handover = to
	d.acting(false, kurabe.StateRebooting, "a failover in order, to "+string(to))
	d.event("RDS-EVENT-0013", "Multi-AZ instance failover started", "failover")
}

// rolled says whether a standby has restarted with what the writer still lacks.
func (d *draft) rolled() bool {
	writer := d.assigned(d.group.Writer)
	if writer == nil || writer.Boot >= d.next.Boot {
		return false
	}
	for _, id := range d.group.Sync {
		a, r := d.assigned(id), d.reported(id)
		if a != nil && r != nil && r.Done && r.Generation == a.Generation && a.Boot == d.next.Boot && r.Boot == a.Boot {
			return true
		}
	}
	return false
}

// shrink takes from Sync whoever does not answer the writer, or what the writer cannot
// tell of any more.
func (d *draft) shrink() {
	s := d.writerState()
	if s.lost || s.report == nil || s.report.Role == nil || s.report.Role.Epoch != d.group.Epoch || !s.report.Running || s.report.Role.Stuck {
		return
	}
	left := slices.DeleteFunc(slices.Clone(d.group.Sync), func(id kurabe.InstanceID) bool { return slices.Contains(s.report.Role.Silent, id) })
	if len(left) == len(d.group.Sync) {
		return
	}
	d.because(fmt.Sprintf("commits go on without %v, which do not answer", s.report.Role.Silent))
	d.event("KURABE-EVENT-0010", "The standby does not answer. Commits go on without it: until it is back, what is written would be lost with the writer", "failure")
	d.setSync(left)
}

// grow takes into Sync whom the database waits for already, once all that was written
// before it did so has arrived there.
func (d *draft) grow() {
	g, s := d.group, d.writerState()
	if !s.writing || !d.status.Applied.MultiAZ {
		return
	}
	// An order to wait for it no more may be under way, which the database obeys in a moment.
	asked := d.assigned(g.Writer).Role.WaitFor
	sync := slices.Clone(g.Sync)
	for _, m := range g.Members {
		role := s.report.Role
		if m.ID == g.Writer || m.Leaving || g.Has(m.ID) || d.lost(m.ID) || !slices.Contains(asked, m.ID) {
			continue
		}
		if d.elsewhere(m) && !role.Leased {
			continue // it could take the place of a writer that nobody ends
		}
		if slices.Contains(role.WaitsFor, m.ID) && slices.Contains(role.Covered, m.ID) && !slices.Contains(role.Silent, m.ID) {
			d.because(fmt.Sprintf("%s has all that is written, and commits wait for it", m.ID))
			sync = append(sync, m.ID)
		}
	}
	if len(sync) == len(g.Sync) {
		return
	}
	slices.Sort(sync)
	d.setSync(sync)
	if d.status.Converting {
		d.status.Converting = false
		if !d.status.AvailableAt.IsZero() {
			d.event("RDS-EVENT-0025", "The DB instance has been converted to a Multi-AZ DB instance", "configuration change")
		}
		return
	}
	d.event("KURABE-EVENT-0011", "The standby has every commit again", "recovery")
}

func (d *draft) setSync(sync []kurabe.InstanceID) {
	g := d.group
	g.Sync = sync
	switch {
	case len(sync) > 0 || len(g.Members) < 2:
		g.Since = time.Time{}
	case g.Since.IsZero():
		g.Since = d.w.Now
	}
}
