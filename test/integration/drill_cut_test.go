//go:build integration

package integration

import (
	"testing"

	"kurabe/internal/drill"
	"kurabe/internal/harness"
	"kurabe/internal/netcut"
)

// TestDrillCut: a standby that hears nothing holds commits up and is left out, and comes back;
// clients reach the writer all the time, and nothing that was acknowledged is lost.
func TestDrillCut(t *testing.T) {
	onceIsEnough(t)
	if err := netcut.Probe(); err != nil {
		t.Skip("this machine cannot cut servers off from each other: ", err)
	}
	s := shared(t)
	s.EachEngine(t, func(t *testing.T, engine string) {
		b := &drillBed{s.MustCreate(t, harness.MultiAZRequest("drill-cut-"+engine, engine)), harness.Binary(t)}
		r := b.drill(t, "--cut", "standby", "--for", "6s")
		if r.After.Epoch != r.Before.Epoch || r.After.Writer != r.Before.Writer || r.LongestCommit < 1 || r.WholeAfter < 6 {
			t.Errorf("%+v, then %+v; a commit waited for %v s, whole after %v s", r.Before, r.After, r.LongestCommit, r.WholeAfter)
		}
		wantTold(t, r, map[drill.Source]string{drill.FromDrill: "packets were dropped", drill.FromPlanner: "commits do not wait", drill.FromEvent: "standby does not answer"})
		b.AskDelete(t)
	})
}
