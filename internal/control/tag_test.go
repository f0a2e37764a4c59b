package control

import (
	"kurabe/internal/control/scope/scopetest"
	"reflect"
	"strings"
	"testing"

	"kurabe"
)

func TestTags(t *testing.T) {
	c := newTestWorld(t)
	mustGroup(t, c, "g")
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("orders"))
	if _, err := c.CreateSubnetGroup(t.Context(), "net", "d", []string{"subnet-us-east-1a", "subnet-us-east-1b"}, nil); err != nil {
		t.Fatal(err)
	}
	for _, arn := range []string{c.ARN("db", "orders"), c.ARN("pg", "g"), c.ARN("subgrp", "net")} {
		for _, err := range []error{
			c.AddTags(t.Context(), arn, []kurabe.Tag{{Key: "z", Value: "1"}, {Key: "a", Value: "2"}}),
			c.AddTags(t.Context(), arn, []kurabe.Tag{{Key: "m"}, {Key: "z", Value: "3"}}),
			c.RemoveTags(t.Context(), arn, []string{"a", "absent"}),
		} {
			if err != nil {
				t.Fatalf("%s: %v", arn, err)
			}
		}
		if tags, err := c.Tags(arn); err != nil || !reflect.DeepEqual(tags, []kurabe.Tag{{Key: "z", Value: "3"}, {Key: "m"}}) {
			t.Errorf("%s: %v, %v", arn, tags, err)
		}
	}
	i, err := c.Instance("orders")
	if err != nil || i.Spec.Revision != 4 || i.State != kurabe.StateAvailable {
		t.Errorf("three changes of tags: %+v, %v", i, err)
	}
	if g, _ := c.View.ParameterGroup("g"); g.Value.Revision != 1 {
		t.Errorf("tags are not values: revision %d", g.Value.Revision)
	}
}

func TestTagErrors(t *testing.T) {
	c := newTestWorld(t)
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("orders"))
	for _, tc := range []struct {
		name, arn string
		code      kurabe.Code
		text      string
	}{
		{"no ARN", "orders", kurabe.CodeInvalidParameterValue, "Invalid resource name: orders"},
		{"another service", "arn:aws:s3:us-east-1:000000000000:db:orders", kurabe.CodeInvalidParameterValue, "Invalid resource name"},
		{"another region", "arn:aws:rds:eu-west-1:000000000000:db:orders", kurabe.CodeInvalidParameterValue, "in this region"},
		{"another account", "arn:aws:rds:us-east-1:111111111111:db:orders", kurabe.CodeInvalidParameterValue, "in this region"},
		{"unknown kind", c.ARN("teapot", "x"), kurabe.CodeInvalidParameterValue, "Invalid resource name"},
		{"no instance", c.ARN("db", "nope"), kurabe.CodeInstanceNotFound, "DBInstance nope not found."},
		{"no parameter group", c.ARN("pg", "nope"), kurabe.CodeParameterGroupNotFound, "nope"},
		{"no subnet group", c.ARN("subgrp", "nope"), kurabe.CodeSubnetGroupNotFound, "nope"},
		{"no option group", c.ARN("og", "nope"), kurabe.CodeOptionGroupNotFound, "nope"},
		{"no snapshot", c.ARN("snapshot", "nope"), kurabe.CodeSnapshotNotFound, "nope"},
		{"no subscription", c.ARN("es", "nope"), kurabe.CodeResourceNotFound, "nope"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := c.Tags(tc.arn)
			scopetest.WantCode(t, err, tc.code, tc.text)
			scopetest.WantCode(t, c.AddTags(t.Context(), tc.arn, []kurabe.Tag{{Key: "k"}}), tc.code, tc.text)
		})
	}
	arn := c.ARN("db", "orders")
	scopetest.WantCode(t, c.AddTags(t.Context(), arn, []kurabe.Tag{{Key: "aws:x"}}), kurabe.CodeInvalidParameterValue, "reserved")
	scopetest.WantCode(t, c.AddTags(t.Context(), arn, []kurabe.Tag{{Key: strings.Repeat("k", 129)}}), kurabe.CodeInvalidParameterValue, "128")
	if tags, err := c.Tags(c.ARN("og", "default:postgres-15")); err != nil || tags != nil {
		t.Errorf("option group: %v, %v", tags, err)
	}
	if tags, err := c.Tags(c.ARN("pg", "default.postgres15")); err != nil || tags != nil {
		t.Errorf("default parameter group: %v, %v", tags, err)
	}
}
