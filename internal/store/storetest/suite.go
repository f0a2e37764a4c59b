package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"kurabe/internal/store"
)

// deadline bounds every wait of the suite.
const deadline = 30 * time.Second

// key is a key that the store accepts.
func key(name string) string { return store.Root + "test/" + name }

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	t.Cleanup(cancel)
	return ctx
}

// Backend is one implementation: New makes an empty store, Compact forgets its
// history up to a revision.
type Backend struct {
	New     func(t *testing.T) store.KV
	Compact func(t *testing.T, kv store.KV, revision int64)
}

// Run runs the suite.
func Run(t *testing.T, b Backend) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, kv store.KV, b Backend)
	}{
		{"get and list", testGetAndList},
		{"list of many pages", testListPages},
		{"conditions", testConditions},
		{"prefix condition", testPrefixCondition},
		{"refused transactions", testRefused},
		{"all or nothing", testAtomic},
		{"one of many creates", testRace},
		{"watch", testWatch},
		{"watch from the past", testWatchPast},
		{"watch of a forgotten past", testWatchCompacted},
		{"values are copies", testCopies},
		{"ended context", testEndedContext},
		{"snapshots", testSnapshots},
		{"groups", testGroups},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, b.New(t), b) })
	}
}

func put(name, value string) store.Op {
	return store.Op{Key: key(name), Value: []byte(value)}
}

func mustTxn(t *testing.T, kv store.KV, conds []store.Cond, ops ...store.Op) int64 {
	t.Helper()
	rev, err := kv.Txn(testContext(t), conds, ops)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func testGetAndList(t *testing.T, kv store.KV, _ Backend) {
	ctx := testContext(t)
	if e, err := kv.Get(ctx, key("a")); err != nil || e.ModRevision != 0 || e.Value != nil {
		t.Errorf("absent key: %+v %v", e, err)
	}
	first := mustTxn(t, kv, nil, put("b", "1"), put("a", "2"), store.Op{Key: store.Root + "tesu", Value: []byte("x")})
	second := mustTxn(t, kv, nil, put("b", "3"))
	if second <= first {
		t.Errorf("revisions do not rise: %d, %d", first, second)
	}
	e, err := kv.Get(ctx, key("b"))
	if err != nil || string(e.Value) != "3" || e.ModRevision != second {
		t.Errorf("get: %+v %v; want 3 at %d", e, err, second)
	}
	list, rev, err := kv.List(ctx, key(""))
	if err != nil || rev != second || len(list) != 2 ||
		list[0].Key != key("a") || list[0].ModRevision != first || list[1].Key != key("b") {
		t.Errorf("list: %+v at %d, %v", list, rev, err)
	}
	if rev := mustTxn(t, kv, nil, store.Op{Key: key("none"), Delete: true}); rev != 0 {
		t.Errorf("deleting nothing made revision %d", rev)
	}
	if rev := mustTxn(t, kv, nil, store.Op{Key: key("a"), Delete: true}); rev <= second {
		t.Errorf("delete made revision %d", rev)
	}
	if e, err := kv.Get(ctx, key("a")); err != nil || e.ModRevision != 0 {
		t.Errorf("deleted key: %+v %v", e, err)
	}
}

func testListPages(t *testing.T, kv store.KV, _ Backend) {
	const n = 1203
	for i := 0; i < n; i += 100 {
		var ops []store.Op
		for j := i; j < min(i+100, n); j++ {
			ops = append(ops, put(fmt.Sprintf("%05d", j), strings.Repeat("v", 100)))
		}
		mustTxn(t, kv, nil, ops...)
	}
	list, _, err := kv.List(testContext(t), key(""))
	if err != nil || len(list) != n {
		t.Fatalf("%d entries, %v; want %d", len(list), err, n)
	}
	for i, e := range list {
		if e.Key != key(fmt.Sprintf("%05d", i)) {
			t.Fatalf("entry %d is %s", i, e.Key)
		}
	}
}

func testConditions(t *testing.T, kv store.KV, _ Backend) {
	rev := mustTxn(t, kv, []store.Cond{{Key: key("a")}}, put("a", "1"))
	for _, c := range []struct {
		name string
		cond store.Cond
		want error
	}{
		{"must not exist, does", store.Cond{Key: key("a")}, store.ErrConflict},
		{"older revision", store.Cond{Key: key("a"), ModRevision: rev - 1}, store.ErrConflict},
		{"absent key with a revision", store.Cond{Key: key("b"), ModRevision: rev}, store.ErrConflict},
		{"right revision", store.Cond{Key: key("a"), ModRevision: rev}, nil},
	} {
		_, err := kv.Txn(testContext(t), []store.Cond{c.cond}, []store.Op{put("c", "x")})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v; want %v", c.name, err, c.want)
		}
	}
}

func testPrefixCondition(t *testing.T, kv store.KV, _ Backend) {
	under := func(rev int64) []store.Cond { return []store.Cond{{Key: key("p/"), ModRevision: rev, Prefix: true}} }
	mustTxn(t, kv, under(0), put("x", "nothing is there yet"))
	mustTxn(t, kv, nil, put("p/a", "1"))
	rev := mustTxn(t, kv, nil, put("p/b", "1"))
	mustTxn(t, kv, under(rev), put("x", "1"))
	mustTxn(t, kv, under(rev), put("x", "2")) // x is not under p/
	mustTxn(t, kv, nil, store.Op{Key: key("p/a"), Delete: true})
	mustTxn(t, kv, under(rev), put("x", "3"))
	mustTxn(t, kv, nil, put("p/c", "1"))
	if _, err := kv.Txn(testContext(t), under(rev), []store.Op{put("x", "4")}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a new key under the prefix: %v; want a conflict", err)
	}
}

func testRefused(t *testing.T, kv store.KV, _ Backend) {
	many := make([]store.Op, store.TxnOpsMax+1)
	for i := range many {
		many[i] = put(fmt.Sprint(i), "x")
	}
	for _, c := range []struct {
		name, words string
		ops         []store.Op
	}{
		{"too long a record", key("long"), []store.Op{put("long", strings.Repeat("x", store.RecordBytesMax+1))}},
		{"too many writes", fmt.Sprintf("at most %d", store.TxnOpsMax), many},
		{"one key twice", "twice", []store.Op{put("a", "1"), {Key: key("a"), Delete: true}}},
		{"foreign key", "outside", []store.Op{{Key: "/else", Value: []byte("x")}}},
	} {
		_, err := kv.Txn(testContext(t), nil, c.ops)
		if err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v; want an error that says %q", c.name, err, c.words)
		}
	}
	if list, _, err := kv.List(testContext(t), store.Root); err != nil || len(list) != 0 {
		t.Errorf("a refused transaction wrote %v %v", list, err)
	}
	mustTxn(t, kv, nil, many[:store.TxnOpsMax]...)
	mustTxn(t, kv, nil, put("long", strings.Repeat("x", store.RecordBytesMax)))
}

func testAtomic(t *testing.T, kv store.KV, _ Backend) {
	mustTxn(t, kv, nil, put("a", "1"))
	conds := []store.Cond{{Key: key("b")}, {Key: key("a")}}
	if _, err := kv.Txn(testContext(t), conds, []store.Op{put("b", "1"), {Key: key("a"), Delete: true}}); !errors.Is(err, store.ErrConflict) {
		t.Fatal(err)
	}
	list, _, err := kv.List(testContext(t), key(""))
	if err != nil || len(list) != 1 || list[0].Key != key("a") {
		t.Errorf("after a conflict: %v %v", list, err)
	}
}

func testRace(t *testing.T, kv store.KV, _ Backend) {
	const racers = 16
	var wg sync.WaitGroup
	results := make([]error, racers)
	for i := range racers {
		wg.Go(func() {
			_, results[i] = kv.Txn(testContext(t), []store.Cond{{Key: key("name")}}, []store.Op{put("name", fmt.Sprint(i))})
		})
	}
	wg.Wait()
	won := 0
	for _, err := range results {
		if err == nil {
			won++
		} else if !errors.Is(err, store.ErrConflict) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d of %d creates won", won, racers)
	}
}

func testCopies(t *testing.T, kv store.KV, _ Backend) {
	value := []byte("before")
	mustTxn(t, kv, nil, store.Op{Key: key("a"), Value: value})
	copy(value, "AFTER!")
	e, err := kv.Get(testContext(t), key("a"))
	if err != nil || string(e.Value) != "before" {
		t.Errorf("the store shares the writer's bytes: %q %v", e.Value, err)
	}
	copy(e.Value, "AFTER!")
	if e, err := kv.Get(testContext(t), key("a")); err != nil || string(e.Value) != "before" {
		t.Errorf("the store shares the reader's bytes: %q %v", e.Value, err)
	}
}

func testEndedContext(t *testing.T, kv store.KV, _ Backend) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := kv.Get(ctx, key("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("get: %v", err)
	}
	if _, _, err := kv.List(ctx, key("")); !errors.Is(err, context.Canceled) {
		t.Errorf("list: %v", err)
	}
	if _, err := kv.Txn(ctx, nil, []store.Op{put("a", "1")}); !errors.Is(err, context.Canceled) {
		t.Errorf("txn: %v", err)
	}
	for b := range kv.Watch(ctx, key(""), 1) {
		if !b.Resync {
			t.Errorf("watch: %+v", b)
		}
	}
}
