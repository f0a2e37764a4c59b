package storetest

import (
	"context"
	"fmt"
	"testing"

	"kurabe/internal/store"
)

// next returns the watch's next batch.
func next(t *testing.T, in <-chan store.Batch) store.Batch {
	t.Helper()
	select {
	case b, ok := <-in:
		if !ok {
			t.Fatal("the watch ended")
		}
		return b
	case <-testContext(t).Done():
		t.Fatal("the watch is silent")
	}
	return store.Batch{}
}

func testWatch(t *testing.T, kv store.KV, _ Backend) {
	ctx, cancel := context.WithCancel(testContext(t))
	_, rev, err := kv.List(ctx, key(""))
	if err != nil {
		t.Fatal(err)
	}
	in := kv.Watch(ctx, key(""), rev+1)
	mustTxn(t, kv, nil, store.Op{Key: store.Root + "other", Value: []byte("x")})
	want := mustTxn(t, kv, nil, put("a", "1"), put("b", "2"))
	b := next(t, in)
	if b.Revision != want || len(b.Events) != 2 || b.Resync {
		t.Fatalf("first batch %+v; want both writes of revision %d", b, want)
	}
	for _, e := range b.Events {
		if e.ModRevision != want || e.Deleted || len(e.Value) == 0 {
			t.Errorf("event %+v", e)
		}
	}
	want = mustTxn(t, kv, nil, store.Op{Key: key("a"), Delete: true})
	if b := next(t, in); b.Revision != want || len(b.Events) != 1 || !b.Events[0].Deleted || b.Events[0].Key != key("a") {
		t.Errorf("delete: %+v; want revision %d", b, want)
	}
	cancel()
	for b := range in { // it must end
		if !b.Resync {
			t.Errorf("after the end: %+v", b)
		}
	}
}

func testWatchPast(t *testing.T, kv store.KV, _ Backend) {
	const n = 300
	var revs []int64
	for i := range n {
		revs = append(revs, mustTxn(t, kv, nil, put("a", fmt.Sprint(i)), put("b", fmt.Sprint(i))))
	}
	in := kv.Watch(testContext(t), key(""), revs[100])
	seen := 0
	for seen < 2*(n-100) {
		b := next(t, in)
		if len(b.Events)%2 != 0 {
			t.Fatalf("a transaction was split: %+v", b)
		}
		for _, e := range b.Events {
			if want := revs[100+seen/2]; e.ModRevision != want {
				t.Fatalf("event %d has revision %d; want %d", seen, e.ModRevision, want)
			}
			seen++
		}
		if last := b.Events[len(b.Events)-1].ModRevision; b.Revision != last {
			t.Fatalf("batch says revision %d, its last event %d", b.Revision, last)
		}
	}
}

func testWatchCompacted(t *testing.T, kv store.KV, b Backend) {
	first := mustTxn(t, kv, nil, put("a", "1"))
	mustTxn(t, kv, nil, put("a", "2"))
	last := mustTxn(t, kv, nil, put("a", "3"))
	b.Compact(t, kv, last)
	in := kv.Watch(testContext(t), key(""), first)
	if b := next(t, in); !b.Resync {
		t.Errorf("first batch %+v; want a resync", b)
	}
	if b, ok := <-in; ok {
		t.Errorf("after the resync: %+v", b)
	}
	// What is there stays readable, and a watch from now on works.
	if e, err := kv.Get(testContext(t), key("a")); err != nil || string(e.Value) != "3" {
		t.Errorf("get: %+v %v", e, err)
	}
	in = kv.Watch(testContext(t), key(""), last+1)
	want := mustTxn(t, kv, nil, put("a", "4"))
	if b := next(t, in); b.Revision != want {
		t.Errorf("batch %+v; want revision %d", b, want)
	}
}
