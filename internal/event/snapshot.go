package event

// Events of DB snapshots. Copies are within one Region: those from another one have other
// ids.
var (
	ManualBegun     = of(Snapshot, 40, creation, "Creating manual snapshot")
	ManualDone      = of(Snapshot, 42, creation, "Manual snapshot created")
	AutomatedBegun  = of(Snapshot, 90, creation, "Creating automated snapshot")
	AutomatedDone   = of(Snapshot, 91, creation, "Automated snapshot created")
	SnapshotDeleted = of(Snapshot, 41, deletion, "Deleted user snapshot")
	CopyBegun       = of(Snapshot, 196, notification, "Started copy of snapshot %s")
	CopyDone        = of(Snapshot, 197, notification, "Finished copy of snapshot %s")
)

// ParameterUpdated is of a DB parameter group: a parameter, its value and how it is applied.
var ParameterUpdated = of(ParameterGroup, 37, configuration, "Updated parameter %s to %s with apply method %s")
