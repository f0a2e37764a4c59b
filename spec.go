package kurabe

import (
	"strconv"
	"time"
)

// InstanceSettings are the properties of an instance whose change may wait for
// the maintenance window.
type InstanceSettings struct {
	EngineVersion string `json:"engineVersion"`
	Class         string `json:"class"`
	StorageGiB    int    `json:"storageGiB"`
	StorageType   string `json:"storageType"`
	IOPS          int    `json:"iops,omitempty"`          // provisioned, 0 when the type has no such setting
	ThroughputMiB int    `json:"throughputMiB,omitempty"` // MiB/s, gp3 only
	Port          int    `json:"port"`
	CACertificate string `json:"caCertificate"`
	// MultiAZ: a second server in another zone has every commit before its client hears of it.
	MultiAZ bool `json:"multiAZ,omitempty"`
	// RetentionDays is how long automated backups are kept; 0: none are made, and no
	// log is kept. MariaDB restarts when it begins or ceases to write its binary log.
	RetentionDays int `json:"retentionDays"`
}

// KeepsLog says whether the log of the instance is kept without a gap.
func (s InstanceSettings) KeepsLog() bool { return s.RetentionDays > 0 }

// Password is what the service keeps of a password: a verifier that lets the
// engine check it (PostgreSQL: SCRAM-SHA-256, MariaDB: mysql_native_password's
// double SHA-1), never the password. Seq rises with each change.
type Password struct {
	Seq      int64  `json:"seq"`
	Verifier string `json:"verifier"`
	// Of is the instance at which it was asked for, "": the one whose spec this is. The
	// two name it (see Note): numbers of other instances say nothing.
	Of InstanceID `json:"of,omitempty"`
	// Inherited: nobody has asked for a password since the data was written, which has one
	// already. What users made of it and of their rights by SQL stays.
	Inherited bool `json:"inherited,omitempty"`
}

// From is the password as another instance has it that takes it over from this one.
func (p Password) From(id InstanceID) Password {
	if p.Of == "" {
		p.Of = id.Owner()
	}
	return p
}

// Note names the password in the data in which it was set. It goes where the data goes: to
// standbys, read replicas, snapshots and moments.
func (p Password) Note(id InstanceID) string {
	return string(p.From(id).Of) + " " + strconv.FormatInt(p.Seq, 10)
}

// Power is whether the user wants the instance to run. Seq rises with each
// StartDBInstance and StopDBInstance.
type Power struct {
	Seq     int64     `json:"seq"`
	Stopped bool      `json:"stopped"`
	At      time.Time `json:"at"`
}

// Deletion marks what must go. FinalSnapshot is taken of an instance before;
// KeepBackups leaves its automated backups, for as long as their retention.
type Deletion struct {
	At            time.Time  `json:"at"`
	FinalSnapshot SnapshotID `json:"finalSnapshot,omitempty"`
	KeepBackups   bool       `json:"keepBackups,omitempty"`
}

// Monitoring is how often the host pictures the operating system around a server; the zero value
// is never. Role is what the user named for it, and nothing here assumes it.
type Monitoring struct {
	IntervalSeconds int    `json:"intervalSeconds"`
	Role            string `json:"role"`
}

// InstanceSpec is what the user asked for. Only the API writes it. Revision
// rises with each write, so a reader can tell whether a status already answers
// the newest wish.
type InstanceSpec struct {
	ID        InstanceID `json:"id"`
	Name      string     `json:"name"`
	Revision  int64      `json:"revision"`
	CreatedAt time.Time  `json:"createdAt"`
	Engine    EngineName `json:"engine"`
	// Action is the status that the newest write leads through ("modifying",
	// "rebooting", …), shown until the planner has answered that revision.
	Action State `json:"action,omitempty"`

	MasterUsername string   `json:"masterUsername"`
	Password       Password `json:"password"`
	DatabaseName   string   `json:"databaseName,omitempty"`
	Locale         string   `json:"locale"`
	Origin         *Origin  `json:"origin,omitempty"`
	// Cluster: it is a Multi-AZ DB cluster, a writer and two standbys that serve reads, and
	// what its users name is the cluster. Its settings say MultiAZ, always.
	Cluster bool `json:"cluster,omitempty"`
	// Source is the instance that it was created as a read replica of, "" of any other. What
	// it follows now is InstanceStatus.Source. PromoteSeq rises with each PromoteReadReplica.
	Source     InstanceID `json:"source,omitempty"`
	PromoteSeq int64      `json:"promoteSeq,omitempty"`
	// Switchover is the newest wish that a read replica of it takes its place, nil: none ever.
	Switchover *Switchover `json:"switchover,omitempty"`

	// Now is what must be true at once, Next what must be true once the
	// maintenance window opens (nil: nothing waits). NextSeq numbers each Next:
	// when the status has AppliedNext >= NextSeq, Next is in force and Now is
	// history. NextOptIn is set by ApplyPendingMaintenanceAction.
	Now       InstanceSettings  `json:"now"`
	Next      *InstanceSettings `json:"next,omitempty"`
	NextName  string            `json:"nextName,omitempty"` // a rename that waits for the window
	NextSeq   int64             `json:"nextSeq,omitempty"`
	NextSince time.Time         `json:"nextSince,omitzero"`

	ParameterGroup    string `json:"parameterGroup"`
	ParameterGroupSeq int64  `json:"parameterGroupSeq"` // rises when another group is attached
	OptionGroup       string `json:"optionGroup"`
	SubnetGroup       string `json:"subnetGroup"`
	// SecurityGroups are its VPC security groups, sorted; none: the default one alone.
	SecurityGroups []string `json:"securityGroups,omitempty"`
	Zone           string   `json:"zone,omitempty"` // "" lets the planner choose

	BackupWindow       string     `json:"backupWindow"`      // "03:00-03:30", UTC
	MaintenanceWindow  string     `json:"maintenanceWindow"` // "sun:05:00-sun:05:30", UTC
	MaxStorageGiB      int        `json:"maxStorageGiB,omitempty"`
	DeletionProtection bool       `json:"deletionProtection"`
	AutoMinorUpgrade   bool       `json:"autoMinorUpgrade"`
	CopyTagsToSnapshot bool       `json:"copyTagsToSnapshot"`
	LoadKept           bool       `json:"loadKept,omitempty"` // its database load is kept, and Performance Insights answers
	Monitoring         Monitoring `json:"monitoring,omitzero"`
	LogTypes           []string   `json:"logTypes,omitempty"` // logs that are exported, in order
	PubliclyAccessible bool       `json:"publiclyAccessible"`
	Tags               []Tag      `json:"tags,omitempty"`

	Power     Power `json:"power"`
	RebootSeq int64 `json:"rebootSeq"`
	// FailoverSeq rises with each RebootDBInstance that forces a failover.
	FailoverSeq int64 `json:"failoverSeq,omitempty"`
	// FailoverTo is the server that the newest of them names, "" for whichever is best.
	FailoverTo InstanceID `json:"failoverTo,omitempty"`
	// Recovery is the newest loss that an operator has accepted, nil: none ever.
	Recovery *Recovery `json:"recovery,omitempty"`
	Deleting *Deletion `json:"deleting,omitempty"`
}

// Switchover is the wish that an instance and a read replica of it change roles. Seq rises
// with each.
type Switchover struct {
	Seq int64      `json:"seq"`
	To  InstanceID `json:"to"`
}

// Recovery is an operator's word that a server may write although it lacks what was
// acknowledged: whoever has that does not come back.
type Recovery struct {
	Seq int64 `json:"seq"`
	// Epoch and To are the situation that was looked at, and who is to write. In another
	// epoch nothing was accepted.
	Epoch Epoch      `json:"epoch"`
	To    InstanceID `json:"to"`
}

// Wanted returns the settings that must be in force, given how far the planner
// has come with those that waited for the window.
func (s *InstanceSpec) Wanted(appliedNext int64) InstanceSettings {
	if s.Next != nil && appliedNext >= s.NextSeq {
		return *s.Next
	}
	return s.Now
}

// EffectiveName is the instance's name, given how far the planner has come with
// what waited for the window.
func (s *InstanceSpec) EffectiveName(appliedNext int64) string {
	if s.NextName != "" && appliedNext >= s.NextSeq {
		return s.NextName
	}
	return s.Name
}
