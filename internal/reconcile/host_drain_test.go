package reconcile

import (
	"slices"
	"testing"

	"kurabe"
)

func TestLeavingHost(t *testing.T) {
	change := groupOfTwo().
		PutHost(kurabe.HostReport{Host: "h1"}).PutHost(kurabe.HostReport{Host: "h2"}).
		PutJoinedHost(kurabe.JoinedHost{ID: "h2", Drained: true}, 0).
		PutStatus(kurabe.InstanceStatus{ID: "db-2", State: kurabe.StateStopped}, 0).
		PutAssignment(serverAt("h2", "db-9", 1, "127.66.0.40", ""), 0)
	view := viewOf(t, change)
	i, _ := view.Instance("db-2")
	want := []Leaving{
		{Name: i.Spec.Name, Server: "db-2", State: kurabe.StateStopped, CannotLeave: "it is stopped"},
		{Name: "db-9", Server: "db-9", CannotLeave: "its record is missing"},
	}
	if have := LeavingHost(view, "h2", noon); !slices.Equal(have, want) {
		t.Errorf("%+v, want %+v", have, want)
	}
	// Nothing keeps what may be where it is.
	have := LeavingHost(view, "h1", noon)
	if len(have) != 2 || have[0].Server != "db-1" || have[1].Server != "db-1~2" || have[0].CannotLeave+have[1].CannotLeave != "" {
		t.Errorf("%+v", have)
	}
	if have := LeavingHost(view, "h7", noon); have == nil || len(have) > 0 {
		t.Errorf("of a host that has nothing: %#v", have)
	}
}
