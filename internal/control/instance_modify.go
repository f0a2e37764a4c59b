package control

import (
	"context"
	"reflect"
	"slices"

	"kurabe"
	"kurabe/internal/control/parameter"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// InstanceChange is a request to modify an instance. Pointers are nil for what
// stays.
type InstanceChange struct {
	ApplyImmediately bool

	// These take effect at once, whatever ApplyImmediately says, as on RDS.
	MasterPassword                  *logkey.Secret
	Managed                         ManagedPassword
	Port                            *int
	ParameterGroup, OptionGroup     *string
	SubnetGroup                     *string
	SecurityGroups                  []string // ids of EC2's; none: as they are
	RetentionDays, MaxStorageGiB    *int
	BackupWindow, MaintenanceWindow *string
	DeletionProtection, CopyTags    *bool
	LoadKept                        *bool
	MonitoringInterval              *int
	MonitoringRole                  *string
	ExportLogs, KeepLogs            []string // types whose export begins, and ends
	AutoMinorUpgrade                *bool

	// These wait for the maintenance window unless ApplyImmediately.
	NewName                         *string
	Class, EngineVersion            *string
	StorageType, CACertificate      *string
	StorageGiB, IOPS, ThroughputMiB *int
	MultiAZ                         *bool
}

// empty says that nothing was asked for.
func (m InstanceChange) empty() bool {
	m.ApplyImmediately = false
	return reflect.ValueOf(m).IsZero()
}

// ModifyInstance stores a modification.
func (c *Control) ModifyInstance(ctx context.Context, name string, m InstanceChange) (Instance, error) {
	return c.change(ctx, name, func(i Instance, s *kurabe.InstanceSpec, change *store.Change) error {
		if !slices.Contains(modifiable, i.State) {
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, kurabe.WordsNotAvailable+" %s is %s.", i.Name, i.State)
		}
		if m.empty() && !(m.ApplyImmediately && (s.Next != nil || s.NextName != "")) {
			return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, kurabe.WordsNoChange)
		}
		if err := checkReplication(i, m); err != nil {
			return err
		}
		keepScaled(i, s)
		before := *s
		if err := c.modifyPassword(s, m, change); err != nil {
			return err
		}
		if err := c.modifyAtOnce(s, m); err != nil {
			return err
		}
		if err := c.modifySettings(i, s, m, change); err != nil {
			return err
		}
		s.Action = modifyAction(before, *s)
		version, err := c.EngineVersion(string(s.Engine), s.Now.EngineVersion)
		if err != nil {
			return err
		}
		if err := c.requireGroups(change, s, version); err != nil || !parameter.DemandsMoved(before, *s) {
			return err
		}
		return c.RequireDemands(s, version.Family)
	})
}

// modifyAtOnce changes what never waits for a window.
func (c *Control) modifyAtOnce(s *kurabe.InstanceSpec, m InstanceChange) error {
	if m.Port != nil {
		if err := kurabe.CheckPort("DBPortNumber", *m.Port); err != nil {
			return err
		}
		s.Now.Port = *m.Port
		if s.Next != nil {
			next := *s.Next
			next.Port = *m.Port
			s.Next = &next
		}
	}
	if m.ParameterGroup != nil {
		if name := nameOr(m.ParameterGroup, s.ParameterGroup); name != s.ParameterGroup {
			s.ParameterGroup = name
			s.ParameterGroupSeq++
		}
	}
	s.OptionGroup = nameOr(m.OptionGroup, s.OptionGroup)
	s.SubnetGroup = nameOr(m.SubnetGroup, s.SubnetGroup)
	if len(m.SecurityGroups) > 0 {
		groups, err := c.Resolve(m.SecurityGroups)
		if err != nil {
			return err
		}
		s.SecurityGroups = groups
	}
	if err := modifyRetention(s, m.RetentionDays); err != nil {
		return err
	}
	setBool(&s.DeletionProtection, m.DeletionProtection)
	setBool(&s.LoadKept, m.LoadKept)
	if err := modifyMonitoring(s, m); err != nil {
		return err
	}
	logs, err := kurabe.ChangeLogTypes(s.Engine, s.Now.EngineVersion, s.LogTypes, m.ExportLogs, m.KeepLogs)
	if err != nil {
		return err
	}
	s.LogTypes = logs
	setBool(&s.CopyTagsToSnapshot, m.CopyTags)
	setBool(&s.AutoMinorUpgrade, m.AutoMinorUpgrade)
	if m.BackupWindow == nil && m.MaintenanceWindow == nil {
		return nil
	}
	// Both are given here, so that neither moves to make room for the other.
	backup, maintenance := nameOr(m.BackupWindow, s.BackupWindow), nameOr(m.MaintenanceWindow, s.MaintenanceWindow)
	return setWindows(s, &backup, &maintenance)
}

// modifyMonitoring changes the interval and the role. An interval of 0 ends the role, too.
func modifyMonitoring(s *kurabe.InstanceSpec, m InstanceChange) error {
	if m.MonitoringInterval == nil && m.MonitoringRole == nil {
		return nil
	}
	if m.MonitoringInterval != nil {
		if s.Monitoring.IntervalSeconds = *m.MonitoringInterval; *m.MonitoringInterval == 0 {
			s.Monitoring.Role = ""
		}
	}
	if m.MonitoringRole != nil {
		s.Monitoring.Role = *m.MonitoringRole
	}
	return kurabe.CheckMonitoring(s.Monitoring)
}

func setBool(to *bool, from *bool) {
	if from != nil {
		*to = *from
	}
}

// modifySettings changes what may wait. What waited already and what is asked
// for now go together: ApplyImmediately applies both, as on RDS.
func (c *Control) modifySettings(i Instance, s *kurabe.InstanceSpec, m InstanceChange, change *store.Change) error {
	wanted := s.Now
	if s.Next != nil {
		wanted = *s.Next
	}
	if err := c.editSettings(i, &wanted, s, m); err != nil {
		return err
	}
	name, err := c.newName(i, s, m, change)
	if err != nil {
		return err
	}
	// The bound is on the storage that is wanted, which Now need not be yet.
	bound := kurabe.InstanceSpec{Now: wanted, MaxStorageGiB: s.MaxStorageGiB}
	if err := setMaxStorage(&bound, m.MaxStorageGiB); err != nil {
		return err
	}
	s.MaxStorageGiB = bound.MaxStorageGiB
	if m.ApplyImmediately {
		s.Next, s.NextName = &wanted, name
		settle(s, i.names, change)
		return nil
	}
	if wanted == s.Now && name == s.Name { // newName has released the name that waited
		s.Next, s.NextName = nil, ""
		return nil
	}
	if s.Next == nil || *s.Next != wanted || name != s.NextName {
		s.NextSeq++
		s.NextSince = c.Now().UTC()
	}
	s.Next, s.NextName = nil, ""
	if wanted != s.Now {
		s.Next = &wanted
	}
	if name != s.Name {
		s.NextName = name
	}
	return nil
}

// editSettings applies the wishes to the settings and checks the outcome.
func (c *Control) editSettings(i Instance, w *kurabe.InstanceSettings, s *kurabe.InstanceSpec, m InstanceChange) error {
	before := *w
	if m.EngineVersion != nil {
		if err := c.upgrade(i, w, *m.EngineVersion); err != nil {
			return err
		}
	}
	w.Class = nameOr(m.Class, w.Class)
	setBool(&w.MultiAZ, m.MultiAZ) // of a cluster nobody can ask for another one
	w.RetentionDays = intOr(m.RetentionDays, w.RetentionDays)
	w.CACertificate = nameOr(m.CACertificate, w.CACertificate)
	if w.CACertificate != c.Authority.Identifier {
		return kurabe.Errorf(kurabe.CodeCertificateNotFound, "Certificate not found: %s; this service has %s", w.CACertificate, c.Authority.Identifier)
	}
	if t := nameOr(m.StorageType, w.StorageType); t != w.StorageType {
		w.StorageType, w.IOPS, w.ThroughputMiB = t, 0, 0
	}
	if m.StorageGiB != nil {
		if err := c.growStorage(i, w, *m.StorageGiB); err != nil {
			return err
		}
	}
	w.IOPS, w.ThroughputMiB = intOr(m.IOPS, w.IOPS), intOr(m.ThroughputMiB, w.ThroughputMiB)
	if err := w.CompleteStorage(i.Spec.Engine); err != nil {
		return err
	}
	if *w == before {
		return nil
	}
	if err := c.CheckFit(*w); err != nil {
		return err
	}
	if w.MultiAZ != before.MultiAZ {
		if err := c.checkConversion(i, *w); err != nil {
			return err
		}
	}
	if w.Class != before.Class || w.MultiAZ && !before.MultiAZ {
		if err := c.CheckCapacity(kurabe.InstanceSpec{Now: *w, Cluster: s.Cluster}, s.ID); err != nil {
			return err
		}
		return c.CheckStay(s, i.Status, *w)
	}
	return nil
}

// growStorage applies a wish for storage in GiB. It never shrinks, neither below what
// the user asked for nor below what autoscaling has reached.
func (c *Control) growStorage(i Instance, w *kurabe.InstanceSettings, gib int) error {
	have := i.Settings().StorageGiB
	if gib < have {
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, kurabe.WordsStorageSize+". Storage cannot shrink; it is %d GiB.", i.Spec.Engine, w.StorageType, gib, have)
	}
	t, ok := kurabe.FindStorageType(w.StorageType)
	gib = t.GrowStorage(have, gib)
	if ok && gib > have && gib <= t.MaxGiB { // anything else is no size of the type at all
		if err := c.checkDisk(gib, i.Status.Host); err != nil {
			return err
		}
	}
	grown := gib >= kurabe.GP3StripeGiB && w.StorageGiB < kurabe.GP3StripeGiB && w.StorageType == "gp3"
	w.StorageGiB = gib
	if grown { // gp3's base figures rise with the stripe
		w.IOPS, w.ThroughputMiB = 0, 0
	}
	return nil
}

// checkDisk says whether the disk of the host, of any host for "", is as large as so
// many GiB. That it has them free is not asked: caps share the disk.
func (c *Control) checkDisk(gib int, host kurabe.HostID) error {
	var largest int64
	for _, h := range c.View.Hosts() {
		if host != "" && h.Host != host {
			continue
		}
		if h.StorageBytes == 0 {
			return nil // not known
		}
		largest = max(largest, h.StorageBytes)
	}
	if largest > 0 && int64(gib)*kurabe.GiB > largest {
		return kurabe.Errorf(kurabe.CodeInsufficientCapacity, "AllocatedStorage of %d GiB is more than the disk of the host has: %s", gib, kurabe.FormatBytes(largest))
	}
	return nil
}

// keepScaled takes what autoscaling has reached into what the user wants, so that
// every check of a modification is made against the storage that there is.
func keepScaled(i Instance, s *kurabe.InstanceSpec) {
	gib := i.Status.Storage.ScaledGiB
	s.Now = s.Now.WithStorage(gib)
	if s.Next != nil {
		next := s.Next.WithStorage(gib)
		s.Next = &next
	}
}

// upgrade checks a wished engine version: a newer minor of the same major.
func (c *Control) upgrade(i Instance, w *kurabe.InstanceSettings, version string) error {
	v, err := c.EngineVersion(string(i.Spec.Engine), version)
	if err != nil {
		return err
	}
	have, err := c.EngineVersion(string(i.Spec.Engine), i.Settings().EngineVersion)
	if err == nil && have.Family != v.Family {
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, kurabe.WordsUpgrade+": major version upgrades are not offered", i.Spec.Engine, have.Version, v.Version)
	}
	if kurabe.CompareVersions(v.Version, i.Settings().EngineVersion) < 0 {
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, kurabe.WordsUpgrade+": a version cannot go back", i.Spec.Engine, i.Settings().EngineVersion, v.Version)
	}
	for _, h := range c.hostsOf(i.Spec.ID) {
		if v.Version != i.Settings().EngineVersion && !h.Offers(v.Engine, v.Version) {
			return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, kurabe.WordsUpgrade+": host %s, which a server of the %s is on, does not have it. Install it there, and restart the service on that host", i.Spec.Engine, i.Settings().EngineVersion, v.Version, h.Host, c.Words().Noun)
		}
	}
	w.EngineVersion = v.Version
	return nil
}

// hostsOf are the hosts that have a server of an instance.
func (c *Control) hostsOf(id kurabe.InstanceID) (hosts []kurabe.HostReport) {
	stored, ok := c.View.Instance(id)
	if !ok {
		return nil
	}
	for _, h := range c.View.Hosts() {
		if slices.ContainsFunc(stored.Assignments, func(a store.Record[kurabe.Assignment]) bool {
			return a.Value.Host == h.Host && a.Value.Goal != kurabe.GoalAbsent
		}) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// newName is the name that the instance is to have, reserved for it.
func (c *Control) newName(i Instance, s *kurabe.InstanceSpec, m InstanceChange, change *store.Change) (string, error) {
	waiting := s.NextName
	if waiting == "" {
		waiting = s.Name
	}
	if m.NewName == nil {
		return waiting, nil
	}
	name, err := c.foldName("New"+c.Words().Is+"Identifier", *m.NewName)
	if err != nil || name == waiting {
		return waiting, err
	}
	if waiting != s.Name {
		change.ReleaseName(c.Key(waiting), i.names[c.Key(waiting)])
	}
	if name == s.Name {
		return name, nil
	}
	revision := c.View.Revision()
	if owner, taken := c.View.NameOwner(c.Key(name)); !taken || owner != i.Spec.ID {
		if err := c.nameFree(name); err != nil {
			return "", err
		}
	}
	// Nothing may take a name meanwhile that one of a cluster's servers would have.
	change.TakeName(c.Key(name), s.ID).RequireInstancesUnwritten(revision)
	return name, nil
}

// modifyAction is the state that the instance passes through, "" when nothing of
// the database changes.
func modifyAction(before, after kurabe.InstanceSpec) kurabe.State {
	switch {
	case before.Name != after.Name:
		return kurabe.StateRenaming
	case before.Now.EngineVersion != after.Now.EngineVersion:
		return kurabe.StateUpgrading
	case !sameButRetention(before.Now, after.Now):
		return kurabe.StateModifying
	case before.Password.Seq != after.Password.Seq:
		return kurabe.StateResettingCredentials
	}
	return ""
}
