package backup

import (
	"fmt"
	"slices"
	"time"

	"kurabe"
)

// FormerOrder is an order of a snapshot to a host that does not make it any more.
type FormerOrder struct {
	Order  kurabe.SnapshotAssignment
	Report *kurabe.SnapshotReport // nil: the host has not spoken
}

// standbyLook is how soon a snapshot is looked at again that a standby on another host is to
// take: that its host is heard no more is no word about the snapshot.
const standbyLook = 2 * time.Second

// chooseStandby has a standby on another host than the writer's take the snapshot of a user: it
// costs the writer nothing then. The automated ones are the beginnings of moments, and those lie
// in the log of the host that has them: that of the writer.
func (d *draft) chooseStandby() {
	g := d.w.Group
	if d.w.Spec.Kind != kurabe.SnapshotManual || g == nil || d.w.Instance.Goal != kurabe.GoalRunning ||
		g.Primary != d.w.Instance.Instance || g.HandoverTo != "" || g.SwitchoverTo != "" || g.Electing || g.ForcedPrimary != "" {
		return
	}
	if slices.ContainsFunc(g.Members, func(m kurabe.Member) bool { return g.InSyncSet(m.ID) && m.Host == d.w.Instance.Host }) {
		return // the writer's own host has one, and knows more of it
	}
	n := slices.IndexFunc(g.Members, d.canCopy)
	if n < 0 {
		return
	}
	m := g.Members[n]
	d.next.Host, d.next.Standby, d.next.Epoch = m.Host, m.ID, g.Epoch
	d.lookAgain(d.w.Now.Add(standbyLook))
	d.because(fmt.Sprintf("it is taken of the standby %s", m.ID))
}

// canCopy says whether a member is a standby that has every commit, and its host can copy it: of
// MariaDB it clones the files, or nothing.
func (d *draft) canCopy(m kurabe.Member) bool {
	r := d.w.Reports[m.ID]
	if d.w.Instance.Engine == kurabe.MariaDB && !d.w.Clones[m.Host] {
		return false
	}
	return !m.Leaving && d.w.Group.InSyncSet(m.ID) && d.w.ClosedHosts[m.Host] == "" && r != nil && r.Running && r.Role != nil &&
		r.Role.Following && r.Role.Epoch == d.w.Group.Epoch
}

// reviewStandby has the writer's host make a snapshot that a standby was to make and cannot, and
// says whether that was decided now. It costs time, never the snapshot.
func (d *draft) reviewStandby() bool {
	r, of := d.w.Report, d.w.Instance
	if d.next.Standby == "" || d.next.Goal != kurabe.SnapshotPresent || d.status.State != kurabe.SnapshotCreating {
		return false
	}
	if r != nil && (r.Done || !r.Facts.TakenAt.IsZero()) {
		return false // whatever becomes of that server, the snapshot is there
	}
	why := d.whyNotStandby()
	if why == "" {
		d.lookAgain(d.w.Now.Add(standbyLook))
		return false
	}
	switch {
	case of == nil || of.Goal == kurabe.GoalAbsent:
		d.fail("DB instance " + d.w.Spec.Source.Name + " is gone")
	case of.Host == d.next.Host: // where it has become the writer, or another one has
		d.status.StandbySkipped, d.next.Standby, d.next.Epoch = why, "", 0
		d.because("it is taken of the writer: " + why)
	default:
		former := d.next
		former.Goal, former.Generation = kurabe.SnapshotAbsent, former.Generation+1
		d.result.Former = &former
		d.next.Host, d.next.Standby, d.next.Epoch, d.next.Generation = of.Host, "", 0, 0
		d.had = false // that host has had no order of it
		d.status.StandbySkipped, d.status.Host, d.status.Facts = why, of.Host, kurabe.SnapshotFacts{}
		d.because(fmt.Sprintf("host %s of the writer takes it: %s", of.Host, why))
	}
	return true
}

// whyNotStandby is why the standby that was to make a snapshot is not the one any more, "" if it
// is.
func (d *draft) whyNotStandby() string {
	g, r, id := d.w.Group, d.w.Report, d.next.Standby
	switch {
	case g == nil:
		return "the DB instance has no standby any more"
	case g.Primary == id:
		return fmt.Sprintf("the standby %s has become the server that serves", id)
	case d.w.ClosedHosts[d.next.Host] != "":
		return fmt.Sprintf("the host of the standby %s: %s", id, d.w.ClosedHosts[d.next.Host])
	}
	m, known := g.Member(id)
	switch {
	case !known || m.Leaving || m.Host != d.next.Host:
		return fmt.Sprintf("the standby %s is none any more", id)
	case g.Epoch != d.next.Epoch:
		return fmt.Sprintf("another server serves than the one that %s was a standby of", id)
	case r != nil && r.Generation == d.next.Generation && r.Failure != nil:
		return fmt.Sprintf("the standby %s could not be copied: %s", id, r.Failure.Message)
	}
	return ""
}

// sweepFormer forgets the orders to hosts that have nothing left of the snapshot.
func (d *draft) sweepFormer() {
	for _, f := range d.w.Former {
		if f.swept() {
			d.result.FormerGone = append(d.result.FormerGone, f.Order.Host)
		}
	}
}

func (f FormerOrder) swept() bool {
	return f.Order.Goal == kurabe.SnapshotAbsent && f.Report != nil && f.Report.Absent && f.Report.Generation == f.Order.Generation
}

// formerLeft is a host that may have a part of it yet, "" when none has.
func (d *draft) formerLeft() kurabe.HostID {
	for _, f := range d.w.Former {
		if !f.swept() {
			return f.Order.Host
		}
	}
	return ""
}
