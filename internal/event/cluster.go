package event

// Events of DB clusters. Servers of theirs are called as the DB instances that they are to
// users. RDS-EVENT-0072, a failover within one zone, cannot be: each server has its own.
var (
	ClusterCreated         = of(Cluster, 170, creation, "DB cluster created")
	ClusterDeleted         = of(Cluster, 171, deletion, "DB cluster deleted")
	ClusterCannotBeCreated = of(Cluster, 355, failure, "The DB cluster can't be created because of insufficient resource limits")
	ClusterStopped         = of(Cluster, 150, notification, "DB cluster stopped")
	ClusterStarted         = of(Cluster, 151, notification, "DB cluster started")
	ClusterAfterSevenDays  = of(Cluster, 153, notification,
		"DB cluster is being started due to it exceeding the maximum allowed time being stopped.")
	ClusterRenamed        = of(Cluster, 172, notification, "Renamed cluster from %s to %s")
	ClusterPatched        = of(Cluster, 173, maintenance, "Database cluster engine version has been upgraded")
	ClusterNewPassword    = of(Cluster, 16, configuration, "Reset master credentials")
	ClusterFailoverBegun  = of(Cluster, 73, failover, "Started cross AZ failover to DB instance: %s")
	ClusterFailoverDone   = of(Cluster, 71, failover, "Completed failover to DB instance: %s")
	ClusterFailoverFailed = of(Cluster, 69, failover, "Cluster failover failed, check the health of your cluster instances and try again")
	ClusterSamePrimary    = of(Cluster, 70, failover, "Promoting previous primary again: %s")
)

// Events of snapshots of DB clusters.
var (
	ClusterManualBegun    = of(ClusterSnapshot, 74, backup, "Creating manual cluster snapshot")
	ClusterManualDone     = of(ClusterSnapshot, 75, backup, "Manual cluster snapshot created")
	ClusterAutomatedBegun = of(ClusterSnapshot, 168, backup, "Creating automated cluster snapshot")
	ClusterAutomatedDone  = of(ClusterSnapshot, 169, backup, "Automated cluster snapshot created")
)
