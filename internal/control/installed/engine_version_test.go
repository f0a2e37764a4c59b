package installed

import (
	"slices"
	"testing"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
)

func TestEngineVersions(t *testing.T) {
	c := Engines{scopetest.New(t)}
	for _, tc := range []struct {
		name   string
		filter Filter
		want   []string
	}{
		{"all", Filter{}, []string{"10.11.19", "15.9", "15.18"}},
		{"engine", Filter{Engines: []string{"postgres"}}, []string{"15.9", "15.18"}},
		{"an engine of RDS that is not here", Filter{Engines: []string{"mysql"}}, nil},
		{"major", Filter{Versions: []string{"15"}}, []string{"15.9", "15.18"}},
		{"not a prefix of a number", Filter{Versions: []string{"15.1"}}, nil},
		{"exact", Filter{Versions: []string{"15.9"}}, []string{"15.9"}},
		{"family", Filter{Families: []string{"mariadb10.11"}}, []string{"10.11.19"}},
		{"defaults", Filter{DefaultOnly: true}, []string{"10.11.19", "15.18"}},
		{"default of a major", Filter{DefaultOnly: true, Versions: []string{"15"}}, []string{"15.18"}},
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
	list := c.EngineVersions(Filter{Versions: []string{"15.9"}})
	if len(list[0].Upgrades) != 1 || list[0].Upgrades[0].Version != "15.18" {
		t.Errorf("%+v", list[0].Upgrades)
	}
	scopetest.WantCode(t, CheckEngine("aurora-postgresql"), "", "")
	scopetest.WantCode(t, CheckEngine("postgresql"), kurabe.CodeInvalidParameterValue, "Unrecognized engine name: postgresql")
}

func TestOptionGroups(t *testing.T) {
	c := Engines{scopetest.New(t)}
	if list := c.OptionGroups(); len(list) != 2 || list[0].Name != "default:mariadb-10-11" || list[1] != (OptionGroup{"default:postgres-15", kurabe.Postgres, "15"}) {
		t.Errorf("%+v", list)
	}
	scopetest.WantCode(t, c.ChangeOptionGroup("default:postgres-15"), kurabe.CodeInvalidOptionGroupState, whyNoOptions)
	scopetest.WantCode(t, c.ChangeOptionGroup("mine"), kurabe.CodeOptionGroupNotFound, "Specified OptionGroupName: mine not found.")
	scopetest.WantCode(t, c.CopyOptionGroup("default:postgres-15"), kurabe.CodeUnsupported, whyNoOptions)
}
