package catalog

// The namespaces.
const (
	RDS    = "AWS/RDS"
	Kurabe = "Kurabe/RDS"
)

// The labels of a series. Those of users' own metrics are Namespace, Metric, Unit, for each
// dimension DimensionPrefix and its name, and DimensionNames, which tells a metric from those
// with more dimensions.
const (
	Namespace = "namespace"
	Metric    = "metric"
	Instance  = "instance" // DBInstanceIdentifier when it was measured
	Server    = "server"   // kurabe.InstanceID of the server
	Engine    = "engine"
	Role      = "role" // RolePrimary and so on, when it was measured
	Unit      = "unit"

	DimensionPrefix = "dimension:"
	DimensionNames  = "dimensions" // sorted, each with a line feed behind it
)

// The roles of a server.
const (
	RolePrimary = "primary" // of an instance or a cluster; also a server without others
	RoleStandby = "standby" // no client reads it
	RoleReader  = "reader"  // a member of a DB cluster that clients read
	RoleReplica = "replica" // an instance of its own that follows another
)

// Definition is one metric. The units are CloudWatch's.
type Definition struct {
	Namespace, Name, Unit string
	// Engine is the one that has it; "": both.
	Engine string
	Help   string // as of the guide: what is measured, and from where
}

const (
	postgres = "postgres"
	mariadb  = "mariadb"
)

// All are all metrics, by namespace and name.
var All = []Definition{
	{RDS, "BinLogDiskUsage", "Bytes", mariadb, "size of the binary logs on disk"},
	{RDS, "CPUUtilization", "Percent", "", "CPU time of the server's control group, as a share of the class's vCPUs"},
	{RDS, "CheckpointLag", "Seconds", postgres, "time since the last checkpoint was completed"},
	{RDS, "DatabaseConnections", "Count", "", "sessions of clients"},
	{RDS, "Deadlocks", "Count", "", "deadlocks that the server ended, in the second"},
	{RDS, "DiskQueueDepth", "Count", "", "requests that wait for the disk or are under way on it"},
	{RDS, "FreeStorageSpace", "Bytes", "", "allocated storage that is not occupied"},
	{RDS, "FreeableMemory", "Bytes", "", "memory of the class that the server does not hold; page cache counts as free"},
	{RDS, "MaximumUsedTransactionIDs", "Count", postgres, "age of the oldest transaction id that is not frozen"},
	{RDS, "NetworkReceiveThroughput", "Bytes/Second", "", "bytes that clients and replicas sent to the server"},
	{RDS, "NetworkTransmitThroughput", "Bytes/Second", "", "bytes that the server sent to clients and replicas"},
	{RDS, "OldestReplicationSlotLag", "Bytes", postgres, "WAL that the slot furthest behind keeps"},
	{RDS, "ReadIOPS", "Count/Second", "", "read requests of the control group on the data's disk"},
	{RDS, "ReadLatency", "Seconds", "", "mean time of a read request of the data's disk; absent in a second without one"},
	{RDS, "ReadThroughput", "Bytes/Second", "", "bytes that the control group read from the data's disk"},
	{RDS, "ReplicaLag", "Seconds", "", "age of what a server that follows shows; -1 while it does not follow"},
	{RDS, "SwapUsage", "Bytes", "", "swap that the control group occupies"},
	{RDS, "TransactionLogsDiskUsage", "Bytes", postgres, "size of the WAL on disk"},
	{RDS, "TransactionLogsGeneration", "Bytes/Second", postgres, "WAL that was written in the second"},
	{RDS, "WriteIOPS", "Count/Second", "", "write requests of the control group on the data's disk"},
	{RDS, "WriteLatency", "Seconds", "", "mean time of a write request of the data's disk; absent in a second without one"},
	{RDS, "WriteThroughput", "Bytes/Second", "", "bytes that the control group wrote to the data's disk"},

	{Kurabe, "BackupAge", "Seconds", "", "age of the newest backup"},
	{Kurabe, "CPUThrottledTime", "Seconds", "", "time in the second that threads stood still for the class's vCPUs"},
	{Kurabe, "LatestRestorableTimeAge", "Seconds", "", "age of the latest restorable time"},
	{Kurabe, "ReadThrottledTime", "Seconds", "", "time in the second in which reads were held back for the IOPS or throughput limit"},
	{Kurabe, "UnprotectedTime", "Seconds", "", "time for which commits have gone on without a standby; 0 while one has them"},
	{Kurabe, "VerifiedRestoreAge", "Seconds", "", "age of the newest backup whose restore was verified"},
	{Kurabe, "WriteThrottledTime", "Seconds", "", "time in the second in which writes were held back for the IOPS or throughput limit"},
}
