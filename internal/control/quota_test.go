package control

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"kurabe"
	"kurabe/internal/control/network"
	"kurabe/internal/control/parameter"
	"kurabe/internal/store"
)

// besides returns a second server over the store of the first.
func besides(t testing.TB, c *Control) *Control {
	t.Helper()
	config := c.Scope
	config.View = store.NewView(c.KV)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = config.View.Run(ctx) }) // ends with ctx only
	t.Cleanup(func() { cancel(); wg.Wait() })
	if err := config.View.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return New(config, c.Config)
}

// Of creates that run side by side, on one server or on two, only as many commit
// as there is room for.
func TestGroupQuotaHoldsSideBySide(t *testing.T) {
	for _, r := range []struct {
		name   string
		code   kurabe.Code
		max    int
		count  func(c *Control) int
		create func(c *Control, name string) error
	}{
		{"parameter groups", kurabe.CodeParameterGroupQuota, parameter.MaxGroups, func(c *Control) int { return len(c.View.ParameterGroups()) }, func(c *Control, name string) error {
			_, err := c.CreateParameterGroup(t.Context(), kurabe.ParameterGroup{Name: name, Family: "postgres15", Description: "d"})
			return err
		}},
		{"subnet groups", kurabe.CodeSubnetGroupQuota, network.MaxSubnetGroups, func(c *Control) int { return len(c.View.SubnetGroups()) }, func(c *Control, name string) error {
			_, err := c.CreateSubnetGroup(t.Context(), name, "d", []string{"subnet-us-east-1a", "subnet-us-east-1b"}, nil)
			return err
		}},
	} {
		t.Run(r.name, func(t *testing.T) {
			const room, racers = 3, 24
			one := newTestWorld(t)
			for n := range r.max - room {
				if err := r.create(one, fmt.Sprintf("before-%d", n)); err != nil {
					t.Fatal(err)
				}
			}
			servers := []*Control{one, besides(t, one)}
			errs := make([]error, racers)
			var wg sync.WaitGroup
			for n := range racers {
				wg.Go(func() { errs[n] = r.create(servers[n%2], fmt.Sprintf("racer-%d", n)) })
			}
			wg.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
				} else if kurabe.CodeOf(err) != r.code {
					t.Error(err)
				}
			}
			if got := r.count(one); won != room || got != r.max {
				t.Errorf("%d creates won, there are %d; want %d and %d", won, got, room, r.max)
			}
		})
	}
}
