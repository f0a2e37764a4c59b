package plan_test

import (
	"slices"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/plan"
)

const sourceID = kurabe.InstanceID("db-AAAAAAAAAAAAAAAAAAAAAAAAAA")

// newYielder is a source with one replica that follows closely, and a wish for it.
func newYielder(t *testing.T) *sim {
	s := newSim(t)
	s.w.Spec.Now.RetentionDays = 1
	s.turn()
	s.obeys(false)
	s.turn()
	s.w.Replicas = []kurabe.InstanceID{replicaID}
	s.turn()
	s.obeys(false)
	s.w.Report.Role.NearlyCaughtUp = s.w.Replicas
	s.turn()
	spec := *s.w.Spec
	spec.Switchover, spec.Revision = &kurabe.Switchover{Seq: 1, To: replicaID}, spec.Revision+1
	s.w.Spec = &spec
	s.w.SwitchoverTarget = &plan.Upstream{
		Assignment: &kurabe.Assignment{Instance: replicaID, Host: "h1", Generation: 5, Role: &kurabe.Role{Duty: kurabe.DutyFollow}},
		Report:     &kurabe.InstanceReport{Generation: 5, Done: true, Running: true, Role: &kurabe.RoleReport{Following: true}},
	}
	return s
}

func TestSwitchoverBegins(t *testing.T) {
	s := newYielder(t)
	s.turn()
	a, g := s.w.Assignment, s.w.Group
	if g.SwitchoverTo != replicaID || a.Role.Duty != kurabe.DutyStepDown || !a.Role.HandsOverToReplica || s.w.Status.SwitchSeq != 1 || s.w.Status.State != kurabe.StateModifying || s.told("RDS-EVENT-0233") != 1 {
		t.Fatalf("%+v, %+v, %+v", a.Role, g, s.w.Status)
	}
	generation := a.Generation
	s.obeys(false)
	s.w.Report.Running, s.w.Report.Serving, s.w.Report.Role.SteppedDown, s.w.Report.Role.Position = false, false, true, 100
	s.turn()
	if s.w.Assignment.Generation != generation || s.w.Status.State != kurabe.StateModifying {
		t.Errorf("one that has yielded is told more: %+v, %s", s.w.Assignment, s.w.Status.State)
	}
	// Nobody takes over: it goes on as before, and the wish is used up.
	s.w.Now = s.w.Now.Add(61 * time.Second)
	s.turn()
	if s.w.Group.SwitchoverTo != "" || s.w.Assignment.Role.Duty != kurabe.DutyWrite || s.told("KURABE-EVENT-0038") != 1 || !s.w.Status.SwitchBy.IsZero() {
		t.Fatalf("%+v, %+v", s.w.Group, s.w.Assignment.Role)
	}
	s.obeys(false)
	s.w.Report.Role.NearlyCaughtUp = s.w.Replicas
	for range 3 {
		s.turn()
	}
	if state := s.w.Status.State; state != kurabe.StateAvailable && state != kurabe.StateBackingUp || s.told("RDS-EVENT-0233") != 1 {
		t.Errorf("%s, begun %d times", state, s.told("RDS-EVENT-0233"))
	}
}

// What is missing is waited for, while clients go on, and not for ever.
func TestSwitchoverWaits(t *testing.T) {
	for name, lacks := range map[string]func(s *sim){
		"far behind":           func(s *sim) { s.w.Report.Role.NearlyCaughtUp = nil },
		"silent":               func(s *sim) { s.w.Report.Role.SilentFollowers = s.w.Replicas },
		"lost":                 func(s *sim) { s.w.Report.Role.NeedRebuild = s.w.Replicas },
		"no such replica":      func(s *sim) { s.w.Replicas = []kurabe.InstanceID{"db-OTHER"} },
		"a snapshot":           func(s *sim) { s.w.BackingUp = true },
		"a server at work":     func(s *sim) { s.w.Report.Done = false },
		"nothing known of it":  func(s *sim) { s.w.SwitchoverTarget = nil },
		"it does not follow":   func(s *sim) { s.w.SwitchoverTarget.Report.Role.Following = false },
		"it is told something": func(s *sim) { s.w.SwitchoverTarget.Report.Generation-- },
		"its host is lost": func(s *sim) {
			s.w.SwitchoverTarget.Assignment.Host, s.w.Lost = "h2", map[kurabe.HostID]time.Time{"h2": monday}
		},
		"it was moved": func(s *sim) {
			g := s.w.Group.Clone()
			g.Members[0].ListensAt = "127.66.7.5"
			s.w.Group = g
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newYielder(t)
			lacks(s)
			s.turn()
			if s.w.Group.SwitchoverTo != "" || s.w.Assignment.Role.Duty != kurabe.DutyWrite || s.told("KURABE-EVENT-0038") != 0 || s.w.Status.State != kurabe.StateModifying {
				t.Fatalf("%+v, %+v", s.w.Group, s.w.Status)
			}
			s.w.Now = s.w.Now.Add(31 * time.Second)
			s.turn()
			if s.w.Group.SwitchoverTo != "" || s.w.Status.SwitchSeq != 1 || s.told("KURABE-EVENT-0038") != 1 || s.told("RDS-EVENT-0233") != 0 {
				t.Errorf("%+v, %+v", s.w.Group, s.w.Status)
			}
		})
	}
}

// What comes to nothing is called off at once.
func TestSwitchoverIsCalledOff(t *testing.T) {
	for name, fails := range map[string]func(s *sim){
		"its server died":       func(s *sim) { s.w.Report.Role.SteppedDown = false },
		"the replica is gone":   func(s *sim) { s.w.Replicas = []kurabe.InstanceID{"db-OTHER"} },
		"it is to have another": func(s *sim) { spec := *s.w.Spec; spec.Now.MultiAZ = true; s.w.Spec = &spec },
		"it is to stop": func(s *sim) {
			spec := *s.w.Spec
			spec.Power = kurabe.Power{Seq: 1, Stopped: true, At: monday}
			s.w.Spec = &spec
		},
		"the replica lacks it": func(s *sim) {
			s.w.SwitchoverTarget.Assignment.Role.SourceEnd = 100
			s.w.SwitchoverTarget.Report.Role = &kurabe.RoleReport{Position: 99}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newYielder(t)
			s.turn()
			s.obeys(false)
			s.w.Report.Running, s.w.Report.Serving, s.w.Report.Role.SteppedDown, s.w.Report.Role.Position = false, false, true, 100
			fails(s)
			s.turn()
			if s.w.Group.SwitchoverTo != "" || s.w.Assignment.Role.Duty != kurabe.DutyWrite || s.told("KURABE-EVENT-0038") != 1 {
				t.Errorf("%+v, %+v", s.w.Group, s.w.Assignment.Role)
			}
		})
	}
}

// yielding is a source that has stopped for the replica; its log ends at that place.
func yielding(end int64) *plan.Upstream {
	up := upstream("127.66.7.1", 1)
	up.Switch = replicaID
	up.Assignment.Role.Duty, up.Assignment.Role.HandsOverToReplica = kurabe.DutyStepDown, true
	up.Report.Running, up.Report.Role = false, &kurabe.RoleReport{Epoch: 1, SteppedDown: true, Position: end}
	up.Status = &kurabe.InstanceStatus{ID: sourceID, State: kurabe.StateModifying, SwitchSeq: 1, SwitchBy: monday, Epoch: 1}
	up.Siblings = map[kurabe.InstanceID]*kurabe.InstanceStatus{
		replicaID: {ID: replicaID}, "db-OTHER": {ID: "db-OTHER", Source: sourceID, Replication: kurabe.ReplicationRunning},
	}
	return up
}

func TestTakeOver(t *testing.T) {
	s := newFollower(t, kurabe.Postgres)
	s.w.Spec.Now.RetentionDays = 1
	s.made(t)
	if s.w.Assignment.Log || s.w.Status.State == kurabe.StateBackingUp {
		t.Errorf("a replica is backed up: %+v", s.w.Assignment)
	}
	s.w.Spec.Password, s.w.Replicas = s.w.Assignment.Password, []kurabe.InstanceID{"db-LOWER"}
	s.w.Source = yielding(100)
	s.turn()
	follower := *s.w.Assignment
	if follower.Role.SourceEnd != 100 || follower.Role.Duty != kurabe.DutyFollow || s.w.Status.State != kurabe.StateModifying {
		t.Fatalf("%+v, %s", follower.Role, s.w.Status.State)
	}
	s.obeys(false)
	if s.turn(); s.w.Group != nil {
		t.Fatalf("it takes over without all: %+v", s.w.Group)
	}
	s.w.Report.Role.HasSourceEnd = true
	r := s.step()
	a, g := s.w.Assignment, r.Group
	want := []kurabe.InstanceID{sourceID, "db-LOWER", "db-OTHER"}
	if g == nil || g.Epoch <= follower.Role.Epoch || a.Role.Duty != kurabe.DutyWrite || a.Role.Epoch != g.Epoch || a.Boot != follower.Boot || !a.Log || !slices.Equal(a.Role.Followers, want) {
		t.Fatalf("%+v, %+v", a.Role, g)
	}
	if len(r.Followers) != 2 || r.Followers[0].ID != sourceID || r.Followers[0].Source != replicaID || !r.Followers[0].SwitchBy.IsZero() || r.Followers[0].State != kurabe.StateModifying ||
		r.Followers[1].ID != "db-OTHER" || r.Followers[1].Source != replicaID || r.Followers[1].Replication != kurabe.ReplicationRunning {
		t.Errorf("%+v", r.Followers)
	}
	if s.w.Status.Source != "" || s.told("KURABE-EVENT-0030") != 1 || s.told("KURABE-EVENT-0018") != 0 {
		t.Errorf("%+v", s.w.Status)
	}
}

// A word of its source that is not the newest is none.
func TestTakeOverNeedsTheNewestWord(t *testing.T) {
	for name, old := range map[string]func(up *plan.Upstream){
		"it yields to another": func(up *plan.Upstream) { up.Switch = "db-OTHER" },
		"it was called off":    func(up *plan.Upstream) { up.Switch = "" },
		"of an older order":    func(up *plan.Upstream) { up.Assignment.Generation++ },
		"it writes":            func(up *plan.Upstream) { up.Assignment.Role.Duty = kurabe.DutyWrite },
		"it runs":              func(up *plan.Upstream) { up.Report.Running = true },
		"it died":              func(up *plan.Upstream) { up.Report.Role.SteppedDown = false },
		"it has more now":      func(up *plan.Upstream) { up.Report.Role.Position = 101 },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFollower(t, kurabe.Postgres)
			s.made(t)
			s.w.Source = yielding(100)
			s.turn()
			s.obeys(false)
			s.w.Report.Role.HasSourceEnd = true
			old(s.w.Source)
			if r := s.step(); r.Group != nil || len(r.Followers) > 0 {
				t.Errorf("it takes over: %+v", r.Group)
			}
		})
	}
}

// A former source stays down until its heir lets it in, and is a replica like any other then.
func TestFormerSourceFollows(t *testing.T) {
	s := newYielder(t)
	s.turn()
	s.obeys(false)
	s.w.Report.Running, s.w.Report.Serving, s.w.Report.Role.SteppedDown = false, false, true
	status := *s.w.Status
	status.Source, status.Epoch, status.SwitchBy, status.Action = replicaID, 0, time.Time{}, kurabe.StateModifying
	s.w.Status, s.w.Group, s.w.SwitchoverTarget = &status, nil, nil
	s.w.Source = upstream("127.66.7.2", 4)
	s.w.Source.Assignment.Instance, s.w.Source.Assignment.Role.Followers = replicaID, nil
	epoch := s.w.Assignment.Role.Epoch
	s.turn()
	if s.w.Assignment.Role.Duty != kurabe.DutyStepDown || s.w.Status.State != kurabe.StateModifying {
		t.Fatalf("%+v, %s", s.w.Assignment.Role, s.w.Status.State)
	}
	s.w.Source.Assignment.Role.Followers = []kurabe.InstanceID{sourceID}
	s.turn()
	if role := s.w.Assignment.Role; role.Duty != kurabe.DutyFollow || !role.ServesReads || role.HandsOverToReplica || role.Epoch <= epoch || role.Source.ID != replicaID || s.w.Assignment.Log {
		t.Fatalf("%+v", role)
	}
	s.obeys(false)
	if s.turn(); s.w.Status.State != kurabe.StateModifying {
		t.Errorf("it is %s before it follows", s.w.Status.State)
	}
	s.obeys(true)
	s.turn()
	if s.turn(); s.w.Status.State != kurabe.StateAvailable || s.w.Status.Replication != kurabe.ReplicationRunning || s.w.Status.Applied.RetentionDays != 1 {
		t.Errorf("%+v", s.w.Status)
	}
}

// A replica whose source was taken the place of goes on to the new one once that lets it in.
func TestBystanderFollowsTheNewSource(t *testing.T) {
	s := newFollower(t, kurabe.Postgres)
	s.made(t)
	status := *s.w.Status
	status.Source = "db-HEIR"
	s.w.Status = &status
	s.w.Source = upstream("127.66.7.8", 9)
	s.w.Source.Assignment.Instance, s.w.Source.Assignment.Role.Followers = "db-HEIR", nil
	before := *s.w.Assignment
	if s.turn(); s.w.Assignment.Generation != before.Generation {
		t.Errorf("it is led to who does not let it in: %+v", s.w.Assignment.Role.Source)
	}
	s.w.Source.Assignment.Role.Followers = []kurabe.InstanceID{replicaID}
	if s.turn(); s.w.Assignment.Role.Source.ID != "db-HEIR" || s.w.Assignment.Role.Epoch != before.Role.Epoch+1 {
		t.Errorf("%+v", s.w.Assignment.Role)
	}
}

// A wish that nothing can come of is used up.
func TestSwitchoverOfNobody(t *testing.T) {
	s := newSim(t)
	s.w.Spec.Switchover = &kurabe.Switchover{Seq: 3, To: replicaID}
	s.turn()
	s.obeys(false)
	s.turn()
	if s.turn(); s.w.Status.SwitchSeq != 3 || s.told("KURABE-EVENT-0038") != 1 || s.w.Status.State != kurabe.StateAvailable {
		t.Errorf("%+v", s.w.Status)
	}
}
