package store_test

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"kurabe/internal/etcdnode"
	"kurabe/internal/store"
	"kurabe/internal/store/storetest"
)

func TestMemory(t *testing.T) {
	storetest.Run(t, storetest.Backend{
		New:     func(*testing.T) store.KV { return store.NewMemory() },
		Compact: func(_ *testing.T, kv store.KV, revision int64) { kv.(*store.Memory).Compact(revision) },
	})
}

func TestEtcd(t *testing.T) {
	nodes := map[store.KV]*etcdnode.Node{}
	storetest.Run(t, storetest.Backend{
		New: func(t *testing.T) store.KV {
			n := startNode(t, t.TempDir())
			kv := store.Etcd(n.Client())
			nodes[kv] = n
			return kv
		},
		Compact: func(t *testing.T, kv store.KV, revision int64) {
			if _, err := nodes[kv].Client().Compact(context.Background(), revision); err != nil {
				t.Fatal(err)
			}
		},
	})
}

func startNode(t *testing.T, dir string) *etcdnode.Node {
	t.Helper()
	n, err := etcdnode.Start(context.Background(), etcdnode.Options{
		Dir: dir, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}
