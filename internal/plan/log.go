package plan

import (
	"maps"
	"time"

	"kurabe"
	"kurabe/internal/event"
	"kurabe/internal/plan/tell"
)

// planLog says whether the host keeps the log. MariaDB's binary log begins and ceases
// with a restart, and one of a server that died is needed once more: a start without
// it would roll back commits that were acknowledged, so the guard in the server
// refuses it. A log therefore ceases with the restart of a server that serves. One
// that dies before it has stopped comes up no more, and nobody outside can tell a
// kill from a stop: then it is started with its log again, and the switch repeated.
//
// A standby lives on the same log. One that was there for a standby alone ceases with a
// restart that comes anyway, so that an instance loses its standby without one.
func (d *draft) planLog(wanted kurabe.InstanceSettings, first bool) {
	n, r := &d.next, d.w.Report
	keeps, follows := wanted.KeepsLog() && !d.follows(), wanted.MultiAZ || d.group != nil || d.follows()
	serving := r != nil && r.Serving
	mayCease := serving || d.had && d.w.Assignment.Goal != kurabe.GoalRunning
	switch {
	case !d.w.Spec.Engine.RestartsForLog():
		n.Log = keeps
	case first || (keeps || follows) && hasBinlog(*n):
		n.Log, n.Binlog = keeps, follows && !keeps
	case keeps:
		d.switchLog(true, false, "automated backups were switched on, for which the server restarts")
	case follows:
		d.switchLog(false, true, "a standby lives on the binary log, for which the server restarts")
	case n.Log && mayCease:
		d.switchLog(false, false, "automated backups were switched off, for which the server restarts")
	case n.Log:
		d.acting(n.Goal != kurabe.GoalRunning, kurabe.StateModifying, "automated backups were switched off; the server keeps its log until it serves, as it may have to recover with it")
	case n.Binlog && n.Boot != d.baseBoot && mayCease:
		d.switchLog(false, false, "no standby lives on the binary log any more, and the server restarts")
	case n.Binlog || d.status.LogOffBoot == 0:
	case serving && r.Boot >= d.status.LogOffBoot:
		d.status.LogOffBoot = 0
	case d.refused():
		d.switchLog(true, false, "the server did not come up without its log, with which it may have to recover: "+r.Failure.Message)
	}
}

// hasBinlog says whether a server of MariaDB writes a binary log.
func hasBinlog(a kurabe.Assignment) bool { return a.Log || a.Binlog }

// switchLog changes it, which takes a start of the server.
func (d *draft) switchLog(log, binlog bool, why string) {
	d.next.Log, d.next.Binlog = log, binlog
	d.next.Boot++
	d.status.LogOffBoot = 0
	if !log && !binlog {
		d.status.LogOffBoot = d.next.Boot
	}
	d.acting(d.next.Goal != kurabe.GoalRunning, kurabe.StateModifying, why)
}

// refused says whether the server did not come up under the assignment in force, for
// a reason that is neither its parameters' nor its network's nor its disk's.
func (d *draft) refused() bool {
	r := d.w.Report
	return r != nil && r.Generation == d.w.Assignment.Generation && !r.Serving && r.Failure != nil &&
		r.Failure.Kind == kurabe.FailureOther && r.Failure.Step == kurabe.StepWaitReady
}

// logCheck has all of the stored log read once a day, and when a part of it was lost: that a
// piece is gone is seen within minutes, that its bytes are others only when they are read.
var logCheck = taskKind{
	kind: kurabe.KindLogCheck, every: 24 * time.Hour,
	wanted: func(d *draft) bool { return d.status.Applied.KeepsLog() && !d.follows() },
	tell:   tellLogCheck,
}

// checkLogNow makes the check due, which tells what cannot be restored any more.
func (d *draft) checkLogNow() {
	if s, known := d.status.Tasks[kurabe.KindLogCheck]; known {
		s.At = time.Time{}
		d.status.Tasks = maps.Clone(d.status.Tasks)
		d.status.Tasks[kurabe.KindLogCheck] = s
	}
}

// tellLogCheck tells of damage, with the time that cannot be restored any more: from the last
// mark before it to the next snapshot.
func tellLogCheck(d *draft, r kurabe.TaskResult) {
	var lost []string
	for _, p := range r.Problems {
		until := "the next automated snapshot"
		var next time.Time
		for _, b := range d.w.Backups {
			if b.State == kurabe.SnapshotAvailable && b.UsableAt.After(p.From) && (next.IsZero() || b.UsableAt.Before(next)) {
				next = b.UsableAt
				until = next.UTC().Format(time.RFC3339)
			}
		}
		lost = append(lost, p.Text+", and no moment after "+p.From.UTC().Format(time.RFC3339)+" and before "+until+" can be restored")
	}
	if len(lost) > 0 {
		d.tell(event.LogDamaged.With(tell.First(lost)))
	}
}
