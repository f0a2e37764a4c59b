//go:build integration

package mariadb

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"kurabe/internal/engine"
)

// TestLogEnd: the number that a clean stop leaves is the one that its follower comes to apply.
func TestLogEnd(t *testing.T) {
	p := newPair(t)
	for n := range 5 {
		p.writer.MustQuery(t, fmt.Sprintf("INSERT INTO t VALUES (%d, 'before the end')", 100+n))
	}
	p.awaitFollowing(t)
	process := p.writer.Process(t)
	if err := process.Signal(syscall.Signal(p.writer.Driver.StopSignal())); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := process.Wait(ctx); err != nil {
		t.Fatalf("it does not stop: %v", err)
	}
	d := p.writer.Driver.(*Driver)
	end, err := d.LogEnd(t.Context(), p.writer.Instance())
	if err != nil || end == 0 {
		t.Fatal(end, err)
	}
	if v := await(t, p.follower, "a follower that has all", func(v engine.RoleView) bool { return v.Kept >= end }); v.Kept != end {
		t.Errorf("the log ends at %d, and its follower has %+v", end, v)
	}
}
