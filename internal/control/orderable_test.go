package control

import (
	"testing"

	"kurabe"
	"kurabe/internal/control/installed"
	"kurabe/internal/control/placement"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

func TestOrderables(t *testing.T) {
	c := newTestWorld(t)
	postgres := placement.Filter{Version: installed.Filter{Engines: []string{"postgres"}}}
	for _, o := range c.Orderables(postgres) {
		// The host has no lever, so nothing that promises a limit is on offer.
		if o.Class.Enforced || o.Storage.Name != "local" || o.Class.MemoryBytes > 8*kurabe.GiB || o.Version.Family != "postgres15" || len(o.Zones) != 3 {
			t.Errorf("%+v", o)
		}
		if two := 2*o.Class.MemoryBytes <= 8*kurabe.GiB; o.MultiAZ != two {
			t.Errorf("%s: Multi-AZ %v", o.Class.Name, o.MultiAZ)
		}
	}
	if n := len(c.Orderables(postgres)); n != 2*4 { // versions x micro, small, medium, large
		t.Errorf("%d combinations", n)
	}
	host := scopetest.Host()
	for n := range host.Levers {
		host.Levers[n].Available = true
	}
	scopetest.Commit(t, c.Scope, store.NewChange().PutHost(host))
	postgres.Class = "db.t3.micro"
	list := c.Orderables(postgres)
	if len(list) != 2*len(kurabe.StorageTypes) || list[0].Version.Version != "15.9" {
		t.Errorf("%d of db.t3.micro", len(list))
	}
	// What is listed can be made.
	for _, o := range list {
		s := kurabe.InstanceSettings{Class: o.Class.Name, StorageType: o.Storage.Name, StorageGiB: o.Storage.MinGiB}
		if o.Storage.ProvisionIOPS && o.Storage.Name != "gp3" {
			s.IOPS = o.Storage.MinIOPS
		}
		if err := s.CompleteStorage(kurabe.Postgres); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
		if err := c.CheckFit(s); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// A standby is offered where there is a second zone, of either engine.
func TestOrderableStandby(t *testing.T) {
	c := newTestWorld(t)
	offered := func(engine string) bool {
		t.Helper()
		list := c.Orderables(placement.Filter{Version: installed.Filter{Engines: []string{engine}}, Class: "db.local.micro"})
		if len(list) == 0 {
			t.Fatal("nothing is on offer")
		}
		return list[0].MultiAZ
	}
	if !offered("postgres") || !offered("mariadb") {
		t.Errorf("postgres %v, mariadb %v", offered("postgres"), offered("mariadb"))
	}
	host := scopetest.Host()
	host.Zones = host.Zones[:1]
	scopetest.Commit(t, c.Scope, store.NewChange().PutHost(host))
	if offered("postgres") || offered("mariadb") {
		t.Error("there is one zone")
	}
}

func TestStorageChoices(t *testing.T) {
	c := newTestWorld(t)
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("orders"))
	if list, err := c.StorageChoices("orders"); err != nil || len(list) != 1 || list[0].Type.Name != "local" || list[0].MinGiB != 20 {
		t.Errorf("%+v, %v", list, err)
	}
	_, err := c.StorageChoices("nope")
	scopetest.WantCode(t, err, kurabe.CodeInstanceNotFound, "")
}
