package reconcile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"kurabe"
	"kurabe/internal/engine/fake"
	"kurabe/internal/store"
)

// fleetSnapshotTime is how long a snapshot takes: some edits and restarts happen
// meanwhile.
const fleetSnapshotTime = 6 * time.Second

// flakySnapshots makes each step of each snapshot go wrong once: cut off before its
// deed, or after it.
type flakySnapshots struct {
	*fake.Snapshots

	mu   sync.Mutex // guards the rest
	rand *rand.Rand
	calm bool
	hurt map[string]bool
}

func newFlakySnapshots(seed uint64) *flakySnapshots {
	f := &flakySnapshots{Snapshots: fake.NewSnapshots(), rand: rand.New(rand.NewPCG(seed, 11)), hurt: map[string]bool{}}
	f.TakeTime = fleetSnapshotTime
	f.Before, f.After = f.maybe, f.maybe
	return f
}

func (f *flakySnapshots) maybe(step string, id kurabe.SnapshotID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if key := step + string(id); !f.calm && !f.hurt[key] && f.rand.IntN(2) == 0 {
		f.hurt[key] = true
		return fake.ErrCut
	}
	return nil
}

func (f *flakySnapshots) rest() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calm = true
}

// fleetSnapshots are those that were asked for.
type fleetSnapshots struct {
	ids   []kurabe.SnapshotID
	gone  []kurabe.SnapshotID
	final map[kurabe.SnapshotID]bool // true: its instance had files, so it must become available
	count int
	kept  map[kurabe.InstanceID]bool // deleted ones: whether with KeepBackups
}

// newSnapshot is a spec as the API would write it.
func (f *fleet) newSnapshot(of kurabe.InstanceSpec) kurabe.SnapshotSpec {
	f.snaps.count++
	id := kurabe.NewSnapshotID()
	f.snaps.ids = append(f.snaps.ids, id)
	return kurabe.SnapshotSpec{
		ID: id, Name: fmt.Sprintf("snapshot-%d", f.snaps.count), Revision: 1, Kind: kurabe.SnapshotManual, CreatedAt: time.Now(),
		Source: kurabe.SnapshotSource{Instance: of.ID, Name: of.Name, Engine: of.Engine, CreatedAt: of.CreatedAt, Settings: of.Now},
	}
}

// deleteWithFinal marks an instance for deletion after one more snapshot.
func (f *fleet) deleteWithFinal(i *store.Instance, s kurabe.InstanceSpec) {
	final := f.newSnapshot(s)
	if f.snaps.final == nil {
		f.snaps.final = map[kurabe.SnapshotID]bool{}
	}
	f.snaps.final[final.ID] = len(i.Assignments) > 0
	s.Deleting.FinalSnapshot = final.ID
	f.commit(store.NewChange().PutInstance(s, i.SpecMod).CreateSnapshot(final))
}

// editSnapshots makes, copies or deletes a snapshot, as a request would.
func (f *fleet) editSnapshots() {
	switch kind := f.rand.IntN(5); {
	case kind < 2 && len(f.ids) > 0:
		if i, ok := f.view.Instance(f.ids[f.rand.IntN(len(f.ids))]); ok {
			f.commit(store.NewChange().CreateSnapshot(f.newSnapshot(*i.Spec)))
		}
	case kind < 4 && len(f.snaps.ids) > 0:
		at := f.rand.IntN(len(f.snaps.ids))
		s, ok := f.view.Snapshot(f.snaps.ids[at])
		if !ok {
			return
		}
		if kind == 2 {
			f.copySnapshot(s)
			return
		}
		spec := *s.Spec
		spec.Revision++
		spec.Deleting = &kurabe.Deletion{At: time.Now()}
		if _, final := f.snaps.final[s.ID]; final {
			return // the instance may wait for it
		}
		f.snaps.gone = append(f.snaps.gone, s.ID)
		f.snaps.ids = slices.Delete(f.snaps.ids, at, at+1)
		f.commit(store.NewChange().PutSnapshot(spec, s.SpecMod))
	}
}

func (f *fleet) copySnapshot(s *store.Snapshot) {
	if s.Status == nil || s.Status.State != kurabe.SnapshotAvailable {
		return
	}
	c := f.newSnapshot(kurabe.InstanceSpec{ID: s.Spec.Source.Instance, Name: s.Spec.Source.Name, Engine: kurabe.Postgres})
	c.CopyOf, c.CopyOfName, c.Source = s.ID, s.Spec.Name, s.Spec.Source
	f.commit(store.NewChange().RequireSnapshot(s.ID, s.SpecMod).CreateSnapshot(c))
}

// logSnapshots tells what the run was about.
func (f *fleet) logSnapshots() {
	states := map[kurabe.SnapshotState]int{}
	copies := 0
	for _, s := range f.view.Snapshots() {
		states[s.Status.State]++
		if s.Spec.CopyOf != "" {
			copies++
		}
	}
	f.t.Logf("snapshots: %v, %d copies, %d final, %d deleted", states, copies, len(f.snaps.final), len(f.snaps.gone))
	if states[kurabe.SnapshotAvailable] == 0 || len(f.snaps.gone) == 0 {
		f.t.Error("the run shows nothing of snapshots")
	}
}

// missingSnapshots says what is not as the specs of snapshots say.
func (f *fleet) missingSnapshots() string {
	for _, id := range f.snaps.gone {
		if left := f.leftOfSnapshot(id); left != "" {
			return string(id) + " was deleted: " + left
		}
	}
	for _, id := range f.snaps.ids {
		if missing := f.unsatisfiedSnapshot(id); missing != "" {
			return string(id) + ": " + missing
		}
	}
	return f.missingBackups()
}

// missingBackups says what is wrong with the automated snapshots.
func (f *fleet) missingBackups() string {
	there := map[kurabe.InstanceID]int{}
	for _, s := range f.view.Snapshots() {
		if s.Spec.Kind != kurabe.SnapshotAutomated {
			continue
		}
		of := s.Spec.Source.Instance
		if kept, gone := f.snaps.kept[of]; gone && !kept {
			return string(of) + " was deleted with its backups: " + s.Spec.Name + " is left"
		}
		if s.Status != nil && s.Status.State == kurabe.SnapshotAvailable {
			there[of]++
		}
	}
	for _, id := range f.ids {
		i, _ := f.view.Instance(id)
		days := i.Status.Applied.RetentionDays
		if days == 0 && there[id] > 0 {
			return string(id) + " keeps automated snapshots without a retention"
		}
		if days > 0 && there[id] == 0 && i.Status.State == kurabe.StateAvailable {
			return string(id) + " has no automated snapshot"
		}
	}
	return ""
}

func (f *fleet) leftOfSnapshot(id kurabe.SnapshotID) string {
	entries, _, err := f.kv.List(context.Background(), store.Root)
	if err != nil {
		return err.Error()
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Key, "/"+string(id)) || strings.Contains(e.Key, "/name/snapshot/") && strings.Contains(string(e.Value), string(id)) {
			return "record " + e.Key
		}
	}
	for _, h := range f.hosts {
		if _, state, _ := h.folder.Find(id); state != "absent" {
			return "its folder on " + string(h.id) + " is " + state
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(h.homes), "snapshot-assignments", string(id)+".json")); err == nil {
			return "an assignment is saved on " + string(h.id)
		}
	}
	return ""
}

func (f *fleet) unsatisfiedSnapshot(id kurabe.SnapshotID) string {
	s, ok := f.view.Snapshot(id)
	if !ok || s.Status == nil {
		return "not planned"
	}
	if s.Status.SpecRevision != s.Spec.Revision {
		return "its status is old"
	}
	switch s.Status.State {
	case kurabe.SnapshotFailed:
		if f.snaps.final[id] || !strings.Contains(s.Status.Reason, "is gone") && !strings.Contains(s.Status.Reason, "no longer available") {
			return "it failed: " + s.Status.Reason
		}
	case kurabe.SnapshotAvailable:
		if s.Status.Facts.Percent != 100 || s.Status.Facts.SizeBytes != fake.SnapshotBytes {
			return fmt.Sprintf("its facts are %+v", s.Status.Facts)
		}
	default:
		return fmt.Sprintf("it is %s (%s)", s.Status.State, s.Status.Reason)
	}
	for _, h := range f.hosts {
		want := "absent"
		if s.Status.State == kurabe.SnapshotAvailable && h.id == s.Status.Host {
			want = "complete"
		}
		if _, state, _ := h.folder.Find(id); state != want {
			return fmt.Sprintf("its folder on %s is %s; want it %s", h.id, state, want)
		}
	}
	return ""
}
