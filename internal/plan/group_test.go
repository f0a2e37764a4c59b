package plan

import (
	"strings"
	"testing"
	"time"

	"kurabe"
)

// What a former primary had alone is told once, and again when it happens again.
func TestTellGivenUp(t *testing.T) {
	const id = kurabe.InstanceID("db-A")
	w := World{
		Now: time.Unix(1, 0), Spec: &kurabe.InstanceSpec{ID: id, Name: "shop"},
		Report: &kurabe.InstanceReport{Instance: id, Role: &kurabe.RoleReport{}},
	}
	g := &kurabe.Group{Instance: id, Members: []kurabe.Member{{ID: id, Zone: "a"}, {ID: id.Member(2), Zone: "b"}}}
	for n, c := range []struct {
		given kurabe.DiscardedCommits
		want  string
	}{
		{kurabe.DiscardedCommits{}, ""},
		{kurabe.DiscardedCommits{Seq: 1, Transactions: 3}, "zone a had committed 3 transactions"},
		{kurabe.DiscardedCommits{Seq: 1, Transactions: 3}, ""},
		{kurabe.DiscardedCommits{Seq: 2, Transactions: kurabe.DiscardedUnknown}, "an unknown number of transactions"},
		{kurabe.DiscardedCommits{}, ""}, // its home is new
	} {
		w.Report.Role.Discarded = c.given
		d := &draft{w: w, group: g}
		d.tellGivenUp()
		var told string
		for _, e := range d.result.Events {
			told += e.ID + " " + e.Message
		}
		if c.want == "" && told != "" || !strings.Contains(told, c.want) {
			t.Errorf("%d: %q", n, told)
		}
	}
}

// The death of a primary that was just deposed is no death of its successor.
func TestCrashOfTheDeposed(t *testing.T) {
	const id = kurabe.InstanceID("db-A")
	for primary, want := range map[kurabe.InstanceID]int64{id: 2, id.Member(2): 1} {
		d := &draft{
			w: World{
				Spec: &kurabe.InstanceSpec{ID: id, Name: "shop"}, Assignment: &kurabe.Assignment{Instance: id},
				Report: &kurabe.InstanceReport{Instance: id, Crashes: 2},
			},
			had: true, next: kurabe.Assignment{Instance: primary},
		}
		d.status.SeenCrashes = 1 // of the primary
		d.readReport()
		if told := len(d.result.Events) > 0; told != (want == 2) || d.status.SeenCrashes != want {
			t.Errorf("%s writes: told %v, seen %d", primary, told, d.status.SeenCrashes)
		}
	}
}

// That a failover is over is told once its server writes, once; and that one is which was
// overtaken by the next is not told.
func TestCompletedFailover(t *testing.T) {
	const id = kurabe.InstanceID("db-A")
	second := id.Member(2)
	g := &kurabe.Group{Instance: id, Epoch: 3, Primary: second, Members: []kurabe.Member{{ID: id, Zone: "a"}, {ID: second, Zone: "b"}}}
	a := kurabe.Assignment{Instance: second, Generation: 7, Role: &kurabe.Role{Epoch: 3, Duty: kurabe.DutyWrite}}
	report := func(epoch kurabe.Epoch, generation kurabe.Generation, writing bool) *kurabe.InstanceReport {
		return &kurabe.InstanceReport{Instance: second, Generation: generation, Running: true, Role: &kurabe.RoleReport{Epoch: epoch, Writing: writing}}
	}
	var status kurabe.InstanceStatus
	status.FailingOver = true
	for n, c := range []struct {
		report *kurabe.InstanceReport
		want   bool
	}{
		{nil, false},
		{report(2, 6, true), false}, // of the epoch before
		{report(3, 7, false), false},
		{report(3, 7, true), true},
		{report(3, 7, true), false},
	} {
		w := World{Now: time.Unix(1, 0), Spec: &kurabe.InstanceSpec{ID: id, Name: "shop"}, Assignment: &a, Report: c.report}
		d := &draft{w: w, group: g, status: status}
		d.completeFailover()
		status = d.status
		if told := len(d.result.Events) == 2 && d.result.Events[0].ID == "RDS-EVENT-0015" && d.result.Events[1].ID == "RDS-EVENT-0049" &&
			strings.Contains(d.result.Events[1].Message, "completed: the writer is in zone b"); told != c.want {
			t.Errorf("%d: %+v", n, d.result.Events)
		}
	}
}

// A primary that nobody can replace is started again; that is told once, and that it writes.
func TestActivation(t *testing.T) {
	const id = kurabe.InstanceID("db-A")
	g := &kurabe.Group{Instance: id, Epoch: 3, Primary: id, Members: []kurabe.Member{{ID: id, Zone: "a"}, {ID: id.Member(2), Zone: "b"}}}
	a := kurabe.Assignment{Instance: id, Generation: 7, Role: &kurabe.Role{Epoch: 3, Duty: kurabe.DutyWrite}}
	report := func(running, stuck bool) *kurabe.InstanceReport {
		return &kurabe.InstanceReport{Instance: id, Generation: 7, Running: running, Role: &kurabe.RoleReport{Epoch: 3, Writing: running, Unresponsive: stuck}}
	}
	var status kurabe.InstanceStatus
	for n, c := range []struct {
		report  *kurabe.InstanceReport
		cluster bool
		want    string
	}{
		{report(true, false), false, ""},
		{report(true, true), false, ""}, // it may answer again
		{report(false, false), false, "RDS-EVENT-0050 Multi-AZ instance activation started: no standby has every commit, so the same server is started again"},
		{report(false, false), false, ""},
		{report(true, false), false, "RDS-EVENT-0051 Multi-AZ instance activation completed. Commits that waited for the standby when the server ended may be in the database, although their clients had no answer"},
		{report(true, false), false, ""},
		{report(false, false), true, "RDS-EVENT-0070 Promoting previous primary again: shop-instance-1: no standby has every commit, so the same server is started again"},
		{report(true, false), true, "RDS-EVENT-0071 Completed failover to DB instance: shop-instance-1, in zone a"},
	} {
		d := &draft{w: World{Now: time.Unix(1, 0), Spec: &kurabe.InstanceSpec{ID: id, Name: "shop", Cluster: c.cluster}, Assignment: &a, Report: c.report}, group: g, status: status}
		d.failOver()
		d.completeFailover()
		status = d.status
		var told string
		for _, e := range d.result.Events {
			told += e.ID + " " + e.Message
		}
		if told != c.want {
			t.Errorf("%d: told %q, want %q", n, told, c.want)
		}
	}
}

// A failover that comes to nothing has an end, too: once the same server writes and is told to,
// not while it may just be yielding.
func TestUndoneFailover(t *testing.T) {
	const id = kurabe.InstanceID("db-A")
	g := &kurabe.Group{Instance: id, Epoch: 3, Primary: id, HandoverTo: id.Member(2), Members: []kurabe.Member{{ID: id, Zone: "a"}, {ID: id.Member(2), Zone: "b"}}}
	var status kurabe.InstanceStatus
	for n, c := range []struct {
		duty    kurabe.Duty
		running bool
		want    string
	}{
		{kurabe.DutyStepDown, true, "KURABE-EVENT-0033"},
		{kurabe.DutyWrite, false, "RDS-EVENT-0050"},
		{kurabe.DutyWrite, true, "RDS-EVENT-0051RDS-EVENT-0065"},
		{kurabe.DutyWrite, true, ""},
		{kurabe.DutyStepDown, false, "RDS-EVENT-0050"}, // both have died meanwhile
		{kurabe.DutyWrite, true, "RDS-EVENT-0051RDS-EVENT-0065"},
	} {
		a := kurabe.Assignment{Instance: id, Generation: 7, Role: &kurabe.Role{Epoch: 3, Duty: c.duty}}
		r := &kurabe.InstanceReport{Instance: id, Generation: 7, Running: c.running, Role: &kurabe.RoleReport{Epoch: 3, Writing: c.running}}
		d := &draft{w: World{Now: time.Unix(1, 0), Spec: &kurabe.InstanceSpec{ID: id, Name: "shop"}, Assignment: &a, Report: r}, group: g, status: status}
		if c.duty == kurabe.DutyStepDown {
			g.HandoverTo = id.Member(2)
		}
		d.failOver()
		d.failOverInOrder()
		d.completeFailover()
		status = d.status
		var told string
		for _, e := range d.result.Events {
			told += e.ID
		}
		if told != c.want || g.HandoverTo != "" {
			t.Errorf("%d: told %q, want %q", n, told, c.want)
		}
	}
}

// The end of a server that never comes back is a person's word; another one may take its place
// then, although it lacks commits, if a person wants that too.
func TestRecoveryWithoutTheHost(t *testing.T) {
	const id = kurabe.InstanceID("db-A")
	second := id.Member(2)
	for _, gone := range []bool{false, true} {
		g := &kurabe.Group{Instance: id, Epoch: 3, Primary: id, ForcedPrimary: second, Members: []kurabe.Member{{ID: id, Host: "h1", Zone: "a"}, {ID: second, Host: "h2", Zone: "b"}}}
		w := World{Now: time.Unix(1, 0), Spec: &kurabe.InstanceSpec{ID: id, Name: "shop"}, Assignment: &kurabe.Assignment{Instance: id, Role: &kurabe.Role{Epoch: 3}},
			Reports: map[kurabe.InstanceID]*kurabe.InstanceReport{second: {Instance: second, Running: true, Role: &kurabe.RoleReport{Epoch: 3}}},
			Lost:    map[kurabe.HostID]time.Time{"h1": time.Unix(0, 0)}, RemovedHosts: map[kurabe.HostID]bool{"h1": gone}}
		d := &draft{w: w, group: g}
		if !d.forceRecovery() || g.Primary != map[bool]kurabe.InstanceID{false: id, true: second}[gone] {
			t.Errorf("gone %v: %+v, %v", gone, g, d.result.Reasons)
		}
	}
}
