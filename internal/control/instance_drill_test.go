package control

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

// A drill strikes a server of the instance that it names, which runs as what the drill saw,
// and users are told of nothing else.
func TestDrillTarget(t *testing.T) {
	id := multiAZSpec("orders").ID
	second := id.Member(2)
	alone, both := testGroup(id, 1), testGroup(id, 2)
	runs := kurabe.InstanceReport{Instance: second, Running: true, PID: 7}
	dead := kurabe.InstanceReport{Instance: second, PID: 7}
	for _, c := range []struct {
		name   string
		group  *kurabe.Group
		report kurabe.InstanceReport
		server kurabe.InstanceID
		pid    int
		code   kurabe.Code
		text   string // of the refusal, "" for none
	}{
		{"it runs", &both, runs, second, 7, "", ""},
		{"as another process", &both, runs, second, 8, kurabe.CodeInvalidInstanceState, "is not seen to run as process 8"},
		{"it does not run", &both, dead, second, 7, kurabe.CodeInvalidInstanceState, "is not seen to run"},
		{"nobody has told of it", &both, runs, id, 7, kurabe.CodeInvalidInstanceState, "is not seen to run"},
		{"a server of another one", &both, runs, "db-OTHER~2", 7, kurabe.CodeInvalidParameterValue, "is no server of orders"},
		{"one server", &alone, runs, id, 7, kurabe.CodeInvalidInstanceState, "one server"},
		{"no group", nil, runs, id, 7, kurabe.CodeInvalidInstanceState, "one server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			addAs(t, w, multiAZSpec("orders"), nil)
			if c.group != nil {
				scopetest.Commit(t, w.Scope, store.NewChange().PutGroup(*c.group, 0))
			}
			c.report.Host = "h1"
			scopetest.Commit(t, w.Scope, store.NewChange().PutReport(c.report))
			_, failure := w.DrillTarget("orders", c.server, c.pid)
			m, err := w.TellDrill(t.Context(), "orders", c.server, c.pid, "frozen for 3s")
			told := slices.DeleteFunc(w.View.Events(scopetest.Now, scopetest.Now.Add(time.Second)), func(e kurabe.Event) bool { return e.ID != "KURABE-EVENT-0051" })
			if c.text != "" {
				scopetest.WantCode(t, failure, c.code, c.text)
				scopetest.WantCode(t, err, c.code, c.text)
				if len(told) > 0 {
					t.Errorf("it is told all the same: %v", told)
				}
				return
			}
			if failure != nil || err != nil || m.ID != c.server || m.Host != c.report.Host {
				t.Errorf("%+v, %v, %v", m, failure, err)
			}
			if len(told) != 1 || !strings.Contains(told[0].Message, "has the server 2 in zone") || !strings.Contains(told[0].Message, " frozen for 3s ") || !strings.Contains(told[0].Message, "(process 7)") {
				t.Errorf("%+v", told)
			}
		})
	}
	w := newTestWorld(t)
	_, err := w.TellDrill(t.Context(), "nobody", second, 7, "killed")
	scopetest.WantCode(t, err, kurabe.CodeInstanceNotFound, "nobody")
}
