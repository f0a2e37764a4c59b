package simulated

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"kurabe"
)

// Bounds of what is demanded, in simulated time. wholeMost is how long it may take until every
// standby has every commit again when nothing fails any more, servedMost how long clients wait
// after a fault that the instance is made for, and healedMost after any other when it is over.
const (
	wholeMost  = 5 * time.Minute
	servedMost = 10 * time.Second
	healedMost = 2 * time.Minute
	holdMost   = 20 * time.Second
)

// fault is something that befalls a world. strike returns what ends it, nil for nothing.
type fault struct {
	name string
	// hosts is how many hosts there have to be. alone says that an instance which is whole, and
	// may go on alone, serves while it lasts.
	hosts int
	alone bool
	// fills: it fills a disk.
	fills  bool
	strike func(w *world) (heal func())
}

// writer is the server that is to write, and where it is.
func (w *world) writer() (*host, kurabe.InstanceID) {
	if i, ok := w.instance(); ok && i.Group != nil {
		if m, ok := i.Group.Member(i.Group.Primary); ok {
			return w.host(m.Host), m.ID
		}
	}
	h := w.hosts[w.rand.IntN(len(w.hosts))]
	return h, database
}

func (w *world) host(id kurabe.HostID) *host {
	for _, h := range w.hosts {
		if h.id == id {
			return h
		}
	}
	return w.hosts[0]
}

// some is the writer, or another server, by chance.
func (w *world) some() (*host, kurabe.InstanceID) {
	h, id := w.writer()
	if w.rand.IntN(2) == 0 {
		return h, id
	}
	type place struct {
		h  *host
		id kurabe.InstanceID
	}
	var all []place
	for _, o := range w.hosts {
		for _, other := range o.servers() {
			if o.engine.Running(other) && other != id {
				all = append(all, place{o, other})
			}
		}
	}
	if len(all) == 0 {
		return h, id
	}
	p := all[w.rand.IntN(len(all))]
	return p.h, p.id
}

func (w *world) cut(from, to string, cut bool) {
	w.wire.change(func() { w.wire.cut[[2]string{from, to}] = cut })
}

// others are all nodes that a host can be cut off from.
func (w *world) others(h *host) []string {
	all := []string{serviceNode}
	for _, o := range w.hosts {
		if o != h {
			all = append(all, string(o.id))
		}
	}
	return all
}

// part cuts a host off from others, one way or both.
func (w *world) part(h *host, from []string, out, in bool) (heal func()) {
	for _, o := range from {
		w.cut(string(h.id), o, out)
		w.cut(o, string(h.id), in)
	}
	return func() {
		for _, o := range from {
			w.cut(string(h.id), o, false)
			w.cut(o, string(h.id), false)
		}
	}
}

var faults = []fault{
	{"a server is killed", 1, true, false, func(w *world) func() {
		h, id := w.some()
		h.engine.Crash(id)
		return nil
	}},
	{"all servers are killed", 1, false, false, func(w *world) func() {
		for _, h := range w.hosts {
			for _, id := range h.servers() {
				h.engine.Crash(id)
			}
		}
		return nil
	}},
	{"a server hangs", 1, true, false, func(w *world) func() {
		h, id := w.some()
		h.engine.Freeze(id)
		return func() {
			if !h.isStill() {
				h.engine.Thaw(id)
			}
		}
	}},
	{"an agent is killed", 1, true, false, func(w *world) func() {
		h, _ := w.some()
		return w.kill(h, time.Duration(w.rand.Int64N(int64(3*time.Second))))
	}},
	{"an agent is away", 2, true, false, func(w *world) func() {
		h, _ := w.some()
		if h.agent == nil {
			return nil
		}
		h.stopAgent()
		return func() {
			if h.agent == nil && !h.isOff() {
				h.startAgent()
			}
		}
	}},
	{"the service is restarted", 1, true, false, func(w *world) func() {
		if w.service == nil {
			return nil
		}
		w.stopService()
		time.Sleep(time.Duration(w.rand.Int64N(int64(2 * time.Second))))
		w.startService()
		return nil
	}},
	{"the service is away", 1, true, false, func(w *world) func() {
		if w.service == nil {
			return nil
		}
		w.stopService()
		return func() {
			if w.service == nil {
				w.startService()
			}
		}
	}},
	{"the service stands still", 1, true, false, func(w *world) func() {
		s := w.service
		if s == nil {
			return nil
		}
		s.still.open(false)
		w.wire.change(func() { w.wire.still[serviceNode] = true })
		return func() {
			w.wire.change(func() { w.wire.still[serviceNode] = false })
			s.still.open(true)
		}
	}},
	{"a machine stands still", 2, true, false, func(w *world) func() {
		h, _ := w.some()
		if h.isStill() {
			return nil
		}
		h.stand(true)
		return func() {
			if !h.isOff() {
				h.stand(false)
			}
		}
	}},
	{"a machine loses its power", 2, true, false, func(w *world) func() {
		h, _ := w.some()
		if h.isOff() {
			return nil
		}
		h.powerOff()
		return func() {
			if h.isOff() {
				h.powerOn()
			}
		}
	}},
	{"a machine is cut off", 2, true, false, func(w *world) func() {
		h, _ := w.some()
		return w.part(h, w.others(h), true, true)
	}},
	{"a machine is cut off from the service", 2, true, false, func(w *world) func() {
		h, _ := w.some()
		return w.part(h, []string{serviceNode}, true, true)
	}},
	{"a machine does not hear the service", 2, true, false, func(w *world) func() {
		h, _ := w.some()
		return w.part(h, []string{serviceNode}, false, true)
	}},
	{"the service does not hear a machine", 2, true, false, func(w *world) func() {
		h, _ := w.some()
		return w.part(h, []string{serviceNode}, true, false)
	}},
	{"machines are cut off from each other", 2, true, false, func(w *world) func() {
		h, _ := w.some()
		return w.part(h, w.others(h)[1:], w.rand.IntN(3) > 0, true)
	}},
	{"a machine hears nobody", 2, true, false, func(w *world) func() {
		h, _ := w.some()
		return w.part(h, w.others(h), false, true)
	}},
	{"nobody hears a machine", 2, true, false, func(w *world) func() {
		h, _ := w.some()
		return w.part(h, w.others(h), true, false)
	}},
	{"the network is slow", 2, true, false, func(w *world) func() {
		h, _ := w.some()
		by := time.Duration(w.rand.Int64N(int64(400 * time.Millisecond)))
		w.wire.change(func() {
			for _, o := range w.others(h) {
				w.wire.delay[[2]string{string(h.id), o}], w.wire.delay[[2]string{o, string(h.id)}] = by, by
			}
		})
		return func() {
			w.wire.change(func() {
				for _, o := range w.others(h) {
					delete(w.wire.delay, [2]string{string(h.id), o})
					delete(w.wire.delay, [2]string{o, string(h.id)})
				}
			})
		}
	}},
	{name: "a disk is nearly full", hosts: 2, alone: true, fills: true, strike: fills(nearlyFull)},
	{name: "a disk is full", hosts: 2, alone: true, fills: true, strike: fills(fullDisk)},
	{"a planned failover", 1, true, false, func(w *world) func() {
		w.edit(func(s *kurabe.InstanceSpec) { s.FailoverSeq++; s.Action = kurabe.StateRebooting })
		return nil
	}},
	{"a reboot", 1, true, false, func(w *world) func() {
		w.edit(func(s *kurabe.InstanceSpec) { s.RebootSeq++; s.Action = kurabe.StateRebooting })
		return nil
	}},
	{"another class", 1, true, false, func(w *world) func() {
		class := []string{"db.t3.micro", "db.t3.small", "db.t3.medium"}[w.rand.IntN(3)]
		w.edit(func(s *kurabe.InstanceSpec) { s.Now.Class = class; s.Action = kurabe.StateModifying })
		return nil
	}},
}

func (h *host) isOff() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.off
}

// kill kills an agent, which is started again after a pause.
func (w *world) kill(h *host, pause time.Duration) func() {
	if h.agent == nil {
		return nil
	}
	h.stopAgent()
	time.Sleep(pause)
	if h.agent == nil && !h.isOff() {
		h.startAgent()
		if h.isStill() {
			h.agent.open(false)
		}
	}
	return nil
}

// nemesis strikes for a while.
type nemesis struct {
	*world
	counts  map[string]int
	longest time.Duration // that clients waited after a fault that the instance is made for
	after   string
}

func (n *nemesis) draw() fault {
	for {
		if f := faults[n.rand.IntN(len(faults))]; f.hosts <= len(n.hosts) {
			n.counts[f.name]++
			return f
		}
	}
}

// strike begins a fault, and returns what ends it.
func (n *nemesis) strike(f fault) (heal func()) {
	n.logf("FAULT: %s", f.name)
	end := f.strike(n.world)
	return func() {
		if end != nil {
			n.logf("over: %s", f.name)
			end()
		}
	}
}

// served waits until an append that was begun after a moment is acknowledged.
func (n *nemesis) served(since int64, limit time.Duration, after string) time.Duration {
	n.wait(limit, "an append is acknowledged after: "+after, func() string {
		if n.history.ackedSince(since) == 0 {
			return "none is; " + n.whole()
		}
		return ""
	})
	return time.Duration(n.history.now() - since)
}

// wholeAndServing says what is missing until an instance is whole and has served since it was.
// The record alone is late: while the service stood still and has not looked yet, it names a
// writer whose machine is off, and one fault more would be the second.
func (n *nemesis) wholeAndServing() func() string {
	since := n.history.now()
	return func() string {
		text := n.whole()
		if text != "" {
			since = n.history.now()
		} else if n.history.ackedSince(since) == 0 {
			text = "it serves nobody"
		}
		return text
	}
}

// tolerable strikes an instance that is whole with one fault.
func (n *nemesis) tolerable() {
	if !n.wait(wholeMost, "it is whole and serves", n.wholeAndServing()) {
		return
	}
	f := n.draw()
	since, inTurn := n.history.now(), n.inTurn(f)
	heal := n.strike(f)
	if f.alone && !n.shape.block && !inTurn {
		if took := n.served(since, servedMost, f.name); took > n.longest {
			n.longest, n.after = took, f.name
		}
	}
	time.Sleep(time.Duration(n.rand.Int64N(int64(holdMost))))
	heal()
	n.served(n.history.now(), healedMost, f.name)
}

// wild strikes with several faults, whatever state it is in.
func (n *nemesis) wild() {
	var heal []func()
	for range 1 + n.rand.IntN(3) {
		heal = append(heal, n.strike(n.draw()))
		if n.rand.IntN(2) == 0 {
			time.Sleep(time.Duration(n.rand.Int64N(int64(8 * time.Second))))
		}
	}
	time.Sleep(time.Duration(n.rand.Int64N(int64(holdMost))))
	for _, k := range n.rand.Perm(len(heal)) {
		heal[k]()
		if n.rand.IntN(2) == 0 {
			time.Sleep(time.Duration(n.rand.Int64N(int64(3 * time.Second))))
		}
	}
	if n.rand.IntN(3) > 0 {
		n.served(n.history.now(), healedMost, "several faults")
	}
}

// told says what befell.
func (n *nemesis) told() string {
	text := ""
	for _, name := range slices.Sorted(maps.Keys(n.counts)) {
		text += fmt.Sprintf("%d × %s; ", n.counts[name], name)
	}
	return fmt.Sprintf("%sclients waited for %v at most after one that the instance is made for (%s)", text, n.longest.Round(time.Millisecond), n.after)
}
