package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/store"
)

// TestOpenOf: a store belongs to the service that was first.
func TestOpenOf(t *testing.T) {
	ctx := t.Context()
	kv := store.NewMemory()
	for range 2 {
		if err := store.OpenOf(ctx, kv, "us"); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.OpenOf(ctx, kv, "them"); !errors.Is(err, store.ErrForeign) {
		t.Errorf("%v", err)
	}
	if err := store.Open(ctx, kv); err != nil { // one of our own, restored from here
		t.Error(err)
	}
	nameless := store.NewMemory()
	if err := store.Open(ctx, nameless); err != nil {
		t.Fatal(err)
	}
	if err := store.OpenOf(ctx, nameless, "us"); !errors.Is(err, store.ErrForeign) {
		t.Errorf("%v", err)
	}
	strange := store.NewMemory()
	if _, err := strange.Txn(ctx, nil, []store.Op{{Key: store.Root + "x", Value: []byte("{}")}}); err != nil {
		t.Fatal(err)
	}
	if err := store.OpenOf(ctx, strange, "us"); err == nil || !strings.Contains(err.Error(), "a restore was interrupted") {
		t.Errorf("%v", err)
	}
}

// backup is what an instance and a mark of another time would be.
func backup(t *testing.T) []store.Entry {
	t.Helper()
	kv := store.NewMemory()
	if err := store.OpenOf(t.Context(), kv, "then"); err != nil {
		t.Fatal(err)
	}
	for n := range 12 {
		s := kurabe.InstanceSpec{ID: kurabe.NewInstanceID()}
		s.Name = fmt.Sprintf("i-%d", n)
		if _, err := store.NewChange().CreateInstance(s).Commit(t.Context(), kv); err != nil {
			t.Fatal(err)
		}
	}
	entries, _, err := kv.List(t.Context(), store.Root)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// TestFill is cut off at each step and done again.
func TestFill(t *testing.T) {
	ctx := t.Context()
	records := backup(t)
	if got := store.ServiceOf(records); got != "then" {
		t.Errorf("it says %q", got)
	}
	cutOff := errors.New("cut off")
	kv := store.NewMemory()
	for after := 0; ; after++ {
		limited := &limitedKV{KV: kv, left: after, err: cutOff}
		err := store.Fill(ctx, limited, "now", records, func() error { return limited.spend() })
		if err == nil {
			if after < 6 {
				t.Errorf("done in %d steps", after)
			}
			break
		}
		if !errors.Is(err, cutOff) {
			t.Fatalf("after %d steps: %v", after, err)
		}
		if err := store.OpenOf(ctx, kv, "now"); after > 0 && err == nil {
			t.Fatalf("after %d steps it can be opened", after)
		} else if after == 0 {
			kv = store.NewMemory() // opened it was
		}
	}
	if err := store.OpenOf(ctx, kv, "now"); err != nil {
		t.Error(err)
	}
	if err := store.OpenOf(ctx, kv, "then"); !errors.Is(err, store.ErrForeign) {
		t.Error(err)
	}
	got, _, err := kv.List(ctx, store.Family)
	if err != nil || len(got) != len(records) {
		t.Fatalf("%d records; want %d (%v)", len(got), len(records), err)
	}
	for n, e := range got {
		if e.Key != records[n].Key || e.Key != store.FormatKey && string(e.Value) != string(records[n].Value) {
			t.Errorf("%s is %s; want %s", e.Key, e.Value, records[n].Value)
		}
	}
	if err := store.Fill(ctx, kv, "now", records, func() error { return nil }); !errors.Is(err, store.ErrFilled) {
		t.Errorf("filled twice: %v", err)
	}
}

// limitedKV fails after so many writes.
type limitedKV struct {
	store.KV
	left int
	err  error
}

func (l *limitedKV) spend() error {
	if l.left == 0 {
		return l.err
	}
	l.left--
	return nil
}

// Txn implements store.KV.
func (l *limitedKV) Txn(ctx context.Context, conds []store.Cond, ops []store.Op) (int64, error) {
	if err := l.spend(); err != nil {
		return 0, err
	}
	return l.KV.Txn(ctx, conds, ops)
}
