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
	faults := hostlink.Faults{
		DropRequest: 0.3, DropAnswer: 0.3, Duplicate: 0.3, Cut: 0.5, Delay: 0.5, DelayMax: 2 * time.Millisecond,
	}
	for seed := range uint64(5) {
		hostlinktest.Run(t, func(t *testing.T, kv store.KV, signer hostlink.Signer) hostlink.Link {
			return hostlink.NewFaulty(local(t, kv, signer), faults, seed)
		})
	}
}

func TestCutOffHostHearsAfterwards(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	kv := store.NewMemory()
	link := hostlink.NewFaulty(local(t, kv, nil), hostlink.Faults{}, 1)
	updates := link.Assignments(ctx, "h")
	if u := <-updates; !u.Full || len(u.Assignments) != 0 {
		t.Fatalf("first update %+v", u)
	}
	link.SetDown(true)
	if _, err := store.NewChange().PutAssignment(kurabe.Assignment{Host: "h", Instance: "db-1"}, 0).Commit(ctx, kv); err != nil {
		t.Fatal(err)
	}
	if err := link.PutHost(ctx, kurabe.HostReport{Host: "h"}); !errors.Is(err, hostlink.ErrInjected) {
		t.Errorf("call while down: %v", err)
	}
	link.SetDown(false)
	for {
		select {
		case u := <-updates:
			if len(u.Assignments) == 1 {
				return
			}
		case <-ctx.Done():
			t.Fatal("the assignment never came")
		}
	}
}
