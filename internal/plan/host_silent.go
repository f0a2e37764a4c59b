package plan

import (
	"fmt"
	"time"

	"kurabe"
	"kurabe/internal/event"
)

// hostIsSilent says whether the host of the server that clients use is silent, and writes the
// event. Its databases continue untouched: they need no control plane.
func (d *draft) hostIsSilent() bool {
	if d.had && d.w.RemovedHosts[d.next.Host] {
		d.hostGone()
		return true
	}
	since := d.w.Lost[d.next.Host]
	if !since.IsZero() && d.group != nil && d.confirmedByStandby() {
		d.because("host " + string(d.next.Host) + " is not heard; its standby follows it, so it serves")
		return false
	}
	told := d.status.State == kurabe.StateUnreachable
	switch {
	case !d.had || since.IsZero() && !told:
		return false
	case since.IsZero():
		d.because("host " + string(d.next.Host) + " is heard again")
		d.tell(event.HostHeard.With(d.next.Host))
		d.status.State, d.status.Reason = kurabe.StateRebooting, ""
		return false
	}
	why := fmt.Sprintf("host %s has not been heard since %s; the database may serve its clients or not", d.next.Host, since.UTC().Format(time.RFC3339))
	d.because(why)
	if !told {
		d.tell(event.Unreachable.With(why))
	}
	d.status.State, d.status.Reason = kurabe.StateUnreachable, why
	return true
}

// hostGone ends an instance whose host an operator has removed for good.
func (d *draft) hostGone() {
	why := fmt.Sprintf("host %s is gone for good, and the database with it; what is in the repository of backups can be imported", d.next.Host)
	d.because(why)
	if d.status.State != kurabe.StateFailed {
		d.tell(event.InstanceLost.With(why))
	}
	d.status.State, d.status.Action, d.status.Reason = kurabe.StateFailed, "", why
}
