package backup_test

import (
	"slices"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/plan/backup"
)

// farSim is a snapshot of a pair whose standby is on another host.
func farSim(t tester) *snapSim {
	s := newSnapSim(t)
	s.w.Group = &kurabe.Group{Instance: "db-A", Epoch: 3, Primary: "db-A", SyncSet: []kurabe.InstanceID{"db-A~2"},
		Members: []kurabe.Member{{ID: "db-A", Host: "h1"}, {ID: "db-A~2", Host: "h2"}}}
	s.w.Reports = map[kurabe.InstanceID]*kurabe.InstanceReport{
		"db-A~2": {Host: "h2", Instance: "db-A~2", Running: true, Role: &kurabe.RoleReport{Epoch: 3, Following: true}},
	}
	s.w.ClosedHosts = map[kurabe.HostID]string{}
	return s
}

func TestSnapshotOfAFarStandby(t *testing.T) {
	s := farSim(t)
	s.step()
	if a := s.w.Assignment; a == nil || a.Host != "h2" || a.Standby != "db-A~2" || a.Epoch != 3 || a.Of != "db-A" || s.w.Status.Host != "h2" {
		t.Fatalf("%+v", s.w.Assignment)
	}
	if r := backup.Next(s.w); r.LookAgain.IsZero() {
		t.Error("nobody looks whether its host is heard")
	}
	s.obey()
	s.step()
	if s.w.Status.State != kurabe.SnapshotAvailable || s.w.Status.StandbySkipped != "" {
		t.Errorf("%+v", s.w.Status)
	}
	// Whatever becomes of that host later, the snapshot is there.
	s.w.ClosedHosts["h2"] = "it has not been heard"
	if r := backup.Next(s.w); r.Assignment != nil || r.Former != nil {
		t.Errorf("%+v", r)
	}
}

// Of MariaDB files are cloned where they can be.
func TestFarStandbyOfMariaDB(t *testing.T) {
	s := farSim(t)
	s.w.Instance.Engine, s.w.Clones = kurabe.MariaDB, map[kurabe.HostID]bool{"h2": true}
	s.step()
	if a := s.w.Assignment; a == nil || a.Host != "h2" || a.Standby != "db-A~2" {
		t.Errorf("%+v", a)
	}
}

// In each of these nobody but the writer can be copied.
func TestNoFarStandby(t *testing.T) {
	for name, change := range map[string]func(s *snapSim){
		"automated":          func(s *snapSim) { s.w.Spec.Kind = kurabe.SnapshotAutomated },
		"nobody has it all":  func(s *snapSim) { s.w.Group.SyncSet = nil },
		"its host is lost":   func(s *snapSim) { s.w.ClosedHosts["h2"] = "it has not been heard" },
		"it is to go":        func(s *snapSim) { s.w.Group.Members[1].Leaving = true },
		"it does not follow": func(s *snapSim) { s.w.Reports["db-A~2"].Role.Following = false },
		"it is of before":    func(s *snapSim) { s.w.Reports["db-A~2"].Role.Epoch = 2 },
		"it has not spoken":  func(s *snapSim) { delete(s.w.Reports, "db-A~2") },
		"a handover":         func(s *snapSim) { s.w.Group.HandoverTo = "db-A~2" },
		"it is being chosen": func(s *snapSim) { s.w.Group.Electing = true },
		"it is stopped":      func(s *snapSim) { s.w.Instance.Goal = kurabe.GoalStopped },
		"no group":           func(s *snapSim) { s.w.Group = nil },
		"MariaDB's cannot be cloned": func(s *snapSim) {
			s.w.Instance.Engine, s.w.Clones = kurabe.MariaDB, map[kurabe.HostID]bool{"h1": true}
		},
		"it is on one host": func(s *snapSim) { s.w.Group.Members[1].Host = "h1" },
		"another one is there": func(s *snapSim) {
			s.w.Group.SyncSet, s.w.Group.Members = append(s.w.Group.SyncSet, "db-A~3"), append(s.w.Group.Members, kurabe.Member{ID: "db-A~3", Host: "h1"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := farSim(t)
			change(s)
			s.step()
			if a := s.w.Assignment; a == nil || a.Host != "h1" || a.Standby != "" || a.Epoch != 0 {
				t.Errorf("%+v", a)
			}
		})
	}
}

// Each of these has the writer's host take it, and the order to the standby's host ends.
func TestFarStandbyCalledOff(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *snapSim)
		why    string
	}{
		"it fails": {func(s *snapSim) {
			s.report(func(r *kurabe.SnapshotReport) {
				r.Failure = &kurabe.Failure{Step: "take-snapshot", Message: "no room", Attempts: 1}
			})
		}, "no room"},
		"its host is lost":  {func(s *snapSim) { s.w.ClosedHosts["h2"] = "it has not been heard since noon" }, "not been heard"},
		"it is to go":       {func(s *snapSim) { s.w.Group.Members[1].Leaving = true }, "none any more"},
		"it is gone":        {func(s *snapSim) { s.w.Group.Members = s.w.Group.Members[:1] }, "none any more"},
		"another one wrote": {func(s *snapSim) { s.w.Group.Epoch = 5 }, "another server serves"},
		"no group":          {func(s *snapSim) { s.w.Group = nil }, "no standby"},
	} {
		t.Run(name, func(t *testing.T) {
			s := farSim(t)
			s.step()
			c.change(s)
			r := backup.Next(s.w)
			f, a := r.Former, r.Assignment
			if f == nil || f.Host != "h2" || f.Goal != kurabe.SnapshotAbsent || f.Generation != s.w.Assignment.Generation+1 {
				t.Fatalf("called off: %+v", f)
			}
			if a == nil || a.Host != "h1" || a.Goal != kurabe.SnapshotPresent || a.Standby != "" || a.Generation != 1 || r.Status.Host != "h1" || !strings.Contains(r.Status.StandbySkipped, c.why) {
				t.Fatalf("%+v, %+v", a, r.Status)
			}
			s.w.Assignment, s.w.Status, s.w.Report = a, r.Status, nil
			s.w.Former = []backup.FormerOrder{{Order: *f}}
			s.obey()
			s.step()
			if s.w.Status.State != kurabe.SnapshotAvailable || s.w.Status.Facts.StandbySkipped == "" || !slices.Contains(s.events, "KURABE-EVENT-0024") {
				t.Errorf("%+v, %v", s.w.Status, s.events)
			}
			s.endsWithFormer(*f)
		})
	}
}

// endsWithFormer deletes the snapshot, which waits for the host that was called off.
func (s *snapSim) endsWithFormer(f kurabe.SnapshotAssignment) {
	s.w.Spec.Deleting = &kurabe.Deletion{At: monday}
	s.step()
	s.obey()
	if s.step(); s.gone {
		s.t.Fatal("a host that has a part of it is forgotten")
	}
	s.w.Former[0].Report = &kurabe.SnapshotReport{Host: f.Host, Snapshot: f.Snapshot, Generation: f.Generation, Done: true, Absent: true}
	if r := backup.Next(s.w); !slices.Equal(r.FormerGone, []kurabe.HostID{"h2"}) {
		s.t.Fatalf("forgotten are %v", r.FormerGone)
	}
	if s.step(); !s.gone {
		s.t.Fatal("it is not gone")
	}
}

// A standby that has taken over is copied as what it is now, where it is.
func TestFarStandbyTakesOver(t *testing.T) {
	s := farSim(t)
	s.step()
	s.w.Group.Primary, s.w.Group.Epoch = "db-A~2", 4
	s.w.Instance = &kurabe.Assignment{Host: "h2", Instance: "db-A~2", Goal: kurabe.GoalRunning, Generation: 9}
	s.step()
	if a := s.w.Assignment; a.Host != "h2" || a.Standby != "" || a.Generation != 2 || a.Goal != kurabe.SnapshotPresent || len(s.w.Former) > 0 {
		t.Fatalf("%+v", a)
	}
	s.obey()
	s.step()
	if s.w.Status.State != kurabe.SnapshotAvailable || !strings.Contains(s.w.Status.Facts.StandbySkipped, "has become the server that serves") {
		t.Errorf("%+v", s.w.Status)
	}
}
