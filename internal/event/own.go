package event

// Events that RDS does not have: the servers of an instance, and what stands behind its commits.
var (
	PortChanged     = own(Instance, 1, "Finished applying modification to the port", configuration)
	StepFails       = own(Instance, 2, "Step %s does not succeed and is tried again: %s", failure)
	StandbyLost     = own(Instance, 10, "The standby does not answer. Commits go on without it: until it is back, what is written would be lost with the writer", failure)
	StandbyBack     = own(Instance, 11, "The standby has every commit again", recovery)
	StandbyLacksLog = own(Instance, 12, "The standby lacks a part of the log that is not there any more. It is made anew, as a copy of the DB instance", recovery)
	CommitsGivenUp  = own(Instance, 13, "The former writer in zone %s had committed %s transactions that its standby never had%s. "+
		"They are not part of the database any more. Their clients were waiting for the standby%s; or an operator has accepted the loss", failover, notification)
	LossAccepted = own(Instance, 14, "An operator has accepted a loss: the server in zone %s takes over although it lacks commits that were acknowledged since %s",
		failover, notification)
	LossNotTaken = own(Instance, 15, "The recovery with a loss does not take place: %s", failover)
	Unrestorable = own(Instance, 16, "The DB instance cannot be restored, and nothing of it is offered: %s. "+
		"Delete it, and restore from another snapshot or to another moment. %s", failure)
	StandbyDamaged = own(Instance, 17, "The server of the standby cannot start. It is made anew, as a copy of the DB instance. Its words: %s", recovery)
	Unreachable    = own(Instance, 19, "The DB instance is unreachable: %s", availability, failure)
	HostHeard      = own(Instance, 20, "Host %s is heard again", recovery)
	InstanceLost   = own(Instance, 21, "The DB instance is lost: %s", failure)
	StandbyAnew    = own(Instance, 22, "Another standby is made: %s", notification)
	Moving         = own(Instance, 26, "The DB instance is being moved to another host: %s", notification)
	Moved          = own(Instance, 27, "The DB instance has been moved to host %s, zone %s", notification)
	CommitsWait    = own(Instance, 28, "Commits wait until another server has them, and none answers that has every commit: %s is block. "+
		"To have them go on with one server alone, set it to degrade, or make the DB instance a Single-AZ one (MultiAZ false)", failure, availability)
	CommitsGoOn       = own(Instance, 29, "Commits go on%s. They had waited since %s", notification, recovery)
	ParametersUndone  = own(Instance, 31, "The DB instance goes on with the parameters that it had. What a server could not start with waits for a reboot again: %d parameters. Change the DB parameter group before that", notification)
	StandbyHomeless   = own(Instance, 32, "The standby of the DB instance cannot be placed: %s", failure)
	FailoverCalledOff = own(Instance, 33, "The failover that was begun is called off: %s", failover)
	WaitsEnded        = own(Instance, 36, "%d commits ended their wait for the standby before it had answered%s, and other sessions see them: "+
		"the statements of %d were cancelled, and their clients were told so by a warning; the sessions of %d were ended. %s", notification, availability)
	WaitsSettled     = own(Instance, 37, "Another server has all commits by now that had ended their wait for the standby before it had answered", recovery)
	HostCopied       = own(Instance, 40, "Another machine, at %s, has the identity of host %s and is refused: it is a copy of that machine or of its data folder. End it", notification)
	StandbyNoRoom    = own(Instance, 41, "The standby in zone %s has no room to write, so no failover that is asked for goes to it: %s", lowStorage)
	StandbyHasRoom   = own(Instance, 42, "The standby in zone %s has room to write again", notification)
	RolloutFailed    = own(Instance, 43, "%s", failure)
	RolloutAbandoned = own(Instance, 44, "Abandoning the failover that was asked for: a standby cannot start with what was to take effect with it", failover)
	StandbyStopped   = own(Instance, 45, "The standby in zone %s is stopped: %s. %s. It is started again when there is room", lowStorage)
	Drilled          = own(Instance, 51, "A drill has the server %d in zone %s %s (process %d)", notification)
	ServerWaits      = own(Instance, 62, "The server in zone %s waits: step %s does not succeed and is tried again: %s", failure)
	Unresponsive     = own(Instance, 63, "The database process runs and does not answer, since %s", availability)
	ResponsiveAgain  = own(Instance, 64, "The database answers again; it had not since %s", availability)
	MetricsLost      = own(Instance, 72, "Host %s has lost %s of before %s: %s", notification)
)

// Read replicas.
var (
	ReplicaLacksLog  = own(Instance, 12, "The read replica lacks a part of the log that is not there any more. It is made anew, as a copy of its source", readReplica, recovery)
	ReplicaDamaged   = own(Instance, 17, "The server of the read replica cannot start. It is made anew, as a copy of its source. Its words: %s", readReplica, recovery)
	ReplicaPromoted  = own(Instance, 18, "%s", readReplica, notification)
	SwitchoverDone   = own(Instance, 30, "Switchover completed: the read replica has taken the place of its source, which follows it from here on", readReplica, notification)
	SwitchoverFailed = own(Instance, 38, "%s", readReplica, notification)
)

// Backups, in the history of the instance and of the snapshot.
var (
	LogGap           = own(Instance, 4, "The log of the DB instance has a gap, and its latest restorable time stands still until the next automated snapshot: %s", backup, notification)
	LogFollowed      = own(Instance, 5, "The log of the DB instance is followed again", backup, notification)
	LogDamaged       = own(Instance, 71, "The stored log of the DB instance is damaged: %s", failure, backup)
	BackupFailed     = own(Instance, 3, "Snapshot %s could not be created: %s", backup)
	SnapshotFailed   = own(Snapshot, 3, "The snapshot could not be created: %s", failure)
	BackupVerified   = own(Instance, 8, "The backup %s was restored and verified: %s", backup)
	SnapshotVerified = own(Snapshot, 8, "The backup %s was restored and verified: %s", backup)
	BackupDamaged    = own(Instance, 9, "The backup %s cannot be trusted: %s", failure, backup)
	SnapshotDamaged  = own(Snapshot, 9, "The backup %s cannot be trusted: %s", failure, backup)
	BackupOfPrimary  = own(Instance, 24, "Snapshot %s was taken from the server that serves clients: %s", backup, notification)
	BackupWaits      = own(Instance, 62, "Snapshot %s waits: step %s does not succeed and is tried again: %s", backup)
	SnapshotWaits    = own(Snapshot, 62, "The snapshot waits: step %s does not succeed and is tried again: %s", failure)
	ImportBegun      = own(Snapshot, 6, "Importing snapshot", notification)
	ImportDone       = own(Snapshot, 7, "Snapshot imported", notification)
	AutomatedDeleted = own(Snapshot, 35, "Deleted automated snapshot", deletion)
)

// ParametersReset is of a DB parameter group.
var ParametersReset = own(ParameterGroup, 34, "Reset every parameter to its default", configuration)

// Notifications, of their topic.
var (
	NotificationsGivenUp  = own(Topic, 73, "%d of the notifications to the subscription %s (%s) were given up: %s", failure, notification)
	NotificationsUnqueued = own(Topic, 74, "%d notifications to the topic were given up: its queue was full", failure, notification)
)
