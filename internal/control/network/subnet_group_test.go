package network

import (
	"slices"
	"testing"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

func TestPlaceSubnets(t *testing.T) {
	c := Network{scopetest.New(t)}
	scopetest.Commit(t, c.Scope, store.NewChange().CreateSubnetGroup(kurabe.SubnetGroup{
		Name: "before", Subnets: []kurabe.Subnet{{ID: "subnet-00000001", Zone: "us-east-1a"}, {ID: "subnet-00000002", Zone: "us-east-1b"}},
	}))
	zonesOf := func(list []kurabe.Subnet) []string {
		var zones []string
		for _, s := range list {
			zones = append(zones, s.Zone)
		}
		slices.Sort(zones)
		return slices.Compact(zones)
	}
	for _, tc := range []struct {
		name  string
		ids   []string
		zones int
		code  kurabe.Code
		text  string
	}{
		{"two", []string{"subnet-us-east-1c", "subnet-us-east-1a"}, 2, "", ""},
		{"three", []string{"subnet-us-east-1c", "subnet-us-east-1a", "subnet-us-east-1b"}, 3, "", ""},
		{"those that are shown", []string{c.Subnets()[0].ID, c.Subnets()[1].ID}, 2, "", ""},
		{"those of a group of before", []string{"subnet-00000001", "subnet-us-east-1c"}, 2, "", ""},
		{"one", []string{"subnet-us-east-1a"}, 0, kurabe.CodeSubnetGroupAZCoverage, "Current AZ coverage: us-east-1a."},
		{"one twice", []string{"subnet-us-east-1a", "subnet-us-east-1a"}, 0, kurabe.CodeSubnetGroupAZCoverage, "at least 2 AZs"},
		{"none", nil, 0, kurabe.CodeSubnetGroupAZCoverage, "none"},
		{"unknown", []string{"subnet-xyz", "subnet-us-east-1a", "x"}, 0, kurabe.CodeInvalidSubnet, "Some input subnets in :[subnet-xyz, x] are invalid."},
		{"unknown, of EC2's form", []string{"subnet-0123456789abcdef0", "subnet-us-east-1a"}, 0, kurabe.CodeInvalidSubnet, "[subnet-0123456789abcdef0]"},
		{"unknown zone", []string{"subnet-us-east-1z", "subnet-us-east-1a"}, 0, kurabe.CodeInvalidSubnet, "subnet-us-east-1z"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			list, err := c.PlaceSubnets(tc.ids)
			scopetest.WantCode(t, err, tc.code, tc.text)
			if got := len(zonesOf(list)); got != tc.zones {
				t.Errorf("%v covers %d zones, want %d", list, got, tc.zones)
			}
		})
	}
}

func TestSubnetGroupLifecycle(t *testing.T) {
	c := Network{scopetest.New(t)}
	two := []string{"subnet-us-east-1a", "subnet-us-east-1b"}
	g, err := c.CreateSubnetGroup(t.Context(), "Main_db 1", "d", two, nil)
	if err != nil || g.Name != "main_db 1" || len(g.Subnets) != 2 {
		t.Fatalf("%+v, %v", g, err)
	}
	_, err = c.CreateSubnetGroup(t.Context(), "main_db 1", "d", two, nil)
	scopetest.WantCode(t, err, kurabe.CodeSubnetGroupExists, "The DB subnet group 'main_db 1' already exists.")
	for _, bad := range []string{"default", "", "a/b", " x"} {
		_, err = c.CreateSubnetGroup(t.Context(), bad, "d", two, nil)
		scopetest.WantCode(t, err, kurabe.CodeInvalidParameterValue, "DBSubnetGroupName")
	}
	if d, err := c.SubnetGroup("Default"); err != nil || len(d.Subnets) != 3 || d.Subnets[2] != c.Subnets()[2] {
		t.Errorf("%+v, %v", d, err)
	}
	if list := c.SubnetGroups(); len(list) != 2 || list[0].Name != "default" {
		t.Errorf("%v", list)
	}
	scopetest.WantCode(t, c.DeleteSubnetGroup(t.Context(), "default"), kurabe.CodeInvalidSubnetGroupState, "default")
	scopetest.WantCode(t, c.DeleteSubnetGroup(t.Context(), "nope"), kurabe.CodeSubnetGroupNotFound, "DB subnet group 'nope' does not exist.")

	spec := scopetest.Spec("orders")
	spec.SubnetGroup = "main_db 1"
	scopetest.AddInstance(t, c.Scope, spec) // in us-east-1b
	scopetest.WantCode(t, c.DeleteSubnetGroup(t.Context(), "main_db 1"), kurabe.CodeInvalidSubnetGroupState, "at least one database instance: orders is still using it.")
	_, err = c.ModifySubnetGroup(t.Context(), "main_db 1", nil, []string{"subnet-us-east-1a", "subnet-us-east-1c"})
	scopetest.WantCode(t, err, kurabe.CodeInvalidSubnetGroupState, "orders is in us-east-1b")
	text := "wider"
	g, err = c.ModifySubnetGroup(t.Context(), "main_db 1", &text, []string{"subnet-us-east-1a", "subnet-us-east-1b", "subnet-us-east-1c"})
	if err != nil || g.Revision != 2 || g.Description != text || len(g.Subnets) != 3 {
		t.Errorf("%+v, %v", g, err)
	}
}
