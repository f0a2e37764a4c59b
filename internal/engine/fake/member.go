package fake

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/engine"
)

// network is what the servers of several hosts reach each other by.
type network struct {
	sync.Mutex // guards all engines in it, and what follows
	engines    []*Engine
	writes     int64
	reach      Reach
	flaws      Flaw
}

// member is what a server is in a group. Its data is a list of writes, by number.
type member struct {
	id   kurabe.InstanceID
	on   *Engine
	log  []int64
	sent []sent // the end of the log, of a writer
	// visible is how much of it clients of a writer see. stream is a follower's, answers are
	// those of followers to a writer.
	visible int
	stream  stream
	answers map[kurabe.InstanceID]heard
	disk    settings
	runs    settings // as the process has loaded them
	// waits are those whose answer a write waits for by now, slots those who may follow.
	waits, slots []kurabe.InstanceID

	frozen    chan struct{} // closed when it goes on; nil: it does
	frozenAt  time.Time
	unplugged bool // reaches nobody, and nobody it
	lags      bool // connected, and nothing comes
	spoilt    bool // the data can only be cloned
	outrun    bool // its source has given up log that it lacks
}

// settings are what would be rendered.
type settings struct {
	text string
	role kurabe.Role
	held bool
}

func render(a kurabe.Assignment, note engine.Applied) settings {
	s := settings{text: fmt.Sprintf("%s:%d %v %v %v", a.Listens(), a.Port, a.Settings, a.Log, a.Binlog)}
	if a.Role == nil {
		return s
	}
	source := ""
	if a.Role.Source != nil {
		source = fmt.Sprint(*a.Role.Source)
	}
	s.role, s.held = *a.Role, a.Role.Duty == kurabe.DutyWrite && note.ClientsKeptOut
	s.text += fmt.Sprintf(" %s of %q, waits for %v, held %v", s.role.Duty, source, s.role.WaitFor, s.held)
	return s
}

// begin notes a start before it is made, as a real engine does.
func (i *instance) begin(a kurabe.Assignment) error {
	if a.Role == nil {
		return nil
	}
	n := &i.o.Applied
	switch {
	case n.Rejoining || n.Rebuild:
		return errors.New("the data is between that of a writer and that of a follower")
	case a.Role.Duty == kurabe.DutyWrite && !n.MayStart(*a.Role):
		return errors.New("no start is ordered")
	}
	n.Begin(*a.Role)
	i.disk = render(a, *n)
	return nil
}

// began has a process run with what is on disk.
func (i *instance) began(a kurabe.Assignment) {
	i.runs, i.waits = i.disk, i.disk.role.WaitFor
	i.leads()
	n := &i.o.Applied
	n.Ran(i.o.Process, i.disk.text)
	i.obeys(a)
}

// leads begins a life as a writer, or as one that may become one: what is in the log shows.
func (i *instance) leads() {
	i.visible, i.sent, i.stream, i.answers = len(i.log), nil, stream{}, map[kurabe.InstanceID]heard{}
}

// obeys notes that the process has loaded what it is told by its role.
func (i *instance) obeys(a kurabe.Assignment) {
	n := &i.o.Applied
	switch {
	case a.Role == nil:
		n.ClientsKeptOut, n.RoleEpoch = false, 0
	case a.Role.Duty == kurabe.DutyFollow:
		n.RoleEpoch = a.Role.Epoch
	}
}

// reload: who is not to be waited for any more is not at once; for others more is needed.
func (i *instance) reload(a kurabe.Assignment) {
	n := &i.o.Applied
	i.runs = i.disk
	i.waits = slices.DeleteFunc(slices.Clone(i.waits), func(id kurabe.InstanceID) bool { return !slices.Contains(i.runs.role.WaitFor, id) })
	n.Loaded = i.disk.text
	i.obeys(a)
	if a.Role != nil {
		n.WaitsStale = n.WaitsStale || !sameMembers(n.Waits, a.Role.WaitFor)
	}
}

func (i *instance) thaw() {
	if i.frozen != nil {
		close(i.frozen)
		i.frozen = nil
	}
}

// server is the running server of that id.
func (n *network) server(id kurabe.InstanceID) *instance {
	for _, e := range n.engines {
		if i := e.instances[id]; i != nil && i.o.Running {
			return i
		}
	}
	return nil
}

// known says whether any host has data of a server. One that is not known is elsewhere,
// and taken for one that is well and has no data.
func (n *network) known(id kurabe.InstanceID) bool {
	return slices.ContainsFunc(n.engines, func(e *Engine) bool { return e.instances[id] != nil && e.instances[id].o.Data })
}

// writer is a running server that i reaches and that writes, nil when there is none.
func (n *network) writer(i *instance, id kurabe.InstanceID) *instance {
	s := n.server(id)
	if s == nil || s.o.Follower || !s.o.Applied.Ready || s.unplugged || i.unplugged {
		return nil
	}
	return s
}

// source is the server that a follower is connected to, nil when it is to none.
func (n *network) source(i *instance) *instance {
	if !i.o.Running || !i.o.Follower || i.runs.role.Source == nil {
		return nil
	}
	s := n.writer(i, i.runs.role.Source.ID)
	if s == nil || i.outrun || !slices.Contains(s.slots, i.id) {
		return nil
	}
	// Over one stream the log goes on as the source's: to compare it each time would take long.
	if same := i.stream.source == s && i.stream.between == [2]string{i.o.Process, s.o.Process}; !same && (len(i.log) > len(s.log) || !slices.Equal(i.log, s.log[:len(i.log)])) {
		return nil
	}
	if !n.connected(i, s) {
		return nil
	}
	return s
}

// flow brings every follower that can have it all that its source has.
func (n *network) flow() {
	now := time.Now()
	for _, e := range n.engines {
		for _, i := range e.instances {
			if s := n.source(i); s != nil {
				n.carry(i, s, now)
			}
		}
	}
}

// common is what two logs begin with.
func common(a, b []int64) []int64 {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return slices.Clone(a[:n])
}

// sameMembers compares members in any order.
func sameMembers(a, b []kurabe.InstanceID) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
