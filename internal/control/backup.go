package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/control/scope"
	"kurabe/internal/store"
)

// BackupState is the status of an instance's automated backups, in RDS's words.
type BackupState string

// The states. Creating ones wait for the first snapshot; retained ones have outlived
// their instance.
const (
	BackupCreating BackupState = "creating"
	BackupActive   BackupState = "active"
	BackupRetained BackupState = "retained"
)

// AutomatedBackup is the read model of the automated backups of one instance, which
// may be gone.
type AutomatedBackup struct {
	Source   kurabe.SnapshotSource
	State    BackupState
	Window   Restorable
	Schedule string // the backup window, "" once the instance is gone
	Tags     []kurabe.Tag
}

// Restorable is the range of moments that can be restored, without its gaps; zero
// when there is none.
type Restorable struct{ Earliest, Latest time.Time }

// automated lists the automated snapshots of an instance that can be restored from,
// oldest first.
func (c *Control) automated(id kurabe.InstanceID) []*store.Snapshot {
	var list []*store.Snapshot
	for _, s := range c.View.SnapshotsOf(id) {
		if s.Spec != nil && s.Spec.Kind == kurabe.SnapshotAutomated && readSnapshot(s).State == kurabe.SnapshotAvailable {
			list = append(list, s)
		}
	}
	log, _ := c.View.LogOf(id)
	slices.SortFunc(list, func(a, b *store.Snapshot) int { return log.CompareTaken(a.Status.Placed(), b.Status.Placed()) })
	return list
}

// restorable is what snapshots and log of an instance reach together, in the
// milliseconds that the API has.
func (c *Control) restorable(id kurabe.InstanceID) Restorable {
	log, _ := c.View.LogOf(id)
	var facts []kurabe.SnapshotFacts
	for _, s := range c.automated(id) {
		facts = append(facts, s.Status.Placed())
	}
	var r Restorable
	r.Earliest, r.Latest = log.Window(facts)
	return r
}

// reach is the range of moments that the log on its host brings one snapshot to.
func reach(s *store.Snapshot, log kurabe.InstanceLog) (from, to time.Time, ok bool) {
	return log.Moments(s.Status.Placed())
}

// newer says whether an automated snapshot is newer than another of its instance; one
// that was never taken is only when neither was.
func (c *Control) newer(s, than *store.Snapshot) bool {
	one, other := readSnapshot(s).Status, readSnapshot(than).Status
	a, b := one.Placed(), other.Placed()
	if a.TakenAt.IsZero() && b.TakenAt.IsZero() {
		return s.Spec.CreatedAt.After(than.Spec.CreatedAt)
	}
	log, _ := c.View.LogOf(s.Spec.Source.Instance)
	return log.CompareTaken(a, b) > 0
}

// BackupFilter narrows a list; empty fields match everything.
type BackupFilter struct {
	Instances []string // names or ARNs
	IDs       []string // resource ids of the instances, or ARNs of the backups
	States    []string
}

// AutomatedBackups lists the automated backups that match, by resource id, one page
// at a time.
func (c *Control) AutomatedBackups(f BackupFilter, marker string, max int) ([]AutomatedBackup, string) {
	byID := map[kurabe.InstanceID]AutomatedBackup{}
	for _, i := range c.View.Instances() {
		// A replica that was a source has those of that time, any other has none.
		have := c.read(i)
		kept := have.Settings().KeepsLog() && (!have.IsReplica() || len(c.automated(i.ID)) > 0)
		if i.Spec.Cluster == c.Cluster && kept {
			byID[i.ID] = AutomatedBackup{Source: kurabe.SourceOf(i.Spec, have.Status), Schedule: i.Spec.BackupWindow, Tags: i.Spec.Tags}
		}
	}
	newest, named := map[kurabe.InstanceID]*store.Snapshot{}, map[kurabe.InstanceID]string{}
	for _, s := range c.View.Snapshots() {
		id := s.Spec.Source.Instance
		if _, there := c.View.Instance(id); there || s.Spec.Source.Cluster != c.Cluster || s.Spec.Kind != kurabe.SnapshotAutomated || s.Spec.Deleting != nil {
			continue
		}
		if s.Spec.GoneAs != "" {
			named[id] = s.Spec.GoneAs
		}
		// The newest says best what the instance was.
		if have := newest[id]; have == nil || c.newer(s, have) {
			newest[id] = s
			byID[id] = AutomatedBackup{Source: s.Spec.Source, State: BackupRetained, Tags: s.Spec.Tags}
		}
	}
	var list []AutomatedBackup
	for id, b := range byID {
		if name := named[id]; name != "" && b.State == BackupRetained {
			b.Source.Name = name
		}
		b.Window = c.restorable(id)
		if b.State == "" {
			b.State = BackupActive
			if len(c.automated(id)) == 0 {
				b.State = BackupCreating
			}
		}
		if c.backupMatches(f, b) {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b AutomatedBackup) int {
		return strings.Compare(string(a.Source.Instance), string(b.Source.Instance))
	})
	return MarkerPage(list, func(b AutomatedBackup) string { return string(b.Source.Instance) }, marker, max)
}

func (c *Control) backupMatches(f BackupFilter, b AutomatedBackup) bool {
	any := func(list []string, names ...string) bool {
		return list == nil || slices.ContainsFunc(names, func(n string) bool { return scope.HasFold(list, n) })
	}
	id := b.Source.Instance
	return any(f.Instances, b.Source.Name, c.ARN(c.Words().DB, b.Source.Name)) &&
		any(f.IDs, resourceID(&kurabe.InstanceSpec{ID: id, Cluster: c.Cluster}, nil), c.BackupARN(id)) && any(f.States, string(b.State))
}

// BackupARN names the automated backups of an instance.
func (c *Control) BackupARN(id kurabe.InstanceID) string {
	return c.ARN(c.Words().Backup, "ab-"+strings.ToLower(strings.TrimPrefix(string(id), "db-")))
}

// AutomatedBackup returns the automated backups of an instance by its resource id or
// by their ARN.
func (c *Control) AutomatedBackup(id string) (AutomatedBackup, error) {
	list, _ := c.AutomatedBackups(BackupFilter{IDs: []string{id}}, "", 1)
	if id == "" || len(list) == 0 {
		return AutomatedBackup{}, kurabe.Errorf(kurabe.CodeBackupNotFound, "%sAutomatedBackup %s not found.", c.Words().Is, id)
	}
	return list[0], nil
}

// deleteAtOnce bounds the snapshots that one transaction marks; a store has a limit.
const deleteAtOnce = 32

// DeleteAutomatedBackup stores the wish that nothing is left of the automated backups
// of an instance that is gone.
func (c *Control) DeleteAutomatedBackup(ctx context.Context, id string) (AutomatedBackup, error) {
	b, err := c.AutomatedBackup(id)
	if err != nil {
		return b, err
	}
	if b.State != BackupRetained {
		return b, kurabe.Errorf(kurabe.CodeInvalidBackupState, "The automated backups of %s are %s: those of an existing instance go by a backup retention period of 0.", b.Source.Name, b.State)
	}
	for more := true; more; {
		err := c.Update(ctx, func() (*store.Change, error) {
			change := store.NewChange()
			marked := 0
			for _, s := range c.View.SnapshotsOf(b.Source.Instance) {
				if s.Spec == nil || s.Spec.Kind != kurabe.SnapshotAutomated || s.Spec.Deleting != nil || marked == deleteAtOnce {
					continue
				}
				spec := *s.Spec
				spec.Revision++
				spec.Deleting = &kurabe.Deletion{At: c.Now().UTC()}
				change.PutSnapshot(spec, s.SpecMod)
				marked++
			}
			more = marked == deleteAtOnce
			return change, nil
		})
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

// Protection is from when the data of an instance could be had back; a zero time says that
// there is nothing of the kind.
type Protection struct {
	Backup     time.Time // the moment that the newest backup shows
	Verified   time.Time // end of the newest good verification of one, by a restore
	Restorable time.Time // latest restorable time
}

// Protection looks at all snapshots of the instance, manual ones included.
func (c *Control) Protection(id kurabe.InstanceID) (p Protection) {
	for _, s := range c.View.SnapshotsOf(id) {
		if s.Status == nil {
			continue
		}
		if f := s.Status.Facts; s.Status.State == kurabe.SnapshotAvailable && f.TakenAt.After(p.Backup) {
			p.Backup = f.TakenAt
		}
		if v := s.Status.Verified; v != nil && v.OK && v.At.After(p.Verified) {
			p.Verified = v.At
		}
	}
	p.Restorable = c.restorable(id).Latest
	return p
}
