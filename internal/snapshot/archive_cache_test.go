package snapshot

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/blob"
	"kurabe/internal/blob/blobtest"
)

// A repository that hangs holds up the first who asks, for a moment, and nobody else.
func TestKnownOfARepositoryThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		var asked atomic.Int64
		a := NewArchive(Store{}, func() (blob.Store, error) {
			asked.Add(1)
			<-free // no context ends that
			return nil, errors.New("it never came")
		})
		began := time.Now()
		for range 100 {
			if _, _, err := a.Known("snap-a"); err == nil {
				t.Error("it is known")
			}
		}
		if took := time.Since(began); took > lookTime {
			t.Errorf("100 questions took %v", took)
		}
		for range 2 * looksAtOnce {
			time.Sleep(lookPause + time.Second) // virtual
			if _, _, err := a.Known("snap-b"); err == nil {
				t.Error("it is known")
			}
		}
		if n := asked.Load(); n != looksAtOnce {
			t.Errorf("%d wait for it at once", n)
		}
		close(free)
		synctest.Wait()
	})
}

// An answer is believed for a while, also while the repository is away.
func TestKnownIsRemembered(t *testing.T) {
	s, r := sealedSnapshot(t)
	synctest.Test(t, func(t *testing.T) {
		memory := blobtest.NewMemory()
		gets := 0
		var down error
		memory.Faults = func(op, name string) blobtest.Fault {
			if op == "get" && name == objectOf(r.Snapshot, recordName) {
				gets++
			}
			return blobtest.Fault{Err: down}
		}
		want := func(a *Archive, there bool, failure bool, asked int) {
			t.Helper()
			gets = 0
			_, ok, err := a.Known(r.Snapshot)
			if ok != there || (err != nil) != failure || gets != asked {
				t.Errorf("there %v, %v, asked %d times; want %v, %v, %d", ok, err, gets, there, failure, asked)
			}
		}
		a := archiveIn(s, memory)
		want(a, false, false, 1)
		want(a, false, false, 0)
		time.Sleep(absentTime) // virtual
		want(a, false, false, 1)
		if err := a.Push(t.Context(), r.Snapshot, nil); err != nil {
			t.Fatal(err)
		}
		want(a, true, false, 0)
		down = errors.New("unplugged")
		time.Sleep(presentTime)
		want(a, true, false, 1) // as it was
		want(a, true, false, 0)
		fresh := archiveIn(s, memory)
		want(fresh, false, true, 1)
		want(fresh, false, true, 0)
		down = nil
		want(fresh, false, true, 0) // not asked again so soon
		time.Sleep(lookPause + time.Second)
		want(fresh, true, false, 1)
		// A record that cannot be read says nothing of the others.
		if err := memory.Put(t.Context(), objectOf("snap-bad", recordName), strings.NewReader("{")); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := fresh.Known("snap-bad"); ok || err == nil {
			t.Errorf("a bad record: %v, %v", ok, err)
		}
		if _, ok, err := fresh.Known(kurabe.SnapshotID("snap-none")); ok || err != nil {
			t.Errorf("after it: %v, %v", ok, err)
		}
	})
}

// A service that starts asks for each of its snapshots at once. A slow repository is
// no dead one: whoever had to wait too long finds it answering when it comes again.
func TestKnownOfMany(t *testing.T) {
	memory, ids := manyRecords(t, 1000)
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Memory: memory, delay: 300 * time.Millisecond}
		a := NewArchive(Store{}, func() (blob.Store, error) { return s, nil })
		var wait sync.WaitGroup
		began := time.Now()
		for _, id := range ids {
			wait.Go(func() {
				for {
					if _, ok, err := a.Known(id); err == nil {
						if !ok {
							t.Errorf("%s is not there", id)
						}
						return
					}
					time.Sleep(time.Second)
				}
			})
		}
		wait.Wait()
		if took := time.Since(began); took > time.Minute { // five, one after the other
			t.Errorf("it took %v", took)
		}
		if s.most > looksAtOnce {
			t.Errorf("%d asked at once", s.most)
		}
	})
}
