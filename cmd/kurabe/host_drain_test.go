package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/control"
	"kurabe/internal/reconcile"
)

func leaving(name string, stays string) reconcile.Leaving {
	return reconcile.Leaving{Name: name, State: kurabe.StateAvailable, CannotLeave: stays}
}

// What waits for a drain ends when nothing is left that can leave, and shows what does.
func TestUntilLeft(t *testing.T) {
	looks := [][]reconcile.Leaving{
		{leaving("shop", ""), leaving("ring", ""), leaving("kept", "it is a read replica")},
		{leaving("shop", ""), leaving("kept", "it is a read replica")},
		{leaving("kept", "it is a read replica")},
	}
	var shown []string
	stay, err := untilLeft(t.Context(), func() ([]reconcile.Leaving, error) {
		next := looks[0]
		looks = looks[1:] // a look too many panics
		return next, nil
	}, func(text string) { shown = append(shown, text) })
	if err != nil || len(stay) != 1 || stay[0].Name != "kept" || len(looks) != 0 {
		t.Errorf("%+v, %v, %d looks are left", stay, err, len(looks))
	}
	if want := []string{"moving ring (available), shop (available)", "moving shop (available)"}; !slices.Equal(shown, want) {
		t.Errorf("%q, want %q", shown, want)
	}
	broken := errors.New("no service")
	if _, err := untilLeft(t.Context(), func() ([]reconcile.Leaving, error) { return nil, broken }, func(string) {}); err != broken {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := untilLeft(ctx, func() ([]reconcile.Leaving, error) { cancel(); return []reconcile.Leaving{leaving("shop", "")}, nil }, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestPrintStays(t *testing.T) {
	var out strings.Builder
	ring := leaving("ring", "no host has the memory")
	ring.Cluster = true
	printStays(&out, []reconcile.Leaving{leaving("kept", "it is stopped"), ring})
	if want := "DB instance kept stays: it is stopped\nDB cluster ring stays: no host has the memory\n"; out.String() != want {
		t.Errorf("%q", out.String())
	}
}

func TestHostStatus(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	double := &kurabe.Double{From: "10.0.0.9", Since: now}
	for want, h := range map[string]control.HostInfo{
		"ready (service)": {},
		"joining":         {Joined: &kurabe.JoinedHost{}},
		"ready, a copy of it at 10.0.0.9 is refused": {
			Joined: &kurabe.JoinedHost{}, Presence: &kurabe.Presence{Double: double}, Report: &kurabe.HostReport{},
		},
		"lost for 5s, drained": {
			Joined: &kurabe.JoinedHost{Drained: true}, Presence: &kurabe.Presence{Lost: true, Since: now.Add(-5 * time.Second)}, Report: &kurabe.HostReport{},
		},
	} {
		if have := hostStatus(h, now); have != want {
			t.Errorf("%q, want %q", have, want)
		}
	}
}
