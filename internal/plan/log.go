package plan

import "kurabe"

// planLog says whether the host keeps the log. MariaDB's binary log begins and ceases
// with a restart, and one of a server that died is needed once more: a start without
// it would roll back commits that were acknowledged, so the guard in the server
// refuses it. A log therefore ceases with the restart of a server that serves. One
// that dies before it has stopped comes up no more, and nobody outside can tell a
// kill from a stop: then it is started with its log again, and the switch repeated.
func (d *draft) planLog(wanted, first bool) {
	n, r := &d.next, d.w.Report
	serving := r != nil && r.Serving
	switch {
	case first || !d.w.Spec.Engine.RestartsForLog():
		n.Log = wanted
	case wanted && !n.Log:
		d.switchLog(true, "automated backups were switched on, for which the server restarts")
	case wanted:
	case n.Log && (serving || d.w.Assignment.Goal != kurabe.GoalRunning):
		d.switchLog(false, "automated backups were switched off, for which the server restarts")
	case n.Log:
		d.acting(n.Goal != kurabe.GoalRunning, kurabe.StateModifying, "automated backups were switched off; the server keeps its log until it serves, as it may have to recover with it")
	case d.status.LogOffBoot == 0:
	case serving && r.Boot >= d.status.LogOffBoot:
		d.status.LogOffBoot = 0
	case d.refused():
		d.switchLog(true, "the server did not come up without its log, with which it may have to recover: "+r.Failure.Message)
	}
}

// switchLog changes it, which takes a start of the server.
func (d *draft) switchLog(on bool, why string) {
	d.next.Log = on
	d.next.Boot++
	d.status.LogOffBoot = 0
	if !on {
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
