package etcdnode

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestElection(t *testing.T) {
	n := mustStart(t, t.TempDir())
	ctx := testContext(t)
	first, err := Elect(ctx, n.Client(), "/election", "a")
	if err != nil {
		t.Fatal(err)
	}
	if !fenced(t, n, first) {
		t.Error("the winner's fence does not hold")
	}
	won := make(chan *Leadership, 1)
	go func() {
		second, err := Elect(ctx, n.Client(), "/election", "b")
		if err != nil {
			t.Error(err)
		}
		won <- second
	}()
	select {
	case <-won:
		t.Fatal("two leaders")
	case <-time.After(200 * time.Millisecond):
	}
	if err := first.Resign(); err != nil {
		t.Fatal(err)
	}
	second := <-won
	if fenced(t, n, first) || !fenced(t, n, second) {
		t.Error("the fence did not move with the leadership")
	}
	select {
	case <-first.Lost():
	case <-ctx.Done():
		t.Error("the first was not told")
	}
	// The same id after a crash does not wait for its own old lease.
	began := time.Now()
	third, err := Elect(ctx, n.Client(), "/election", "b")
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("taking over from a former life took %s", took)
	}
	if fenced(t, n, second) || !fenced(t, n, third) {
		t.Error("the former life's fence still holds")
	}
	// Its lease goes, the key stays.
	if err := second.Resign(); err != nil {
		t.Fatal(err)
	}
	if !fenced(t, n, third) {
		t.Error("the former life took the key with it")
	}
}

func TestElectionGivesUpWithItsContext(t *testing.T) {
	n := mustStart(t, t.TempDir())
	if _, err := Elect(testContext(t), n.Client(), "/election", "a"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(testContext(t), 50*time.Millisecond)
	defer cancel()
	if _, err := Elect(ctx, n.Client(), "/election", "b"); err == nil {
		t.Error("two leaders")
	}
	r, err := n.Client().Leases(testContext(t))
	if err != nil || len(r.Leases) != 1 {
		t.Errorf("leases left: %v %v; want the leader's only", r, err)
	}
}

// fenced says whether a transaction that compares the leadership commits.
func fenced(t *testing.T, n *Node, l *Leadership) bool {
	t.Helper()
	r, err := n.Client().Txn(testContext(t)).
		If(clientv3.Compare(clientv3.ModRevision(l.Key), "=", l.Revision)).
		Then(clientv3.OpPut("/fenced", "x")).Commit()
	if err != nil {
		t.Fatal(err)
	}
	return r.Succeeded
}

func TestOlder(t *testing.T) {
	for version, want := range map[string]bool{
		"3.4.23": true, "3.5.12": true, "3.5.13": false, "3.5.9": true, "3.6.0-rc.1": false, "3.7.3": false, "4.0.0": false, "": true, "x": true,
	} {
		if got := older(version, versionMin); got != want {
			t.Errorf("%q: %v", version, got)
		}
	}
}
