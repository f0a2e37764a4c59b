package etcdnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestRestore(t *testing.T) {
	n := mustStart(t, t.TempDir())
	ctx := testContext(t)
	for i := range 25 {
		put(t, n, fmt.Sprintf("/k/%02d", i), "old")
		put(t, n, fmt.Sprintf("/k/%02d", i), fmt.Sprint(i))
	}
	put(t, n, "/gone", "x")
	if _, err := n.Client().Delete(ctx, "/gone"); err != nil {
		t.Fatal(err)
	}
	lease, err := n.Client().Grant(ctx, 60)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Client().Put(ctx, "/leased", "x", clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "backup")
	if err := n.Backup(ctx, path); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "etcd")
	change := func(key string, value []byte) ([]byte, bool, error) {
		return append([]byte("new "), value...), key != "/k/07", nil
	}
	records, err := ReadBackup(ctx, path, change)
	if err != nil {
		t.Fatal(err)
	}
	if err := Restore(ctx, dir, records, silent()); err != nil {
		t.Fatal(err)
	}
	if err := Restore(ctx, dir, records, silent()); err == nil {
		t.Error("restored over a state")
	}
	back := mustStart(t, dir)
	for key, want := range map[string]string{"/k/00": "new 0", "/k/24": "new 24", "/k/07": "", "/gone": "", "/leased": ""} {
		if got := get(t, back, key); got != want {
			t.Errorf("%s: %q; want %q", key, got, want)
		}
	}
	if again := rewritten(t, records); !reflect.DeepEqual(again, records) || len(again) != 24 {
		t.Errorf("%d records came back of %d", len(again), len(records))
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func() []byte{
		"cut":     func() []byte { return content[:len(content)/2] },
		"changed": func() []byte { c := append([]byte(nil), content...); c[len(c)/2]++; return c },
		"empty":   func() []byte { return nil },
	} {
		bad := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(bad, damage(), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadBackup(ctx, bad, change); !errors.Is(err, ErrBackup) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// rewritten are records that were written one by one, and read.
func rewritten(t *testing.T, records []Record) []Record {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rewritten")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(WriteBackup(f, records), f.Close()); err != nil {
		t.Fatal(err)
	}
	again, err := ReadBackup(testContext(t), path, func(_ string, value []byte) ([]byte, bool, error) { return value, true, nil })
	if err != nil {
		t.Fatal(err)
	}
	return again
}
