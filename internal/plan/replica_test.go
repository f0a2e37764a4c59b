package plan_test

import (
	"slices"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/plan"
)

const replicaID = kurabe.InstanceID("db-RRRRRRRRRRRRRRRRRRRRRRRRRR")

// follower is a replica with an obedient host, and the source that it knows of.
func newFollower(t *testing.T, engine kurabe.EngineName) *sim {
	s := newSim(t)
	s.w.Spec.ID, s.w.Spec.Name, s.w.Spec.Source, s.w.Spec.Engine = replicaID, "reads", "db-AAAAAAAAAAAAAAAAAAAAAAAAAA", engine
	s.w.Source = upstream("127.66.7.1", 1)
	return s
}

// upstream is a source that has let the replica in.
func upstream(address string, epoch kurabe.Epoch) *plan.Upstream {
	const id = "db-AAAAAAAAAAAAAAAAAAAAAAAAAA"
	a := &kurabe.Assignment{Instance: id, Generation: 3, Address: address, Port: 5432, Goal: kurabe.GoalRunning, Password: kurabe.Password{Seq: 4, Verifier: "source's"},
		Role: &kurabe.Role{Epoch: epoch, Duty: kurabe.DutyWrite, Followers: []kurabe.InstanceID{replicaID}}}
	r := &kurabe.InstanceReport{Instance: id, Generation: 3, Done: true, Running: true, Role: &kurabe.RoleReport{Epoch: epoch, Writing: true}}
	return &plan.Upstream{Epoch: epoch, Assignment: a, Report: r}
}

// follows reports what a host would of a server that does as it was told.
func (s *sim) obeys(following bool) {
	a := s.w.Assignment
	s.w.Report = &kurabe.InstanceReport{Host: a.Host, Instance: a.Instance, Generation: a.Generation, Done: true, Running: true, Serving: true, Boot: a.Boot}
	if a.Role != nil {
		s.w.Report.Role = &kurabe.RoleReport{Epoch: a.Role.Epoch, Following: following, Writing: a.Role.Duty == kurabe.DutyWrite, RebuiltSeq: a.Role.RebuildSeq}
	}
}

// turn plans once, and keeps the record of who writes, too.
func (s *sim) turn() {
	s.t.Helper()
	r := s.step()
	if r.Group != nil {
		s.w.Group = r.Group
	}
	if r.GroupGone {
		s.w.Group = nil
	}
}

func (s *sim) told(id string) int {
	n := 0
	for _, e := range s.events {
		if e.ID == id {
			n++
		}
	}
	return n
}

// made is a replica that follows.
func (s *sim) made(t *testing.T) {
	t.Helper()
	s.turn()
	s.obeys(true)
	s.turn()
	if s.w.Status.State != kurabe.StateAvailable || s.w.Status.Replication != kurabe.ReplicationRunning {
		t.Fatalf("%+v", s.w.Status)
	}
}

func TestReplicaWaitsForItsSource(t *testing.T) {
	s := newFollower(t, kurabe.Postgres)
	let := s.w.Source
	for name, up := range map[string]*plan.Upstream{
		"nothing known": nil, "no server": {}, "not let in": {Assignment: &kurabe.Assignment{Role: &kurabe.Role{}}, Report: let.Report},
		"not obeyed": {Assignment: let.Assignment, Report: &kurabe.InstanceReport{Generation: 2, Done: true, Running: true}},
		"not done":   {Assignment: let.Assignment, Report: &kurabe.InstanceReport{Generation: 3, Running: true}},
	} {
		s.w.Source = up
		if s.turn(); s.w.Assignment != nil {
			t.Errorf("%s: it was placed", name)
		}
	}
	s.w.Source = let
	s.turn()
	a := s.w.Assignment
	if a == nil || a.Role == nil || a.Role.Duty != kurabe.DutyFollow || !a.Role.ServesReads || *a.Role.Source != (kurabe.Source{ID: let.Assignment.Instance, Address: "127.66.7.1", Port: 5432, Epoch: 1}) {
		t.Fatalf("%+v", a)
	}
	if a.Password.Verifier != "source's" {
		t.Errorf("its password is %+v", a.Password)
	}
	s.obeys(false)
	if s.turn(); s.w.Status.State != kurabe.StateCreating {
		t.Errorf("it is %s before it follows", s.w.Status.State)
	}
}

func TestReplicaFollowsTheNewWriter(t *testing.T) {
	s := newFollower(t, kurabe.Postgres)
	s.made(t)
	before := *s.w.Assignment
	if s.turn(); s.w.Assignment.Generation != before.Generation {
		t.Fatalf("it is told again, with nothing new")
	}
	s.w.Source = upstream("127.66.7.9", 2)
	s.turn()
	if a := s.w.Assignment; a.Role.Epoch != before.Role.Epoch+1 || a.Role.Source.Address != "127.66.7.9" || a.Boot != before.Boot {
		t.Errorf("%+v", a.Role)
	}
	// The same server with another epoch may have lost what the replica has.
	s.w.Source = upstream("127.66.7.9", 3)
	if s.turn(); s.w.Assignment.Role.Epoch != before.Role.Epoch+2 {
		t.Errorf("%+v", s.w.Assignment.Role)
	}
	s.w.Source = nil // its records cannot be read
	if s.turn(); s.w.Assignment.Role.Source.Address != "127.66.7.9" {
		t.Errorf("%+v", s.w.Assignment.Role)
	}
}

func TestReplicationIsTold(t *testing.T) {
	s := newFollower(t, kurabe.Postgres)
	s.made(t)
	s.obeys(false)
	s.turn()
	if s.w.Status.Replication != kurabe.ReplicationRunning {
		t.Errorf("at once: %s", s.w.Status.Replication)
	}
	s.w.Now = s.w.Now.Add(31 * time.Second)
	s.turn()
	s.turn()
	if s.w.Status.Replication != kurabe.ReplicationBroken || s.w.Status.ReplicationReason == "" || s.told("RDS-EVENT-0045") != 1 || s.w.Status.State != kurabe.StateAvailable {
		t.Errorf("%+v, told %d times", s.w.Status, s.told("RDS-EVENT-0045"))
	}
	// It looks whether it can go on at all, now and every five minutes.
	epoch := s.w.Assignment.Role.Epoch
	s.w.Now = s.w.Now.Add(4 * time.Minute)
	if s.turn(); epoch != 2 || s.w.Assignment.Role.Epoch != epoch {
		t.Errorf("epoch %d, then %d", epoch, s.w.Assignment.Role.Epoch)
	}
	s.w.Now = s.w.Now.Add(time.Minute)
	if s.turn(); s.w.Assignment.Role.Epoch != epoch+1 {
		t.Errorf("epoch %d after another minute", s.w.Assignment.Role.Epoch)
	}
	s.obeys(true)
	s.turn()
	s.turn()
	if s.w.Status.Replication != kurabe.ReplicationRunning || s.told("RDS-EVENT-0046") != 1 {
		t.Errorf("%+v, told %d times", s.w.Status, s.told("RDS-EVENT-0046"))
	}
}

func TestLostReplicaIsMadeAnew(t *testing.T) {
	s := newFollower(t, kurabe.Postgres)
	s.made(t)
	s.w.Source.Report.Role.NeedRebuild = []kurabe.InstanceID{replicaID}
	s.turn()
	s.w.Report.Generation = s.w.Assignment.Generation // it has heard of the order, and not obeyed
	s.turn()
	if s.w.Assignment.Role.RebuildSeq != 1 || s.told("KURABE-EVENT-0012") != 1 {
		t.Errorf("%+v, told %d times", s.w.Assignment.Role, s.told("KURABE-EVENT-0012"))
	}
}

// One whose server cannot start is made anew, once an hour at most.
func TestDamagedReplicaIsMadeAnew(t *testing.T) {
	s := newFollower(t, kurabe.Postgres)
	s.made(t)
	refuse := func() {
		s.obeys(false)
		s.w.Report.Running, s.w.Report.Serving, s.w.Report.Done = false, false, false
		s.w.Report.Failure = &kurabe.Failure{Kind: kurabe.FailureOther, Step: kurabe.StepWaitReady, Message: "PANIC", Attempts: 5}
		s.turn()
	}
	for n, c := range []struct {
		after time.Duration
		want  int64
	}{{0, 1}, {time.Minute, 1}, {time.Hour, 2}} {
		s.w.Now = s.w.Now.Add(c.after)
		if refuse(); s.w.Assignment.Role.RebuildSeq != c.want || s.told("KURABE-EVENT-0017") != int(c.want) {
			t.Errorf("%d: order %d, told %d times; want %d", n, s.w.Assignment.Role.RebuildSeq, s.told("KURABE-EVENT-0017"), c.want)
		}
	}
}

// A replica of a replica: the one between lets it in, and lets it in no more.
func TestReplicaIsFollowed(t *testing.T) {
	s := newFollower(t, kurabe.Postgres)
	s.made(t)
	s.w.Replicas = []kurabe.InstanceID{"db-LOWER"}
	before := s.w.Assignment.Role.Epoch
	s.turn()
	if role := s.w.Assignment.Role; !slices.Equal(role.Followers, s.w.Replicas) || role.Duty != kurabe.DutyFollow || role.Epoch != before {
		t.Errorf("%+v", role)
	}
	s.w.Replicas = nil
	if s.turn(); len(s.w.Assignment.Role.Followers) > 0 {
		t.Errorf("%+v", s.w.Assignment.Role)
	}
}

// Passwords come from the source while it is followed, and are its own afterwards.
func TestPasswordOfAReplica(t *testing.T) {
	s := newFollower(t, kurabe.Postgres)
	s.made(t)
	s.w.Source.Assignment.Password = kurabe.Password{Seq: 5, Verifier: "changed"}
	s.turn()
	s.obeys(true)
	s.turn()
	if a := s.w.Assignment; a.Password.Verifier != "changed" || s.told("RDS-EVENT-0016") != 0 || s.w.Status.PasswordSeq != 5 {
		t.Errorf("%+v, told %d times, seq %d", a.Password, s.told("RDS-EVENT-0016"), s.w.Status.PasswordSeq)
	}
	s.w.Spec.PromoteSeq, s.w.Spec.Password = 1, s.w.Assignment.Password
	s.turn()
	s.w.Spec.Password = kurabe.Password{Seq: 6, Verifier: "its own"}
	for range 4 {
		s.obeys(false)
		s.turn()
	}
	if a := s.w.Assignment; a.Password.Verifier != "its own" || s.told("RDS-EVENT-0016") != 1 {
		t.Errorf("%+v, told %d times", a.Password, s.told("RDS-EVENT-0016"))
	}
}

// Nobody promotes what is being made.
func TestPromotionWaitsForTheCopy(t *testing.T) {
	s := newFollower(t, kurabe.Postgres)
	s.turn()
	s.w.Spec.PromoteSeq = 1
	if s.turn(); s.w.Status.Source == "" || s.w.Assignment.Role.Duty != kurabe.DutyFollow {
		t.Errorf("%+v", s.w.Assignment.Role)
	}
}

// A replica that is deleted goes like any instance.
func TestDeletedReplica(t *testing.T) {
	s := newFollower(t, kurabe.Postgres)
	s.made(t)
	s.w.Spec.Deleting = &kurabe.Deletion{}
	s.turn()
	if s.w.Assignment.Goal != kurabe.GoalAbsent {
		t.Fatalf("%+v", s.w.Assignment)
	}
	s.w.Report.Generation, s.w.Report.Absent, s.w.Report.Running = s.w.Assignment.Generation, true, false
	if !s.step().Gone {
		t.Error("it stays")
	}
}

func TestPromotion(t *testing.T) {
	for _, engine := range []kurabe.EngineName{kurabe.Postgres, kurabe.MariaDB} {
		s := newFollower(t, engine)
		s.made(t)
		follower := *s.w.Assignment
		if engine == kurabe.MariaDB && !follower.Binlog {
			t.Error("a follower of MariaDB writes no binary log")
		}
		s.w.Spec.PromoteSeq, s.w.Spec.Now.RetentionDays, s.w.Spec.Password = 1, 7, follower.Password
		s.w.Spec.Revision++
		s.turn()
		a, g := s.w.Assignment, s.w.Group
		if a.Role == nil || a.Role.Duty != kurabe.DutyWrite || a.Role.Epoch <= follower.Role.Epoch || g == nil || g.Epoch != a.Role.Epoch || a.Boot != follower.Boot {
			t.Fatalf("%s: %+v, %+v", engine, a, g)
		}
		if s.w.Status.Source != "" || s.w.Status.State != kurabe.StateModifying || s.told("KURABE-EVENT-0018") != 1 {
			t.Errorf("%s: %+v", engine, s.w.Status)
		}
		s.w.Source = nil
		for range 4 {
			s.obeys(false)
			s.turn()
		}
		if a = s.w.Assignment; a.Role != nil || s.w.Group != nil || !a.Log || a.Boot != follower.Boot || s.w.Status.Promoting || a.Password != follower.Password {
			t.Errorf("%s: %+v, group %+v", engine, a, s.w.Group)
		}
		if state := s.w.Status.State; state != kurabe.StateAvailable && state != kurabe.StateBackingUp || s.told("RDS-EVENT-0016") != 0 {
			t.Errorf("%s: %s", engine, state)
		}
	}
}

func TestSourceIsDeleted(t *testing.T) {
	s := newFollower(t, kurabe.Postgres)
	s.made(t)
	s.w.Source = &plan.Upstream{Gone: true}
	if s.turn(); s.w.Status.Source != "" || s.w.Assignment.Role.Duty != kurabe.DutyWrite {
		t.Errorf("%+v", s.w.Assignment.Role)
	}
	young := newFollower(t, kurabe.Postgres)
	young.turn() // it is being made
	young.w.Source = &plan.Upstream{Gone: true}
	young.turn()
	if young.turn(); young.w.Status.State != kurabe.StateFailed || young.told("RDS-EVENT-0202") != 1 || young.w.Assignment.Role.Duty != kurabe.DutyFollow {
		t.Errorf("%+v, told %d times", young.w.Status, young.told("RDS-EVENT-0202"))
	}
}

// A source of one zone has a record of who writes for as long as it has a replica, which
// never counts when a commit waits, and its death is told as ever.
func TestSourceWithReplicas(t *testing.T) {
	s := newSim(t)
	s.w.Spec.Now.RetentionDays = 1
	s.turn()
	s.obeys(false)
	s.turn()
	s.w.Replicas = []kurabe.InstanceID{replicaID}
	s.turn()
	a := s.w.Assignment
	if s.w.Group == nil || a.Role == nil || !slices.Equal(a.Role.Followers, s.w.Replicas) || len(a.Role.WaitFor) > 0 || a.ListensAt != "" || a.Boot != 1 {
		t.Fatalf("%+v, %+v", a, s.w.Group)
	}
	s.obeys(false)
	s.w.Report.Running, s.w.Report.Serving, s.w.Report.Crashes = false, false, 1
	s.turn()
	if s.told("RDS-EVENT-0050") != 0 || s.told("RDS-EVENT-0013") != 0 || s.told("RDS-EVENT-0004") != 1 {
		t.Errorf("%v", s.events)
	}
	s.w.Replicas = nil
	s.turn()
	if s.w.Assignment.Role == nil || len(s.w.Assignment.Role.Followers) > 0 {
		t.Errorf("it is to do away with what it had for the replica first: %+v", s.w.Assignment.Role)
	}
	s.obeys(false)
	s.turn()
	if s.w.Assignment.Role != nil || s.w.Group != nil {
		t.Errorf("%+v, %+v", s.w.Assignment.Role, s.w.Group)
	}
}
