package snapshot

import (
	"context"
	"slices"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
)

func TestWriterOf(t *testing.T) {
	const w, f, y, r = kurabe.DutyWrite, kurabe.DutyFollow, kurabe.DutyStepDown, kurabe.DutyFenced
	absent := func(a kurabe.Assignment) kurabe.Assignment { return with(a, kurabe.GoalAbsent) }
	type list = []kurabe.Assignment
	for _, c := range []struct {
		name    string
		members list
		want    kurabe.InstanceID
	}{
		{"none is here", nil, ""},
		{"one without a group", list{sourceInstance("db-1", 1)}, "db-1"},
		{"one without a group that goes", list{absent(sourceInstance("db-1", 1))}, "db-1"},
		{"the only one here", list{member(2, f, 1)}, second},
		{"the first one writes", list{member(1, w, 1), member(2, f, 1)}, "db-1"},
		{"the second one writes", list{member(1, f, 2), member(2, w, 2)}, second},
		{"it hands over", list{member(1, f, 2), member(2, y, 2)}, ""},
		{"nobody has taken over", list{member(1, r, 2), member(2, f, 2)}, ""},
		{"the one before has not heard of it", list{member(1, w, 1), member(2, w, 2)}, second},
		{"the writer goes with all others", list{absent(member(1, f, 2)), absent(member(2, w, 2))}, second},
		{"a writer goes and another one stays", list{member(1, w, 1), absent(member(2, w, 2))}, "db-1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 {
				if got, known := writerOf(c.members); got.Instance != c.want || known != (c.want != "") {
					t.Errorf("%q, %v; want %q", got.Instance, known, c.want)
				}
				slices.Reverse(c.members)
			}
		})
	}
}

// A snapshot is taken of the server that writes, and again when that one is deposed.
func TestSnapshotIsOfTheWriter(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		for _, a := range []kurabe.Assignment{elsewhere(member(1, kurabe.DutyFollow, 2)), member(2, kurabe.DutyWrite, 2)} {
			a.Generation = 2
			b.send(hostlink.Update{Orders: []kurabe.Word{a}})
		}
		b.order(takeOf("snap-1", "db-1", 1))
		b.pass(50 * time.Second)
		unit := b.set.List()[0]
		if id := unit.takes().writer; id != second {
			t.Fatalf("it is taken of %q", id)
		}
		deposed := of(member(2, kurabe.DutyFenced, 3), 3, kurabe.Role{Epoch: 3, Duty: kurabe.DutyFenced})
		b.send(hostlink.Update{Orders: []kurabe.Word{deposed}})
		if id := unit.takes().writer; id != "" {
			t.Errorf("nobody writes, and it is taken of %q", id)
		}
		b.send(hostlink.Update{Orders: []kurabe.Word{of(elsewhere(member(1, kurabe.DutyWrite, 3)), 3, kurabe.Role{Epoch: 3, Duty: kurabe.DutyWrite})}})
		b.pass(90 * time.Second)
		if id := unit.takes().writer; id != "db-1" {
			t.Errorf("it is taken of %q", id)
		}
		if r := b.last("snap-1"); r.Failure != nil || r.Done {
			t.Errorf("%+v", r)
		}
		// A follower that goes is no loss.
		b.send(hostlink.Update{Orders: []kurabe.Word{with(of(deposed, 4, *deposed.Role), kurabe.GoalAbsent)}})
		b.pass(20 * time.Second)
		b.wantDone("snap-1", 1)
		if id := unit.takes().writer; id != "" {
			t.Errorf("it is done, and taken of %q", id)
		}
	})
}

// The checksums of a snapshot may take hours, and nobody waits for them.
func TestLookDoesNotWaitForASeal(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.folder.SealTime = time.Hour
		b.order(takeOf("snap-1", "db-1", 1))
		b.pass(101 * time.Second)
		b.wantDone("snap-1", 1)
		b.stop()
		b.start()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // virtual
		defer cancel()
		for _, u := range b.set.List() {
			if err := u.AwaitLook(ctx); err != nil {
				b.Error(err)
			}
		}
		b.pass(2 * time.Hour)
		if sealed, err := b.folder.Sealed("snap-1"); err != nil || !sealed {
			b.Errorf("sealed in the end: %v, %v", sealed, err)
		}
	})
}
