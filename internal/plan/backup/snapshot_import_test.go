package backup_test

import (
	"slices"
	"testing"
	"time"

	"kurabe"
	"kurabe/internal/plan/backup"
)

// newImported is a snapshot whose instance nobody knows.
func newImported(t *testing.T) *snapSim {
	t.Helper()
	s := newSnapSim(t)
	s.w.Spec.Imported, s.w.Instance = true, nil
	return s
}

func TestSnapshotIsImported(t *testing.T) {
	s := newImported(t)
	s.step()
	s.want(kurabe.SnapshotCreating)
	if s.w.Assignment != nil {
		t.Fatalf("assigned to nobody: %+v", s.w.Assignment)
	}
	s.w.Hosts = []kurabe.HostReport{{Host: "h2"}, {Host: "h1"}}
	s.step()
	if a := s.w.Assignment; a == nil || a.Host != "h1" || a.Of != "" || a.From != "" || a.Goal != kurabe.SnapshotPresent || s.w.Status.Host != "h1" {
		t.Fatalf("%+v, %+v", a, s.w.Status)
	}
	s.settle()
	s.want(kurabe.SnapshotAvailable)
	if want := []string{"KURABE-EVENT-0006", "KURABE-EVENT-0007"}; !slices.Equal(s.events, want) {
		t.Fatalf("events %v, want %v", s.events, want)
	}
	s.w.Spec.Deleting = &kurabe.Deletion{At: monday}
	s.settle()
	if !s.gone {
		t.Fatal("it cannot be deleted")
	}
}

// A repository that is away while a snapshot is imported must not end in an order to
// remove the snapshot from it.
func TestImportThatIsNotFoundRemovesNothing(t *testing.T) {
	s := newImported(t)
	s.w.Hosts = []kurabe.HostReport{{Host: "h1"}}
	s.step()
	s.report(func(r *kurabe.SnapshotReport) {
		r.Failure = &kurabe.Failure{Step: "find-snapshot", Message: "the repository does not answer", Attempts: 5}
	})
	s.step()
	s.want(kurabe.SnapshotFailed)
	if s.w.Assignment.Goal != kurabe.SnapshotPresent {
		t.Fatal("it is to be removed")
	}
	s.settle()
	s.want(kurabe.SnapshotAvailable)
}

// What somebody brought back from the repository was often past its retention.
func TestImportedSnapshotDoesNotExpire(t *testing.T) {
	s := newImported(t)
	s.w.Hosts = []kurabe.HostReport{{Host: "h1"}}
	s.w.Spec.Kind = kurabe.SnapshotAutomated
	s.w.Retention = &backup.Retention{Days: 1, Gone: true, Until: monday.Add(-30 * 24 * time.Hour)}
	s.settle()
	s.want(kurabe.SnapshotAvailable)
	if s.w.Assignment.Goal != kurabe.SnapshotPresent {
		t.Fatal("it is to be removed")
	}
	s.w.Spec.Imported = false // the same one, taken here
	if r := backup.Next(s.w); r.Status == nil || r.Status.State != kurabe.SnapshotDeleting {
		t.Fatalf("one that was taken here does not expire: %+v", r.Status)
	}
}

// Of an instance that lives, it is one of its backups: it goes with the instance, and
// with the retention, though not below the hands of who has just brought it back.
func TestImportedSnapshotOfALivingInstance(t *testing.T) {
	const days = 2
	old := monday.AddDate(0, 0, -30)
	newImport := func(t *testing.T, r backup.Retention) *snapSim {
		s := newImported(t)
		s.w.Hosts = []kurabe.HostReport{{Host: "h1"}}
		s.w.Spec.Kind, s.w.Retention = kurabe.SnapshotAutomated, &r
		s.settle()
		s.want(kurabe.SnapshotAvailable)
		return s
	}
	for name, c := range map[string]struct {
		r    backup.Retention
		kept time.Duration // after the import
	}{
		"long over":      {backup.Retention{Days: days, Newer: old}, days * 24 * time.Hour},
		"over later":     {backup.Retention{Days: days, Newer: monday.AddDate(0, 0, 1)}, (days + 1) * 24 * time.Hour},
		"none any more":  {backup.Retention{Days: 0}, 24 * time.Hour},
		"the newest one": {backup.Retention{Days: days}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newImport(t, c.r)
			if c.kept == 0 {
				s.w.Now = monday.AddDate(1, 0, 0)
				if s.step(); s.w.Status.State != kurabe.SnapshotAvailable {
					t.Fatalf("it goes: %+v", s.w.Status)
				}
				return
			}
			s.w.Now = monday.Add(c.kept - time.Second)
			if r := backup.Next(s.w); r.Status != nil || !r.LookAgain.Equal(monday.Add(c.kept)) {
				t.Fatalf("%+v, looks again at %s", r.Status, r.LookAgain)
			}
			s.w.Now = monday.Add(c.kept)
			if r := backup.Next(s.w); r.Status == nil || r.Status.State != kurabe.SnapshotDeleting {
				t.Fatalf("it stays: %+v", r)
			}
		})
	}
	t.Run("with its instance, found or not", func(t *testing.T) {
		for _, state := range []kurabe.SnapshotState{kurabe.SnapshotAvailable, kurabe.SnapshotFailed, kurabe.SnapshotCreating} {
			s := newImport(t, backup.Retention{Days: days})
			s.w.Status.State = state
			s.w.Retention = &backup.Retention{Days: days, Dropped: true}
			if r := backup.Next(s.w); r.Status == nil || r.Status.State != kurabe.SnapshotDeleting || r.Assignment.Goal != kurabe.SnapshotAbsent {
				t.Fatalf("%s: its instance waits for it: %+v", state, r)
			}
		}
	})
}

// A copy of an imported snapshot takes over its spec and is made like any other.
func TestCopyOfAnImportedSnapshot(t *testing.T) {
	s := newImported(t)
	s.w.Spec.CopyOf, s.w.Spec.CopyOfName = "snap-b", "older"
	s.w.From = &kurabe.SnapshotStatus{ID: "snap-b", State: kurabe.SnapshotAvailable, Host: "h2"}
	s.step()
	s.want(kurabe.SnapshotCopying)
	if a := s.w.Assignment; a.Host != "h2" || a.From != "snap-b" {
		t.Fatalf("%+v", a)
	}
}
