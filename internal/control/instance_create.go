package control

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/control/installed"
	"kurabe/internal/logkey"
	"kurabe/internal/store"
)

// maxInstances bounds the instances of one service, far above what one fleet of
// hosts holds; it keeps every list and scan bounded.
const maxInstances = 10_000

// What an instance gets that was created without saying.
const (
	defaultRetentionDays   = 1
	maxRetentionDays       = 35
	maxStorageGrowthFactor = 1.1 // RDS wants MaxAllocatedStorage at least 10 % above
)

// NewInstance is a request to create an instance. Pointers are nil for what the
// user left out.
type NewInstance struct {
	Name, Engine, EngineVersion, Class string
	MasterUsername                     string
	MasterPassword                     logkey.Secret
	Managed                            ManagedPassword // in the place of MasterPassword
	DatabaseName, Locale, Zone         string
	StorageGiB, IOPS, ThroughputMiB    *int
	StorageType, CACertificate         *string
	Port, RetentionDays, MaxStorageGiB *int
	BackupWindow, MaintenanceWindow    *string
	ParameterGroup, OptionGroup        *string
	SubnetGroup                        *string
	SecurityGroups                     []string // ids of EC2's; none: the default one
	DeletionProtection, CopyTags       bool
	LoadKept                           bool
	Monitoring                         kurabe.Monitoring
	LogTypes                           []string // that are exported
	AutoMinorUpgrade, MultiAZ          bool
	Zones                              []string // of a cluster's servers
	Tags                               []kurabe.Tag
}

// CreateInstance stores the wish for a new instance.
func (c *Control) CreateInstance(ctx context.Context, n NewInstance) (Instance, error) {
	if err := n.managePassword(); err != nil {
		return Instance{}, err
	}
	spec, version, err := c.newSpec(n)
	if err != nil {
		return Instance{}, err
	}
	if spec.Password, err = c.nextPassword(spec, n.MasterPassword); err != nil {
		return Instance{}, err
	}
	err = c.storeNew(ctx, spec, version, func(change *store.Change) error { return c.addMasterSecret(change, spec, n) })
	if err != nil {
		return Instance{}, err
	}
	i, ok := c.View.Instance(spec.ID)
	if !ok {
		return Instance{}, fmt.Errorf("instance %s is gone right after its creation", spec.ID)
	}
	return c.read(i), nil
}

// storeNew writes the spec of a new instance once name, quota, capacity and groups
// allow it; also may add to the change.
func (c *Control) storeNew(ctx context.Context, spec kurabe.InstanceSpec, version kurabe.EngineVersion, also func(*store.Change) error) error {
	return c.Create(ctx, func() (*store.Change, error) {
		revision := c.View.Revision()
		if err := c.nameFree(spec.Name); err != nil {
			return nil, err
		}
		if len(c.View.Instances()) >= maxInstances {
			return nil, kurabe.Errorf(kurabe.CodeInstanceQuota, "this service holds at most %d DB instances and clusters", maxInstances)
		}
		if err := c.CheckCapacity(spec, ""); err != nil {
			return nil, err
		}
		if err := c.CheckPlace(spec); err != nil {
			return nil, err
		}
		change := store.NewChange().CreateInstance(spec).RequireInstancesUnwritten(revision)
		if err := c.requireGroups(change, &spec, version); err != nil {
			return nil, err
		}
		if err := c.RequireDemands(&spec, version.Family); err != nil {
			return nil, err
		}
		return change, also(change)
	})
}

// newSpec checks everything that does not depend on other records.
func (c *Control) newSpec(n NewInstance) (kurabe.InstanceSpec, kurabe.EngineVersion, error) {
	s := kurabe.InstanceSpec{
		ID: kurabe.NewInstanceID(), CreatedAt: c.Now().UTC(), Revision: 1, Action: kurabe.StateCreating,
		MasterUsername: n.MasterUsername, DatabaseName: n.DatabaseName, Zone: n.Zone,
		DeletionProtection: n.DeletionProtection, CopyTagsToSnapshot: n.CopyTags, AutoMinorUpgrade: n.AutoMinorUpgrade,
		Tags: n.Tags, ParameterGroupSeq: 1, Cluster: c.Cluster,
	}
	var err error
	if s.Name, err = c.foldName(c.Words().Is+"Identifier", n.Name); err != nil {
		return s, kurabe.EngineVersion{}, err
	}
	version, err := c.EngineVersion(n.Engine, n.EngineVersion)
	if err != nil {
		return s, version, err
	}
	s.Engine, s.Now.EngineVersion = version.Engine, version.Version
	if err := observe(&s, n); err != nil {
		return s, version, err
	}
	if err := c.checkNames(&s, n, version); err != nil {
		return s, version, err
	}
	if err := c.newSettings(&s, n); err != nil {
		return s, version, err
	}
	s.ParameterGroup = nameOr(n.ParameterGroup, kurabe.DefaultGroup(version.Family))
	s.OptionGroup = nameOr(n.OptionGroup, installed.DefaultOptionGroup(version))
	s.SubnetGroup = nameOr(n.SubnetGroup, "default")
	if s.SecurityGroups, err = c.Resolve(n.SecurityGroups); err != nil {
		return s, version, err
	}
	return s, version, setWindows(&s, n.BackupWindow, n.MaintenanceWindow)
}

// observe sets what is kept of how the instance does.
func observe(s *kurabe.InstanceSpec, n NewInstance) (err error) {
	s.LoadKept, s.Monitoring = n.LoadKept, n.Monitoring
	if err = kurabe.CheckMonitoring(s.Monitoring); err != nil {
		return err
	}
	s.LogTypes, err = kurabe.ChangeLogTypes(s.Engine, s.Now.EngineVersion, nil, n.LogTypes, nil)
	return err
}

// checkNames checks users, databases, locale, zone and tags.
func (c *Control) checkNames(s *kurabe.InstanceSpec, n NewInstance, v kurabe.EngineVersion) error {
	if n.MasterUsername == "" {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, kurabe.WordsBlank, "MasterUsername")
	}
	if n.MasterPassword == "" {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, kurabe.WordsBlank, "MasterUserPassword")
	}
	if err := kurabe.CheckMasterUsername(s.Engine, n.MasterUsername); err != nil {
		return err
	}
	if err := kurabe.CheckDatabaseName(s.Engine, n.DatabaseName); err != nil {
		return err
	}
	s.Locale = n.Locale
	if s.Locale == "" && len(v.Locales) > 0 {
		s.Locale = v.Locales[0]
	}
	if n.Locale != "" && !slices.Contains(v.Locales, n.Locale) {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "CharacterSetName %q is not offered by %s %s here; offered: %s", n.Locale, v.Engine, v.Version, strings.Join(v.Locales, ", "))
	}
	if n.Zone != "" && !slices.Contains(c.Zones, n.Zone) {
		return kurabe.Errorf(kurabe.CodeInvalidVPCNetworkState, kurabe.WordsZone+" The zones are %s.", n.Zone, strings.Join(c.Zones, ", "))
	}
	if err := c.CheckZones(n.Zones); err != nil {
		return err
	}
	return kurabe.CheckTags(n.Tags)
}

// newSettings fills in class, zones, storage, port and certificate.
func (c *Control) newSettings(s *kurabe.InstanceSpec, n NewInstance) error {
	now := &s.Now
	if n.MultiAZ && n.Zone != "" {
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, kurabe.WordsZoneOfPair)
	}
	now.Class, now.StorageType, now.MultiAZ = n.Class, nameOr(n.StorageType, kurabe.DefaultStorageType), n.MultiAZ || s.Cluster
	if n.StorageType == nil && intOr(n.IOPS, 0) != 0 {
		now.StorageType = "io1" // RDS: Iops without a type means io1
	}
	now.StorageGiB = intOr(n.StorageGiB, kurabe.DefaultStorageGiB)
	now.IOPS, now.ThroughputMiB = intOr(n.IOPS, 0), intOr(n.ThroughputMiB, 0)
	now.Port = intOr(n.Port, s.Engine.DefaultPort())
	now.CACertificate = nameOr(n.CACertificate, c.Authority.Identifier)
	if now.CACertificate != c.Authority.Identifier {
		return kurabe.Errorf(kurabe.CodeCertificateNotFound, "Certificate not found: %s; this service has %s", now.CACertificate, c.Authority.Identifier)
	}
	if err := kurabe.CheckPort("Port", now.Port); err != nil {
		return err
	}
	now.RetentionDays = intOr(n.RetentionDays, defaultRetentionDays)
	if err := checkRetention(now.RetentionDays); err != nil {
		return err
	}
	if err := now.CompleteStorage(s.Engine); err != nil {
		return err
	}
	if err := setMaxStorage(s, n.MaxStorageGiB); err != nil {
		return err
	}
	if err := c.CheckFit(*now); err != nil {
		return err
	}
	return c.CheckMultiAZ(*now, s.Cluster)
}

// setWindows sets both windows, or RDS-like defaults that differ by instance.
func setWindows(s *kurabe.InstanceSpec, backup, maintenance *string) error {
	seed := fnv.New32a()
	seed.Write([]byte(s.ID))
	defaultBackup, defaultMaintenance := kurabe.DefaultWindows(seed.Sum32())
	if s.BackupWindow == "" {
		s.BackupWindow = defaultBackup
	}
	if s.MaintenanceWindow == "" {
		s.MaintenanceWindow = defaultMaintenance
	}
	s.BackupWindow = nameOr(backup, s.BackupWindow)
	s.MaintenanceWindow = nameOr(maintenance, s.MaintenanceWindow)
	daily, err := kurabe.ParseBackupWindow(s.BackupWindow)
	if err != nil {
		return err
	}
	weekly, err := kurabe.ParseMaintenanceWindow(s.MaintenanceWindow)
	if err != nil {
		return err
	}
	if !daily.Overlaps(weekly) {
		return nil
	}
	if backup == nil && maintenance != nil {
		// The user chose only one window: the default one makes room.
		opened := (weekly.Start + weekly.Length) % (24 * hour)
		s.BackupWindow = clock(opened) + "-" + clock((opened+hour/2)%(24*hour))
		if daily, err = kurabe.ParseBackupWindow(s.BackupWindow); err == nil && !daily.Overlaps(weekly) {
			return nil
		}
	}
	if maintenance == nil && backup != nil {
		opened := (daily.Start + daily.Length) % (24 * hour)
		s.MaintenanceWindow = "sun:" + clock(opened) + "-" + map[bool]string{false: "sun:", true: "mon:"}[opened+hour/2 >= 24*hour] + clock((opened+hour/2)%(24*hour))
		if weekly, err = kurabe.ParseMaintenanceWindow(s.MaintenanceWindow); err == nil && !daily.Overlaps(weekly) {
			return nil
		}
	}
	return kurabe.Errorf(kurabe.CodeInvalidParameterValue, kurabe.WordsWindows)
}
