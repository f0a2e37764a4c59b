package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/store"
)

// maxReplicas is how many read replicas one source has at most. RDS allows 15; here they
// share the ten log senders of a server with a standby, the copying of a further one, and
// the continuous log.
const maxReplicas = 5

// defaultPromotedDays is how long backups of a promoted replica are kept that was promoted
// without saying (API reference, PromoteReadReplica).
const defaultPromotedDays = 1

// IsReplica says whether it is a read replica now.
func (i Instance) IsReplica() bool { return i.source != "" }

// promoting says whether a promotion was asked for and is not through.
func (i Instance) promoting() bool {
	return i.Status.Promoting || i.source != "" && i.Spec.PromoteSeq > i.Status.PromoteSeq
}

// readReplication fills in what an instance follows, and what follows it.
func (c *Control) readReplication(i *store.Instance, r *Instance) {
	r.source = kurabe.Followed(*i.Spec, i.Status)
	if source, ok := c.View.Instance(r.source); ok {
		r.Source = source.Name()
	}
	for _, replica := range c.View.Replicas(i.ID) {
		r.Replicas = append(r.Replicas, replica.Name())
	}
	slices.Sort(r.Replicas)
}

// CreateReplica stores the wish for a read replica of an instance, which is named or given
// by its ARN. What the request leaves out is as the source has it.
func (c *Control) CreateReplica(ctx context.Context, source string, n NewInstance) (Instance, error) {
	from, err := c.replicaSource(source)
	if err != nil {
		return Instance{}, err
	}
	spec, version, err := c.replicaSpec(from, n)
	if err != nil {
		return Instance{}, err
	}
	err = c.storeNew(ctx, spec, version, func(change *store.Change) error {
		now, ok := c.View.Instance(from.ID)
		if !ok {
			return kurabe.Errorf(kurabe.CodeInstanceNotFound, kurabe.WordsInstanceNotFound, from.Name())
		}
		if err := c.checkReplicable(now); err != nil {
			return err
		}
		change.RequireInstance(now.ID, now.SpecMod)
		return nil
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

// replicaSource finds the instance that is to be followed.
func (c *Control) replicaSource(name string) (*store.Instance, error) {
	if name == "" {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "SourceDBInstanceIdentifier is required: a read replica is made of a DB instance here, not of a DB cluster.")
	}
	if strings.HasPrefix(strings.ToLower(name), "arn:") && !strings.HasPrefix(strings.ToLower(name), c.ARN("db", "")) {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "SourceDBInstanceIdentifier %s is of another region or account; this service knows DB instances of %s only.", name, strings.TrimSuffix(c.ARN("db", ""), ":db:"))
	}
	from, err := c.find(name)
	if err != nil {
		return nil, err
	}
	return from, c.checkReplicable(from)
}

// replicable lists the states of a source of which a replica can be made.
var replicable = []kurabe.State{kurabe.StateAvailable, kurabe.StateBackingUp, kurabe.StateModifying}

func (c *Control) checkReplicable(from *store.Instance) error {
	i := c.read(from)
	switch {
	case !slices.Contains(replicable, i.State) || i.Status.AvailableAt.IsZero():
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "DB instance %s is %s; a read replica can be made of an available one.", i.Name, i.State)
	case i.promoting():
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "DB instance %s is being promoted; make the read replica when that is done.", i.Name)
	case c.switching(i):
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "DB instance %s is being switched over; make the read replica when that is done.", i.Name)
	case !i.IsReplica() && !(i.Settings().KeepsLog() && i.Spec.Now.KeepsLog()):
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, kurabe.WordsReplicaBackups)
	case len(i.Replicas) >= maxReplicas:
		return kurabe.Errorf(kurabe.CodeInstanceQuota, "DB instance %s has %d read replicas already, the most that its log is sent to; make a replica of a replica.", i.Name, len(i.Replicas))
	}
	return nil
}

// replicaSpec is the spec of a replica of an instance.
func (c *Control) replicaSpec(from *store.Instance, n NewInstance) (kurabe.InstanceSpec, kurabe.EngineVersion, error) {
	of, has := from.Spec, c.read(from).Settings()
	s := kurabe.InstanceSpec{
		ID: kurabe.NewInstanceID(), CreatedAt: c.Now().UTC(), Revision: 1, Action: kurabe.StateCreating, Source: from.ID,
		Engine: of.Engine, MasterUsername: of.MasterUsername, Password: of.Password.From(from.ID), DatabaseName: of.DatabaseName, Locale: of.Locale,
		Zone: n.Zone, DeletionProtection: n.DeletionProtection, CopyTagsToSnapshot: n.CopyTags, AutoMinorUpgrade: n.AutoMinorUpgrade,
		Tags: n.Tags, ParameterGroupSeq: 1,
	}
	var version kurabe.EngineVersion
	var err error
	if s.Name, err = kurabe.FoldIdentifier("DBInstanceIdentifier", n.Name); err != nil {
		return s, version, err
	}
	if err := kurabe.CheckTags(n.Tags); err != nil {
		return s, version, err
	}
	if n.Zone != "" && !slices.Contains(c.Zones, n.Zone) {
		return s, version, kurabe.Errorf(kurabe.CodeInvalidVPCNetworkState, kurabe.WordsZone+" The zones are %s.", n.Zone, strings.Join(c.Zones, ", "))
	}
	if n.MultiAZ {
		return s, version, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "MultiAZ cannot be honoured: a read replica has one server here. Promote it, and convert it then.")
	}
	if version, err = c.EngineVersion(string(of.Engine), has.EngineVersion); err != nil {
		return s, version, err
	}
	s.Now.EngineVersion = version.Version
	if err := observe(&s, n); err != nil {
		return s, version, err
	}
	fillRestore(&n, kurabe.SnapshotSource{Settings: has})
	none := 0
	n.RetentionDays = &none
	if err := c.newSettings(&s, n); err != nil {
		return s, version, err
	}
	if s.Now.StorageGiB < has.StorageGiB {
		return s, version, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "AllocatedStorage of %d GiB is less than the %d GiB of %s, whose data is to fit.", s.Now.StorageGiB, has.StorageGiB, from.Name())
	}
	s.ParameterGroup, s.OptionGroup = nameOr(n.ParameterGroup, of.ParameterGroup), nameOr(n.OptionGroup, of.OptionGroup)
	s.SubnetGroup = nameOr(n.SubnetGroup, of.SubnetGroup)
	s.SecurityGroups = of.SecurityGroups // who could not reach the source reaches no copy of it
	if len(n.SecurityGroups) > 0 {
		if s.SecurityGroups, err = c.Resolve(n.SecurityGroups); err != nil {
			return s, version, err
		}
	}
	return s, version, setWindows(&s, n.BackupWindow, n.MaintenanceWindow)
}

// PromoteReplica stores the wish that a read replica becomes an instance of its own, with
// automated backups for so many days, nil for one.
func (c *Control) PromoteReplica(ctx context.Context, name string, days *int, window *string) (Instance, error) {
	return c.change(ctx, name, func(i Instance, s *kurabe.InstanceSpec, _ *store.Change) error {
		switch {
		case !i.IsReplica():
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "DB Instance %s is not a read replica.", i.Name)
		case i.promoting():
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "DB Instance %s is being promoted already.", i.Name)
		case c.switching(i):
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "DB Instance %s is being switched over. Promote it when that is done or called off.", i.Name)
		case i.Status.AvailableAt.IsZero() || !slices.Contains(modifiable, i.State):
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "DB Instance %s is %s, and only an available one can be promoted.", i.Name, i.State)
		}
		kept := intOr(days, defaultPromotedDays)
		if err := checkRetention(kept); err != nil {
			return err
		}
		if window != nil {
			backup, maintenance := nameOr(window, s.BackupWindow), s.MaintenanceWindow
			if err := setWindows(s, &backup, &maintenance); err != nil {
				return err
			}
		}
		keep(s, kept)
		c.promote(s)
		s.Action = kurabe.StateModifying
		return nil
	})
}

// promote has a replica become an instance of its own. The master password is that of now,
// which is in its data: from here on the spec says it. It is changed at the instance that
// is no replica, however many there are in between.
func (c *Control) promote(s *kurabe.InstanceSpec) {
	s.PromoteSeq++
	seen := map[kurabe.InstanceID]bool{s.ID: true}
	for id := s.Source; id != "" && !seen[id]; {
		seen[id] = true
		source, ok := c.View.Instance(id)
		if !ok {
			return
		}
		s.Password = source.Spec.Password.From(id)
		id = kurabe.Followed(*source.Spec, source.Status)
	}
}

// promoteReplicas promotes those of an instance that is about to be deleted.
func (c *Control) promoteReplicas(id kurabe.InstanceID, change *store.Change) {
	for _, replica := range c.View.Replicas(id) {
		spec := *replica.Spec
		c.promote(&spec)
		spec.Revision++
		change.PutInstance(spec, replica.SpecMod)
	}
}

// checkReplication refuses a modification that a replica, or what replicas follow, cannot
// have.
func checkReplication(i Instance, m InstanceChange) error {
	refuse := func(format string, args ...any) error {
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, format, args...)
	}
	days := intOr(m.RetentionDays, 0)
	switch {
	case i.IsReplica() && m.MasterPassword != nil:
		return refuse("%s is a read replica: its users are those of its source. Change MasterUserPassword of %s, or promote the read replica.", i.Name, i.Source)
	case i.IsReplica() && days > 0:
		return refuse(kurabe.WordsBackupsOfReplica+". Promote %s, and set BackupRetentionPeriod with that.", i.Spec.Engine, i.Name)
	case i.IsReplica() && m.MultiAZ != nil && *m.MultiAZ:
		return refuse("%s is a read replica, which has one server here. Promote it, and convert it then.", i.Name)
	case len(i.Replicas) > 0 && m.RetentionDays != nil && days == 0:
		return refuse("%s has read replicas (%s), which live on its log: automated backups cannot be disabled. Delete or promote them first.", i.Name, strings.Join(i.Replicas, ", "))
	}
	return nil
}

// checkStop refuses to stop what a replica follows, and a replica, as RDS does.
func checkStop(i Instance) error {
	switch {
	case i.IsReplica():
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "Cannot stop DB instance %s: it is a read replica.", i.Name)
	case len(i.Replicas) > 0:
		return kurabe.Errorf(kurabe.CodeInvalidInstanceState, "Cannot stop DB instance %s: it has read replicas (%s).", i.Name, strings.Join(i.Replicas, ", "))
	}
	return nil
}
