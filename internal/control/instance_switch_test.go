package control

import (
	"testing"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

// putStatus changes the status of an instance as the planner would.
func putStatus(t *testing.T, c *Control, name string, edit func(*kurabe.InstanceStatus)) {
	t.Helper()
	i, err := c.find(name)
	if err != nil {
		t.Fatal(err)
	}
	status := *i.Status
	edit(&status)
	scopetest.Commit(t, c.Scope, store.NewChange().PutStatus(status, i.StatusMod))
}

func TestSwitchoverReplica(t *testing.T) {
	c := newReplicaWorld(t)
	addReplica(t, c, "reads", "db-SHOP")
	addReplica(t, c, "other", "db-SHOP")
	i, err := c.SwitchoverReplica(t.Context(), "reads")
	if err != nil {
		t.Fatal(err)
	}
	if s := i.Spec; s.Password != (kurabe.Password{Seq: 3, Verifier: "v3", Of: "db-SHOP"}) || s.Now.RetentionDays != 7 || s.Revision != 2 || i.State != kurabe.StateModifying || i.Source != "shop" {
		t.Errorf("%+v, %s", s, i.State)
	}
	source, err := c.Instance("shop")
	if err != nil || source.State != kurabe.StateModifying || source.Spec.Switchover == nil || *source.Spec.Switchover != (kurabe.Switchover{Seq: 1, To: "db-READS"}) || source.Spec.Revision != 2 {
		t.Fatalf("%+v, %v", source.Spec, err)
	}
	// Until it is done or called off nothing else is begun with either.
	for name, ask := range map[string]func() error{
		"again":           func() error { _, err := c.SwitchoverReplica(t.Context(), "reads"); return err },
		"to another":      func() error { _, err := c.SwitchoverReplica(t.Context(), "other"); return err },
		"promote":         func() error { _, err := c.PromoteReplica(t.Context(), "reads", nil, nil); return err },
		"delete it":       func() error { _, err := c.DeleteInstance(t.Context(), "reads", "", false); return err },
		"delete source":   func() error { _, err := c.DeleteInstance(t.Context(), "shop", "", false); return err },
		"another replica": func() error { _, err := c.CreateReplica(t.Context(), "shop", NewInstance{Name: "late"}); return err },
	} {
		t.Run(name, func(t *testing.T) { scopetest.WantCode(t, ask(), kurabe.CodeInvalidInstanceState, "switched over") })
	}
	// The planner took it up, and nothing came of it.
	for _, name := range []string{"shop", "reads"} {
		putStatus(t, c, name, func(s *kurabe.InstanceStatus) { s.SpecRevision, s.SwitchSeq = 2, 1 })
	}
	if _, err = c.SwitchoverReplica(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if source, err = c.Instance("shop"); err != nil || *source.Spec.Switchover != (kurabe.Switchover{Seq: 2, To: "db-OTHER"}) {
		t.Errorf("%+v, %v", source.Spec.Switchover, err)
	}
}

// While the record says that the source yields, the wish being taken up is not enough.
func TestSwitchoverUnderWay(t *testing.T) {
	c := newReplicaWorld(t)
	addReplica(t, c, "reads", "db-SHOP")
	g := testGroup("db-SHOP", 1)
	g.SwitchoverTo = "db-READS"
	scopetest.Commit(t, c.Scope, store.NewChange().PutGroup(g, 0))
	for _, name := range []string{"shop", "reads"} {
		_, err := c.DeleteInstance(t.Context(), name, "", false)
		scopetest.WantCode(t, err, kurabe.CodeInvalidInstanceState, "switched over")
	}
}

func TestSwitchoverRefuses(t *testing.T) {
	for name, x := range map[string]struct {
		who   string
		setup func(t *testing.T, c *Control)
		code  kurabe.Code
		text  string
	}{
		"unknown":    {"nothing", nil, kurabe.CodeInstanceNotFound, "nothing not found"},
		"the source": {"shop", nil, kurabe.CodeInvalidInstanceState, "not a read replica"},
		"not working": {"reads", func(t *testing.T, c *Control) {
			putStatus(t, c, "reads", func(s *kurabe.InstanceStatus) { s.State = kurabe.StateRebooting })
		}, kurabe.CodeInvalidInstanceState, "reads is rebooting"},
		"broken": {"reads", func(t *testing.T, c *Control) {
			putStatus(t, c, "reads", func(s *kurabe.InstanceStatus) {
				s.Replication, s.ReplicationReason = kurabe.ReplicationBroken, "the source does not run"
			})
		}, kurabe.CodeInvalidInstanceState, "the source does not run"},
		"source at work": {"reads", func(t *testing.T, c *Control) {
			putStatus(t, c, "shop", func(s *kurabe.InstanceStatus) { s.State = kurabe.StateBackingUp })
		}, kurabe.CodeInvalidInstanceState, "shop, is backing-up"},
		"promoted": {"reads", func(t *testing.T, c *Control) {
			if _, err := c.PromoteReplica(t.Context(), "reads", nil, nil); err != nil {
				t.Fatal(err)
			}
		}, kurabe.CodeInvalidInstanceState, "being promoted"},
		"of a replica": {"lower", func(t *testing.T, c *Control) { addReplica(t, c, "lower", "db-READS") }, kurabe.CodeInvalidInstanceState, "Switch over reads first"},
		"Multi-AZ": {"reads", func(t *testing.T, c *Control) {
			putStatus(t, c, "shop", func(s *kurabe.InstanceStatus) { s.Applied.MultiAZ = true })
		}, kurabe.CodeInvalidInstanceState, "Set MultiAZ of shop to false"},
		"once Multi-AZ": {"reads", func(t *testing.T, c *Control) {
			g := testGroup("db-SHOP", 1)
			g.Members[0].ListensAt = "127.66.0.9"
			scopetest.Commit(t, c.Scope, store.NewChange().PutGroup(g, 0))
		}, kurabe.CodeInvalidInstanceState, "behind its endpoint"},
		"too many": {"reads", func(t *testing.T, c *Control) {
			for _, n := range []string{"a", "b", "c"} {
				addReplica(t, c, "r"+n, "db-SHOP")
				addReplica(t, c, "l"+n, "db-READS")
			}
		}, kurabe.CodeInvalidInstanceState, "7 read replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newReplicaWorld(t)
			addReplica(t, c, "reads", "db-SHOP")
			if x.setup != nil {
				x.setup(t, c)
			}
			_, err := c.SwitchoverReplica(t.Context(), x.who)
			scopetest.WantCode(t, err, x.code, x.text)
			if source, _ := c.Instance("shop"); source.Spec.Switchover != nil {
				t.Errorf("the source is to yield all the same: %+v", source.Spec.Switchover)
			}
		})
	}
}

// A replica has automated backups from its time as a source, or none, whatever its retention says.
func TestBackupsOfAReplica(t *testing.T) {
	c := newReplicaWorld(t)
	s := scopetest.Spec("orders")
	s.Source, s.Now.RetentionDays = "db-SHOP", 7
	addAs(t, c, s, func(st *kurabe.InstanceStatus) { st.Source = "db-SHOP" })
	listed := func() int {
		list, _ := c.AutomatedBackups(BackupFilter{IDs: []string{"db-ORDERS"}}, "", 100)
		return len(list)
	}
	if n := listed(); n != 0 {
		t.Errorf("%d of one that was never a source", n)
	}
	addSnapshotOf(t, c, "rds:orders-1", kurabe.SnapshotAutomated, scopetest.Now)
	if n := listed(); n != 1 {
		t.Errorf("%d of one that was a source", n)
	}
}
