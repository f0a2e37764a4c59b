package plan

import (
	"maps"
	"time"

	"kurabe"
)

// taskKind is a kind of task: what a host does for an instance again and again, beside the
// order for its server.
type taskKind struct {
	kind   kurabe.Kind
	every  time.Duration
	wanted func(*draft) bool
	tell   func(*draft, kurabe.TaskResult) // when it was done
}

var tasks = []taskKind{logCheck}

// planTasks has the host of the primary do each task when it is due, and no other host.
func (d *draft) planTasks() {
	for _, k := range tasks {
		d.planTask(k)
	}
}

func (d *draft) planTask(k taskKind) {
	order := kurabe.Task{Kind: k.kind, Host: d.next.Host, Instance: d.w.Spec.ID}
	wanted := k.wanted(d)
	for _, o := range d.w.Tasks {
		switch {
		case o.Kind != k.kind:
		case o.Host == order.Host && wanted:
			order.Generation = o.Generation
		default:
			d.result.TasksGone = append(d.result.TasksGone, o)
		}
	}
	d.status.Tasks = maps.Clone(d.status.Tasks)
	if !wanted {
		delete(d.status.Tasks, k.kind)
		return
	}
	s, known := d.status.Tasks[k.kind]
	if !known || kurabe.AfterNow(s.At, d.w.Now) {
		s.At = d.w.Now // one that lives for a short time pays nothing
	}
	for _, r := range d.w.TaskReports {
		if r.Kind == k.kind && r.Host == order.Host && r.Done && r.Generation > s.Announced {
			s = kurabe.TaskStatus{Announced: r.Generation, At: d.w.Now, TaskResult: r.TaskResult}
			k.tell(d, r.TaskResult)
		}
	}
	if d.status.Tasks == nil {
		d.status.Tasks = map[kurabe.Kind]kurabe.TaskStatus{}
	}
	d.status.Tasks[k.kind] = s
	if order.Generation > s.Announced {
		return // it is being done
	}
	if due := s.At.Add(k.every); due.After(d.w.Now) {
		d.lookAgain(due)
		return
	}
	order.Generation = s.Announced + 1
	d.because(string(k.kind) + " is due")
	d.result.Tasks = append(d.result.Tasks, order)
}
