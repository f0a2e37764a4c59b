package control

import (
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

// An instance is given its standby, or loses it, at once or in the window; nothing is
// stored of a wish that cannot come true.
func TestConvert(t *testing.T) {
	yes, no := true, false
	mariadb := scopetest.Spec("orders")
	mariadb.Engine, mariadb.Now.EngineVersion = kurabe.MariaDB, "10.11.19"
	mariadb.ParameterGroup, mariadb.OptionGroup = "default.mariadb10.11", "default:mariadb-10-11"
	large := scopetest.Spec("orders")
	large.Now.Class = "db.local.large"
	for _, c := range []struct {
		name  string
		spec  kurabe.InstanceSpec
		state kurabe.State
		wish  *bool
		code  kurabe.Code
		text  string
	}{
		{name: "to two zones", spec: scopetest.Spec("orders"), state: kurabe.StateAvailable, wish: &yes},
		{name: "to one zone", spec: multiAZSpec("orders"), state: kurabe.StateAvailable, wish: &no},
		{name: "to one zone as a way out", spec: multiAZSpec("orders"), state: kurabe.StateInsufficientCapacity, wish: &no},
		{name: "mariadb", spec: mariadb, state: kurabe.StateAvailable, wish: &yes},
		{name: "mariadb as it is", spec: mariadb, state: kurabe.StateAvailable, wish: &no},
		{name: "no memory", spec: large, state: kurabe.StateAvailable, wish: &yes, code: kurabe.CodeInsufficientCapacity, text: "with a standby"},
		{name: "stopped", spec: scopetest.Spec("orders"), state: kurabe.StateStopped, wish: &yes, code: kurabe.CodeInvalidInstanceState, text: "stopped DB instance. Start"},
		{name: "stopped, to one zone", spec: multiAZSpec("orders"), state: kurabe.StateStopped, wish: &no, code: kurabe.CodeInvalidInstanceState, text: "stopped DB instance. Start"},
		{name: "stopped, as it is", spec: scopetest.Spec("orders"), state: kurabe.StateStopped, wish: &no},
		{name: "full", spec: scopetest.Spec("orders"), state: kurabe.StateStorageFull, wish: &yes, code: kurabe.CodeInvalidInstanceState, text: "only an available one"},
	} {
		for _, now := range []bool{true, false} {
			t.Run(c.name+map[bool]string{true: ", now", false: ", in the window"}[now], func(t *testing.T) {
				w := newTestWorld(t)
				addAs(t, w, c.spec, func(s *kurabe.InstanceStatus) { s.State = c.state })
				i, err := w.ModifyInstance(t.Context(), "orders", InstanceChange{MultiAZ: c.wish, ApplyImmediately: now})
				scopetest.WantCode(t, err, c.code, c.text)
				if err != nil {
					if i, err = w.Instance("orders"); err != nil || i.Pending != nil {
						t.Errorf("changed: %+v, %v", i.Pending, err)
					}
					return
				}
				changes := c.spec.Now.MultiAZ != *c.wish
				if i.WantsMultiAZ() != *c.wish || (i.Pending != nil) != changes || (i.Spec.Next != nil) != (changes && !now) {
					t.Errorf("wants %v, pending %+v, next %+v", i.WantsMultiAZ(), i.Pending, i.Spec.Next)
				}
				if want := changes && now; (i.State == kurabe.StateModifying) != want {
					t.Errorf("it is %s", i.State)
				}
			})
		}
	}
}

// What waits for the window can be taken back, is listed, and is put in force by hand.
func TestConversionThatWaits(t *testing.T) {
	c := newTestWorld(t)
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("orders"))
	convert := func(to bool) Instance {
		t.Helper()
		i, err := c.ModifyInstance(t.Context(), "orders", InstanceChange{MultiAZ: &to})
		scopetest.WantCode(t, err, "", "")
		return i
	}
	convert(true)
	if i := convert(false); i.Spec.Next != nil || i.Pending != nil {
		t.Errorf("not taken back: %+v", i.Spec.Next)
	}
	convert(true)
	list, err := c.PendingMaintenance("", nil, nil)
	if err != nil || len(list) != 1 || list[0].Action != ActionUpdate || list[0].Description != "Modifications that wait for the maintenance window: Multi-AZ false to true" {
		t.Fatalf("%+v, %v", list, err)
	}
	if _, err := c.ApplyMaintenance(t.Context(), c.ARN("db", "orders"), ActionUpdate, OptInImmediate); err != nil {
		t.Fatal(err)
	}
	if i, err := c.Instance("orders"); err != nil || !i.Spec.Now.MultiAZ || i.State != kurabe.StateModifying {
		t.Errorf("%+v, %v", i.Spec, err)
	}
}

func TestFailoverInstance(t *testing.T) {
	single, multi := scopetest.Spec("orders"), multiAZSpec("orders")
	waits := scopetest.Spec("orders")
	waits.Next, waits.NextSeq = &multi.Now, 1
	alone, both := testGroup("db-ORDERS", 1), testGroup("db-ORDERS", 2)
	behind := testGroup("db-ORDERS", 2)
	behind.UnprotectedSince = scopetest.Now
	for _, c := range []struct {
		name  string
		spec  kurabe.InstanceSpec
		state kurabe.State
		zone  string // the standby's
		group *kurabe.Group
		code  kurabe.Code
		text  string
		since time.Time // when commits began to wait
	}{
		{name: "commits wait", spec: multi, state: kurabe.StateAvailable, zone: "us-east-1a", group: &both, since: scopetest.Now,
			code: kurabe.CodeInvalidInstanceState, text: "commits have waited for another server since " + scopetest.Now.Format(time.RFC3339)},
		{name: "as asked", spec: multi, state: kurabe.StateAvailable, zone: "us-east-1a", group: &both},
		{name: "one zone", spec: single, state: kurabe.StateAvailable, code: kurabe.CodeInvalidParameterCombo, text: "not configured for multi-AZ"},
		{name: "one zone until the window", spec: waits, state: kurabe.StateAvailable, code: kurabe.CodeInvalidParameterCombo, text: "not configured for multi-AZ"},
		{name: "stopped", spec: multi, state: kurabe.StateStopped, zone: "us-east-1a", group: &both, code: kurabe.CodeInvalidInstanceState, text: "orders is stopped"},
		{name: "being made", spec: multi, state: kurabe.StateModifying, code: kurabe.CodeInvalidInstanceState, text: "orders is modifying"},
		{name: "no record", spec: multi, state: kurabe.StateAvailable, code: kurabe.CodeInvalidInstanceState, text: "it has no standby yet"},
		{name: "no standby", spec: multi, state: kurabe.StateAvailable, group: &alone, code: kurabe.CodeInvalidInstanceState, text: "it has no standby yet"},
		{name: "a standby that is behind", spec: multi, state: kurabe.StateAvailable, group: &behind,
			code: kurabe.CodeInvalidInstanceState, text: "committed since " + scopetest.Now.Format(time.RFC3339)},
		{name: "a standby that catches up", spec: multi, state: kurabe.StateAvailable, group: &both, code: kurabe.CodeInvalidInstanceState, text: "every commit yet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			addAs(t, w, c.spec, func(s *kurabe.InstanceStatus) { s.State, s.SecondZone, s.BlockedAt = c.state, c.zone, c.since })
			if c.group != nil {
				scopetest.Commit(t, w.Scope, store.NewChange().PutGroup(*c.group, 0))
			}
			_, err := w.FailoverInstance(t.Context(), "orders")
			scopetest.WantCode(t, err, c.code, c.text)
			i, unread := w.Instance("orders")
			var asked int64
			if err == nil {
				asked = 1
			}
			if unread != nil || i.Spec.FailoverSeq != asked || i.Spec.RebootSeq != 0 || (i.State == kurabe.StateRebooting) != (asked == 1) {
				t.Errorf("%+v is %s, %v", i.Spec, i.State, unread)
			}
		})
	}
}

// A reboot without a failover restarts where the server is, and asks for no other.
func TestRebootIsNoFailover(t *testing.T) {
	c := newTestWorld(t)
	addAs(t, c, multiAZSpec("orders"), nil)
	if i, err := c.RebootInstance(t.Context(), "orders"); err != nil || i.Spec.RebootSeq != 1 || i.Spec.FailoverSeq != 0 {
		t.Errorf("%+v, %v", i.Spec, err)
	}
}
