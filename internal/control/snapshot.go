package control

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/store"
)

// maxManualSnapshots is RDS's default quota for a region.
const maxManualSnapshots = 100

// snapshotName is RDS's rule (API reference, CreateDBSnapshot); automated ones are
// called rds:NAME-DATE, a form that no user can take.
var snapshotName = regexp.MustCompile(`^[a-z](-?[a-z0-9])*$`)

const maxSnapshotName = 255

// Snapshot is the read model of one snapshot: what Describe shows.
type Snapshot struct {
	Spec   *kurabe.SnapshotSpec
	Status kurabe.SnapshotStatus
	State  kurabe.SnapshotState
}

// readSnapshot makes the read model of a stored snapshot.
func readSnapshot(s *store.Snapshot) Snapshot {
	r := Snapshot{Spec: s.Spec, State: kurabe.SnapshotCreating}
	if s.Spec.CopyOf != "" {
		r.State = kurabe.SnapshotCopying
	}
	if s.Status != nil {
		r.Status, r.State = *s.Status, s.Status.State
	}
	if s.Spec.Deleting != nil {
		r.State = kurabe.SnapshotDeleting
	}
	return r
}

// Snapshot returns one snapshot by its name or ARN.
func (c *Control) Snapshot(name string) (Snapshot, error) {
	s, err := c.findSnapshot(name)
	if err != nil {
		return Snapshot{}, err
	}
	return readSnapshot(s), nil
}

func (c *Control) findSnapshot(name string) (*store.Snapshot, error) {
	folded := strings.ToLower(strings.TrimPrefix(name, c.ARN(c.Words().Snapshot, "")))
	if s, ok := c.View.SnapshotByName(c.Key(folded)); ok && s.Spec != nil && s.Spec.Source.Cluster == c.Cluster {
		return s, nil
	}
	return nil, c.noSnapshot(name)
}

func (c *Control) noSnapshot(name string) error {
	text := kurabe.WordsSnapshotNotFound
	if c.Cluster {
		text = kurabe.WordsClusterSnapshotNotFound
	}
	return kurabe.Errorf(kurabe.CodeSnapshotNotFound, text, name)
}

// SnapshotFilter narrows a list; empty fields match everything.
type SnapshotFilter struct {
	Names     []string // snapshots' names or ARNs
	Instances []string // names or ARNs of the source instances
	IDs       []string // resource ids of the source instances
	Kinds     []string
	Engines   []string
}

// Snapshots lists the snapshots that match, by name, one page at a time.
func (c *Control) Snapshots(f SnapshotFilter, marker string, max int) ([]Snapshot, string) {
	var matching []Snapshot
	has := func(list []string, value string) bool { return list == nil || slices.Contains(list, value) }
	named := func(list []string, kind, name string) bool {
		return list == nil || slices.ContainsFunc(list, func(s string) bool {
			return strings.EqualFold(strings.TrimPrefix(s, c.ARN(kind, "")), name)
		})
	}
	for _, s := range c.View.Snapshots() {
		of, w := s.Spec.Source, c.Words()
		if of.Cluster == c.Cluster && named(f.Names, w.Snapshot, s.Spec.Name) && named(f.Instances, w.DB, of.Name) &&
			has(f.IDs, resourceID(&kurabe.InstanceSpec{ID: of.Instance, Cluster: of.Cluster}, nil)) &&
			has(f.Kinds, string(s.Spec.Kind)) && has(f.Engines, string(of.Engine)) {
			matching = append(matching, readSnapshot(s))
		}
	}
	return MarkerPage(matching, func(s Snapshot) string { return s.Spec.Name }, marker, max)
}

// snapshotParameter is RDS's name of the parameter that names a snapshot.
func (c *Control) snapshotParameter(role string) string {
	return role + strings.TrimSuffix(c.Words().Is, "Instance") + "SnapshotIdentifier"
}

// foldSnapshotName checks a name by RDS's rule.
func foldSnapshotName(parameter, name string) (string, error) {
	folded := strings.ToLower(name)
	if folded == "" || len(folded) > maxSnapshotName || !snapshotName.MatchString(folded) {
		return "", kurabe.Errorf(kurabe.CodeInvalidParameterValue, kurabe.WordsIdentifier+" It has at most %d characters.", parameter, maxSnapshotName)
	}
	return folded, nil
}

// snapshotable lists the states in which a snapshot can be taken.
var snapshotable = []kurabe.State{kurabe.StateAvailable, kurabe.StateStopped, kurabe.StateStorageFull}

// CreateSnapshot stores the wish for a snapshot of an instance.
func (c *Control) CreateSnapshot(ctx context.Context, name, instance string, tags []kurabe.Tag) (Snapshot, error) {
	folded, err := foldSnapshotName(c.snapshotParameter(""), name)
	if err != nil {
		return Snapshot{}, err
	}
	if err := kurabe.CheckTags(tags); err != nil {
		return Snapshot{}, err
	}
	var id kurabe.SnapshotID
	err = c.Update(ctx, func() (*store.Change, error) {
		i, err := c.find(instance)
		if err != nil {
			return nil, err
		}
		if err := c.snapshotNameFree(folded); err != nil {
			return nil, err
		}
		have := c.read(i)
		if !slices.Contains(snapshotable, have.State) {
			return nil, kurabe.Errorf(kurabe.CodeInvalidInstanceState, kurabe.WordsSnapshotState+" It is %s.", strings.ToLower(c.Words().Title), have.Name, have.State)
		}
		if have.IsReplica() {
			return nil, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "Cannot create a snapshot of %s: it is a read replica. Take one of its source, %s, or promote it.", have.Name, have.Source)
		}
		spec := c.newSnapshot(folded, have, tags)
		id = spec.ID
		change := store.NewChange().RequireInstance(i.ID, i.SpecMod)
		return change, c.addSnapshot(change, spec)
	})
	if err != nil {
		return Snapshot{}, err
	}
	return c.snapshotByID(id)
}

// newSnapshot is the spec of a snapshot of an instance as it is now. As on RDS one that
// is given a tag gets none of the instance's.
func (c *Control) newSnapshot(name string, i Instance, tags []kurabe.Tag) kurabe.SnapshotSpec {
	source := kurabe.SourceOf(i.Spec, i.Status)
	switch {
	case len(tags) > 0:
		source.Tags = nil
	case i.Spec.CopyTagsToSnapshot:
		tags = i.Spec.Tags
	}
	now := c.Now().UTC()
	return kurabe.SnapshotSpec{
		ID: kurabe.NewSnapshotID(), Name: name, Revision: 1, Kind: kurabe.SnapshotManual, CreatedAt: now, OriginalAt: now,
		Source: source, OptionGroup: i.Spec.OptionGroup, Tags: tags,
	}
}

// addSnapshot adds a new manual snapshot to a change, within name and quota.
func (c *Control) addSnapshot(change *store.Change, s kurabe.SnapshotSpec) error {
	revision := c.View.Revision()
	if err := c.snapshotNameFree(s.Name); err != nil {
		return err
	}
	manual := 0
	for _, other := range c.View.Snapshots() {
		if other.Spec.Kind == kurabe.SnapshotManual && other.Spec.Source.Cluster == c.Cluster {
			manual++
		}
	}
	if manual >= maxManualSnapshots {
		return kurabe.Errorf(kurabe.CodeSnapshotQuota, "Cannot create more than %d manual snapshots", maxManualSnapshots)
	}
	change.CreateSnapshot(s).RequireSnapshotsUnwritten(revision)
	return nil
}

func (c *Control) snapshotNameFree(name string) error {
	if _, taken := c.View.SnapshotByName(c.Key(name)); taken {
		return kurabe.Errorf(kurabe.CodeSnapshotExists, kurabe.WordsSnapshotExists, name)
	}
	return nil
}

func (c *Control) snapshotByID(id kurabe.SnapshotID) (Snapshot, error) {
	s, ok := c.View.Snapshot(id)
	if !ok {
		return Snapshot{}, c.noSnapshot(string(id))
	}
	return readSnapshot(s), nil
}

// CopySnapshot stores the wish for a copy, which shares nothing with the source
// but blocks that the file system keeps for both. tags nil and copyTags true take
// over the source's.
func (c *Control) CopySnapshot(ctx context.Context, source, target string, tags []kurabe.Tag, copyTags bool) (Snapshot, error) {
	folded, err := foldSnapshotName(c.snapshotParameter("Target"), target)
	if err != nil {
		return Snapshot{}, err
	}
	if err := kurabe.CheckTags(tags); err != nil {
		return Snapshot{}, err
	}
	var id kurabe.SnapshotID
	err = c.Update(ctx, func() (*store.Change, error) {
		from, err := c.findSnapshot(source)
		if err != nil {
			return nil, err
		}
		have := readSnapshot(from)
		if have.State != kurabe.SnapshotAvailable {
			return nil, kurabe.Errorf(kurabe.CodeInvalidSnapshotState, "Snapshot %s is %s, and only an available one can be copied.", have.Spec.Name, have.State)
		}
		spec := *from.Spec
		spec.ID, spec.Name, spec.Revision, spec.Kind = kurabe.NewSnapshotID(), folded, 1, kurabe.SnapshotManual
		spec.CreatedAt, spec.CopyOf, spec.CopyOfName, spec.Deleting = c.Now().UTC(), from.ID, from.Spec.Name, nil
		spec.Imported, spec.VerifySeq = false, 0 // a verification was asked for of the source
		spec.Tags = tags
		if copyTags && len(tags) == 0 {
			spec.Tags = inherited(from.Spec.Tags)
		}
		id = spec.ID
		change := store.NewChange()
		claimSnapshot(change, from)
		return change, c.addSnapshot(change, spec)
	})
	if err != nil {
		return Snapshot{}, err
	}
	return c.snapshotByID(id)
}

// claimSnapshot makes sure that a change which needs the files of a snapshot and one
// that has them removed never both commit, whichever is first. A user's deletion writes
// the spec. The planner's, when the retention is over, writes the status and compares
// the spec, because it has not seen a reader that came meanwhile: so readers compare
// the status and write the spec.
func claimSnapshot(change *store.Change, s *store.Snapshot) {
	spec := *s.Spec
	spec.Revision++
	change.RequireSnapshotStatus(s.ID, s.StatusMod).PutSnapshot(spec, s.SpecMod)
}

// DeleteSnapshot stores the wish that nothing of a manual snapshot is left.
func (c *Control) DeleteSnapshot(ctx context.Context, name string) (Snapshot, error) {
	var id kurabe.SnapshotID
	err := c.Update(ctx, func() (*store.Change, error) {
		s, err := c.findSnapshot(name)
		if err != nil {
			return nil, err
		}
		have := readSnapshot(s)
		switch {
		case s.Spec.Kind != kurabe.SnapshotManual && !s.Spec.Imported: // an imported one may have no retention
			return nil, kurabe.Errorf(kurabe.CodeInvalidSnapshotState, "Only manual snapshots may be deleted; %s is an automated one and goes with the retention of its instance.", s.Spec.Name)
		case have.State != kurabe.SnapshotAvailable && have.State != kurabe.SnapshotFailed:
			return nil, kurabe.Errorf(kurabe.CodeInvalidSnapshotState, "Snapshot %s is %s; it can be deleted once it is available.", s.Spec.Name, have.State)
		}
		for _, i := range c.View.Instances() {
			if d := i.Spec.Deleting; d != nil && d.FinalSnapshot == s.ID {
				return nil, kurabe.Errorf(kurabe.CodeInvalidSnapshotState, "Snapshot %s is the final one of %s, which is still being deleted.", s.Spec.Name, i.Name())
			}
		}
		id = s.ID
		spec := *s.Spec
		spec.Revision++
		spec.Deleting = &kurabe.Deletion{At: c.Now().UTC()}
		return store.NewChange().PutSnapshot(spec, s.SpecMod), nil
	})
	if err != nil {
		return Snapshot{}, err
	}
	return c.snapshotByID(id)
}

// editSnapshot changes a snapshot's spec.
func (c *Control) editSnapshot(ctx context.Context, name string, edit func(*kurabe.SnapshotSpec) error) (Snapshot, error) {
	var id kurabe.SnapshotID
	err := c.Update(ctx, func() (*store.Change, error) {
		s, err := c.findSnapshot(name)
		if err != nil {
			return nil, err
		}
		id = s.ID
		spec := *s.Spec
		if err := edit(&spec); err != nil {
			return nil, err
		}
		spec.Revision++
		return store.NewChange().PutSnapshot(spec, s.SpecMod), nil
	})
	if err != nil {
		return Snapshot{}, err
	}
	return c.snapshotByID(id)
}
