package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"kurabe/internal/etcdnode"
	"kurabe/internal/harness"
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

// TestEtcdOfOthers runs over three members behind TLS, each store at a place of its own.
func TestEtcdOfOthers(t *testing.T) {
	etcd := harness.StartEtcd(t, 3, "127.0.0.1")
	place := 0
	x := etcdnode.NewExternal(etcdnode.ExternalOptions{
		Access: etcdnode.Access{Endpoints: etcd.Endpoints(), CAFile: etcd.CAFile, CertFile: etcd.CertFile, KeyFile: etcd.KeyFile},
		Key:    func(key string) string { return key }, Mark: store.FormatKey, Log: slog.New(slog.DiscardHandler),
	})
	if err := x.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	storetest.Run(t, storetest.Backend{
		New: func(*testing.T) store.KV {
			place++
			return store.EtcdAt(x.Client(), fmt.Sprintf("/shared/%d/", place))
		},
		Compact: func(t *testing.T, _ store.KV, revision int64) {
			if _, err := x.Client().Compact(context.Background(), revision); err != nil {
				t.Fatal(err)
			}
		},
	})
	r, err := x.Client().Get(t.Context(), "\x00", clientv3.WithFromKey(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range r.Kvs {
		if !strings.HasPrefix(string(kv.Key), "/shared/") {
			t.Errorf("%s is out of place", kv.Key)
		}
	}
}

// TestMarkGuardsWrites: nothing is written beside records that were removed or replaced.
func TestMarkGuardsWrites(t *testing.T) {
	ctx, n := t.Context(), startNode(t, t.TempDir())
	kv, err := store.OpenAt(ctx, n.Client(), "/shared/", "us")
	if err != nil {
		t.Fatal(err)
	}
	a := []store.Op{{Key: store.Root + "a", Value: []byte("1")}}
	revision, err := kv.Txn(ctx, nil, a)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Txn(ctx, []store.Cond{{Key: a[0].Key, ModRevision: revision + 1}}, a); !errors.Is(err, store.ErrConflict) {
		t.Errorf("%v", err)
	}
	for _, what := range []string{"removed", "replaced"} {
		if _, err := n.Client().Delete(ctx, "/shared/", clientv3.WithPrefix()); err != nil {
			t.Fatal(err)
		}
		if what == "replaced" {
			if err := store.OpenOf(ctx, store.EtcdAt(n.Client(), "/shared/"), "us"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := kv.Txn(ctx, nil, a); !errors.Is(err, store.ErrForeign) {
			t.Errorf("%s: %v", what, err)
		}
		if e, err := kv.Get(ctx, a[0].Key); err != nil || e.ModRevision != 0 {
			t.Errorf("%s: written: %+v (%v)", what, e, err)
		}
	}
	if _, err := store.OpenAt(ctx, n.Client(), "/shared/", "them"); !errors.Is(err, store.ErrForeign) {
		t.Errorf("%v", err)
	}
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
