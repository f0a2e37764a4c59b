package store_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"kurabe/internal/store"
	"kurabe/internal/store/storetest"
)

func TestGate(t *testing.T) {
	storetest.Run(t, storetest.Backend{
		New: func(*testing.T) store.KV {
			g := store.NewGate(errors.New("not yet"))
			g.Through(store.NewMemory())
			return g
		},
		Compact: func(t *testing.T, _ store.KV, _ int64) { t.Skip("it is the store's own") },
	})
}

// TestGateShut: a write fails at once and is not made, a read waits, a watch goes on.
func TestGateShut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		memory := store.NewMemory()
		g := store.NewGate(errors.New("not yet"))
		g.Open() // to nothing
		early := g.Watch(ctx, store.Root, 1)
		ops := []store.Op{{Key: store.Root + "a", Value: []byte("1")}}
		if _, err := g.Txn(ctx, nil, ops); !errors.Is(err, store.ErrAway) || g.Healthy() == nil {
			t.Errorf("written before it was open: %v", err)
		}
		began := time.Now()
		if _, _, err := g.List(ctx, store.Root); !errors.Is(err, store.ErrAway) {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("a read waited for %s", took)
		}
		g.Through(memory)
		if b := <-early; !b.Resync {
			t.Errorf("%+v", b)
		}
		if _, err := g.Txn(ctx, nil, ops); err != nil || g.Healthy() != nil {
			t.Fatal(err, g.Healthy())
		}
		watch := g.Watch(ctx, store.Root, 3)
		g.Shut(errors.New("cut off"))
		g.Shut(errors.New("still"))
		read := make(chan error, 1)
		go func() {
			e, err := g.Get(ctx, store.Root+"a")
			if string(e.Value) != "1" {
				t.Errorf("%q", e.Value)
			}
			read <- err
		}()
		synctest.Wait()
		if _, err := g.Txn(ctx, nil, []store.Op{{Key: store.Root + "a", Value: []byte("2")}}); !errors.Is(err, store.ErrAway) {
			t.Errorf("written while it was shut: %v", err)
		}
		select {
		case <-read:
			t.Error("a read did not wait")
		default:
		}
		g.Open()
		if err := <-read; err != nil {
			t.Error(err)
		}
		if _, err := memory.Txn(ctx, nil, []store.Op{{Key: store.Root + "b", Value: []byte("3")}}); err != nil {
			t.Fatal(err)
		}
		if b := <-watch; b.Resync || len(b.Events) != 1 || b.Events[0].Key != store.Root+"b" {
			t.Errorf("%+v", b)
		}
	})
}
