package snapshot

import (
	"errors"
	"strings"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
)

// pairHere puts a writer and a standby on the host, for which commits wait.
func (b *snapshotBed) pairHere(generation kurabe.Generation, waitFor ...kurabe.InstanceID) (writer, standby kurabe.Assignment) {
	b.Helper()
	role := kurabe.Role{Epoch: 1, Duty: kurabe.DutyWrite, Followers: ids(second), WaitFor: waitFor}
	writer, standby = of(member(1, kurabe.DutyWrite, 1), generation, role), follows(generation)
	b.send(hostlink.Update{Orders: []kurabe.Word{writer, standby}})
	return writer, standby
}

func TestSnapshotOfAStandby(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.pairHere(2, second)
		b.order(takeOf("snap-1", "db-1", 1))
		b.pass(50 * time.Second)
		if got := b.set.List()[0].takes(); got != (taking{writer: "db-1", standby: second}) {
			t.Errorf("it is taken of %v", got)
		}
		b.pass(60 * time.Second)
		b.wantDone("snap-1", 1)
		if f := b.last("snap-1").Facts; f.TakenFrom != second || f.StandbySkipped != "" {
			t.Errorf("%+v", f)
		}
	})
}

// Each of these has the snapshot taken anew of the server that writes.
func TestSnapshotLosesItsStandby(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *snapshotBed)
		why    string
	}{
		"commits wait for it no more": {func(b *snapshotBed) { b.pairHere(3) }, "no standby has every commit"},
		"it is to rest": {func(b *snapshotBed) {
			b.send(hostlink.Update{Orders: []kurabe.Word{of(follows(3), 3, kurabe.Role{Epoch: 1, Duty: kurabe.DutyFenced})}})
		}, "no standby has every commit"},
		"it goes": {func(b *snapshotBed) {
			b.send(hostlink.Update{Orders: []kurabe.Word{with(follows(3), kurabe.GoalAbsent)}})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inSnapshotBubble(t, func(b *snapshotBed) {
				b.pairHere(2, second)
				b.order(takeOf("snap-1", "db-1", 1))
				b.pass(50 * time.Second)
				c.change(b)
				if got := b.set.List()[0].takes(); got != (taking{writer: "db-1"}) {
					t.Errorf("it is taken of %v", got)
				}
				b.pass(110 * time.Second)
				b.wantDone("snap-1", 1)
				if f := b.last("snap-1").Facts; f.TakenFrom != "" || f.StandbySkipped != c.why {
					t.Errorf("%+v", f)
				}
			})
		})
	}
}

// A standby that cannot be copied is no failure of the snapshot, and what is told of it is known
// after a restart.
func TestSnapshotOfAStandbyFails(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.folder.NoStandby = func(kurabe.InstanceID) error { return errors.New("it is full of holes") }
		b.pairHere(2, second)
		b.order(takeOf("snap-1", "db-1", 1))
		b.pass(110 * time.Second)
		b.wantDone("snap-1", 1)
		for range 2 {
			f := b.last("snap-1").Facts
			if f.TakenFrom == second || !strings.Contains(f.StandbySkipped, string(second)) || !strings.Contains(f.StandbySkipped, "full of holes") {
				t.Errorf("%+v", f)
			}
			b.stop()
			b.start()
			b.pass(time.Second)
		}
	})
}
