package control

import (
	"slices"
	"testing"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

// A name is listed before anybody is told it: who asks for it a moment too early may believe
// for seconds that it is not there.
func TestNamesAreListedBeforeTheyAreTold(t *testing.T) {
	c := newTestWorld(t)
	if err := SetEndpointSuffix(t.Context(), c.KV, c.View, c.Region, "db.example"); err != nil {
		t.Fatal(err)
	}
	addAs(t, c, scopetest.Spec("shop"), func(*kurabe.InstanceStatus) {})
	if list := c.NamedEndpoints(); len(list) != 0 {
		t.Errorf("without an address it is listed: %v", list)
	}
	scopetest.Commit(t, c.Scope, store.NewChange().PutAssignment(kurabe.Assignment{Instance: "db-SHOP", Host: "h1", Address: "127.66.0.7"}, 0))
	want := []NamedEndpoint{{c.View.EndpointDomain().Value.Instance("shop"), "127.66.0.7"}}
	if list := c.NamedEndpoints(); !slices.Equal(list, want) {
		t.Errorf("listed are %v, not %v", list, want)
	}
	i, err := c.Instance("shop")
	if err != nil || c.Endpoint(i) != "" {
		t.Errorf("the API tells %q of what is not available (%v)", c.Endpoint(i), err)
	}
}
