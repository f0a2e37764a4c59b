package hostlink_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
	"kurabe/internal/hostlink/hostlinktest"
	"kurabe/internal/store"
)

func local(_ *testing.T, kv store.KV, signer hostlink.Signer) hostlink.Link {
	return hostlink.NewLocal(kv, signer, slog.New(slog.NewTextHandler(io.Discard, nil)))
}

func TestLocal(t *testing.T) { hostlinktest.Run(t, local) }

func TestFaulty(t *testing.T) {
	faults := hostlinktest.Faults{
		DropRequest: 0.3, DropAnswer: 0.3, Duplicate: 0.3, Cut: 0.5, Delay: 0.5, DelayMax: 2 * time.Millisecond,
	}
	for seed := range uint64(5) {
		hostlinktest.Run(t, func(t *testing.T, kv store.KV, signer hostlink.Signer) hostlink.Link {
			return hostlinktest.NewFaulty(local(t, kv, signer), faults, seed)
		})
	}
}

func TestCutOffHostHearsAfterwards(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	kv := store.NewMemory()
	link := hostlinktest.NewFaulty(local(t, kv, nil), hostlinktest.Faults{}, 1)
	updates := link.Assignments(ctx, "h")
	if u := <-updates; !u.Full || len(u.Orders) != 0 {
		t.Fatalf("first update %+v", u)
	}
	link.SetDown(true)
	if _, err := store.NewChange().PutAssignment(kurabe.Assignment{Host: "h", Instance: "db-1"}, 0).Commit(ctx, kv); err != nil {
		t.Fatal(err)
	}
	if err := link.PutHost(ctx, kurabe.HostReport{Host: "h"}); !errors.Is(err, hostlinktest.ErrInjected) {
		t.Errorf("call while down: %v", err)
	}
	link.SetDown(false)
	for {
		select {
		case u := <-updates:
			if len(u.Orders) == 1 {
				return
			}
		case <-ctx.Done():
			t.Fatal("the assignment never came")
		}
	}
}

func TestUnreadableAssignmentsAreNeitherGivenNorWithdrawn(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	kv := store.NewMemory()
	updates := local(t, kv, nil).Assignments(ctx, "h")
	<-updates
	for _, c := range []*store.Change{
		store.NewChange().Put(store.AssignmentPrefix("h", kurabe.KindServer)+"db-1", []byte("{")),
		store.NewChange().Put(store.AssignmentPrefix("h", kurabe.KindSnapshot)+"snap-1", []byte("{")),
		store.NewChange().PutAssignment(kurabe.Assignment{Host: "h", Instance: "db-2"}, 0).
			PutAssignment(kurabe.SnapshotAssignment{Host: "h", Snapshot: "snap-2"}, 0),
	} {
		if _, err := c.Commit(ctx, kv); err != nil {
			t.Fatal(err)
		}
	}
	heard := map[string]bool{}
	for len(heard) < 2 {
		select {
		case u := <-updates:
			for _, a := range u.Orders {
				heard[a.Envelope().ID] = true
			}
			if u.Full || len(u.Withdrawn) > 0 {
				t.Errorf("update %+v", u)
			}
		case <-ctx.Done():
			t.Fatalf("heard of %v only", heard)
		}
	}
	if !heard["db-2"] || !heard["snap-2"] {
		t.Errorf("heard of %v; want db-2 and snap-2", heard)
	}
}
