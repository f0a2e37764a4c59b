package plan

import (
	"slices"

	"kurabe"
)

// onTheWay are the states that an instance leaves by itself: whatever keeps it on its host then
// is over soon.
var onTheWay = []kurabe.State{
	kurabe.StateCreating, kurabe.StateAvailable, kurabe.StateModifying, kurabe.StateRenaming, kurabe.StateRebooting, kurabe.StateFailingOver,
	kurabe.StateStarting, kurabe.StateStopping, kurabe.StateDeleting, kurabe.StateBackingUp, kurabe.StateUpgrading, kurabe.StateResettingCredentials,
}

// stays notes that a server cannot leave its host, which is to be emptied.
func (d *draft) stays(id kurabe.InstanceID, why string) {
	if d.result.CannotLeave == nil {
		d.result.CannotLeave = map[kurabe.InstanceID]string{}
	}
	d.result.CannotLeave[id] = why
}

// tellStays notes what keeps the servers on hosts that are to be emptied, beyond what was found
// where their moves were planned.
func (d *draft) tellStays() {
	if !d.had || d.w.Spec.Deleting != nil {
		return
	}
	if d.group == nil {
		d.tellStay(d.next.Instance, d.next.Host, "")
		return
	}
	none := d.unplaced // why nobody can take the writer's place
	kept := 0
	for _, m := range d.standbys() {
		d.tellStay(m.ID, m.Host, "")
		if why := d.result.CannotLeave[m.ID]; why != "" {
			none, kept = why, kept+1
		}
	}
	if kept < len(d.standbys()) {
		none = ""
	}
	w, _ := d.group.Member(d.group.Writer)
	d.tellStay(w.ID, w.Host, none)
}

// tellStay is tellStays of one server; why is what is known to keep it, "" of nothing.
func (d *draft) tellStay(id kurabe.InstanceID, host kurabe.HostID, why string) {
	switch {
	case d.w.Emptied[host] == "":
		return
	case d.silent(host):
		why = "its host is not heard"
	case d.follows():
		why = "it is a read replica: promote it, or make another one elsewhere and delete it"
	case !slices.Contains(onTheWay, d.status.State):
		why = "it is " + string(d.status.State)
	}
	if why != "" {
		d.stays(id, why)
	}
}
