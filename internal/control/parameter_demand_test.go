package control

import (
	"testing"

	"kurabe"
	"kurabe/internal/control/parameter"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

// demandWorld is a world whose catalogue knows what its parameters take.
func demandWorld(t *testing.T) *Control {
	t.Helper()
	c := newTestWorld(t)
	cat := kurabe.Catalog{Engine: kurabe.Postgres, Version: "15.18", Family: "postgres15", Parameters: append([]kurabe.Parameter{
		{Name: "a_log_size", Type: "integer", Allowed: "1-18446744073709551615", Apply: kurabe.ApplyStatic, Modifiable: true},
		{Name: "a_sort_size", Type: "integer", Allowed: "1-18446744073709551615", Apply: kurabe.ApplyDynamic, Modifiable: true},
	}, scopetest.Parameters()...), Demands: kurabe.Demands{
		"a_log_size":  {Resource: kurabe.Disk, Bytes: 1, Default: 1 << 20},
		"a_sort_size": {Resource: kurabe.Memory, Bytes: 1, Alone: true},
	}}
	scopetest.Commit(t, c.Scope, store.NewChange().PutCatalog("h1", cat))
	return c
}

// No value is taken that would fill what an instance has, by whatever way it comes.
func TestParametersFit(t *testing.T) {
	c := demandWorld(t)
	const much = "107374182400" // 100 GiB
	mustGroup(t, c, "g")
	_, err := c.ModifyParameterGroup(t.Context(), "g", []parameter.Change{set("a_log_size", "18446744073709551615", "")})
	scopetest.WantCode(t, err, kurabe.CodeInvalidParameterValue, "a_log_size")
	if _, err = c.ModifyParameterGroup(t.Context(), "g", []parameter.Change{set("a_log_size", much, "")}); err != nil {
		t.Fatalf("without an instance: %v", err)
	}
	spec := scopetest.Spec("orders") // of 20 GiB
	scopetest.AddInstance(t, c.Scope, spec)
	group := "g"
	_, err = c.ModifyInstance(t.Context(), "orders", InstanceChange{ParameterGroup: &group, ApplyImmediately: true})
	scopetest.WantCode(t, err, kurabe.CodeInvalidParameterCombo, "half of the allocated storage is 10 GiB")
	if _, err = c.ResetParameterGroup(t.Context(), "g", nil); err != nil {
		t.Fatal(err)
	}
	if _, err = c.ModifyInstance(t.Context(), "orders", InstanceChange{ParameterGroup: &group, ApplyImmediately: true}); err != nil {
		t.Fatal(err)
	}
	_, err = c.ModifyParameterGroup(t.Context(), "g", []parameter.Change{set("a_log_size", much, "")})
	scopetest.WantCode(t, err, kurabe.CodeInvalidParameterValue, "it does not fit orders")
	_, err = c.ModifyParameterGroup(t.Context(), "g", []parameter.Change{set("a_sort_size", much, "")})
	scopetest.WantCode(t, err, kurabe.CodeInvalidParameterValue, "memory of the DB instance class")
	if _, err = c.ModifyParameterGroup(t.Context(), "g", []parameter.Change{set("a_log_size", "1073741824", "")}); err != nil {
		t.Errorf("what fits: %v", err)
	}
}
