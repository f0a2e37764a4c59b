package reconcile

import (
	"time"

	"kurabe"
	"kurabe/internal/plan"
	"kurabe/internal/store"
)

// Leaving is a server on a host that is to be emptied.
type Leaving struct {
	Name    string // of the instance, or the cluster
	Cluster bool   `json:",omitempty"`
	Server  kurabe.InstanceID
	State   kurabe.State
	// Stays is why it cannot leave, "" while it is about to.
	CannotLeave string `json:"Stays,omitempty"`
}

// LeavingHost says of each server that is assigned to a host, which is to be emptied, whether it is
// about to leave, by what would be planned next.
func LeavingHost(view *store.View, host kurabe.HostID, now time.Time) []Leaving {
	list := []Leaving{}
	f := newFleet(view)
	servers, _ := view.Assigned(host)
	next := map[kurabe.InstanceID]plan.Result{}
	for _, id := range servers {
		i, ok := view.Instance(id.Owner())
		if !ok || i.Spec == nil {
			list = append(list, Leaving{Name: string(id), Server: id, CannotLeave: "its record is missing"})
			continue
		}
		l := Leaving{Name: i.Spec.Name, Cluster: i.Spec.Cluster, Server: id, CannotLeave: whyLeftAlone(i)}
		if i.Status != nil {
			l.State = i.Status.State
		}
		if l.CannotLeave == "" {
			r, planned := next[i.ID]
			if !planned {
				r = plan.Next(f.world(i, now))
				next[i.ID] = r
			}
			l.CannotLeave = r.CannotLeave[id]
		}
		list = append(list, l)
	}
	return list
}
