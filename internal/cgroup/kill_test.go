package cgroup_test

import (
	"testing"

	"kurabe/internal/cgroup"
)

// TestKillGroup: a process that has left its session, its parents and its folder ends, too.
func TestKillGroup(t *testing.T) {
	g := realGroup(t, cgroup.Limits{MemoryBytes: 64 << 20})
	start(t, g, "setsid sh -c 'trap \"\" TERM HUP; cd /; while :; do sleep 1; done' & sleep 300")
	eventually(t, "the daemon is in the group", func() bool {
		pids, err := g.Pids()
		return err == nil && len(pids) >= 3
	})
	if err := g.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pids, err := g.Pids(); err != nil || len(pids) != 0 {
		t.Errorf("still in it: %v, %v", pids, err)
	}
}
