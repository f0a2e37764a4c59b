package control

import (
	"context"
	"fmt"
	"strings"

	"kurabe"
	"kurabe/internal/control/installed"
	"kurabe/internal/store"
)

// RestoreSnapshot stores the wish for a new instance with the data of a snapshot.
// What the request leaves out is as it was with the source, tags included, but for what
// belongs to the name: windows and groups are those of a new instance, as on RDS.
func (c *Control) RestoreSnapshot(ctx context.Context, snapshot string, n NewInstance) (Instance, error) {
	from, err := c.findSource(snapshot)
	if err != nil {
		return Instance{}, err
	}
	if err := checkRestorable(from); err != nil {
		return Instance{}, err
	}
	if len(n.Tags) == 0 {
		n.Tags = restoredTags(from.Spec)
	}
	spec, version, err := c.restoredSpec(from, n)
	if err != nil {
		return Instance{}, err
	}
	return c.storeRestored(ctx, from, spec, version, n)
}

// findSource finds the snapshot to restore. That of a cluster becomes an instance too, and
// that of an instance a cluster, as on RDS: the data is the same. Such a one is named by its
// ARN, or, for a cluster, by a name that no cluster snapshot has.
func (c *Control) findSource(name string) (*store.Snapshot, error) {
	other := c.of(!c.Cluster)
	if strings.HasPrefix(name, c.ARN(other.Words().Snapshot, "")) {
		return other.findSnapshot(name)
	}
	s, err := c.findSnapshot(name)
	if err != nil && c.Cluster {
		if s, err := other.findSnapshot(name); err == nil {
			return s, nil
		}
	}
	return s, err
}

// checkRestorable refuses a snapshot whose files are not there, or go.
func checkRestorable(s *store.Snapshot) error {
	if state := readSnapshot(s).State; state != kurabe.SnapshotAvailable {
		return kurabe.Errorf(kurabe.CodeInvalidSnapshotState, "Snapshot %s is %s, and only an available one can be restored.", s.Spec.Name, state)
	}
	return nil
}

// storeRestored stores the spec of an instance with the data of a snapshot.
func (c *Control) storeRestored(ctx context.Context, from *store.Snapshot, spec kurabe.InstanceSpec, version kurabe.EngineVersion, n NewInstance) (Instance, error) {
	err := n.managePassword()
	if err == nil && n.Managed.on() {
		spec.Password, err = c.nextPassword(spec, n.MasterPassword)
	}
	if err != nil {
		return Instance{}, err
	}
	err = c.storeNew(ctx, spec, version, func(change *store.Change) error {
		now, ok := c.View.Snapshot(from.ID)
		if !ok {
			return kurabe.Errorf(kurabe.CodeSnapshotNotFound, kurabe.WordsSnapshotNotFound, from.Spec.Name)
		}
		if err := checkRestorable(now); err != nil {
			return err
		}
		claimSnapshot(change, now)
		return c.addMasterSecret(change, spec, n)
	})
	if err != nil {
		return Instance{}, err
	}
	i, ok := c.View.Instance(spec.ID)
	if !ok {
		return Instance{}, fmt.Errorf("instance %s is gone right after its creation", spec.ID)
	}
	return c.read(i), nil
}

// restoredSpec is the spec of an instance with the data of a snapshot.
func (c *Control) restoredSpec(from *store.Snapshot, n NewInstance) (kurabe.InstanceSpec, kurabe.EngineVersion, error) {
	of := from.Spec.Source
	s := kurabe.InstanceSpec{
		ID: kurabe.NewInstanceID(), CreatedAt: c.Now().UTC(), Revision: 1, Action: kurabe.StateCreating,
		Engine: of.Engine, MasterUsername: of.MasterUsername, DatabaseName: of.DatabaseName, Locale: of.Locale,
		Zone: n.Zone, DeletionProtection: n.DeletionProtection, CopyTagsToSnapshot: n.CopyTags, AutoMinorUpgrade: n.AutoMinorUpgrade,
		Tags: n.Tags, ParameterGroupSeq: 1, Cluster: c.Cluster,
		Origin: &kurabe.Origin{Snapshot: from.ID, Name: from.Spec.Name},
	}
	// As on RDS, the data keeps its users: the password is that of the moment that it shows.
	s.Password = of.Password.From(of.Instance)
	s.Password.Inherited = true
	if err := sameSource(of, n); err != nil {
		return s, kurabe.EngineVersion{}, err
	}
	var err error
	if s.Name, err = c.foldName(c.Words().Is+"Identifier", n.Name); err != nil {
		return s, kurabe.EngineVersion{}, err
	}
	if err := kurabe.CheckTags(n.Tags); err != nil {
		return s, kurabe.EngineVersion{}, err
	}
	if err := c.CheckZones(n.Zones); err != nil {
		return s, kurabe.EngineVersion{}, err
	}
	version, err := c.restoreVersion(of, n.EngineVersion)
	if err != nil {
		return s, version, err
	}
	fillRestore(&n, of)
	s.Now.EngineVersion = version.Version
	if err := observe(&s, n); err != nil {
		return s, version, err
	}
	if err := c.newSettings(&s, n); err != nil {
		return s, version, err
	}
	if s.Now.StorageGiB < of.Settings.StorageGiB {
		return s, version, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, kurabe.WordsStorageSize+". Snapshot %s has %d GiB, and storage never shrinks.", s.Engine, s.Now.StorageType, s.Now.StorageGiB, from.Spec.Name, of.Settings.StorageGiB)
	}
	s.ParameterGroup = nameOr(n.ParameterGroup, kurabe.DefaultGroup(version.Family))
	s.OptionGroup = nameOr(n.OptionGroup, installed.DefaultOptionGroup(version))
	s.SubnetGroup = nameOr(n.SubnetGroup, "default")
	if s.SecurityGroups, err = c.Resolve(n.SecurityGroups); err != nil {
		return s, version, err
	}
	return s, version, setWindows(&s, n.BackupWindow, n.MaintenanceWindow)
}

// sameSource refuses what a restore cannot change: it is in the files.
func sameSource(of kurabe.SnapshotSource, n NewInstance) error {
	if n.Engine != "" && n.Engine != string(of.Engine) {
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "Engine %s cannot be restored from a snapshot of %s", n.Engine, of.Engine)
	}
	if n.DatabaseName != "" && n.DatabaseName != of.DatabaseName {
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "DBName cannot be honoured: a restored instance has the databases of its snapshot; create another one after the restore")
	}
	return nil
}

// restoreVersion is the installed version that runs the snapshot's files: the one
// it was taken with or a later minor version of the same major.
func (c *Control) restoreVersion(of kurabe.SnapshotSource, asked string) (kurabe.EngineVersion, error) {
	taken := kurabe.EngineVersion{Engine: of.Engine, Version: of.Settings.EngineVersion}
	if asked == "" {
		if v, err := c.EngineVersion(string(of.Engine), taken.Version); err == nil {
			return v, nil
		}
		asked = taken.Major()
	}
	v, err := c.EngineVersion(string(of.Engine), asked)
	if err != nil {
		return v, err
	}
	if v.Major() != taken.Major() || kurabe.CompareVersions(v.Version, taken.Version) < 0 {
		return v, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "A snapshot of %s %s cannot be restored with version %s: only the same or a later minor version of %s reads its files", of.Engine, taken.Version, v.Version, taken.Major())
	}
	return v, nil
}

// fillRestore takes from the source what the request leaves out.
func fillRestore(n *NewInstance, of kurabe.SnapshotSource) {
	had := of.Settings
	if n.Class == "" {
		n.Class = had.Class
	}
	if n.StorageGiB == nil {
		n.StorageGiB = &had.StorageGiB
	}
	if n.Port == nil {
		n.Port = &had.Port
	}
	if n.StorageType != nil || n.IOPS != nil {
		return // another type: its figures are not the source's
	}
	n.StorageType = &had.StorageType
	if had.IOPS > 0 {
		n.IOPS = &had.IOPS
	}
	if had.ThroughputMiB > 0 && n.ThroughputMiB == nil {
		n.ThroughputMiB = &had.ThroughputMiB
	}
}
