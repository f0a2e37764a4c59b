package control

import (
	"testing"

	"kurabe"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

// A loss is accepted only where nothing else is left, of the situation that was looked at.
func TestRecoverInstance(t *testing.T) {
	id := multiAZSpec("orders").ID
	second := id.Member(2)
	alone, both := testGroup(id, 1), testGroup(id, 2)
	synced := testGroup(id, 2)
	synced.SyncSet = []kurabe.InstanceID{second}
	dead := kurabe.InstanceReport{Instance: id, Role: &kurabe.RoleReport{}}
	writes := kurabe.InstanceReport{Instance: id, Running: true, Role: &kurabe.RoleReport{Writing: true}}
	stuck := kurabe.InstanceReport{Instance: id, Running: true, Role: &kurabe.RoleReport{Writing: true, Unresponsive: true}}
	runs := kurabe.InstanceReport{Instance: second, Running: true, Role: &kurabe.RoleReport{}}
	ended := kurabe.InstanceReport{Instance: second, Role: &kurabe.RoleReport{}}
	hangs := kurabe.InstanceReport{Instance: second, Running: true, Role: &kurabe.RoleReport{Unresponsive: true}}
	for _, c := range []struct {
		name    string
		group   *kurabe.Group
		reports []kurabe.InstanceReport
		epoch   kurabe.Epoch
		to      kurabe.InstanceID
		text    string // of the refusal, "" for none
	}{
		{"the writer is dead", &both, []kurabe.InstanceReport{dead, runs}, 1, second, ""},
		{"the writer hangs", &both, []kurabe.InstanceReport{stuck, runs}, 1, second, ""},
		{"the writer's host has said nothing", &both, []kurabe.InstanceReport{runs}, 1, second, ""},
		{"the writer writes", &both, []kurabe.InstanceReport{writes, runs}, 1, second, "the server that has every commit writes"},
		{"a standby has every commit", &synced, []kurabe.InstanceReport{dead, runs}, 1, second, "takes over by itself"},
		{"another epoch", &both, []kurabe.InstanceReport{dead, runs}, 2, second, "look again"},
		{"to the writer", &both, []kurabe.InstanceReport{dead, runs}, 1, id, "no standby of it"},
		{"to nobody", &both, []kurabe.InstanceReport{dead, runs}, 1, id.Member(3), "no standby of it"},
		{"to one that has ended", &both, []kurabe.InstanceReport{dead, ended}, 1, second, "does not run"},
		{"to one that hangs", &both, []kurabe.InstanceReport{dead, hangs}, 1, second, "does not answer"},
		{"one server", &alone, []kurabe.InstanceReport{dead}, 1, second, "it has one server"},
		{"no group", nil, nil, 1, second, "it has one server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			addAs(t, w, multiAZSpec("orders"), nil)
			if c.group != nil {
				scopetest.Commit(t, w.Scope, store.NewChange().PutGroup(*c.group, 0))
			}
			for _, r := range c.reports {
				r.Host = "h1"
				scopetest.Commit(t, w.Scope, store.NewChange().PutReport(r))
			}
			for n := range 2 {
				_, err := w.RecoverInstance(t.Context(), "orders", c.epoch, c.to)
				if c.text != "" {
					scopetest.WantCode(t, err, kurabe.CodeInvalidInstanceState, c.text)
					continue
				}
				i, unread := w.Instance("orders")
				if want := (kurabe.Recovery{Seq: int64(n) + 1, Epoch: c.epoch, To: c.to}); err != nil || unread != nil || i.Spec.Recovery == nil || *i.Spec.Recovery != want {
					t.Errorf("%+v, %v, %v", i.Spec.Recovery, err, unread)
				}
			}
		})
	}
	w := newTestWorld(t)
	_, err := w.RecoverInstance(t.Context(), "nobody", 1, second)
	scopetest.WantCode(t, err, kurabe.CodeInstanceNotFound, "nobody")
}
