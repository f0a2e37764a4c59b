package rds

import "strings"

// whyNot says why an action has no row. The text is stable: docs/coverage.md and
// users' scripts quote it.
func whyNot(action string) string { return reasons[action] }

// reasons holds every action of RDS that has no row in ops, under why.
var reasons = byAction(map[string]string{
	"one account has the service to itself, so there is nobody to share a snapshot with": `
ModifyDBClusterSnapshotAttribute ModifyDBSnapshotAttribute`,
	"this service is one region, so there is no other to copy automated backups to": `
StartDBInstanceAutomatedBackupsReplication StopDBInstanceAutomatedBackupsReplication`,
	"option groups cannot be changed: engines load what their parameters name": `
CreateOptionGroup`,
	"DB security groups belong to EC2-Classic, which AWS has retired": `
AuthorizeDBSecurityGroupIngress CreateDBSecurityGroup DeleteDBSecurityGroup DescribeDBSecurityGroups
RevokeDBSecurityGroupIngress`,
	"there is one certificate authority, which needs no default": `
ModifyCertificates`,
	"activity streams are not built yet": `
ModifyActivityStream StartActivityStream StopActivityStream`,
	"blue/green deployments are not built yet": `
CreateBlueGreenDeployment DeleteBlueGreenDeployment SwitchoverBlueGreenDeployment`,
	"custom endpoints belong to Aurora; a Multi-AZ DB cluster has one for its writer, one for its readers and one for each server": `
CreateDBClusterEndpoint DeleteDBClusterEndpoint DescribeDBClusterEndpoints ModifyDBClusterEndpoint`,
	"a DB cluster is no read replica here": `
PromoteReadReplicaDBCluster`,
	"it needs Aurora's storage, which is Amazon's alone": `
BacktrackDBCluster CreateDBShardGroup DeleteDBShardGroup DescribeDBClusterBacktracks DescribeDBShardGroups
DescribeServerlessV2PlatformVersions ModifyCurrentDBClusterCapacity ModifyDBShardGroup RebootDBShardGroup`,
	"one service spans one region": `
CreateGlobalCluster DeleteGlobalCluster FailoverGlobalCluster ModifyGlobalCluster
RemoveFromGlobalCluster SwitchoverGlobalCluster`,
	"the data API is not built yet": `
DisableHttpEndpoint EnableHttpEndpoint`,
	"there is no IAM, so an engine can assume no role": `
AddRoleToDBCluster AddRoleToDBInstance RemoveRoleFromDBCluster RemoveRoleFromDBInstance`,
	"there is no S3 import or export": `
CancelExportTask DescribeExportTasks RestoreDBClusterFromS3 RestoreDBInstanceFromS3 StartExportTask`,
	"there is no Redshift to integrate with": `
CreateIntegration DeleteIntegration DescribeIntegrations ModifyIntegration`,
	"it belongs to Oracle and SQL Server, which it does not run": `
CreateCustomDBEngineVersion CreateTenantDatabase DeleteCustomDBEngineVersion DeleteTenantDatabase
DescribeDBSnapshotTenantDatabases ModifyCustomDBEngineVersion ModifyTenantDatabase`,
	"nothing is sold, so nothing is reserved": `
CancelDBCapacityReservation CreateDBCapacityReservation DescribeDBCapacityReservations
ModifyDBCapacityReservation PurchaseReservedDBInstancesOffering`,
	"recommendations are not built yet": `
DescribeDBRecommendations ModifyDBRecommendation`,
})

func byAction(groups map[string]string) map[string]string {
	out := map[string]string{}
	for reason, actions := range groups {
		for _, action := range strings.Fields(actions) {
			out[action] = reason
		}
	}
	return out
}
