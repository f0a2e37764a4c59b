package control

import (
	"context"
	"testing"

	"kurabe"
	"kurabe/internal/control/placement"
	"kurabe/internal/control/scope/scopetest"
	"kurabe/internal/store"
)

func newRequest(name, engine, class string) NewInstance {
	return NewInstance{Name: name, Engine: engine, Class: class, MasterUsername: "boss", MasterPassword: "correct-horse", MultiAZ: true}
}

// multiAZSpec is an instance with a standby, as the API would have written it.
func multiAZSpec(name string) kurabe.InstanceSpec {
	s := scopetest.Spec(name)
	s.Now.MultiAZ = true
	return s
}

// addAs stores a spec with a status that answers it, but for what edit changes.
func addAs(t testing.TB, c *Control, spec kurabe.InstanceSpec, edit func(*kurabe.InstanceStatus)) {
	t.Helper()
	status := kurabe.InstanceStatus{ID: spec.ID, SpecRevision: spec.Revision, State: kurabe.StateAvailable, Applied: spec.Now, Host: "h1", Zone: "us-east-1b"}
	if spec.Now.MultiAZ {
		status.SecondZone = "us-east-1a"
	}
	if edit != nil {
		edit(&status)
	}
	scopetest.Commit(t, c.Scope, store.NewChange().CreateInstance(spec).PutStatus(status, 0))
}

func testGroup(id kurabe.InstanceID, members int) kurabe.Group {
	g := kurabe.Group{Instance: id, Epoch: 1, Primary: id, LastNumber: members}
	for n := range members {
		g.Members = append(g.Members, kurabe.Member{ID: id.Member(n + 1), Host: "h1"})
	}
	return g
}

func TestCreateMultiAZ(t *testing.T) {
	for _, c := range []struct {
		name    string
		request NewInstance
		zone    string
		zones   []string // of the host, nil for all
		code    kurabe.Code
		text    string
	}{
		{name: "as asked", request: newRequest("orders", "postgres", "db.local.micro")},
		{name: "two servers take all memory", request: newRequest("orders", "postgres", "db.local.medium")},
		{name: "memory for one", request: newRequest("orders", "postgres", "db.local.large"),
			code: kurabe.CodeInsufficientCapacity, text: "db.local.large with a standby needs 16 GiB"},
		{name: "mariadb", request: newRequest("orders", "mariadb", "db.local.micro")},
		{name: "a zone too", request: newRequest("orders", "postgres", "db.local.micro"), zone: "us-east-1b",
			code: kurabe.CodeInvalidParameterCombo, text: "Requesting a specific availability zone is not valid for Multi-AZ instances."},
		{name: "one zone", request: newRequest("orders", "postgres", "db.local.micro"), zones: []string{"us-east-1a"},
			code: kurabe.CodeInvalidParameterCombo, text: "has a second zone"},
		{name: "two zones", request: newRequest("orders", "postgres", "db.local.micro"), zones: []string{"us-east-1a", "us-east-1c"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTestWorld(t)
			if c.zones != nil {
				host := scopetest.Host()
				host.Zones = c.zones
				scopetest.Commit(t, w.Scope, store.NewChange().PutHost(host))
			}
			c.request.Zone = c.zone
			i, err := w.CreateInstance(t.Context(), c.request)
			scopetest.WantCode(t, err, c.code, c.text)
			if _, made := w.View.NameOwner("orders"); made != (c.code == "") || made && !i.Spec.Now.MultiAZ {
				t.Errorf("made: %v, %+v", made, i.Spec)
			}
		})
	}
}

// A restored instance has a standby if the request says so, whatever its source had.
func TestRestoreMultiAZ(t *testing.T) {
	c := newTestWorld(t)
	addAs(t, c, multiAZSpec("orders"), nil)
	mustSnapshot(t, c, "nightly", "orders")
	for name, multi := range map[string]bool{"single": false, "multi": true} {
		i, err := c.RestoreSnapshot(t.Context(), "nightly", NewInstance{Name: name, MultiAZ: multi})
		if scopetest.WantCode(t, err, "", ""); err == nil && i.Spec.Now.MultiAZ != multi {
			t.Errorf("%s: %+v", name, i.Spec.Now)
		}
	}
	_, err := c.RestoreSnapshot(t.Context(), "nightly", NewInstance{Name: "third", MultiAZ: true, Zone: "us-east-1a"})
	scopetest.WantCode(t, err, kurabe.CodeInvalidParameterCombo, "Requesting a specific availability zone")
}

// Each server of an instance holds the memory of its class, in whatever it has or waits
// for, and until it is gone.
func TestReservedBytes(t *testing.T) {
	one := kurabe.InstanceSettings{Class: "db.local.micro"}
	two := kurabe.InstanceSettings{Class: "db.local.micro", MultiAZ: true}
	small := kurabe.InstanceSettings{Class: "db.local.small"}
	group := testGroup("db-A", 2)
	for _, c := range []struct {
		name    string
		now     kurabe.InstanceSettings
		next    *kurabe.InstanceSettings
		applied *kurabe.InstanceSettings
		group   *kurabe.Group
		want    int64
	}{
		{name: "one server", now: one, want: 1},
		{name: "two", now: two, want: 2},
		{name: "a standby that waits for the window", now: one, next: &two, applied: &one, want: 2},
		{name: "one server of twice the size later", now: two, next: &small, applied: &two, want: 2},
		{name: "the planner has not looked", now: one, applied: &two, want: 2},
		{name: "a standby that is being removed", now: one, applied: &one, group: &group, want: 2},
		{name: "a class that is not known", now: kurabe.InstanceSettings{Class: "db.none"}, want: 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := &store.Instance{Spec: &kurabe.InstanceSpec{Now: c.now, Next: c.next}, Group: c.group}
			if c.applied != nil {
				i.Status = &kurabe.InstanceStatus{Applied: *c.applied}
			}
			if got := placement.ReservedBytes(i); got != c.want*kurabe.GiB {
				t.Errorf("%d GiB, want %d", got/kurabe.GiB, c.want)
			}
		})
	}
}

// seen is a source of logs that notes whose are asked for.
type seen struct{ ids []kurabe.InstanceID }

func (s *seen) List(_ context.Context, id kurabe.InstanceID, _ kurabe.EngineName) ([]kurabe.LogFile, error) {
	s.ids = append(s.ids, id)
	return nil, nil
}

func (s *seen) Read(_ context.Context, id kurabe.InstanceID, _ kurabe.EngineName, _, _ string, _ int) (kurabe.LogPortion, error) {
	s.ids = append(s.ids, id)
	return kurabe.LogPortion{}, nil
}

func TestLogsAreTheWriters(t *testing.T) {
	c, logs := newTestWorld(t), &seen{}
	c.Logs = logs
	addAs(t, c, multiAZSpec("orders"), nil)
	ask := func(want kurabe.InstanceID) {
		t.Helper()
		logs.ids = nil
		_, listed := c.LogFiles(t.Context(), "orders", LogFilter{})
		_, read := c.LogPortion(t.Context(), "orders", "x", "", nil)
		if listed != nil || read != nil || len(logs.ids) != 2 || logs.ids[0] != want || logs.ids[1] != want {
			t.Errorf("%v, %v, %v; want those of %s", logs.ids, listed, read, want)
		}
	}
	ask("db-ORDERS")
	g := testGroup("db-ORDERS", 2)
	g.Primary, g.Epoch = "db-ORDERS~2", 2
	scopetest.Commit(t, c.Scope, store.NewChange().PutGroup(g, 0))
	ask("db-ORDERS~2")
}
