package reconcile

import (
	"bytes"
	"encoding/json"
	"testing"

	"kurabe"
)

func TestExplainGroup(t *testing.T) {
	view := viewOf(t, groupOfTwo())
	i, _ := view.Instance("db-1")
	e := Explain(view, i, noon)
	if text, err := json.Marshal(e); err != nil || bytes.Contains(text, []byte(verifier)) {
		t.Errorf("it tells a verifier, or nothing: %v", err)
	}
	g := e.Group
	if g == nil || g.Epoch != 2 || g.Writer != "db-1~2" || len(g.Servers) != 2 {
		t.Fatalf("group %+v", g)
	}
	for n, generation := range []kurabe.Generation{11, 12} {
		if s := g.Servers[n]; s.ID != kurabe.InstanceID("db-1").Member(n+1) || s.Generation != generation || s.Report == nil || s.Report.PID != n+1 {
			t.Errorf("server %+v, report %+v", s, s.Report)
		}
	}
	single, _ := view.Instance("db-2")
	if g := Explain(view, single, noon).Group; g != nil {
		t.Errorf("of one server: %+v", g)
	}
}
