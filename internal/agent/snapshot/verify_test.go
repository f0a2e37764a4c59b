package snapshot

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/hostlink"
)

// verifyOf is an order to verify, the number of which is that of the generation.
func verifyOf(id kurabe.SnapshotID, generation kurabe.Generation) kurabe.SnapshotAssignment {
	a := takeOf(id, "db-1", generation)
	a.Source.Instance = "db-1"
	a.Verify = int64(generation) - 1
	return a
}

// takenSnapshot takes one that is to be verified.
func (b *snapshotBed) takenSnapshot(id kurabe.SnapshotID) {
	b.Helper()
	b.folder.VerifyTime = 100 * time.Second
	b.order(verifyOf(id, 1))
	b.pass(200 * time.Second)
	b.wantDone(id, 1)
	if r := b.last(id); r.Verified != nil || r.Verifying != "" || b.folder.Verified(id) != 0 {
		b.Errorf("verified without an order: %+v", r)
	}
}

func (b *snapshotBed) wantVerified(id kurabe.SnapshotID, seq int64, times int) {
	b.Helper()
	r := b.last(id)
	if v := r.Verified; v == nil || v.Seq != seq || v.At.IsZero() || r.Verifying != "" || !r.Done || b.folder.Verified(id) != times {
		b.Errorf("verified %d times, reported %+v (%+v); want number %d, %d times", b.folder.Verified(id), r, r.Verified, seq, times)
	}
}

func TestSnapshotIsVerifiedOnce(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.takenSnapshot("snap-1")
		b.folder.Rotten("snap-1", "a page is not what was written")
		b.order(verifyOf("snap-1", 2))
		b.pass(50 * time.Second)
		if r := b.last("snap-1"); !strings.HasPrefix(r.Verifying, "50 %") || r.Verified != nil || !r.Done {
			t.Errorf("in the middle: %+v", r)
		}
		b.pass(time.Minute)
		b.wantVerified("snap-1", 1, 1)
		if v := b.last("snap-1").Verified; v.OK || !slices.Equal(v.Problems, []string{"a page is not what was written"}) || v.Duration != 100*time.Second {
			t.Errorf("%+v", v)
		}
		reports := len(b.heard())
		b.stop()
		b.start()
		b.pass(24 * time.Hour)
		b.wantVerified("snap-1", 1, 1)
		if again := len(b.heard()) - reports; again != 1 {
			t.Errorf("%d reports of what is known", again)
		}
		// Another order of anything else keeps the result.
		next := verifyOf("snap-1", 3)
		next.Verify = 1
		b.order(next)
		b.pass(time.Hour)
		b.wantVerified("snap-1", 1, 1)
		b.folder.Rotten("snap-1")
		b.order(verifyOf("snap-1", 4))
		b.pass(time.Hour)
		b.wantVerified("snap-1", 3, 2)
		if !b.last("snap-1").Verified.OK {
			t.Error("the newer result is not told")
		}
	})
}

func TestVerificationIsDoneAgainAfterAnEnd(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.takenSnapshot("snap-1")
		b.order(verifyOf("snap-1", 2))
		b.pass(50 * time.Second)
		b.stop()
		if b.folder.Scratch() != 1 {
			t.Fatal("the end left nothing to sweep")
		}
		b.start()
		b.pass(50 * time.Second)
		if b.folder.Verified("snap-1") != 0 {
			t.Error("it counts although it was cut off")
		}
		b.pass(time.Hour)
		b.wantVerified("snap-1", 1, 1)
		if b.folder.Scratch() != 0 {
			t.Error("something is left")
		}
		// What nobody verifies any more is swept too.
		b.order(verifyOf("snap-1", 3))
		b.pass(50 * time.Second)
		b.stop()
		b.link.updates <- hostlink.Update{Orders: []kurabe.Word{removalOf(verifyOf("snap-1", 3))}}
		b.start()
		b.pass(time.Hour)
		if r := b.last("snap-1"); !r.Absent || r.Verified != nil || b.folder.Scratch() != 0 {
			t.Errorf("after its removal: %+v, %d left", r, b.folder.Scratch())
		}
	})
}

func TestHinderedVerificationIsTriedAgain(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.takenSnapshot("snap-1")
		var tries atomic.Int32
		var full atomic.Bool
		full.Store(true)
		b.folder.Before = func(step string, _ kurabe.SnapshotID) error {
			if step == stepVerifySnapshot {
				if tries.Add(1); full.Load() {
					return errors.New("the disk is full")
				}
			}
			return nil
		}
		b.order(verifyOf("snap-1", 2))
		b.pass(time.Second)
		r := b.last("snap-1")
		if !r.Done || r.Failure != nil || !strings.Contains(r.Verifying, "the disk is full") {
			t.Errorf("%+v", r)
		}
		// Wake-ups do not make it more often.
		for range 5 {
			b.order(verifyOf("snap-1", 2))
		}
		b.pass(time.Hour)
		if n := tries.Load(); n < 5 || n > 8 {
			t.Errorf("%d tries in an hour", n)
		}
		full.Store(false)
		b.pass(time.Hour)
		b.wantVerified("snap-1", 1, 1)
	})
}

func TestOneVerificationAtATime(t *testing.T) {
	inSnapshotBubble(t, func(b *snapshotBed) {
		b.folder.VerifyTime = 100 * time.Second
		ids := []kurabe.SnapshotID{"snap-1", "snap-2", "snap-3"}
		for _, id := range ids {
			b.order(verifyOf(id, 2))
		}
		b.pass(time.Hour) // the folder notes two at a time as wrong
		for _, id := range ids {
			b.wantVerified(id, 1, 1)
		}
	})
}
