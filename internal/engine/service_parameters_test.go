package engine

import (
	"slices"
	"testing"

	"kurabe"
)

// What the service has of its own is in the catalogue of every engine, and in the settings of
// none.
func TestOwnParameters(t *testing.T) {
	c := withOwn(kurabe.Catalog{Parameters: []kurabe.Parameter{{Name: "autovacuum"}, {Name: "work_mem"}}})
	p, found := c.Find(kurabe.ParameterStandbyLost)
	if !found || p.Apply != kurabe.ApplyDynamic || !p.Modifiable || p.Allowed != "degrade,block" || p.Default != kurabe.StandbyLostDegrade || p.Description == "" {
		t.Errorf("%v %+v", found, p)
	}
	if !slices.IsSortedFunc(c.Parameters, func(a, b kurabe.Parameter) int { return map[bool]int{true: -1, false: 1}[a.Name < b.Name] }) {
		t.Errorf("%+v", c.Parameters)
	}
	settings := map[string]string{"work_mem": "1", kurabe.ParameterStandbyLost: kurabe.StandbyLostBlock}
	if got := enginesOnly(settings); len(got) != 1 || got["work_mem"] != "1" || len(settings) != 2 {
		t.Errorf("%v of %v", got, settings)
	}
}
