package kurabe

import "time"

// State is an instance's status, in RDS's words.
type State string

// The states that this service uses.
const (
	StateCreating               State = "creating"
	StateAvailable              State = "available"
	StateModifying              State = "modifying"
	StateRenaming               State = "renaming"
	StateRebooting              State = "rebooting"
	StateFailingOver            State = "failing-over" // of a DB cluster
	StateStarting               State = "starting"
	StateStopping               State = "stopping"
	StateStopped                State = "stopped"
	StateDeleting               State = "deleting"
	StateBackingUp              State = "backing-up"
	StateUpgrading              State = "upgrading"
	StateResettingCredentials   State = "resetting-master-credentials"
	StateStorageFull            State = "storage-full"
	StateIncompatibleParameters State = "incompatible-parameters"
	StateIncompatibleNetwork    State = "incompatible-network"
	StateIncompatibleRestore    State = "incompatible-restore"
	StateInsufficientCapacity   State = "insufficient-capacity"
	StateFailed                 State = "failed"
	// StateUnreachable is no word of RDS: the host is not heard, and nobody knows more.
	StateUnreachable State = "unreachable"
)

// InstanceStatus is what users are told of an instance. Only the planner writes
// it.
type InstanceStatus struct {
	ID           InstanceID `json:"id"`
	SpecRevision int64      `json:"specRevision"` // the spec that this status answers
	State        State      `json:"state"`
	Reason       string     `json:"reason,omitempty"`
	Since        time.Time  `json:"since"`

	Host    HostID `json:"host,omitempty"`
	Zone    string `json:"zone,omitempty"`
	Address string `json:"address,omitempty"`
	Port    int    `json:"port,omitempty"`
	// AvailableAt is when the instance first became available (AWS's
	// InstanceCreateTime); zero until then, and no endpoint is shown.
	AvailableAt time.Time `json:"availableAt,omitzero"`

	LogTypes []string `json:"logTypes,omitempty"` // that are exported
	// SecurityGroups are those that every host of the instance enforces, by the names of the spec.
	SecurityGroups []string `json:"securityGroups,omitempty"`

	// Applied are the settings in force; what the spec wants beyond them is
	// pending.
	Applied     InstanceSettings `json:"applied"`
	AppliedNext int64            `json:"appliedNext"`
	// Maintaining: what waited for the maintenance window is being put in force.
	Maintaining bool `json:"maintaining,omitempty"`
	// EngineVersion is what the server runs, or ran last, that clients speak with: that in
	// force is what all servers run, or are about to. "": not known.
	EngineVersion string `json:"engineVersion,omitempty"`
	// ParameterGroup is the group in force, GroupRevision its revision last
	// looked at, GroupSeq the attachment whose static values are in force.
	ParameterGroup string `json:"parameterGroup"`
	GroupSeq       int64  `json:"groupSeq"`
	ParameterApply string `json:"parameterApply"` // in-sync, applying, pending-reboot
	// PendingParameters are the parameters that wait for a reboot.
	PendingParameters []string `json:"pendingParameters,omitempty"`
	// Changing is what was begun and has no event of its end yet.
	Changing []Change `json:"changing,omitempty"`

	RebootSeq   int64     `json:"rebootSeq"`   // newest reboot taken up
	PowerSeq    int64     `json:"powerSeq"`    // newest power wish taken up
	PasswordSeq int64     `json:"passwordSeq"` // newest password in force
	AutoStarted bool      `json:"autoStarted"` // the seven days of PowerSeq are over
	StoppedAt   time.Time `json:"stoppedAt,omitzero"`

	// LogWantedAt is since when the log is to be kept; LogBegan and LogEnded are what
	// was announced last of it, as the host LogHost told.
	LogWantedAt time.Time `json:"logWantedAt,omitzero"`
	LogBegan    time.Time `json:"logBegan,omitzero"`
	LogEnded    string    `json:"logEnded,omitempty"`
	LogHost     HostID    `json:"logHost,omitempty"`
	// LogOffBoot is the boot with which a binary log is to cease, 0 once a server has
	// served without it.
	LogOffBoot int64 `json:"logOffBoot,omitempty"`

	// Action is what the running generation is for: the state to show until the
	// host is done with it. SeenX are the report's counters already announced.
	Action       State  `json:"action,omitempty"`
	SeenCrashes  int64  `json:"seenCrashes"`
	SeenOOMKills int64  `json:"seenOOMKills"`
	SeenFailure  string `json:"seenFailure,omitempty"`
	// SeenUnresponsive is since when the server does not answer, as an event told; zero once it does.
	SeenUnresponsive time.Time `json:"seenMute,omitzero"`
	// SeenLost is when the newest loss of measurements was noticed that was told, by the host that has it.
	SeenLost map[HostID]time.Time `json:"seenLost,omitempty"`
	// SeenWaits are what was told of the other servers: why each does not get on.
	SeenWaits    map[InstanceID]string `json:"seenWaits,omitempty"`
	StorageAlarm int                   `json:"storageAlarm"` // percent last announced: 0, 90, 100
	AddressTries int                   `json:"addressTries"`

	// Storage is what the planner remembers of the instance's storage.
	Storage StorageHistory `json:"storage,omitzero"`

	// SecondZone is where the standby is, "" while there is none that has every commit.
	// Epoch counts the writers; FailoverSeq is the newest forced failover taken up.
	SecondZone string `json:"secondZone,omitempty"`
	// Converting: it is to become what InstanceSettings.MultiAZ says, and is not yet.
	Converting bool `json:"converting,omitempty"`
	// Move is how far an instance with one server is on its way to another host, "" of none.
	Move        Move  `json:"move,omitempty"`
	Epoch       Epoch `json:"epoch,omitempty"`
	FailoverSeq int64 `json:"failoverSeq,omitempty"`
	// RecoverySeq is the newest recovery that was taken up, or found to be of another time.
	RecoverySeq int64 `json:"recoverySeq,omitempty"`
	// FailingOver: the newest writer has not been seen to write. Failovers counts those that
	// were completed, since the instance was made.
	FailingOver bool  `json:"failingOver,omitempty"`
	Failovers   int64 `json:"failovers,omitempty"`
	// CatchUpBy is until when a failover in order waits for a standby that is behind, zero while
	// none does.
	CatchUpBy time.Time `json:"catchUpBy,omitzero"`
	// RebuiltAt is when a standby was last ordered to be made anew because it cannot start.
	RebuiltAt time.Time `json:"rebuiltAt,omitzero"`

	// StartOrders counts the orders in a row to start a writer of several servers that does
	// not run, and StartOrderedAt is when the last of them was given.
	StartOrders    int       `json:"startOrders,omitempty"`
	StartOrderedAt time.Time `json:"startOrderedAt,omitzero"`
	// BlockedAt is since when commits wait because nobody else has them (Group.RequireStandby), zero
	// while they go on.
	BlockedAt time.Time `json:"blockedAt,omitzero"`
	// Waits are the commits that ended their wait for a standby before one had answered.
	Waits EndedWaits `json:"waits,omitzero"`
	// FailedRollout is the newest boot with which a server could not start, while the primary lacks it.
	FailedRollout FailedRollout `json:"refused,omitzero"`
	// StandbysOutOfDisk are the standbys whose disk is full.
	StandbysOutOfDisk []InstanceID `json:"noRoom,omitempty"`
	// Activating: it was started again, because nobody else has every commit. FailoverUndone:
	// a failover was begun and abandoned, and the same server becomes the primary again.
	Activating     bool `json:"activating,omitempty"`
	FailoverUndone bool `json:"undoing,omitempty"`

	// Source is the instance that it is a read replica of, "" of none. PromoteSeq is the newest
	// promotion taken up; Replication is how it follows, ReplicationReason why it does not.
	Source            InstanceID  `json:"source,omitempty"`
	PromoteSeq        int64       `json:"promoteSeq,omitempty"`
	Replication       Replication `json:"replication,omitempty"`
	ReplicationReason string      `json:"replicationReason,omitempty"`
	// ReplicationBrokenSince is zero while it follows; ReplicationCheckedAt is
	// when it was last told to compare itself with its source because of that. Promoting: it is
	// a replica no more, and has not been seen to write.
	ReplicationBrokenSince time.Time `json:"replicationLost,omitzero"`
	ReplicationCheckedAt   time.Time `json:"replicationLook,omitzero"`
	Promoting              bool      `json:"promoting,omitempty"`
	// SwitchSeq is the newest switchover taken up; SwitchBy is until when the one that is under
	// way has to come through, or else is called off, zero while none is.
	SwitchSeq int64     `json:"switchSeq,omitempty"`
	SwitchBy  time.Time `json:"switchBy,omitzero"`

	// ReaderAddress is the endpoint that leads to the standbys of a DB cluster, Servers are
	// its servers, by number; empty of what is no cluster.
	ReaderAddress string         `json:"readerAddress,omitempty"`
	Servers       []ServerStatus `json:"servers,omitempty"`

	CertificateExpiresAt time.Time `json:"certificateExpiresAt,omitzero"`
	// Tasks says of each kind when it was done last, and what came of it.
	Tasks map[Kind]TaskStatus `json:"tasks,omitempty"`
}

// FailedRollout is a boot (of settings or a version) with which a server could not start, and
// the message of that server. Boot is 0 for none.
type FailedRollout struct {
	Boot    int64       `json:"boot"`
	Kind    FailureKind `json:"kind"`
	Message string      `json:"message"`
}

// ServerStatus is what users are told of one server of a DB cluster: to them it is a DB
// instance.
type ServerStatus struct {
	ID      InstanceID `json:"id"`
	Host    HostID     `json:"host"`
	Zone    string     `json:"zone"`
	Address string     `json:"address"` // its own endpoint, at the port of the cluster
	State   State      `json:"state"`
	// CreatedAt is when it was first available, zero until then.
	CreatedAt time.Time `json:"createdAt,omitzero"`
	// EngineVersion is what it runs, or ran last; "": not known.
	EngineVersion string `json:"engineVersion,omitempty"`
	// Writer: clients of the cluster's endpoint speak with it. InSyncSet: it may take over, since
	// it has every commit or is one of those of which one has. Reading: the reader endpoint
	// may lead to it.
	Writer    bool `json:"writer,omitempty"`
	InSyncSet bool `json:"sync,omitempty"`
	Reading   bool `json:"reading,omitempty"`
}

// Replication is how a read replica follows its source, in RDS's words (DBInstanceStatusInfo).
type Replication string

// The states: "" before the first time.
const (
	ReplicationRunning Replication = "replicating"
	ReplicationBroken  Replication = "error"
)

// Followed is the instance that another one is a read replica of, "" of none; status is nil
// of one that was never planned.
func Followed(spec InstanceSpec, status *InstanceStatus) InstanceID {
	if status == nil {
		return spec.Source
	}
	return status.Source
}

// Change is a part of the settings that is being changed.
type Change string

// The changes.
const (
	ChangeOfClass   Change = "class"
	ChangeOfStorage Change = "storage"
	ChangeOfPort    Change = "port"
	ChangeOfGroup   Change = "parameter group"
)

// Event is one line of an instance's (or group's) history, kept for 14 days.
type Event struct {
	Seq        string    `json:"seq"` // sorts by time
	At         time.Time `json:"at"`
	SourceType string    `json:"sourceType"` // db-instance, db-parameter-group, …
	Source     string    `json:"source"`     // name at that time
	SourceID   string    `json:"sourceID,omitempty"`
	ID         string    `json:"id"` // RDS-EVENT-0005
	Categories []string  `json:"categories"`
	Message    string    `json:"message"`
}

// Move is a stage of the way to another host: a second server is made there and takes over,
// then the first one goes.
type Move string

// The stages.
const (
	MoveBegun  Move = "begun"
	MoveEnding Move = "ends"
)
