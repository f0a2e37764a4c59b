package kurabe

// Texts of RDS that tools and people match: an error of the same meaning has the same text,
// from the first word on; details that RDS does not give may follow. Each text names its source,
// a report that quotes RDS's answer. For ports, retention periods, the form of a backup window
// and most states of snapshots and clusters no such report was found; those texts are ours.
// TestWordsAreSaid of internal/api/rds sends a request for each.
const (
	// hashicorp/terraform issue 3610, for DBInstanceIdentifier: a name and a length.
	WordsTooLong = "The parameter %s is not a valid identifier because it is longer than %d characters."
	// The same issue, for FinalDBSnapshotIdentifier.
	WordsIdentifier = "The parameter %s is not a valid identifier. Identifiers must begin with a letter; must contain only ASCII letters, digits, and hyphens; and must not end with a hyphen or contain two consecutive hyphens."
	// terraform-provider-aws pull request 38394; the longer one is told of MySQL with 41.
	WordsPasswordShort = "The parameter MasterUserPassword is not a valid password because it is shorter than %d characters."
	WordsPasswordLong  = "The parameter MasterUserPassword is not a valid password because it is longer than %d characters."
	// crossplane issue 88, terraform-aws-modules/terraform-aws-rds issue 243.
	WordsPasswordText = "The parameter MasterUserPassword is not a valid password. Only printable ASCII characters besides '/', '@', '\"', ' ' may be used."
	// moto's copy of RDS's answer (moto/rds/models.py): the name of a parameter.
	WordsBlank = "The parameter %s must be provided and must not be blank."
	// Reports of "admin" and "default" with PostgreSQL.
	WordsReservedUser     = "MasterUsername %s cannot be used as it is a reserved word used by the engine"
	WordsReservedDatabase = "DatabaseName %s cannot be used as it is a reserved word used by the engine"
	// ministryofjustice/cloud-platform-user-guide pull request 1911, of a restore with less
	// storage than the snapshot: InvalidParameterCombination. Modifications say the same
	// (aws-cloudformation-resource-providers-rds pull request 598).
	WordsStorageSize = "Invalid storage size for engine name %s and storage type %s: %d"
	// cloudtools/troposphere issue 2141, cloud-gov/terraform-provision pull request 1556.
	WordsGP3Small = "You can't specify IOPS or storage throughput for engine %s and a storage size less than %d."
	// ministryofjustice/cloud-platform-environments pull requests 3966 and 3972, of MaxAllocatedStorage.
	WordsIOPSRatio = "Invalid iops to storage (GB) ratio for engine name %s and storage type %s: %.4f"
	// cloud-platform-environments pull requests 7471 and 7483.
	WordsMaxStorage = "Max storage size must be greater than storage size"
	// hashicorp/terraform issue 5455 and azavea/terraform-aws-postgresql-rds issue 31:
	// InvalidParameterCombination.
	WordsLogTypes           = "You cannot use the log types %s with engine version %s %s. For supported log types, see the documentation. They are: %s."
	WordsMonitoringRole     = "A MonitoringRoleARN value is required if you specify a MonitoringInterval value other than 0."
	WordsMonitoringInterval = "You must specify a MonitoringInterval value other than 0 when you specify a MonitoringRoleARN value."
	// ryanmurakami/trash-panda-buffet issue 5.
	WordsClass = "Invalid DB Instance class: %s"
	// aws/aws-cli issue 2618.
	WordsEngine = "Invalid DB engine: %s"
	// tryretool/terraform-retool-modules issue 70.
	WordsVersion = "Cannot find version %s for %s"
	// cloud-platform-environments pull requests 4421 and 25855.
	WordsUpgrade = "Cannot upgrade %s from %s to %s"
	// hashicorp/terraform-provider-aws issue 39225, hashicorp/terraform issue 11407.
	WordsZoneOfPair = "Requesting a specific availability zone is not valid for Multi-AZ instances."
	// tmobile/jazz-installer pull request 525, of a cluster: InvalidVPCNetworkStateFault.
	WordsZone = "Availability zone '[%s]' is unavailable in this region, please choose another zone set."
	// cloud-platform-environments pull request 5243, terraform-provider-aws issue 49828.
	WordsWindows = "The backup window and maintenance window must not overlap"
	// crossplane-contrib/provider-aws issue 1870.
	WordsNoChange = "No modifications were requested"
	// terraform-provider-aws issue 31594, cloud-custodian issue 178.
	WordsNotAvailable = "Database instance is not in available state."
	// cloud-custodian issue 1687, of StopDBInstance: Instance or Cluster, and its name.
	WordsNotAvailableToStop = "%s %s is not in available state."
	// terraform-provider-aws issue 27325, terraform-aws-rds-aurora issue 293.
	WordsBusyToReboot = "%s cannot currently reboot due to an in-progress management operation."
	// Ansible's amazon.aws, tests/integration of rds_instance: RebootDBInstance with ForceFailover.
	WordsNoFailover = "Cannot force failover since the instance is not configured for multi-AZ."
	// Terraform's acceptance tests and moto: the kind of thing, "DB Instance" or "DB Cluster".
	WordsProtected = "Cannot delete protected %s, please disable deletion protection and try again."
	// moto/rds/models.py; fog-aws and Terraform look for the name of the parameter.
	WordsFinalSnapshot = "FinalDBSnapshotIdentifier is required unless SkipFinalSnapshot is specified."
	// moto/rds/models.py.
	WordsSkippedSnapshot = "FinalDBSnapshotIdentifier can not be specified when deleting with SkipFinalSnapshot"
	// cloud-custodian issues 417 and 436, fog/fog-aws pull request 74.
	WordsReplicaSnapshot = "FinalDBSnapshotIdentifier can not be specified when deleting a replica instance"
	// terraform-aws-modules/terraform-aws-rds issue 445, cloud-custodian issue 309.
	WordsSnapshotExists = "Cannot create the snapshot because a snapshot with the identifier %s already exists."
	// ministryofjustice/cloud-platform-user-guide pull request 1842: database instance or cluster.
	WordsSnapshotState = "Cannot create a snapshot because the %s %s is not currently in the available state."
	// AWS's user guide, "Working with read replicas", and reports of CreateDBInstanceReadReplica.
	WordsReplicaBackups = "Automated backups are not enabled for this database instance. To enable automated backups, use ModifyDBInstance to set the backup retention period to a non-zero value."
	// cloud-custodian issue 178, aws/aws-cdk issue 17356.
	WordsBackupsOfReplica = "DB Backups not supported on a read replica for engine %s"
	// Answers of DescribeDBInstances and its kin in the waiters and tests of Terraform and boto.
	WordsInstanceNotFound = "DBInstance %s not found."
	WordsClusterNotFound  = "DBCluster %s not found."
	WordsSnapshotNotFound = "DBSnapshot %s not found."
	// cloud-platform-environments pull request 5192.
	WordsClusterSnapshotNotFound = "DBClusterSnapshot not found: %s"
	// aws-quickstart/quickstart-r3-corda issue 25; moto/rds/exceptions.py.
	WordsGroupNotFound        = "DBParameterGroup not found: %s"
	WordsClusterGroupNotFound = "DBClusterParameterGroup not found: %s"
	WordsOptionGroupNotFound  = "Specified OptionGroupName: %s not found."
	WordsSubnetGroupNotFound  = "DB subnet group '%s' does not exist."
	// aws-cloudformation/cloudformation-coverage-roadmap issue 703.
	WordsFamily = "ParameterGroupFamily %s is not a valid parameter group family"
	// quickstart-r3-corda issue 25, cloud-platform-environments pull request 3913.
	WordsGroupFamily = "The Parameter Group %s with DBParameterGroupFamily %s cannot be used for this instance. Please use a Parameter Group with DBParameterGroupFamily %s"
	// hashicorp/terraform issue 11820, Releem/releem-agent issue 484.
	WordsParameter = "Could not find parameter with name: %s"
	// terraform-provider-aws issue 216, with the answer as it was on the wire.
	WordsStaticParameter = "cannot use immediate apply method for static parameter"
	// terraform-aws-rds-aurora issue 466, terraform-provider-aws issue 6448.
	WordsGroupInUse = "One or more %ss are still members of this parameter group %s, so the group cannot be deleted"
	// awsdocs/amazon-rds-user-guide issue 14, gruntwork-io/cloud-nuke issue 717:
	// InvalidDBParameterGroupState.
	WordsDefaultGroupDeleted = "Default DBParameterGroup cannot be deleted: %s"
	// ankane/pghero issue 66: InvalidParameterValue.
	WordsDefaultGroupModified = "Cannot modify a default parameter group."
	// terraform-provider-aws issue 17373 has an older text; this one is of
	// aws-cloudformation-resource-providers-rds pull request 189.
	WordsZonesCovered = "The DB subnet group doesn't meet Availability Zone (AZ) coverage requirement. Current AZ coverage: %s. Add subnets to cover at least %d AZs."
	// moto/rds/exceptions.py.
	WordsSubnets = "Some input subnets in :[%s] are invalid."
	// anomalyco/sst issues 4026 and 6592.
	WordsSubnetGroupInUse = "Cannot delete the subnet group '%s' because at least one database instance: %s is still using it."
)
