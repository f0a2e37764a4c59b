package control

import (
	"slices"
	"testing"

	"kurabe"
	"kurabe/internal/store"
)

func TestOrderables(t *testing.T) {
	c := newTestWorld(t)
	postgres := OrderableFilter{Version: VersionFilter{Engines: []string{"postgres"}}}
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
	host := testHost()
	for n := range host.Levers {
		host.Levers[n].Available = true
	}
	mustCommit(t, c, store.NewChange().PutHost(host))
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
		if err := c.checkFit(s); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// A standby is offered where there is a second zone, of either engine.
func TestOrderableStandby(t *testing.T) {
	c := newTestWorld(t)
	offered := func(engine string) bool {
		t.Helper()
		list := c.Orderables(OrderableFilter{Version: VersionFilter{Engines: []string{engine}}, Class: "db.local.micro"})
		if len(list) == 0 {
			t.Fatal("nothing is on offer")
		}
		return list[0].MultiAZ
	}
	if !offered("postgres") || !offered("mariadb") {
		t.Errorf("postgres %v, mariadb %v", offered("postgres"), offered("mariadb"))
	}
	host := testHost()
	host.Zones = host.Zones[:1]
	mustCommit(t, c, store.NewChange().PutHost(host))
	if offered("postgres") || offered("mariadb") {
		t.Error("there is one zone")
	}
}

func TestStorageChoices(t *testing.T) {
	c := newTestWorld(t)
	addInstance(t, c, newTestSpec("orders"))
	if list, err := c.StorageChoices("orders"); err != nil || len(list) != 1 || list[0].Type.Name != "local" || list[0].MinGiB != 20 {
		t.Errorf("%+v, %v", list, err)
	}
	_, err := c.StorageChoices("nope")
	wantCode(t, err, kurabe.CodeInstanceNotFound, "")
}

func TestEngineVersions(t *testing.T) {
	c := newTestWorld(t)
	for _, tc := range []struct {
		name   string
		filter VersionFilter
		want   []string
	}{
		{"all", VersionFilter{}, []string{"10.11.19", "15.9", "15.18"}},
		{"engine", VersionFilter{Engines: []string{"postgres"}}, []string{"15.9", "15.18"}},
		{"an engine of RDS that is not here", VersionFilter{Engines: []string{"mysql"}}, nil},
		{"major", VersionFilter{Versions: []string{"15"}}, []string{"15.9", "15.18"}},
		{"not a prefix of a number", VersionFilter{Versions: []string{"15.1"}}, nil},
		{"exact", VersionFilter{Versions: []string{"15.9"}}, []string{"15.9"}},
		{"family", VersionFilter{Families: []string{"mariadb10.11"}}, []string{"10.11.19"}},
		{"defaults", VersionFilter{DefaultOnly: true}, []string{"10.11.19", "15.18"}},
		{"default of a major", VersionFilter{DefaultOnly: true, Versions: []string{"15"}}, []string{"15.18"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, v := range c.EngineVersions(tc.filter) {
				got = append(got, v.Version)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
	list := c.EngineVersions(VersionFilter{Versions: []string{"15.9"}})
	if len(list[0].Upgrades) != 1 || list[0].Upgrades[0].Version != "15.18" {
		t.Errorf("%+v", list[0].Upgrades)
	}
	wantCode(t, CheckEngine("aurora-postgresql"), "", "")
	wantCode(t, CheckEngine("postgresql"), kurabe.CodeInvalidParameterValue, "Unrecognized engine name: postgresql")
}

func TestOptionGroups(t *testing.T) {
	c := newTestWorld(t)
	if list := c.OptionGroups(); len(list) != 2 || list[0].Name != "default:mariadb-10-11" || list[1] != (OptionGroup{"default:postgres-15", kurabe.Postgres, "15"}) {
		t.Errorf("%+v", list)
	}
	wantCode(t, c.ChangeOptionGroup("default:postgres-15"), kurabe.CodeInvalidOptionGroupState, whyNoOptions)
	wantCode(t, c.ChangeOptionGroup("mine"), kurabe.CodeOptionGroupNotFound, "Specified OptionGroupName: mine not found.")
	wantCode(t, c.CopyOptionGroup("default:postgres-15"), kurabe.CodeUnsupported, whyNoOptions)
}
