package kurabe

// Words of RDS that tools and people match: an error of ours that means the same says it the
// same way, from the first word on; what RDS does not say may follow. Each names who has shown
// it: reports of what RDS itself answered.
const (
	// terraform issue 3610 (hashicorp/terraform), for DBInstanceIdentifier: a name and a length.
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
	// storage than the snapshot: InvalidParameterCombination. Modifications say the same.
	WordsStorageSize = "Invalid storage size for engine name %s and storage type %s: %d"
	// hashicorp/terraform issue 5455 and azavea/terraform-aws-postgresql-rds issue 31:
	// InvalidParameterCombination.
	WordsMonitoringRole     = "A MonitoringRoleARN value is required if you specify a MonitoringInterval value other than 0."
	WordsMonitoringInterval = "You must specify a MonitoringInterval value other than 0 when you specify a MonitoringRoleARN value."
)
