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
	{RDS, "BinLogDiskUsage", "Bytes", mariadb, "size of the binary logs on disk; read each 10 s"},
	{RDS, "CPUUtilization", "Percent", "", "CPU time of the server's control group, as a share of the class's vCPUs, or of the host's for a class without a limit"},
	{RDS, "CheckpointLag", "Seconds", postgres, "time since the newest complete checkpoint began; read each 10 s"},
	{RDS, "DBLoad", "None", "", "active sessions, of an instance that keeps its load (EnablePerformanceInsights)"},
	{RDS, "DBLoadCPU", "None", "", "active sessions that wait for nothing"},
	{RDS, "DBLoadNonCPU", "None", "", "active sessions that wait"},
	{RDS, "DBLoadRelativeToNumVCPUs", "None", "", "active sessions by the class's vCPUs, or the host's for a class without a limit"},
	{RDS, "DatabaseConnections", "Count", "", "sessions of clients; those of the service and of its standbys do not count"},
	{RDS, "Deadlocks", "Count", "", "deadlocks that the server ended, in the second"},
	{RDS, "DiskQueueDepth", "Count", "", "mean number of the control group's requests under way on the data's disk: its IOPS by the mean times of ReadLatency and WriteLatency"},
	{RDS, "FreeStorageSpace", "Bytes", "", "allocated storage that is not occupied"},
	{RDS, "FreeableMemory", "Bytes", "", "memory of the class that the server does not hold; page cache counts as free. For a class without a limit the available memory of the host"},
	{RDS, "MaximumUsedTransactionIDs", "Count", postgres, "age of the oldest transaction id that is not frozen; read each 10 s"},
	{RDS, "NetworkReceiveThroughput", "Bytes/Second", "", "bytes that clients and replicas sent to the server over TCP, TLS included; absent where the kernel does not tell the agent of sockets (it takes CAP_NET_ADMIN)"},
	{RDS, "NetworkTransmitThroughput", "Bytes/Second", "", "bytes that the server sent to clients and replicas over TCP, as NetworkReceiveThroughput"},
	{RDS, "OldestReplicationSlotLag", "Bytes", postgres, "WAL that the slot furthest behind keeps, slots of standbys and of the service included; absent without a slot; read each 10 s"},
	{RDS, "ReadIOPS", "Count/Second", "", "read requests of the control group on the data's disk"},
	{RDS, "ReadLatency", "Seconds", "", "mean time of a read request of the data's disk, whoever made it, as the kernel keeps none for a control group; a wait for the IOPS or throughput limit comes before; absent in a second without a request"},
	{RDS, "ReadThroughput", "Bytes/Second", "", "bytes that the control group read from the data's disk"},
	{RDS, "ReplicaLag", "Seconds", "", "age of the data that a server which follows shows; -1 while it does not follow"},
	{RDS, "SwapUsage", "Bytes", "", "swap that the control group occupies"},
	{RDS, "TransactionLogsDiskUsage", "Bytes", postgres, "size of the WAL on disk; read each 60 s"},
	{RDS, "TransactionLogsGeneration", "Bytes/Second", postgres, "WAL that was written in the second"},
	{RDS, "WriteIOPS", "Count/Second", "", "write requests of the control group on the data's disk"},
	{RDS, "WriteLatency", "Seconds", "", "mean time of a write request of the data's disk, whoever made it, as the kernel keeps none for a control group; a wait for the IOPS or throughput limit comes before; absent in a second without a request"},
	{RDS, "WriteThroughput", "Bytes/Second", "", "bytes that the control group wrote to the data's disk"},

	{Kurabe, "BackupAge", "Seconds", "", "age of the data of the newest snapshot; told each 10 s"},
	{Kurabe, "CPUThrottledTime", "Seconds", "", "time in the second that threads stood still for the class's vCPUs"},
	{Kurabe, "IOLimitUtilization", "Percent", "", "the largest share that was used of the IOPS and throughput limits of reads and writes; at 100 requests wait for the limit. The kernel does not tell for how long. Absent for a storage type without limits"},
	{Kurabe, "LatestRestorableTimeAge", "Seconds", "", "age of the latest restorable time; told each 10 s"},
	{Kurabe, "UnprotectedTime", "Seconds", "", "time for which commits have gone on without a standby; 0 while one has them; told each 10 s"},
	{Kurabe, "VerifiedRestoreAge", "Seconds", "", "time since the newest good verification of a snapshot by a restore; told each 10 s"},
}

// byName are All by name, which no two namespaces share.
var byName = func() map[string]Definition {
	m := make(map[string]Definition, len(All))
	for _, d := range All {
		m[d.Name] = d
	}
	return m
}()

// Of returns the definition of a metric, the zero value of an unknown one.
func Of(metric string) Definition { return byName[metric] }
