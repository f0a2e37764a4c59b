package hostlink

import (
	"encoding/json"

	"kurabe"
)

// The words of the first two kinds have forms of their own on the network, which hosts of
// other versions speak.

// wireUpdate is the form of an Update.
type wireUpdate struct {
	Full               bool
	Assignments        []kurabe.Assignment
	Snapshots          []kurabe.SnapshotAssignment
	Withdrawn          []kurabe.InstanceID
	WithdrawnSnapshots []kurabe.SnapshotID
	Proxies            []kurabe.ProxyAssignment `json:",omitempty"`
	Tasks              []kurabe.Task            `json:",omitempty"`
	// WithdrawnTasks are things of whatever other kind.
	WithdrawnTasks []kurabe.Ref `json:",omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (u Update) MarshalJSON() ([]byte, error) {
	w := wireUpdate{Full: u.Full}
	for _, order := range u.Orders {
		switch a := order.(type) {
		case kurabe.Assignment:
			w.Assignments = append(w.Assignments, a)
		case kurabe.SnapshotAssignment:
			w.Snapshots = append(w.Snapshots, a)
		case kurabe.ProxyAssignment:
			w.Proxies = append(w.Proxies, a)
		case kurabe.Task:
			w.Tasks = append(w.Tasks, a)
		}
	}
	for _, ref := range u.Withdrawn {
		switch ref.Kind {
		case kurabe.KindServer:
			w.Withdrawn = append(w.Withdrawn, kurabe.InstanceID(ref.ID))
		case kurabe.KindSnapshot:
			w.WithdrawnSnapshots = append(w.WithdrawnSnapshots, kurabe.SnapshotID(ref.ID))
		default:
			w.WithdrawnTasks = append(w.WithdrawnTasks, ref)
		}
	}
	return json.Marshal(w)
}

// UnmarshalJSON implements json.Unmarshaler.
func (u *Update) UnmarshalJSON(data []byte) error {
	var w wireUpdate
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*u = Update{Full: w.Full}
	for _, a := range w.Assignments {
		u.Orders = append(u.Orders, a)
	}
	for _, a := range w.Snapshots {
		u.Orders = append(u.Orders, a)
	}
	for _, a := range w.Proxies {
		u.Orders = append(u.Orders, a)
	}
	for _, a := range w.Tasks {
		u.Orders = append(u.Orders, a)
	}
	for _, id := range w.Withdrawn {
		u.Withdrawn = append(u.Withdrawn, id.Ref())
	}
	for _, id := range w.WithdrawnSnapshots {
		u.Withdrawn = append(u.Withdrawn, id.Ref())
	}
	u.Withdrawn = append(u.Withdrawn, w.WithdrawnTasks...)
	return nil
}

// callsOf are the call by which a host reports of a thing, and that by which it says that
// there is nothing to see of it any more.
func callsOf(kind kurabe.Kind) (put, drop string) {
	switch kind {
	case kurabe.KindServer:
		return callPutReport, callDropReport
	case kurabe.KindSnapshot:
		return callPutSnapshotReport, callDropSnapshotReport
	case kurabe.KindProxy:
		return callPutProxyReport, callDropTaskReport
	}
	return callPutTaskReport, callDropTaskReport
}

// dropRequest names what is to be dropped.
type dropRequest struct {
	Instance kurabe.InstanceID
	Snapshot kurabe.SnapshotID
	Task     kurabe.Ref
}

func dropOf(ref kurabe.Ref) dropRequest {
	switch ref.Kind {
	case kurabe.KindServer:
		return dropRequest{Instance: kurabe.InstanceID(ref.ID)}
	case kurabe.KindSnapshot:
		return dropRequest{Snapshot: kurabe.SnapshotID(ref.ID)}
	}
	return dropRequest{Task: ref}
}
