package proxy

import (
	"reflect"
	"slices"
	"time"

	"kurabe"
	"kurabe/internal/event"
)

// World is everything that may influence the plan of one proxy. Records are read, never
// changed.
type World struct {
	Now    time.Time
	Spec   *kurabe.Proxy
	Status *kurabe.ProxyStatus // nil: never planned
	Orders []Order             // to hosts; that of Status.Host is in force, the others are called off
	Target *Target             // nil: none is registered, or it is gone
	// Secrets has the version in force of each secret of the spec that is there.
	Secrets map[string]kurabe.SecretVersionID
	Domain  kurabe.EndpointDomain
	Hosts   []kurabe.HostReport
	// Closed says of hosts why nothing new is placed on them, Lost since when they are not heard,
	// Removed which never come back.
	Closed  map[kurabe.HostID]string
	Lost    map[kurabe.HostID]time.Time
	Removed map[kurabe.HostID]bool
	// Addresses are those that others have, Proxies counts the other proxies on each host.
	Addresses map[string]bool
	Proxies   map[kurabe.HostID]int
}

// Order is what a host was told, with what it reports; nil: it has not spoken.
type Order struct {
	Assignment kurabe.ProxyAssignment
	Report     *kurabe.ProxyReport
}

// Result is what must change; nil fields stay as they are.
type Result struct {
	Assignments []kurabe.ProxyAssignment
	// Withdrawn are the hosts on which nothing is left.
	Withdrawn []kurabe.HostID
	Status    *kurabe.ProxyStatus
	// Gone: nothing of the proxy is left; its records are to be removed.
	Gone    bool
	Events  []kurabe.Event
	Reasons []string
	// LookAgain is when time alone can change the plan; zero: never.
	LookAgain time.Time
}

// moveAfter is how long a host is not heard before its proxies move. Its own processes serve
// on while only its agent is away, which is the more frequent case.
const moveAfter = 10 * time.Second

// draft is a plan in the making.
type draft struct {
	w      World
	status kurabe.ProxyStatus
	next   kurabe.ProxyAssignment // in the making, that of status.Host
	have   *Order                 // in force; nil: none
	result Result
}

// Next decides what one proxy needs now.
func Next(w World) Result {
	d := &draft{w: w}
	if w.Status != nil {
		d.status = *w.Status
	} else {
		d.status = kurabe.ProxyStatus{ID: w.Spec.ID, State: kurabe.ProxyCreating, Since: w.Now}
	}
	d.callOff()
	if w.Spec.Deleting != nil {
		d.remove()
		return d.finish()
	}
	d.leaveLostHost()
	if !d.place() {
		return d.finish()
	}
	d.configure()
	d.lead()
	d.order()
	d.tell()
	return d.finish()
}

func (d *draft) because(reason string) { d.result.Reasons = append(d.result.Reasons, reason) }

// callOff ends what other hosts were told, and finds the order in force.
func (d *draft) callOff() {
	for n := range d.w.Orders {
		o := &d.w.Orders[n]
		if o.Assignment.Host == d.status.Host && d.w.Spec.Deleting == nil {
			d.have = o
			continue
		}
		d.end(o)
	}
}

// end has nothing be left on a host. It says whether that is so.
func (d *draft) end(o *Order) bool {
	a, r := o.Assignment, o.Report
	switch {
	case d.w.Removed[a.Host], a.Absent && r != nil && r.Absent && r.Generation == a.Generation:
		d.result.Withdrawn = append(d.result.Withdrawn, a.Host)
		return true
	case !a.Absent:
		d.result.Assignments = append(d.result.Assignments, absent(a))
		d.because("host " + string(a.Host) + " is to remove it")
	}
	return false
}

func absent(a kurabe.ProxyAssignment) kurabe.ProxyAssignment {
	return kurabe.ProxyAssignment{Generation: a.Generation + 1, Host: a.Host, Proxy: a.Proxy, Name: a.Name, Absent: true, Engine: a.Engine}
}

// remove deletes a proxy once no host has anything of it. callOff has told them.
func (d *draft) remove() {
	d.state(kurabe.ProxyDeleting, "")
	if len(d.result.Withdrawn) == len(d.w.Orders) {
		d.because("nothing of it is left on any host")
		d.result.Gone = true
		d.event(event.ProxyDeleted)
	}
}

// leaveLostHost gives a host up that has not been heard for moveAfter, when there is another.
func (d *draft) leaveLostHost() {
	since, lost := d.w.Lost[d.status.Host]
	gone := d.w.Removed[d.status.Host]
	if d.have == nil || !lost && !gone {
		return
	}
	if at := since.Add(moveAfter); !gone && d.w.Now.Before(at) {
		d.lookAgain(at)
		return
	}
	if _, ok := d.chooseHost(); !ok {
		d.because("its host is not heard, and there is no other")
		return
	}
	d.because("host " + string(d.status.Host) + " is not heard")
	old := d.have
	d.next = old.Assignment // its addresses, where the other host can have them, and its route
	d.have, d.status.Host = nil, ""
	d.end(old)
}

func (d *draft) lookAgain(t time.Time) {
	if d.result.LookAgain.IsZero() || t.Before(d.result.LookAgain) {
		d.result.LookAgain = t
	}
}

// event is told of the proxy by its name.
func (d *draft) event(k event.Kind) {
	d.result.Events = append(d.result.Events, k.With(d.w.Spec.Name).Told(d.w.Now, d.w.Spec.Name, string(d.w.Spec.ID)))
}

// state changes the state that users see.
func (d *draft) state(s kurabe.ProxyState, reason string) {
	if d.status.State != s {
		d.status.State, d.status.Since = s, d.w.Now
	}
	d.status.Reason = reason
}

// order numbers what has changed.
func (d *draft) order() {
	if d.have != nil && reflect.DeepEqual(d.have.Assignment, d.next) {
		return
	}
	d.next.Generation++
	d.result.Assignments = append(d.result.Assignments, d.next)
}

// finish keeps what differs.
func (d *draft) finish() Result {
	d.status.SpecRevision = d.w.Spec.Revision
	if d.w.Status == nil || !reflect.DeepEqual(*d.w.Status, d.status) {
		d.result.Status = &d.status
	}
	return d.result
}

// tell says in the status what the host reports.
func (d *draft) tell() {
	var r *kurabe.ProxyReport
	if d.have != nil {
		r = d.have.Report
	}
	done := r != nil && r.Done && r.Generation == d.next.Generation
	switch {
	case done:
		if !slices.ContainsFunc(d.status.Endpoints, func(e kurabe.ProxyEndpointStatus) bool { return e.State == kurabe.ProxyAvailable }) {
			d.event(event.ProxyCreated)
		}
		d.state(kurabe.ProxyAvailable, "")
	case r != nil && r.Failure != nil:
		d.state(d.changing(), r.Failure.Step+": "+r.Failure.Message)
	default:
		d.state(d.changing(), "")
	}
	if r != nil && d.status.State == kurabe.ProxyCreating {
		d.because("waiting for host " + string(d.status.Host))
	}
	d.tellEndpoints(done)
	d.tellTargets(r)
}

// changing is the state of a proxy whose host is not done: what the user has asked for is shown,
// another route is nobody's business.
func (d *draft) changing() kurabe.ProxyState {
	switch {
	case d.status.State == kurabe.ProxyCreating, d.status.State == kurabe.ProxyIncompatibleNetwork, d.status.State == kurabe.ProxyInsufficientResource:
		return kurabe.ProxyCreating
	case d.w.Status.SpecRevision != d.w.Spec.Revision:
		return kurabe.ProxyModifying
	}
	return d.status.State
}

// tellEndpoints tells where clients go. An endpoint is available when its proxy has taken its
// address once.
func (d *draft) tellEndpoints(done bool) {
	before := d.status.Endpoints
	d.status.Endpoints = nil
	for _, l := range d.next.Endpoints {
		e := kurabe.ProxyEndpointStatus{ID: l.ID, State: kurabe.ProxyCreating, Address: l.Address, Port: d.next.Port}
		was := slices.IndexFunc(before, func(b kurabe.ProxyEndpointStatus) bool { return b.ID == l.ID })
		if done || was >= 0 && before[was].State == kurabe.ProxyAvailable {
			e.State = kurabe.ProxyAvailable
		}
		d.status.Endpoints = append(d.status.Endpoints, e)
	}
}

// tellTargets tells of each server how its proxy sees it.
func (d *draft) tellTargets(r *kurabe.ProxyReport) {
	d.status.Targets = nil
	for _, s := range d.next.Servers {
		t := kurabe.ProxyTargetHealth{Server: s.ID, Reads: s.Reads, State: kurabe.TargetRegistering}
		switch {
		case r == nil || r.PID == 0:
			t.State, t.Reason = kurabe.TargetUnavailable, kurabe.TargetPendingCapacity
			t.Description = "the proxy does not run yet"
		default:
			for _, told := range r.Targets {
				if told.Server == s.ID {
					t = told
					t.Reads = s.Reads
				}
			}
		}
		d.status.Targets = append(d.status.Targets, t)
	}
}
