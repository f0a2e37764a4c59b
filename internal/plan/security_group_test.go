package plan_test

import (
	"slices"
	"testing"

	"kurabe"
)

// TestSecurityGroups shows a group as in force once the host filters as the assignment says.
func TestSecurityGroups(t *testing.T) {
	s := newSim(t)
	s.w.Spec.SecurityGroups = []string{"sg-1"}
	s.w.SecurityGroups = []kurabe.SecurityGroup{{ID: "sg-1", Rules: []kurabe.SecurityRule{{Protocol: "tcp", FromPort: 1, ToPort: 9999, Network: "10.0.0.0/8"}}}}
	s.w.Hosts[0].Levers = append(s.w.Hosts[0].Levers, kurabe.Lever{Name: kurabe.LeverFilter, Available: true})
	s.settle()
	f := s.w.Assignment.Filter
	if f == nil || !slices.Equal(f.Sources, []string{"10.0.0.0/8"}) || f.AnyDestination {
		t.Fatalf("filter %+v", f)
	}
	if got := s.w.Status.SecurityGroups; got != nil {
		t.Errorf("in force before the host has said so: %q", got)
	}
	s.w.Report.Filtered = true
	s.step()
	if got := s.w.Status.SecurityGroups; !slices.Equal(got, []string{"sg-1"}) {
		t.Errorf("in force: %q", got)
	}
}

func TestSecurityGroupsNeedAHost(t *testing.T) {
	s := newSim(t)
	s.w.SecurityGroups = []kurabe.SecurityGroup{{ID: "sg-1"}}
	s.step()
	if s.w.Assignment != nil || s.w.Status.State != kurabe.StateInsufficientCapacity {
		t.Error("placed on a host that cannot filter packets")
	}
}
