package logstream

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"kurabe"
	"kurabe/internal/blob"
	"kurabe/internal/blob/blobtest"
)

// TestCheck: a piece whose bytes are others, or that is gone, is found by a check, is told of
// with the moment before it, and nothing claims to reach over it, also after a restart.
func TestCheck(t *testing.T) {
	for name, spoil := range map[string]func(context.Context, blob.Store, string){
		"other bytes": func(ctx context.Context, repo blob.Store, name string) {
			_ = repo.Delete(ctx, name)
			_ = repo.Put(ctx, name, bytes.NewReader(bytes.Repeat([]byte{7}, 2500)))
		},
		"gone": func(ctx context.Context, repo blob.Store, name string) { _ = repo.Delete(ctx, name) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, b := context.Background(), newBed(t, quickDir(t), blobtest.NewMemory())
				t.Cleanup(b.stopAll)
				b.start()
				time.Sleep(1500 * time.Millisecond)
				takenAt, from := b.server.snapshot()
				b.server.write(2500)
				time.Sleep(2 * time.Minute)
				b.server.rotate()
				b.server.write(2500)
				time.Sleep(2 * time.Minute)
				end := b.log().Last().At
				if r, err := b.store.Check(ctx, db); err != nil || len(r.Problems) > 0 || !strings.Contains(r.Summary, "with 5000 bytes") {
					t.Fatalf("of a log that is whole: %+v, %v", r, err)
				}
				b.want(takenAt, from, end)
				for info := range b.repo.List(ctx, "") {
					if strings.HasSuffix(info.Name, ".marks") || !strings.Contains(info.Name, fileName(1)) {
						continue
					}
					spoil(ctx, b.repo, info.Name)
				}
				r, err := b.store.Check(ctx, db)
				if err != nil || len(r.Problems) == 0 || !strings.Contains(r.Problems[0].Text, "missing or damaged") ||
					r.Problems[0].From.Before(takenAt) || r.Problems[0].From.After(end) {
					t.Fatalf("of a log with a damaged piece: %+v, %v", r, err)
				}
				wanted := func() {
					t.Helper()
					b.refuse(takenAt, from, end)
					b.want(takenAt, from, r.Problems[0].From)
					if r, err := b.store.Check(ctx, db); err != nil || len(r.Problems) > 0 {
						t.Errorf("once more: %+v, %v", r, err)
					}
				}
				wanted()
				if !slices.ContainsFunc(b.log().Runs, func(r kurabe.LogRun) bool { return r.Damaged && r.Ended != "" }) {
					t.Errorf("no run says that it is damaged: %+v", b.log().Runs)
				}
				b.stop()
				b.start()
				time.Sleep(2 * surveyOther)
				wanted()
			})
		})
	}
}

// spoilt makes a repository, and what has another answer in its place for a while.
type spoilt func(*testing.T) (repo *blob.Repository, spoil, mend func())

// goneForAWhile is in memory; its mark goes too where mark says so.
func goneForAWhile(mark bool) spoilt {
	return func(t *testing.T) (*blob.Repository, func(), func()) {
		m := blobtest.NewMemory()
		repo, err := blobtest.Repository(context.Background(), m)
		if err != nil {
			t.Fatal(err)
		}
		var away atomic.Bool
		m.Faults = func(op, _ string) blobtest.Fault {
			return blobtest.Fault{Gone: away.Load() && (mark || op != "open")}
		}
		return repo, func() { away.Store(true) }, func() { away.Store(false) }
	}
}

// replacedBy is a folder in whose place another lies for a while.
func replacedBy(other func(dir string) error) spoilt {
	return func(t *testing.T) (*blob.Repository, func(), func()) {
		dir := filepath.Join(quickDir(t), "repository")
		repo, err := blob.Init(context.Background(), dir, blob.Options{})
		if err != nil {
			t.Fatal(err)
		}
		repo.Store = repo.Raw() // a compressor is made once, and belongs to no bubble
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		return repo, func() { must(errors.Join(os.Rename(dir, dir+".ours"), other(dir))) },
			func() { must(errors.Join(os.RemoveAll(dir), os.Rename(dir+".ours", dir))) }
	}
}

// TestCheckOfAnotherRepository: a repository that says "no such object" of everything costs
// no mark and no piece, neither by a check nor by surveys nor by Trim. One that is proven to
// be ours has lost the log: the check tells so.
func TestCheckOfAnotherRepository(t *testing.T) {
	for name, fresh := range map[string]spoilt{
		"not found for all":      goneForAWhile(true),
		"not found but the mark": goneForAWhile(false),
		"emptied":                replacedBy(func(dir string) error { return os.Mkdir(dir, 0o700) }),
		"replaced by another": replacedBy(func(dir string) error {
			_, err := blob.Init(context.Background(), dir, blob.Options{})
			return err
		}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				repo, spoil, mend := fresh(t)
				ctx, b := context.Background(), newBedIn(t, quickDir(t), repo)
				t.Cleanup(b.stopAll)
				b.start()
				time.Sleep(1500 * time.Millisecond)
				takenAt, from := b.server.snapshot()
				for range 3 {
					b.server.write(2500)
					time.Sleep(2 * time.Minute)
				}
				end := b.log().Runs[0].Pushed.At
				b.want(takenAt, from, end)
				had := objects(t, repo)
				spoil()
				ours := repo.Verify(ctx) == nil
				if r, err := b.store.Check(ctx, db); (err == nil) != ours || (len(r.Problems) > 0) != ours || ours && r.Problems[0].From.IsZero() {
					t.Errorf("it was checked: %+v, %v", r, err)
				}
				if _, err := b.store.Check(ctx, db); !ours && err == nil {
					t.Error("it was checked once more")
				}
				if ours { // and nothing claims what cannot be read
					b.refuse(takenAt, from, end)
				}
				mend()
				if now := objects(t, repo); !slices.Equal(now, had) {
					t.Errorf("the check left %q of %q", now, had)
				}
				spoil()
				time.Sleep(2 * surveyOther)
				mend()
				_ = b.store.Trim(ctx, db, takenAt) // may say that less is there than before
				time.Sleep(2 * surveyOther)
				if err := b.store.Trim(ctx, db, takenAt); err != nil {
					t.Error(err)
				}
				if now := objects(t, repo); len(now) < len(had) {
					t.Errorf("surveys and Trim left %q of %q", now, had)
				}
				b.want(takenAt, from, end)
				if r, err := b.store.Check(ctx, db); err != nil || len(r.Problems) > 0 {
					t.Errorf("after that: %+v, %v", r, err)
				}
			})
		})
	}
}

// TestCheckTellsWhatASurveyMissed: a log that is gone as a whole is told of by the next check,
// once, though a survey has ended its run before; what is seen again is told by none.
func TestCheckTellsWhatASurveyMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		repo, spoil, mend := goneForAWhile(false)(t)
		ctx, b := context.Background(), newBedIn(t, quickDir(t), repo)
		t.Cleanup(b.stopAll)
		b.start()
		time.Sleep(1500 * time.Millisecond)
		takenAt, from := b.server.snapshot()
		b.server.write(2500)
		time.Sleep(2 * time.Minute)
		end := b.log().Runs[0].Pushed.At
		check := func(lost bool) { // of what is pushed meanwhile too
			t.Helper()
			if r, err := b.store.Check(ctx, db); err != nil || len(r.Problems) > 0 != lost {
				t.Fatalf("%+v, %v; want problems: %v", r, err, lost)
			}
		}
		spoil()
		time.Sleep(2 * surveyOther)
		b.refuse(takenAt, from, end)
		check(true)
		check(false)
		mend()
		time.Sleep(2 * surveyOther)
		b.want(takenAt, from, end)
		spoil()
		time.Sleep(2 * surveyOther)
		mend()
		time.Sleep(2 * surveyOther)
		check(false)
	})
}

func objects(t *testing.T, repo blob.Store) (names []string) {
	t.Helper()
	for info, err := range repo.List(context.Background(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, info.Name)
	}
	return names
}
