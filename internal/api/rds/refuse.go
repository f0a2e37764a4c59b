package rds

import (
	"fmt"
	"reflect"

	"kurabe"
)

// A request may name properties that Kurabe cannot make true. Nothing is
// accepted and ignored: a property that is neither honoured by its handler nor
// listed here with a value that is true anyway is refused, with the reason.

// truth is what may be said of a property: the values that are true of every
// instance, and why others are refused.
type truth struct {
	values []any
	reason string
}

var truths = map[string]truth{
	"EnableIAMDatabaseAuthentication":    {[]any{false}, "IAM database authentication is not offered yet"},
	"StorageEncrypted":                   {[]any{false}, "storage encryption is not offered; encrypt the disk below the data folder"},
	"KmsKeyId":                           {nil, "storage encryption is not offered; encrypt the disk below the data folder"},
	"PerformanceInsightsKMSKeyId":        {nil, "storage encryption is not offered; encrypt the disk below the data folder"},
	"PerformanceInsightsRetentionPeriod": {[]any{7}, "database load is kept for 7 days"},
	"DatabaseInsightsMode":               {[]any{"standard"}, "Database Insights has no advanced mode here"},
	"PubliclyAccessible":                 {[]any{false}, "an endpoint has one address, of its host's --address-pool, and no public one beside it"},
	"DBSecurityGroups":                   {nil, "DB security groups belonged to EC2-Classic"},
	"NetworkType":                        {[]any{"IPV4"}, "endpoints have IPv4 addresses only"},
	"DedicatedLogVolume":                 {[]any{false}, "an instance has one volume"},
	"AdditionalStorageVolumes":           {nil, "an instance has one volume"},
	"MasterUserAuthenticationType":       {[]any{"password"}, "the master user logs in with a password"},
	"BackupTarget":                       {[]any{"region"}, "there are no Outposts"},
	"EnableCustomerOwnedIp":              {[]any{false}, "there are no Outposts"},
	"EngineLifecycleSupport":             {[]any{"open-source-rds-extended-support-disabled"}, "nobody sells extended support here"},
	"MultiTenant":                        {[]any{false}, "it belongs to Oracle"},
	"NcharCharacterSetName":              {nil, "it belongs to Oracle"},
	"DBSystemId":                         {nil, "it belongs to Oracle"},
	"TdeCredentialArn":                   {nil, "it belongs to Oracle and SQL Server"},
	"TdeCredentialPassword":              {nil, "it belongs to Oracle and SQL Server"},
	"Timezone":                           {nil, "it belongs to SQL Server; set the time zone parameter of the DB parameter group"},
	"ProcessorFeatures":                  {nil, "a class has the processors that its name says"},
	"UseDefaultProcessorFeatures":        {[]any{true}, "a class has the processors that its name says"},
	"CustomIamInstanceProfile":           {nil, "RDS Custom is not offered"},
	"AutomationMode":                     {[]any{"full"}, "RDS Custom is not offered"},
	"ResumeFullAutomationModeMinutes":    {nil, "RDS Custom is not offered"},
	"AwsBackupRecoveryPointArn":          {nil, "there is no AWS Backup"},
	"DBClusterIdentifier":                {nil, "the servers of a Multi-AZ DB cluster are made with it, by CreateDBCluster"},
	"SourceDBClusterIdentifier":          {nil, "a read replica is made of a DB instance here, not of a DB cluster"},
	"DBCapacityReservationIdentifier":    {nil, "nothing is sold, so nothing is reserved"},
	"PromotionTier":                      {nil, "it belongs to Aurora"},
	"ReplicaMode":                        {nil, "it belongs to Oracle and Db2"},
	"AllowMajorVersionUpgrade":           {[]any{false}, "major version upgrades are not offered yet"},
	// Of DB clusters.
	"EngineMode":                       {[]any{engineMode}, "the other modes belong to Aurora"},
	"ClusterScalabilityType":           {[]any{"standard"}, "Aurora Limitless Database is not offered"},
	"EnableLimitlessDatabase":          {[]any{false}, "Aurora Limitless Database is not offered"},
	"AllowEngineModeChange":            {[]any{false}, "the other modes belong to Aurora"},
	"BacktrackWindow":                  {[]any{0}, "backtracking belongs to Aurora; RestoreDBClusterToPointInTime makes a new cluster"},
	"EnableGlobalWriteForwarding":      {[]any{false}, "write forwarding belongs to Aurora"},
	"EnableLocalWriteForwarding":       {[]any{false}, "write forwarding belongs to Aurora"},
	"EnableHttpEndpoint":               {[]any{false}, "the data API is not built yet"},
	"EnableVPCNetworking":              {nil, "it belongs to Aurora"},
	"EnableInternetAccessGateway":      {[]any{false}, "it belongs to Aurora"},
	"WithExpressConfiguration":         {[]any{false}, "it belongs to Aurora"},
	"GlobalClusterIdentifier":          {nil, "one service spans one region"},
	"ScalingConfiguration":             {nil, "it belongs to Aurora Serverless"},
	"ServerlessV2ScalingConfiguration": {nil, "it belongs to Aurora Serverless"},
	"RdsCustomClusterConfiguration":    {nil, "RDS Custom is not offered"},
	"ReplicationSourceIdentifier":      {nil, "a DB cluster is no read replica here"},
	"DBInstanceParameterGroupName":     {nil, "it is for major version upgrades, which are not offered; the servers of a cluster have the cluster's parameters"},
	"AssociatedRoles":                  {nil, "there is no IAM, so an engine can assume no role"},
	"PreSignedUrl":                     {nil, "there is no other region"}, "SourceRegion": {nil, "there is no other region"},
	// Of DB proxies.
	"DefaultAuthScheme":           {[]any{"NONE"}, "there is no IAM to authenticate with: each user's password is in a secret that Auth names"},
	"EndpointNetworkType":         {[]any{"IPV4"}, "endpoints have IPv4 addresses only"},
	"TargetConnectionNetworkType": {[]any{"IPV4"}, "endpoints have IPv4 addresses only"},
	"NewName":                     {[]any{kurabe.ProxyTargetGroup}, "the only target group of a proxy is called default"},
	"AuthScheme":                  {[]any{"SECRETS"}, "there is no IAM to authenticate with"},
	"IAMAuth":                     {[]any{"DISABLED"}, "there is no IAM to authenticate with: clients give the password of the secret"},
	// Of ModifyDBInstance; CreateDBInstance honours its own.
	"TagSpecifications":          {nil, "a modification makes no resource that could be tagged; AddTagsToResource changes tags"},
	"CertificateRotationRestart": {[]any{true, false}, ""},
	"DisableDomain":              {[]any{true}, "there is no Active Directory"},
	"Domain":                     {nil, noDomain}, "DomainAuthSecretArn": {nil, noDomain}, "DomainDnsIps": {nil, noDomain},
	"DomainFqdn": {nil, noDomain}, "DomainIAMRoleName": {nil, noDomain}, "DomainOu": {nil, noDomain},
}

const noDomain = "there is no Active Directory"

// refuse goes through the fields of a request and refuses what is set, not
// honoured and not true anyway.
func (s *Service) refuse(in any, honoured map[string]bool) error {
	v := reflect.ValueOf(in).Elem()
	for n := range v.NumField() {
		name := v.Type().Field(n).Name
		field := v.Field(n)
		if honoured[name] || !v.Type().Field(n).IsExported() || unset(field) {
			continue
		}
		t, known := truths[name]
		if !known {
			return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "%s is not offered", name)
		}
		if !t.allows(field) {
			return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "%s cannot be honoured: %s", name, t.reason)
		}
	}
	return nil
}

func unset(v reflect.Value) bool {
	return v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0
}

func (t truth) allows(v reflect.Value) bool {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	for _, allowed := range t.values {
		if fmt.Sprint(v.Interface()) == fmt.Sprint(allowed) {
			return true
		}
	}
	return false
}

func names(list ...string) map[string]bool {
	m := map[string]bool{}
	for _, n := range list {
		m[n] = true
	}
	return m
}
