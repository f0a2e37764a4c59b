package control

import (
	"kurabe/internal/control/scope/scopetest"
	"reflect"
	"slices"
	"testing"

	"kurabe"
)

// Every kind of resource that can have tags is in the list once it has some.
func TestTagged(t *testing.T) {
	c := newTestWorld(t)
	mustGroup(t, c, "g")
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("orders"))
	scopetest.AddInstance(t, c.Scope, scopetest.Spec("bare"))
	if _, err := c.CreateSubnetGroup(t.Context(), "net", "d", []string{"subnet-us-east-1a", "subnet-us-east-1b"}, nil); err != nil {
		t.Fatal(err)
	}
	want := []string{c.ARN("db", "orders"), c.ARN("pg", "g"), c.ARN("subgrp", "net")}
	tags := []kurabe.Tag{{Key: "k", Value: "v"}}
	for _, arn := range want {
		if err := c.AddTags(t.Context(), arn, tags); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, r := range c.Tagged() {
		got = append(got, r.ARN)
		if !reflect.DeepEqual(r.Tags, tags) {
			t.Errorf("%s: %v", r.ARN, r.Tags)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
