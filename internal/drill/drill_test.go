package drill

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/proc"
	"kurabe/internal/pulse"
)

// TestMain lets the test binary play the shim and the guard.
func TestMain(m *testing.M) {
	if proc.IsShim() {
		proc.ShimMain()
	}
	if len(os.Args) > 1 && os.Args[1] == "guard" {
		if err := GuardMain(context.Background(), os.Args[2:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var guardCommand = []string{"/proc/self/exe", "guard"}

// server starts a process that works in a folder.
func server(t *testing.T) (proc.Process, string) {
	t.Helper()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := proc.Start(t.Context(), proc.Spec{Name: "server", Argv: []string{"/bin/sleep", "600"}, Dir: data,
		LockFile: filepath.Join(dir, "lock"), RecordFile: filepath.Join(dir, "record")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proc.KillSurvivors(context.Background(), data) })
	return p, data
}

// state is that of a process, as T of one that is stopped.
func state(t *testing.T, p proc.Process) string {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))[0]
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// The guard has a frozen server go on when its drill dies, and not before; when the drill
// is dead already; and when the drill lives too long.
func TestGuard(t *testing.T) {
	frozen, data := server(t)
	guarded := func(t *testing.T, drill proc.Process, most time.Duration, meanwhile func()) {
		t.Helper()
		if err := proc.Suspend(t.Context(), frozen, data); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		done := make(chan error, 1)
		go func() {
			done <- GuardMain(t.Context(), []string{strconv.Itoa(drill.PID), strconv.FormatUint(drill.StartTime, 10), most.String(), data}, &said)
		}()
		if meanwhile != nil {
			if s := state(t, frozen); s != "T" {
				t.Errorf("it goes on while the drill lives: %s", s)
			}
			meanwhile()
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		await(t, "the server goes on", func() bool { return state(t, frozen) != "T" })
	}
	drill, _ := server(t)
	t.Run("the drill hangs", func(t *testing.T) { guarded(t, drill, 50*time.Millisecond, nil) })
	t.Run("the drill dies", func(t *testing.T) {
		guarded(t, drill, time.Hour, func() {
			if err := drill.Signal(9); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("the drill is dead", func(t *testing.T) { guarded(t, drill, time.Hour, nil) })
}

// A guard that was started watches this process, and ends without a trace. One that does
// not say that it watches is none.
func TestStartGuard(t *testing.T) {
	_, data := server(t)
	g, err := startGuard(guardCommand, data, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	g.end()
	if g, err := startGuard([]string{"/bin/false"}, data, time.Minute); err == nil {
		g.end()
		t.Error("a guard that ended at once is taken for one")
	}
}

func TestOrder(t *testing.T) {
	l := Look{Writer: "db-A", SyncSet: []kurabe.InstanceID{"db-A~2"}, Servers: []Server{{ID: "db-A"}, {ID: "db-A~2"}}}
	for text, c := range map[string]struct {
		order   Order
		refused bool
		ids     []kurabe.InstanceID
	}{
		"kill the writer":          {Order{Action: Kill, Side: Writer}, false, []kurabe.InstanceID{"db-A"}},
		"kill the standby":         {Order{Action: Kill, Side: Standby}, false, []kurabe.InstanceID{"db-A~2"}},
		"kill both servers":        {Order{Action: Kill, Side: Both}, false, []kurabe.InstanceID{"db-A", "db-A~2"}},
		"freeze the writer for 3s": {Order{Action: Freeze, Side: Writer, For: 3 * time.Second}, false, []kurabe.InstanceID{"db-A"}},
		"a planned failover":       {Order{Action: Failover}, false, nil},

		"cut the standby off from the others for 3s":    {Order{Action: Cut, Side: Standby, For: 3 * time.Second}, false, []kurabe.InstanceID{"db-A~2"}},
		"cut both servers off from the others for 3s":   {Order{Action: Cut, Side: Both, For: 3 * time.Second}, true, nil},
		"cut the writer off from the others for 1h0m0s": {Order{Action: Cut, Side: Writer, For: time.Hour}, true, nil},

		"freeze both servers for 3s":     {Order{Action: Freeze, Side: Both, For: 3 * time.Second}, true, nil},
		"freeze the writer for 1ns":      {Order{Action: Freeze, Side: Writer, For: 1}, true, nil},
		"freeze the standby for 24h0m0s": {Order{Action: Freeze, Side: Standby, For: 24 * time.Hour}, true, nil},
		"kill the other":                 {Order{Action: Kill, Side: "other"}, true, nil},
	} {
		if err := c.order.Check(); (err != nil) != c.refused {
			t.Errorf("%s: %v", text, err)
		}
		if got := c.order.String(); got != text {
			t.Errorf("%q, want %q", got, text)
		}
		if c.refused {
			continue
		}
		var got []kurabe.InstanceID
		sides, err := c.order.sides(l, "")
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
	if (Order{}).Check() == nil {
		t.Error("nothing is taken for something")
	}
}

func TestChanges(t *testing.T) {
	a, b := kurabe.InstanceID("db-A"), kurabe.InstanceID("db-A~2")
	before := Look{Status: "available", Epoch: 1, Writer: a, SyncSet: []kurabe.InstanceID{b}, Servers: []Server{{ID: a, PID: 10, Doing: "it writes"}, {ID: b, PID: 11, Doing: "it follows"}}}
	if got := changes(before, before, time.Time{}); got != nil {
		t.Errorf("of nothing: %v", got)
	}
	after := Look{Status: "rebooting", Epoch: 2, Writer: b, Servers: []Server{{ID: a, Doing: "it does not run"}, {ID: b, PID: 11, Doing: "it writes"}}}
	var got []string
	for _, e := range changes(before, after, time.Time{}) {
		got = append(got, string(e.Source)+": "+e.Text)
	}
	want := []string{
		"planner: epoch 2: server 2 is the primary",
		"planner: no standby has every commit any more: commits do not wait, and no standby can take over",
		"host: server 1: it does not run", "host: server 2: it writes", "status: rebooting",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	again := after
	again.SyncSet, again.Servers = []kurabe.InstanceID{a}, []Server{{ID: b, PID: 11, Doing: "it writes"}, {ID: "db-A~3", Zone: "z"}}
	got = nil
	for _, e := range changes(after, again, time.Time{}) {
		got = append(got, e.Text)
	}
	if want := []string{"server 1 has every commit: commits wait for it", "server 3 is created in z", "server 1 is removed"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
}

// A schema is removed only when the drill that made it has ended.
func TestMayRemove(t *testing.T) {
	own, err := newOwner()
	if err != nil {
		t.Fatal(err)
	}
	dead, reboot := own, own
	dead.StartTime++
	reboot.BootID = "another"
	for name, c := range map[string]struct {
		comment string
		refused string
	}{
		"a drill that runs":       {own.comment(), "another drill"},
		"one that died":           {dead.comment(), ""},
		"one of another boot":     {reboot.comment(), ""},
		"a schema of a user":      {"my things", "no drill made"},
		"without a comment":       {"", "no drill made"},
		"a comment that was torn": {ownerMark + `{"pid":`, "no drill made"},
	} {
		err := mayRemove(c.comment)
		if (err != nil) != (c.refused != "") || err != nil && !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLacksAfterTheFault(t *testing.T) {
	now := time.Now()
	whole := Look{Status: "available", Epoch: 2, Writer: "db-A", SyncSet: []kurabe.InstanceID{"db-A~2"},
		Servers: []Server{{ID: "db-A", PID: 10, Ready: true}, {ID: "db-A~2", PID: 11, Ready: true}}}
	for name, c := range map[string]struct {
		order  Order
		before kurabe.Epoch
		killed int
		asked  time.Time
		whole  bool
	}{
		"all is well":                  {Order{Action: Kill, Side: Writer}, 1, 9, now.Add(1), true},
		"what was asked before":        {Order{Action: Kill, Side: Writer}, 1, 9, now.Add(-1), false},
		"the dead are told to be well": {Order{Action: Kill, Side: Writer}, 1, 10, now.Add(1), false},
		"no failover yet":              {Order{Action: Failover}, 2, 0, now.Add(1), false},
	} {
		r := &run{Drill: &Drill{Order: c.order}, calm: now, before: Look{Epoch: c.before}, killed: map[victim]bool{{"db-A", c.killed}: true}}
		if got := r.lacks(whole, c.asked); (got == "") != c.whole {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestPrint(t *testing.T) {
	o := &Report{Instance: "shop", Engine: "postgres", Order: "kill the writer", Fault: time.UnixMilli(1_700_000_000_000),
		Before: Place{Epoch: 1, Writer: Seat{"db-A", "zone-a", 10}, Standby: Seat{"db-A~2", "zone-b", 11}}, After: Place{Epoch: 2, Writer: Seat{"db-A~2", "zone-b", 11}},
		Gap: 0.151, GapFrom: -0.004, LongestCommit: 0.02, Errors: 2, WholeAfter: 3.14,
		Rows:     Rows{Acknowledged: 500, Unanswered: 1},
		Timeline: []Entry{{Seconds: -1, Source: FromDrill, Text: "writes"}, {Seconds: 0.0123, Source: FromEvent, Text: "two\nlines"}}}
	var b strings.Builder
	o.Print(&b)
	for _, want := range []string{
		"Drill of shop (postgres): kill the writer, at 2023-11-14 22:13:20.000 UTC",
		"before  epoch 1: server 1 (zone-a, process 10) writes, server 2 (zone-b, process 11) has every commit",
		"after   epoch 2: server 2 (zone-b, process 11) writes, no standby has every commit",
		"   -1.000  drill    writes", "   +0.012  event    two lines",
		"0.15 s, which began at -0.004", "none", "1 (allowed", "after 3.1 s",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	o.Rows.Missing = []int64{4}
	if o.Rows.Wrong() == "" {
		t.Error("a missing row is not wrong")
	}
}

func TestLoginShowsNoPassword(t *testing.T) {
	l := pulse.Login{User: "master", Password: "hunter2", Address: "127.0.0.1", Port: 1}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, l); strings.Contains(text, "hunter2") {
			t.Errorf("%s: %s", verb, text)
		}
	}
}

// One is cut off from all others, and the others from it alone.
func TestPartInACut(t *testing.T) {
	address := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{127, 66, 0, n}) }
	l := Look{Servers: []Server{{ID: "db-A", Address: address(1)}, {ID: "db-A~2", Address: address(2)}, {ID: "db-A~3", Address: address(3)}}}
	for n, want := range [][]netip.Addr{{address(2)}, {address(1), address(3)}, {address(2)}} {
		p, err := part(l, target{Server: l.Servers[n], dataDir: t.TempDir()}, l.Servers[1])
		if err != nil || !reflect.DeepEqual(p.Peers, want) {
			t.Errorf("server %d: %v, %v", n+1, p.Peers, err)
		}
	}
}
