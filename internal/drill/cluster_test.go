package drill

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/pulse"
)

// ring is a DB cluster that lacks nothing, with each server on a host of its own.
func ring() Look {
	return Look{Cluster: true, Status: "available", Epoch: 1, Writer: "db-A", SyncSet: []kurabe.InstanceID{"db-A~2", "db-A~3"}, Servers: []Server{
		{ID: "db-A", Host: "h1", Zone: "a", PID: 10, Ready: true}, {ID: "db-A~2", Host: "h2", Zone: "b", PID: 11, Ready: true}, {ID: "db-A~3", Host: "h3", Zone: "c", PID: 12, Ready: true}}}
}

// A cluster has readers, of which the one is meant that is on this host, and a pair a standby.
func TestOrderOfACluster(t *testing.T) {
	for text, c := range map[string]struct {
		order Order
		here  kurabe.HostID
		ids   []kurabe.InstanceID
	}{
		"kill the writer":              {Order{Action: Kill, Side: Writer, Cluster: true}, "h1", []kurabe.InstanceID{"db-A"}},
		"kill a reader":                {Order{Action: Kill, Side: Reader, Cluster: true}, "h3", []kurabe.InstanceID{"db-A~3"}},
		"freeze a reader for 3s":       {Order{Action: Freeze, Side: Reader, For: 3 * time.Second, Cluster: true}, "h1", []kurabe.InstanceID{"db-A~2"}},
		"kill the writer and a reader": {Order{Action: Kill, Side: Both, Cluster: true}, "h2", []kurabe.InstanceID{"db-A", "db-A~2"}},
		"a planned failover":           {Order{Action: Failover, Cluster: true}, "h1", nil},
	} {
		if err := errors.Join(c.order.Check(), c.order.fits()); err != nil || c.order.String() != text {
			t.Errorf("%s: %q, %v", text, c.order, err)
		}
		var got []kurabe.InstanceID
		sides, err := c.order.sides(ring(), c.here)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		for _, s := range sides {
			got = append(got, s.ID)
		}
		if !reflect.DeepEqual(got, c.ids) {
			t.Errorf("%s: %v, want %v", text, got, c.ids)
		}
	}
	for _, o := range []Order{{Action: Kill, Side: Standby, Cluster: true}, {Action: Freeze, Side: Reader, For: time.Second}} {
		d := &Drill{Order: o} // the service is not even asked
		if _, err := d.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "use ") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestLooksOfACluster(t *testing.T) {
	whole := ring()
	if lacks := whole.Lacks(); lacks != "" {
		t.Error(lacks)
	}
	for lacks, change := range map[string]func(*Look){
		"it has 2 of its 3 servers":                                     func(l *Look) { l.Servers = l.Servers[:2] },
		"it is being found out which of server 2 and server 3 has most": func(l *Look) { l.Electing = true },
		"no standby has every commit":                                   func(l *Look) { l.SyncSet = nil },
		"commits wait for server 3 alone":                               func(l *Look) { l.SyncSet = l.SyncSet[1:] },
	} {
		l := ring()
		if change(&l); l.Lacks() != lacks {
			t.Errorf("%q, want %q", l.Lacks(), lacks)
		}
	}
	want := "epoch 1: server 1 (a, process 10) writes, one of server 2 (b, process 11) and server 3 (c, process 12) has every commit"
	if got := place(whole).words(); got != want {
		t.Error(got)
	}
	lost := ring()
	lost.SyncSet = lost.SyncSet[1:]
	if got := place(lost).words(); !strings.HasSuffix(got, "writes, server 3 (c, process 12) has every commit") {
		t.Error(got)
	}
	list := changes(lost, whole, time.Time{})
	if len(list) != 1 || list[0].Text != "commits wait for either of server 2 and server 3: one of them has every commit" {
		t.Errorf("%+v", list)
	}
}

// A reader that is never answered again has waited until the end.
func TestReads(t *testing.T) {
	fault := time.Unix(1000, 0)
	at := func(seconds float64) time.Time { return fault.Add(time.Duration(seconds * float64(time.Second))) }
	for name, c := range map[string]struct {
		answers []float64
		want    Reads
	}{
		"one gap":              {[]float64{-9, -0.25, 1.5, 2}, Reads{Answered: 4, Gap: 1.75, GapFrom: -0.25}},
		"never again":          {[]float64{-9, -0.5}, Reads{Answered: 2, Gap: 3.5, GapFrom: -0.5}},
		"what was before":      {[]float64{-9, -1, -0.5, 0, 1, 2, 3}, Reads{Answered: 7, Gap: 1}},
		"none, and it is told": {nil, Reads{}},
	} {
		r := newReads(pulse.Login{}, "")
		for _, a := range c.answers {
			r.took(at(a), true)
		}
		r.failed(at(-1))
		r.failed(at(1))
		r.end(at(3))
		c.want.Errors = 1
		if got := *r.report(fault); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	r := newReads(pulse.Login{}, "")
	r.took(at(0), false)
	if got := r.report(fault); got.AtWriter != 1 {
		t.Errorf("%+v", got)
	}
}

// Between two writers of a cluster there is an epoch in which nobody may write.
func TestChoosingIsTold(t *testing.T) {
	before, choosing, after := ring(), ring(), ring()
	choosing.Epoch, choosing.Electing = 2, true
	after.Epoch, after.Writer, after.SyncSet = 3, "db-A~2", nil
	again := ring() // it answers again, and goes on
	again.Epoch = 2
	for name, c := range map[string]struct {
		was, is Look
		want    string
	}{
		"begun":     {before, choosing, "epoch 2: no primary; the planner asks server 2 and server 3 for their WAL positions"},
		"chosen":    {choosing, after, "epoch 3: server 2 is the primary"},
		"not lost":  {choosing, again, "epoch 2: server 1 is the primary"},
		"both seen": {before, after, "epoch 3: server 2 is the primary"},
	} {
		if list := changes(c.was, c.is, time.Time{}); len(list) == 0 || list[0].Text != c.want {
			t.Errorf("%s: %+v", name, list)
		}
	}
	if list := changes(choosing, choosing, time.Time{}); list != nil {
		t.Errorf("of nothing: %+v", list)
	}
}
