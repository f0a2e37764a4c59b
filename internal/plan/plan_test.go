package plan_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kurabe"
	"kurabe/internal/plan"
)

var monday = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// catalog has one parameter of each kind that matters to the planner.
func catalog() *kurabe.Catalog {
	return &kurabe.Catalog{Engine: kurabe.Postgres, Version: "15.18", Family: "postgres15", Parameters: append(kurabe.ServiceParameters(), []kurabe.Parameter{
		{Name: "log_min_duration_statement", Type: "integer", Apply: kurabe.ApplyDynamic, Modifiable: true, Default: "-1", HasDefault: true},
		{Name: "max_connections", Type: "integer", Apply: kurabe.ApplyStatic, Modifiable: true, System: true, HasDefault: true, Default: "LEAST({DBInstanceClassMemory/9531392},5000)"},
		{Name: "shared_buffers", Type: "integer", Apply: kurabe.ApplyStatic, Modifiable: true, System: true, HasDefault: true, Default: "{DBInstanceClassMemory/32768}"},
		{Name: "work_mem", Type: "integer", Apply: kurabe.ApplyDynamic, Modifiable: true, Default: "4096", HasDefault: true},
	}...)}
}

func host() kurabe.HostReport {
	return kurabe.HostReport{Host: "h1", Zones: []string{"us-east-1a", "us-east-1b"}, CPUs: 2, MemoryBytes: 20 * kurabe.GiB, AddressPool: "127.66.7.0/24",
		Levers: []kurabe.Lever{{Name: "cpu", Available: true}, {Name: "memory", Available: true}, {Name: "io", Available: true}},
		// Tests of MariaDB change the engine of their spec, and leave the version.
		Engines: []kurabe.EngineVersion{{Engine: kurabe.Postgres, Version: "15.18", Ready: true}, {Engine: kurabe.MariaDB, Version: "15.18", Ready: true}}}
}

func spec() *kurabe.InstanceSpec {
	return &kurabe.InstanceSpec{
		ID: "db-AAAAAAAAAAAAAAAAAAAAAAAAAA", Name: "shop", Revision: 1, CreatedAt: monday, Engine: kurabe.Postgres, Action: kurabe.StateCreating,
		MasterUsername: "boss", Password: kurabe.Password{Seq: 1, Verifier: "v1"}, Locale: "C", ParameterGroup: "default.postgres15", ParameterGroupSeq: 1,
		Now:          kurabe.InstanceSettings{EngineVersion: "15.18", Class: "db.t3.micro", StorageGiB: 20, StorageType: "local", Port: 5432},
		BackupWindow: "03:00-03:30", MaintenanceWindow: "sun:05:00-sun:05:30",
	}
}

// tester is what testing.T and rapid.T share, so that rapid can shrink failures.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// sim is one instance with an obedient host.
type sim struct {
	t      tester
	w      plan.World
	events []kurabe.Event
}

func newSim(t tester) *sim {
	return &sim{t: t, w: plan.World{Now: monday, Spec: spec(), Catalog: catalog(), Hosts: []kurabe.HostReport{host()},
		Addresses: map[string]bool{}, Reserved: map[kurabe.HostID]int64{}}}
}

// step plans once and writes the result; it says whether anything changed.
func (s *sim) step() plan.Result {
	s.t.Helper()
	before, _ := json.Marshal(s.w)
	r := plan.Next(s.w)
	if after, _ := json.Marshal(s.w); string(before) != string(after) {
		s.t.Fatalf("Next changed its input:\n%s\n%s", before, after)
	}
	if a := r.Assignment; a != nil {
		if have := s.w.Assignment; have != nil {
			if a.Generation != have.Generation+1 {
				s.t.Fatalf("generation %d after %d", a.Generation, have.Generation)
			}
			if a.Boot > have.Boot && len(r.Reasons) == 0 {
				s.t.Fatal("a restart without a reason")
			}
			if a.Boot < have.Boot || a.Host != have.Host {
				s.t.Fatalf("boot %d after %d, host %s after %s", a.Boot, have.Boot, a.Host, have.Host)
			}
		}
		if a.Goal == kurabe.GoalAbsent && s.w.Spec.Deleting == nil {
			s.t.Fatal("removal that nobody asked for")
		}
		s.w.Assignment = a
	}
	if r.Status != nil {
		s.w.Status = r.Status
	}
	s.events = append(s.events, r.Events...)
	return r
}

// obey makes the host do what it was told.
func (s *sim) obey() {
	a := s.w.Assignment
	if a == nil {
		return
	}
	r := kurabe.InstanceReport{Host: a.Host, Instance: a.Instance, Generation: a.Generation, Done: true, Boot: a.Boot,
		Running: a.Goal == kurabe.GoalRunning, Serving: a.Goal == kurabe.GoalRunning, Absent: a.Goal == kurabe.GoalAbsent}
	if s.w.Report != nil {
		r.Crashes, r.OOMKills, r.UsedBytes = s.w.Report.Crashes, s.w.Report.OOMKills, s.w.Report.UsedBytes
	}
	s.w.Report = &r
}

// settle plans and obeys until nothing changes.
func (s *sim) settle() {
	s.t.Helper()
	for range 10 {
		s.obey()
		r := s.step()
		if r.Gone {
			return
		}
		if s.w.Assignment != nil && r.Assignment == nil && r.Status == nil {
			if again := s.step(); again.Assignment != nil || again.Status != nil || len(again.Events) > 0 {
				s.t.Fatalf("a satisfied world plans %+v", again)
			}
			return
		}
	}
	s.t.Fatalf("no fixed point: %+v", s.w.Status)
}

func (s *sim) want(state kurabe.State) {
	s.t.Helper()
	if s.w.Status.State != state {
		s.t.Fatalf("state %s, want %s", s.w.Status.State, state)
	}
}

func (s *sim) wantEvent(id string) {
	s.t.Helper()
	if !slices.ContainsFunc(s.events, func(e kurabe.Event) bool { return e.ID == id }) {
		s.t.Fatalf("no event %s in %+v", id, s.events)
	}
}

func TestCreate(t *testing.T) {
	s := newSim(t)
	s.step()
	s.want(kurabe.StateCreating)
	if s.w.Status.AvailableAt != (time.Time{}) {
		t.Fatal("available before the host is done")
	}
	s.settle()
	s.want(kurabe.StateAvailable)
	s.wantEvent("RDS-EVENT-0005")
	if s.w.Assignment.Settings["shared_buffers"] != "32768" || s.w.Assignment.Limits.MemoryBytes != kurabe.GiB {
		t.Fatalf("assignment %+v", s.w.Assignment)
	}
}

func parameterGroup(values map[string]kurabe.ParameterValue) *kurabe.ParameterGroup {
	return &kurabe.ParameterGroup{Name: "g", Family: "postgres15", Values: values}
}

// attachedSim is an available instance with a group of its own.
func attachedSim(t *testing.T) *sim {
	s := newSim(t)
	s.w.Spec.ParameterGroup = "g"
	s.w.Parameters = parameterGroup(nil)
	s.settle()
	return s
}

func TestParameters(t *testing.T) {
	t.Run("dynamic applies at once without a restart", func(t *testing.T) {
		s := attachedSim(t)
		boot := s.w.Assignment.Boot
		s.w.Parameters = parameterGroup(map[string]kurabe.ParameterValue{"work_mem": {Value: "8192", Method: kurabe.ApplyImmediate}})
		s.settle()
		s.want(kurabe.StateAvailable)
		if s.w.Assignment.Settings["work_mem"] != "8192" || s.w.Assignment.Boot != boot || s.w.Status.ParameterApply != "in-sync" {
			t.Fatalf("%+v %+v", s.w.Assignment, s.w.Status)
		}
	})
	t.Run("static waits for a reboot", func(t *testing.T) {
		s := attachedSim(t)
		s.w.Parameters = parameterGroup(map[string]kurabe.ParameterValue{"max_connections": {Value: "50", Method: kurabe.ApplyPendingReboot}})
		s.settle()
		if s.w.Assignment.Settings["max_connections"] == "50" || s.w.Status.ParameterApply != "pending-reboot" {
			t.Fatalf("%+v", s.w.Status)
		}
		s.w.Spec.RebootSeq++
		s.w.Spec.Revision++
		s.step()
		s.want(kurabe.StateRebooting)
		s.settle()
		if s.w.Assignment.Settings["max_connections"] != "50" || s.w.Status.ParameterApply != "in-sync" {
			t.Fatalf("%+v", s.w.Status)
		}
		s.wantEvent("RDS-EVENT-0006")
	})
	t.Run("a reset that waits for a reboot keeps the value until then", func(t *testing.T) {
		s := attachedSim(t)
		s.w.Parameters = parameterGroup(map[string]kurabe.ParameterValue{"work_mem": {Value: "8192", Method: kurabe.ApplyImmediate}})
		s.settle()
		s.w.Parameters = parameterGroup(nil)
		s.w.Parameters.Later = map[string]bool{"work_mem": true}
		s.settle()
		if s.w.Assignment.Settings["work_mem"] != "8192" || s.w.Status.ParameterApply != "pending-reboot" {
			t.Fatalf("%+v", s.w.Status)
		}
		s.w.Spec.RebootSeq++
		s.settle()
		if _, set := s.w.Assignment.Settings["work_mem"]; set {
			t.Fatal("not reset by the reboot")
		}
	})
	t.Run("another group waits for a reboot as a whole", func(t *testing.T) {
		s := newSim(t)
		s.settle()
		s.w.Spec.ParameterGroup, s.w.Spec.ParameterGroupSeq = "g", 2
		s.w.Parameters = parameterGroup(map[string]kurabe.ParameterValue{"work_mem": {Value: "8192", Method: kurabe.ApplyImmediate}})
		s.settle()
		if s.w.Status.ParameterApply != "pending-reboot" || s.w.Assignment.Settings["work_mem"] == "8192" {
			t.Fatalf("%+v", s.w.Status)
		}
	})
}

func TestRefusedParameter(t *testing.T) {
	s := attachedSim(t)
	s.w.Parameters = parameterGroup(map[string]kurabe.ParameterValue{"shared_buffers": {Value: "999999999", Method: kurabe.ApplyPendingReboot}})
	s.settle()
	s.w.Spec.RebootSeq++
	s.step()
	s.w.Report = &kurabe.InstanceReport{Host: "h1", Instance: s.w.Spec.ID, Generation: s.w.Assignment.Generation,
		Failure: &kurabe.Failure{Kind: kurabe.FailureParameters, Step: "wait-ready", Message: "could not map memory", Attempts: 3}}
	s.step()
	s.want(kurabe.StateIncompatibleParameters)
	s.wantEvent("RDS-EVENT-0035")
	s.w.Parameters = parameterGroup(nil)
	s.settle()
	s.want(kurabe.StateAvailable)
}

// Whatever a server that does not come up says of why, another value of its parameters alone has
// it started again.
func TestOtherParametersAreTriedAtOnce(t *testing.T) {
	s := attachedSim(t)
	s.w.Parameters = parameterGroup(map[string]kurabe.ParameterValue{"shared_buffers": {Value: "999999999", Method: kurabe.ApplyPendingReboot}})
	s.settle()
	s.w.Spec.RebootSeq++
	s.step()
	for _, kind := range []kurabe.FailureKind{kurabe.FailureOther, kurabe.FailureStorage} {
		s.w.Report = &kurabe.InstanceReport{Host: "h1", Instance: s.w.Spec.ID, Generation: s.w.Assignment.Generation,
			Failure: &kurabe.Failure{Kind: kind, Step: kurabe.StepWaitReady, Message: "never heard of", Attempts: 7}}
		s.step()
		s.want(kurabe.StateRebooting)
		boot := s.w.Assignment.Boot
		s.w.Parameters = parameterGroup(map[string]kurabe.ParameterValue{"shared_buffers": {Value: strconv.Itoa(int(1000 + boot)), Method: kurabe.ApplyPendingReboot}})
		s.step()
		if s.w.Assignment.Boot != boot+1 || s.w.Assignment.Settings["shared_buffers"] != strconv.Itoa(int(1000+boot)) {
			t.Fatalf("%s: boot %d, %v", kind, s.w.Assignment.Boot, s.w.Assignment.Settings)
		}
	}
	s.settle()
	s.want(kurabe.StateAvailable)
}

func TestMaintenanceWindow(t *testing.T) {
	s := newSim(t)
	s.settle()
	next := s.w.Spec.Now
	next.Class = "db.t3.small"
	s.w.Spec.Next, s.w.Spec.NextSeq, s.w.Spec.Revision = &next, 1, 2
	s.settle()
	if s.w.Status.Applied.Class != "db.t3.micro" {
		t.Fatal("applied before the window")
	}
	r := plan.Next(s.w)
	if want := time.Date(2026, 3, 8, 5, 0, 0, 0, time.UTC); !r.LookAgain.Equal(want) {
		t.Fatalf("look again %v, want %v", r.LookAgain, want)
	}
	s.w.Now = r.LookAgain
	s.step()
	s.want(kurabe.StateModifying)
	if s.count("RDS-EVENT-0026") != 1 || s.count("RDS-EVENT-0027") != 0 {
		t.Errorf("the window is open: %+v", s.events)
	}
	s.w.Now = s.w.Now.Add(time.Hour) // the window is over: what was begun stays in force
	s.settle()
	s.want(kurabe.StateAvailable)
	if s.w.Status.Applied.Class != "db.t3.small" || s.w.Assignment.Limits.MemoryBytes != 2*kurabe.GiB {
		t.Fatalf("%+v", s.w.Assignment)
	}
	if s.count("RDS-EVENT-0026") != 1 || s.count("RDS-EVENT-0027") != 1 {
		t.Errorf("it is done: %+v", s.events)
	}
}

func TestStoppedForSevenDays(t *testing.T) {
	s := newSim(t)
	s.settle()
	s.w.Spec.Power = kurabe.Power{Seq: 1, Stopped: true, At: monday}
	s.w.Spec.Revision++
	s.step()
	s.want(kurabe.StateStopping)
	s.settle()
	s.want(kurabe.StateStopped)
	s.wantEvent("RDS-EVENT-0087")
	s.w.Now = monday.Add(7 * 24 * time.Hour)
	s.settle()
	s.want(kurabe.StateAvailable)
	s.wantEvent("RDS-EVENT-0154")
}

func TestCrash(t *testing.T) {
	s := newSim(t)
	s.settle()
	r := *s.w.Report
	r.Crashes, r.Done, r.Running = 1, false, false
	s.w.Report = &r
	s.step()
	s.want(kurabe.StateRebooting)
	s.wantEvent("RDS-EVENT-0004")
	boot := s.w.Assignment.Boot
	s.settle()
	s.want(kurabe.StateAvailable)
	if s.w.Assignment.Boot != boot {
		t.Fatal("a crash is no new boot")
	}
}

// The planner may hear of a server only when it runs again: while the service was
// down it was stopped, or crashed with nobody to count it.
func TestStartedAgainUnseen(t *testing.T) {
	s := newSim(t)
	s.settle()
	r := *s.w.Report
	r.Done, r.Serving = false, false
	s.w.Report = &r
	s.step()
	s.want(kurabe.StateRebooting)
	s.settle()
	s.want(kurabe.StateAvailable)
	r = *s.w.Report
	r.Done = false // something to reload, and it serves meanwhile
	s.w.Report = &r
	s.step()
	s.want(kurabe.StateAvailable)
}

func TestStorageFull(t *testing.T) {
	s := newSim(t)
	s.settle()
	used := func(gib int64) {
		r := *s.w.Report
		r.UsedBytes = gib * kurabe.GiB
		s.w.Report = &r
	}
	used(19)
	s.settle()
	s.settle() // 95 %: near the end, too
	s.wantEvent("RDS-EVENT-0089")
	s.wantEvent("RDS-EVENT-0222")
	if n := s.count("RDS-EVENT-0222"); n != 1 {
		t.Errorf("told %d times that the end is near", n)
	}
	used(20)
	s.settle()
	s.want(kurabe.StateStorageFull)
	s.wantEvent("RDS-EVENT-0007")
	s.w.Spec.Now.StorageGiB = 30
	s.w.Spec.Revision++
	s.settle()
	s.want(kurabe.StateAvailable)
}

func TestDelete(t *testing.T) {
	s := newSim(t)
	s.settle()
	s.w.Spec.Deleting = &kurabe.Deletion{At: monday}
	if r := s.step(); r.Gone || s.w.Assignment.Goal != kurabe.GoalAbsent {
		t.Fatal("records removed before the host has nothing left")
	}
	s.want(kurabe.StateDeleting)
	s.obey()
	if r := s.step(); !r.Gone {
		t.Fatal("not gone")
	}
}

func TestAddressTaken(t *testing.T) {
	s := newSim(t)
	s.step()
	first := s.w.Assignment.Address
	s.w.Report = &kurabe.InstanceReport{Host: "h1", Instance: s.w.Spec.ID, Generation: s.w.Assignment.Generation,
		Failure: &kurabe.Failure{Kind: kurabe.FailureNetwork, Step: "wait-ready", Message: "in use", Attempts: 1}}
	s.step()
	if s.w.Assignment.Address == first {
		t.Fatal("a new instance keeps an address that is taken")
	}
	s.settle()
	s.want(kurabe.StateAvailable)
	advertised := s.w.Assignment.Address
	r := *s.w.Report
	r.Done, r.Failure = false, &kurabe.Failure{Kind: kurabe.FailureNetwork, Step: "wait-ready", Message: "in use", Attempts: 3}
	s.w.Report = &r
	s.step()
	s.want(kurabe.StateIncompatibleNetwork)
	if s.w.Assignment.Address != advertised {
		t.Fatal("an advertised endpoint moved")
	}
}

// TestRandomWorlds drives one instance through random wishes, failures and
// moments; step and settle hold the invariants.
func TestRandomWorlds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newSim(rt)
		for range rapid.IntRange(1, 30).Draw(rt, "wishes") {
			s.wish(rt)
			if rapid.Bool().Draw(rt, "obey") {
				s.obey()
			}
			s.step()
		}
		if s.w.Spec.Power.Stopped {
			s.w.Spec.Power = kurabe.Power{Seq: s.w.Spec.Power.Seq + 1}
		}
		if s.w.Report != nil {
			r := *s.w.Report
			r.UsedBytes = 0
			s.w.Report = &r
		}
		s.settle()
		if s.w.Spec.Deleting == nil && s.w.Status.State != kurabe.StateAvailable && s.w.Status.StorageAlarm < 100 {
			rt.Fatalf("ends %s: %+v", s.w.Status.State, s.w.Status)
		}
	})
}

func (s *sim) wish(rt *rapid.T) {
	sp := *s.w.Spec
	sp.Revision++
	switch rapid.IntRange(0, 8).Draw(rt, "wish") {
	case 0:
		sp.RebootSeq++
	case 1:
		sp.Power = kurabe.Power{Seq: sp.Power.Seq + 1, Stopped: rapid.Bool().Draw(rt, "stop"), At: s.w.Now}
	case 2:
		sp.Now.Class = rapid.SampledFrom([]string{"db.t3.micro", "db.t3.small", "db.t2.micro"}).Draw(rt, "class")
	case 3:
		sp.Password.Seq++
	case 4:
		sp.Now.Port = rapid.IntRange(1150, 1160).Draw(rt, "port")
	case 5:
		next := sp.Now
		next.StorageGiB += 10
		sp.Next, sp.NextSeq = &next, sp.NextSeq+1
	case 6:
		s.w.Now = s.w.Now.Add(time.Duration(rapid.IntRange(1, 200).Draw(rt, "hours")) * time.Hour)
	case 7:
		s.w.Parameters = &kurabe.ParameterGroup{Name: "g", Values: map[string]kurabe.ParameterValue{
			"work_mem":        {Value: fmt.Sprint(rapid.IntRange(64, 70).Draw(rt, "work_mem")), Method: kurabe.ApplyImmediate},
			"max_connections": {Value: fmt.Sprint(rapid.IntRange(20, 25).Draw(rt, "max")), Method: kurabe.ApplyPendingReboot}}}
	case 8:
		if s.w.Report != nil {
			r := *s.w.Report
			r.Crashes++
			r.Done, r.Running = false, false
			if rapid.Bool().Draw(rt, "fails") {
				r.Failure = &kurabe.Failure{Kind: rapid.SampledFrom([]kurabe.FailureKind{kurabe.FailureParameters, kurabe.FailureNetwork, kurabe.FailureOther}).Draw(rt, "kind"),
					Step: "wait-ready", Message: "no", Attempts: rapid.IntRange(1, 5).Draw(rt, "attempts")}
			}
			s.w.Report = &r
		}
	}
	s.w.Spec = &sp
}
