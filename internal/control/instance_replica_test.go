package control

import (
	"slices"
	"testing"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/logkey"
)

// newReplicaWorld has an instance of which replicas can be made: "shop".
func newReplicaWorld(t *testing.T) *Control {
	t.Helper()
	c := newTestWorld(t)
	s := scopetest.Spec("shop")
	s.Now.RetentionDays, s.Now.StorageGiB, s.MasterUsername, s.Password = 7, 30, "boss", kurabe.Password{Seq: 3, Verifier: "v3"}
	s.BackupWindow = "03:00-03:30"
	addAs(t, c, s, available)
	return c
}

func available(st *kurabe.InstanceStatus) { st.AvailableAt = scopetest.Now }

// addReplica stores a replica as the planner leaves one that follows.
func addReplica(t *testing.T, c *Control, name string, source kurabe.InstanceID) {
	t.Helper()
	s := scopetest.Spec(name)
	s.Source, s.BackupWindow = source, "03:00-03:30"
	addAs(t, c, s, func(st *kurabe.InstanceStatus) {
		available(st)
		st.Source, st.Replication = source, kurabe.ReplicationRunning
	})
}

func TestCreateReplicaTakesWhatItsSourceHas(t *testing.T) {
	c := newReplicaWorld(t)
	i, err := c.CreateReplica(t.Context(), "shop", NewInstance{Name: "Reads"})
	if err != nil {
		t.Fatal(err)
	}
	s := i.Spec
	if s.Source != "db-SHOP" || i.Source != "shop" || !i.IsReplica() || s.Name != "reads" || s.MasterUsername != "boss" || s.Password != (kurabe.Password{Seq: 3, Verifier: "v3", Of: "db-SHOP"}) {
		t.Errorf("%+v, source %q", s, i.Source)
	}
	if s.Now.Class != "db.local.micro" || s.Now.StorageGiB != 30 || s.Now.RetentionDays != 0 || s.Now.MultiAZ || s.Now.Port != 5432 || s.ParameterGroup != "default.postgres15" {
		t.Errorf("%+v, group %s", s.Now, s.ParameterGroup)
	}
	source, err := c.Instance("shop")
	if err != nil || !slices.Equal(source.Replicas, []string{"reads"}) {
		t.Errorf("replicas of the source: %v, %v", source.Replicas, err)
	}
	if _, err := c.CreateReplica(t.Context(), c.ARN("db", "shop"), NewInstance{Name: "more"}); err != nil {
		t.Errorf("by its ARN: %v", err)
	}
}

func TestCreateReplicaRefuses(t *testing.T) {
	c := newReplicaWorld(t)
	less, zone := 20, "us-east-1z"
	plain, creating, young := scopetest.Spec("plain"), scopetest.Spec("creating"), scopetest.Spec("young")
	creating.Now.RetentionDays, young.Now.RetentionDays = 1, 1
	addAs(t, c, plain, available)
	addAs(t, c, creating, func(st *kurabe.InstanceStatus) { st.State = kurabe.StateCreating })
	addAs(t, c, young, nil)
	for name, x := range map[string]struct {
		source string
		n      NewInstance
		code   kurabe.Code
		text   string
	}{
		"nobody":       {"", NewInstance{Name: "r"}, kurabe.CodeInvalidParameterCombo, "is required"},
		"unknown":      {"nothing", NewInstance{Name: "r"}, kurabe.CodeInstanceNotFound, "nothing not found"},
		"far away":     {"arn:aws:rds:eu-west-1:000000000000:db:shop", NewInstance{Name: "r"}, kurabe.CodeInvalidParameterValue, "another region"},
		"no backups":   {"plain", NewInstance{Name: "r"}, kurabe.CodeInvalidInstanceState, "Automated backups are not enabled"},
		"not ready":    {"creating", NewInstance{Name: "r"}, kurabe.CodeInvalidInstanceState, "is creating"},
		"never served": {"young", NewInstance{Name: "r"}, kurabe.CodeInvalidInstanceState, "young"},
		"taken":        {"shop", NewInstance{Name: "plain"}, kurabe.CodeInstanceExists, "already exists"},
		"name":         {"shop", NewInstance{Name: "9"}, kurabe.CodeInvalidParameterValue, "DBInstanceIdentifier"},
		"zone":         {"shop", NewInstance{Name: "r", Zone: zone}, kurabe.CodeInvalidVPCNetworkState, zone},
		"two zones":    {"shop", NewInstance{Name: "r", MultiAZ: true}, kurabe.CodeInvalidParameterCombo, "MultiAZ"},
		"smaller":      {"shop", NewInstance{Name: "r", StorageGiB: &less}, kurabe.CodeInvalidParameterCombo, "less than the 30 GiB"},
		"class":        {"shop", NewInstance{Name: "r", Class: "db.x"}, kurabe.CodeInvalidParameterValue, "db.x"},
		"memory":       {"shop", NewInstance{Name: "r", Class: "db.local.large"}, kurabe.CodeInsufficientCapacity, "db.local.large"},
	} {
		_, err := c.CreateReplica(t.Context(), x.source, x.n)
		t.Run(name, func(t *testing.T) { scopetest.WantCode(t, err, x.code, x.text) })
	}
	for n := range maxReplicas {
		addReplica(t, c, "r"+string(rune('a'+n)), "db-SHOP")
	}
	_, err := c.CreateReplica(t.Context(), "shop", NewInstance{Name: "onemore"})
	scopetest.WantCode(t, err, kurabe.CodeInstanceQuota, "replica of a replica")
}

func TestReplicaOfAReplica(t *testing.T) {
	c := newReplicaWorld(t)
	addReplica(t, c, "reads", "db-SHOP")
	i, err := c.CreateReplica(t.Context(), "reads", NewInstance{Name: "lower"})
	if err != nil || i.Source != "reads" || i.Spec.Now.StorageGiB != 20 {
		t.Errorf("%+v, %v", i, err)
	}
}

// The password of a replica's replica is that of the instance at the top, which alone can
// change it: who is promoted must not come by the one of when the replica between was made.
func TestPromotedReplicaOfAReplica(t *testing.T) {
	c := newReplicaWorld(t)
	addReplica(t, c, "reads", "db-SHOP")
	addReplica(t, c, "lower", "db-READS")
	i, err := c.PromoteReplica(t.Context(), "lower", nil, nil)
	if err != nil || i.Spec.Password != (kurabe.Password{Seq: 3, Verifier: "v3", Of: "db-SHOP"}) {
		t.Errorf("%+v, %v", i.Spec.Password, err)
	}
	addReplica(t, c, "other", "db-READS")
	if _, err := c.DeleteInstance(t.Context(), "reads", "", false); err != nil {
		t.Fatal(err)
	}
	if i, err := c.Instance("other"); err != nil || i.Spec.PromoteSeq != 1 || i.Spec.Password.Verifier != "v3" {
		t.Errorf("%+v, %v", i.Spec, err)
	}
}

func TestPromoteReplica(t *testing.T) {
	c := newReplicaWorld(t)
	addReplica(t, c, "reads", "db-SHOP")
	_, err := c.PromoteReplica(t.Context(), "shop", nil, nil)
	scopetest.WantCode(t, err, kurabe.CodeInvalidInstanceState, "not a read replica")
	days, window, many := 5, "10:00-10:30", 99
	_, err = c.PromoteReplica(t.Context(), "reads", &many, nil)
	scopetest.WantCode(t, err, kurabe.CodeInvalidParameterValue, "")
	i, err := c.PromoteReplica(t.Context(), "reads", &days, &window)
	if err != nil {
		t.Fatal(err)
	}
	if s := i.Spec; s.PromoteSeq != 1 || s.Now.RetentionDays != days || s.BackupWindow != window || s.Password.Verifier != "v3" || i.State != kurabe.StateModifying {
		t.Errorf("%+v, %s", s, i.State)
	}
	_, err = c.PromoteReplica(t.Context(), "reads", nil, nil)
	scopetest.WantCode(t, err, kurabe.CodeInvalidInstanceState, "is being promoted already")
	_, err = c.CreateReplica(t.Context(), "reads", NewInstance{Name: "lower"})
	scopetest.WantCode(t, err, kurabe.CodeInvalidInstanceState, "is being promoted")
	addReplica(t, c, "other", "db-SHOP")
	if i, err = c.PromoteReplica(t.Context(), "other", nil, nil); err != nil || i.Spec.Now.RetentionDays != defaultPromotedDays {
		t.Errorf("without saying: %d days, %v", i.Spec.Now.RetentionDays, err)
	}
}

func TestWhatReplicationForbids(t *testing.T) {
	c := newReplicaWorld(t)
	addReplica(t, c, "reads", "db-SHOP")
	days, none, yes := 3, 0, true
	secret := logkey.Secret("correct-horse")
	for name, m := range map[string]InstanceChange{
		"password": {MasterPassword: &secret}, "backups": {RetentionDays: &days}, "zones": {MultiAZ: &yes, ApplyImmediately: true},
	} {
		_, err := c.ModifyInstance(t.Context(), "reads", m)
		t.Run(name, func(t *testing.T) { scopetest.WantCode(t, err, kurabe.CodeInvalidInstanceState, "romote") })
	}
	_, err := c.ModifyInstance(t.Context(), "shop", InstanceChange{RetentionDays: &none})
	scopetest.WantCode(t, err, kurabe.CodeInvalidInstanceState, "read replicas (reads)")
	for _, name := range []string{"shop", "reads"} {
		_, err := c.StopInstance(t.Context(), name, "")
		scopetest.WantCode(t, err, kurabe.CodeInvalidInstanceState, "read replica")
	}
	_, err = c.CreateSnapshot(t.Context(), "snap", "reads", nil)
	scopetest.WantCode(t, err, kurabe.CodeInvalidInstanceState, "its source, shop")
	_, err = c.DeleteInstance(t.Context(), "reads", "final", false)
	scopetest.WantCode(t, err, kurabe.CodeInvalidParameterCombo, "replica instance")
	class := "db.local.small"
	if _, err := c.ModifyInstance(t.Context(), "reads", InstanceChange{Class: &class, ApplyImmediately: true}); err != nil {
		t.Errorf("another class: %v", err)
	}
}

// A source that is deleted takes its replicas' bond along in the same write: they are to be
// instances of their own, with its password of that moment.
func TestDeletePromotesReplicas(t *testing.T) {
	c := newReplicaWorld(t)
	addReplica(t, c, "reads", "db-SHOP")
	if _, err := c.DeleteInstance(t.Context(), "shop", "", false); err != nil {
		t.Fatal(err)
	}
	i, err := c.Instance("reads")
	if err != nil || i.Spec.PromoteSeq != 1 || i.Spec.Password.Verifier != "v3" || i.Spec.Revision != 2 {
		t.Errorf("%+v, %v", i.Spec, err)
	}
	// One that was promoted long ago is left alone.
	c = newReplicaWorld(t)
	s := scopetest.Spec("was")
	s.Source = "db-SHOP"
	addAs(t, c, s, available)
	if _, err := c.DeleteInstance(t.Context(), "shop", "", false); err != nil {
		t.Fatal(err)
	}
	if i, err := c.Instance("was"); err != nil || i.Spec.PromoteSeq != 0 {
		t.Errorf("%+v, %v", i.Spec, err)
	}
}
