package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"kurabe"
	"kurabe/internal/store"
)

// testGroups has several planners change who may write one instance: each change is made
// of what was read, so every one of them counts, and a writer follows on a writer.
func testGroups(t *testing.T, kv store.KV, _ Backend) {
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	view := store.NewView(kv)
	go view.Run(ctx) // ends with ctx
	const planners, each = 4, 10
	members := []kurabe.Member{{ID: "db-1", Host: "h"}, {ID: "db-1~2", Host: "h"}}
	revision, err := store.NewChange().PutGroup(kurabe.Group{Instance: "db-1", Primary: "db-1", LastNumber: 2, Members: members}, 0).
		PutAssignment(kurabe.Assignment{Host: "h", Instance: "db-1"}, 0).PutAssignment(kurabe.Assignment{Host: "h", Instance: "db-1~2"}, 0).Commit(ctx, kv)
	if err == nil {
		err = view.WaitRevision(ctx, revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	failures := make([]error, planners)
	for n := range planners {
		wg.Go(func() {
			for range each {
				if err := promote(ctx, kv, view); err != nil {
					failures[n] = err
					return
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(failures...); err != nil {
		t.Fatal(err)
	}
	i, ok := view.Any("db-1")
	if !ok || i.Group.Epoch != planners*each || i.Writer() != "db-1" || len(i.Assignments) != 2 {
		t.Fatalf("after %d changes of writer: %+v", planners*each, i)
	}
	for _, a := range i.Assignments {
		if a.Value.Role.Epoch != i.Group.Epoch || a.ModRevision != i.GroupMod {
			t.Errorf("the assignment of %s is of epoch %d, the group of %d", a.Value.Instance, a.Value.Role.Epoch, i.Group.Epoch)
		}
	}
}

// promote makes the other server the writer, and tries again while somebody else was
// first.
func promote(ctx context.Context, kv store.KV, view *store.View) error {
	for {
		seen := view.Revision()
		i, ok := view.Any("db-1")
		if !ok {
			return errors.New("the instance is gone")
		}
		g := i.Group.Clone()
		g.Epoch++
		g.Primary = map[kurabe.InstanceID]kurabe.InstanceID{"db-1": "db-1~2", "db-1~2": "db-1"}[g.Primary]
		c := store.NewChange().PutGroup(*g, i.GroupMod)
		for _, a := range i.Assignments {
			next := a.Value
			next.Generation++
			next.Role = &kurabe.Role{Epoch: g.Epoch}
			c.PutAssignment(next, a.ModRevision)
		}
		revision, err := c.Commit(ctx, kv)
		switch {
		case err == nil:
			return view.WaitRevision(ctx, revision)
		case !errors.Is(err, store.ErrConflict):
			return fmt.Errorf("promote: %w", err)
		}
		// What was first is on its way to the view, or there by now.
		if err := view.WaitRevision(ctx, seen+1); err != nil {
			return err
		}
	}
}
