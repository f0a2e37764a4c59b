package parameter

import (
	"kurabe/internal/control/scope/scopetest"
	"testing"

	"kurabe"
)

// Who asks for the value that a fixed parameter has gets it, and nothing is written.
func TestFixedParameterAcceptsItsOwnValue(t *testing.T) {
	c := newGroups(t)
	mustGroup(t, c, "g")
	for _, value := range []string{"1", "on", "TRUE"} {
		if _, err := c.ModifyParameterGroup(t.Context(), "g", []Change{set("fsync", value, "")}); err != nil {
			t.Errorf("fsync=%s: %v", value, err)
		}
	}
	if g, _ := c.View.ParameterGroup("g"); len(g.Value.Values) != 0 || g.Value.Revision != 1 {
		t.Errorf("stored %+v", g.Value)
	}
	_, err := c.ModifyParameterGroup(t.Context(), "g", []Change{set("fsync", "off", "")})
	scopetest.WantCode(t, err, kurabe.CodeInvalidParameterValue, "cannot be modified")
}

// An enumeration takes the notations that its engine takes, and those alone.
func TestNumbersOfEnumerations(t *testing.T) {
	p := kurabe.Parameter{Name: "event_scheduler", Type: "string", Allowed: "OFF,ON,DISABLED", AlsoAllowed: "0,1,2"}
	for value, want := range map[string]bool{"on": true, "0": true, "1": true, "2": true, "3": false, "-1": false, "1.5": false, "yes": false} {
		if got := checkParameterValue(p, value, nil) == nil; got != want {
			t.Errorf("%s: allowed is %t", value, got)
		}
	}
}
