package event

// Events of DB instances: how they come, go, start and end.
var (
	Created               = of(Instance, 5, creation, "DB instance created")
	Deleted               = of(Instance, 3, deletion, "DB instance deleted")
	Shutdown              = of(Instance, 4, availability, "DB instance shutdown")
	Restarted             = of(Instance, 6, availability, "DB instance restarted")
	Stopped               = of(Instance, 87, notification, "DB instance stopped")
	Started               = of(Instance, 88, notification, "DB instance started")
	StartedAfterSevenDays = of(Instance, 154, notification,
		"DB instance is being started due to it exceeding the maximum allowed time being stopped.")
	// CannotBeCreated: what is missing follows.
	CannotBeCreated = of(Instance, 353, failure, "The DB instance can't be created because of insufficient resource limits")
	// IncompatibleParameters and IncompatibleNetwork are of a state, and say why.
	IncompatibleParameters = of(Instance, 35, failure, "Database instance put into %s. %s")
	IncompatibleNetwork    = of(Instance, 36, failure, "Database instance in %s. %s")
	// RestoredToPoint is of the instance that had the data, and of the new one.
	RestoredToPoint = of(Instance, 19, restoration, "Restored from DB instance %s to %s")
	// RestoredFromSnapshot is told of the new instance. RDS's page has it among the events of
	// snapshots; in the history of an instance is where its users look for it.
	RestoredFromSnapshot = of(Instance, 43, restoration, "Restored from snapshot %s")
)

// What is changed of DB instances, and their backups.
var (
	BackupBegun    = of(Instance, 1, backup, "Backing up DB instance")
	BackupDone     = of(Instance, 2, backup, "Finished DB instance backup")
	BackupsOff     = of(Instance, 28, configuration, "Disabled automated backups")
	BackupsOn      = of(Instance, 32, configuration, "Enabled automated backups")
	NewClass       = of(Instance, 12, configuration, "Applying modification to database instance class")
	ClassChanged   = of(Instance, 14, configuration, "Finished applying modification to DB instance class")
	NewStorage     = of(Instance, 18, configuration, "Applying modification to allocated storage")
	StorageChanged = of(Instance, 17, configuration, "Finished applying modification to allocated storage")
	NewGroup       = of(Instance, 11, configuration, "Updated to use DBParameterGroup %s")
	GroupChanged   = of(Instance, 92, configuration, "Finished updating DB parameter group")
	NewMonitoring  = of(Instance, 78, configuration, "Monitoring Interval changed to %d")
	NewPassword    = of(Instance, 16, configuration, "Reset master credentials")
	WindowBegun    = of(Instance, 26, maintenance, "Applying off-line patches to DB instance")
	WindowDone     = of(Instance, 27, maintenance, "Finished applying off-line patches to DB instance")
	Patched        = of(Instance, 47, maintenance, "Database instance patched")
	ToMultiAZBegun = of(Instance, 24, configuration, "Applying modification to convert to a Multi-AZ DB instance")
	ToMultiAZDone  = of(Instance, 25, configuration, "Finished applying modification to convert to a Multi-AZ DB instance")
	// ToSingleAZBegun has the greater number: RDS counts these two the other way round.
	ToSingleAZBegun = of(Instance, 30, configuration, "Applying modification to convert to a standard (Single-AZ) DB instance")
	ToSingleAZDone  = of(Instance, 29, configuration, "Finished applying modification to convert to a standard (Single-AZ) DB instance")
)

// Failovers of Multi-AZ DB instances.
var (
	FailoverBegun = of(Instance, 13, failover, "Multi-AZ instance failover started")
	// FailoverToStandby goes on, on RDS, with the time that DNS needs.
	FailoverToStandby = of(Instance, 15, failover, "Multi-AZ failover to standby complete")
	FailoverDone      = of(Instance, 49, failover, "Multi-AZ instance failover completed")
	FailoverAbandoned = of(Instance, 34, failover,
		"Abandoning user requested failover since a failover recently occurred on the database instance")
	// FailoverUndone ends one that was begun, and whose writer is the same after all.
	FailoverUndone  = of(Instance, 65, failover, "Recovered from partial failover")
	ActivationBegun = of(Instance, 50, failover, "Multi-AZ instance activation started")
	ActivationDone  = of(Instance, 51, failover, "Multi-AZ instance activation completed")
)

// Read replicas.
var (
	ReplicaFailed      = of(Instance, 202, readReplica, "Read replica creation failed")
	ReplicationStopped = of(Instance, 45, readReplica, "Replication has stopped")
	ReplicationResumed = of(Instance, 46, readReplica, "Replication for the Read Replica resumed")
	ReplicationEnded   = of(Instance, 57, readReplica, "Replication streaming has been terminated")
	SwitchoverBegun    = of(Instance, 233, readReplica, "The Switchover to the read replica started")
)

// Storage of DB instances.
var (
	StorageExhausted = of(Instance, 7, lowStorage, "Allocated storage has been exhausted. Allocate additional storage to resolve.")
	// StorageLow is of a name, the percentage that is free, the cap and what is free of it.
	StorageLow = of(Instance, 89, lowStorage, "The free storage capacity for DB instance: %s is low at %d%% of the provisioned storage "+
		"[Provisioned Storage: %s, Free Storage: %s]. You may want to increase the provisioned storage to address this issue.")
	// StorageCritical is of a name, the percentage that is free, the cap, the free part of it, and the
	// least free part with which the database runs. RDS has it for MySQL alone.
	StorageCritical = of(Instance, 222, availability, "Free storage capacity for DB instance %s is low at %d%% of the allocated storage "+
		"[Allocated storage: %s, Free storage: %s]. The database will be shut down to prevent corruption if free storage is lower than %s. "+
		"You can increase the allocated storage to address this issue.")
	StorageFull      = of(Instance, 221, availability, "DB instance has reached the storage-full threshold, and the database has been shut down")
	AutoscalingBegun = of(Instance, 217, configuration, "Applying autoscaling-initiated modification to allocated storage")
	AutoscalingDone  = of(Instance, 218, configuration, "Finished applying autoscaling-initiated modification to allocated storage")
	AutoscalingWaits = of(Instance, 220, failure, "DB instance is in the cooling-off period for a previous scale storage operation")
	AutoscalingStuck = of(Instance, 223, failure, "Storage autoscaling is unable to scale the storage for the reason: %s")
	AutoscalingEnds  = of(Instance, 224, failure, "Storage autoscaling has triggered a pending scale storage task that will reach or exceed "+
		"the maximum storage threshold. Increase the maximum storage threshold.")
	// AutoscalingNearsEnd is of the size and the maximum.
	AutoscalingNearsEnd = of(Instance, 225, notification,
		"Allocated storage size %d GB is approaching the maximum storage threshold %d GB. Increase the maximum storage threshold.")
)
