package plan_test

import (
	"strings"
	"testing"
	"time"

	"kurabe"
)

// far is a host of its own zone on a network that others reach.
func far(id kurabe.HostID, zone, pool string) kurabe.HostReport {
	h := host()
	h.Host, h.Zones, h.AddressPool, h.Network = id, []string{zone}, pool, "10.0.0.0/24"
	return h
}

func TestPlacedWhereItFits(t *testing.T) {
	for _, c := range []struct {
		name string
		with func(*sim)
		on   kurabe.HostID
		why  string
	}{
		{"the most memory", func(s *sim) { s.w.Reserved["h2"] = kurabe.GiB }, "h3", ""},
		{"the zone", func(s *sim) { s.w.Spec.Zone = "us-east-1b"; s.w.Reserved["h2"] = kurabe.GiB }, "h2", ""},
		{"no such zone", func(s *sim) { s.w.Spec.Zone = "us-east-1z" }, "", "zone us-east-1z"},
		{"a drained host", func(s *sim) { s.w.Closed = map[kurabe.HostID]string{"h3": "host h3 is drained"} }, "h2", ""},
		{"all are closed", func(s *sim) {
			s.w.Closed = map[kurabe.HostID]string{"h2": "host h2 is drained", "h3": "host h3 is not heard"}
		}, "", "is not heard"},
		{"where the snapshot is", func(s *sim) { s.w.OriginHost = "h2"; s.w.Reserved["h2"] = kurabe.GiB }, "h2", ""},
		{"the snapshot's host is closed", func(s *sim) {
			s.w.OriginHost, s.w.Closed = "h2", map[kurabe.HostID]string{"h2": "host h2 is drained"}
		}, "", "host h2 has the snapshot"},
		{"a pair on two hosts", func(s *sim) { s.w.Spec.Now.MultiAZ, s.w.Reserved["h2"] = true, kurabe.GiB }, "h3", ""},
		{"a pair needs two zones", func(s *sim) { s.w.Spec.Now.MultiAZ, s.w.Hosts = true, s.w.Hosts[:1] }, "", "a standby needs another one"},
		{"a pair needs hosts in one network", func(s *sim) { s.w.Spec.Now.MultiAZ, s.w.Hosts[1].Network = true, "10.0.1.0/24" }, "", "are in different networks"},
		{"a pair needs hosts that reach each other", func(s *sim) {
			s.w.Spec.Now.MultiAZ, s.w.Hosts[1].AddressPool = true, "127.66.9.0/24"
		}, "", "cannot reach each other"},
		{"a version that one host has", func(s *sim) { s.w.Hosts[1].Engines = nil }, "h2", ""},
		{"limits that one host has", func(s *sim) {
			s.w.Spec.Now.StorageType, s.w.Spec.Now.StorageGiB, s.w.Spec.Now.IOPS = "io1", 100, 1000
			s.w.Hosts[1].Levers = []kurabe.Lever{{Name: "cpu", Available: true}, {Name: "memory", Available: true}}
		}, "h2", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSim(t)
			s.w.Hosts = []kurabe.HostReport{far("h2", "us-east-1b", "10.0.0.64/27"), far("h3", "us-east-1c", "10.0.0.96/27")}
			s.w.Reserved["h2"], s.w.Reserved["h3"] = 0, 0
			c.with(s)
			r := s.step()
			if c.on == "" {
				if s.w.Status.State != kurabe.StateInsufficientCapacity || !strings.Contains(strings.Join(r.Reasons, "; "), c.why) {
					t.Errorf("state %s, %v; want %q", s.w.Status.State, r.Reasons, c.why)
				}
				return
			}
			if s.w.Assignment == nil || s.w.Assignment.Host != c.on {
				t.Fatalf("placed as %+v, %v; want on %s", s.w.Assignment, r.Reasons, c.on)
			}
			if h := s.w.Status; h.Host != c.on || h.Zone != s.hostOf(c.on).Zones[0] || !strings.HasPrefix(s.w.Assignment.Address, "10.0.0.") {
				t.Errorf("host %s, zone %s, address %s", h.Host, h.Zone, s.w.Assignment.Address)
			}
		})
	}
}

func (s *sim) hostOf(id kurabe.HostID) kurabe.HostReport {
	for _, h := range s.w.Hosts {
		if h.Host == id {
			return h
		}
	}
	return kurabe.HostReport{}
}

func TestUnheardHost(t *testing.T) {
	s := newSim(t)
	s.settle()
	assignment, since := *s.w.Assignment, monday.Add(time.Hour)
	s.w.Now = since.Add(5 * time.Second)
	s.w.Lost = map[kurabe.HostID]time.Time{"h1": since}
	s.events = nil
	s.step()
	if s.w.Status.State != kurabe.StateUnreachable || !strings.Contains(s.w.Status.Reason, since.Format(time.RFC3339)) {
		t.Errorf("state %s, %q", s.w.Status.State, s.w.Status.Reason)
	}
	s.step()
	if len(s.events) != 1 || s.events[0].ID != "KURABE-EVENT-0019" {
		t.Errorf("events %+v", s.events)
	}
	if s.w.Assignment.Generation != assignment.Generation {
		t.Error("the loss of a host has changed what it is to do")
	}
	s.w.Lost, s.events = nil, nil
	s.step()
	if s.w.Status.State != kurabe.StateAvailable || s.w.Status.Reason != "" || len(s.events) != 1 || s.events[0].ID != "KURABE-EVENT-0020" {
		t.Errorf("heard again: state %s, %q, %+v", s.w.Status.State, s.w.Status.Reason, s.events)
	}
}

func TestHostGivenUp(t *testing.T) {
	s := newSim(t)
	s.settle()
	s.w.RemovedHosts, s.events = map[kurabe.HostID]bool{"h1": true}, nil
	s.step()
	s.step()
	if s.w.Status.State != kurabe.StateFailed || len(s.events) != 1 || s.events[0].ID != "KURABE-EVENT-0021" || !strings.Contains(s.w.Status.Reason, "gone for good") {
		t.Errorf("state %s, %q, %+v", s.w.Status.State, s.w.Status.Reason, s.events)
	}
	s.w.Spec.Deleting = &kurabe.Deletion{}
	s.step()
	if s.w.Assignment.Goal != kurabe.GoalAbsent {
		t.Fatalf("deleted: goal %s", s.w.Assignment.Goal)
	}
	// What reconcile says in the host's place.
	s.w.Report = &kurabe.InstanceReport{Host: "h1", Instance: s.w.Spec.ID, Generation: s.w.Assignment.Generation, Done: true, Absent: true}
	if r := s.step(); !r.Gone {
		t.Errorf("its records stay: %v", r.Reasons)
	}
}
