package plan_test

import (
	"reflect"
	"testing"

	"kurabe"
)

// Whatever becomes of an instance, its certificate has the names that clients are told, and
// its database shows them.
func TestNamesOfEndpoints(t *testing.T) {
	domain := kurabe.EndpointDomain{ID: "c0", Region: "us-east-1", Suffix: "db.test"}
	s := newSim(t)
	s.settle()
	a := s.w.Assignment
	if want := []kurabe.TopologyServer{{ID: string(s.w.Spec.ID), Endpoint: a.Address}}; a.Names != nil || !reflect.DeepEqual(a.Topology, want) {
		t.Errorf("without a domain: names %q, topology %v, want %v", a.Names, a.Topology, want)
	}
	boot := a.Boot
	s.w.Domain = domain
	s.settle()
	a = s.w.Assignment
	name := "shop.c0.us-east-1.rds.db.test"
	if want := []kurabe.TopologyServer{{ID: string(s.w.Spec.ID), Endpoint: name}}; !reflect.DeepEqual(a.Names, []string{name}) || !reflect.DeepEqual(a.Topology, want) {
		t.Errorf("with one: names %q, topology %v", a.Names, a.Topology)
	}
	if a.Boot != boot {
		t.Error("a name restarts the database")
	}
	s.w.Spec.Engine = kurabe.MariaDB
	s.step()
	if a = s.w.Assignment; len(a.Names) != 1 || a.Topology != nil {
		t.Errorf("MariaDB: names %q, topology %v", a.Names, a.Topology)
	}
}
