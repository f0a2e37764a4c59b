package rds

import (
	"kurabe"
	"kurabe/internal/api"
)

// errorCodes are RDS's, by ours.
var errorCodes = api.Errors{
	kurabe.CodeInstanceNotFound:        {Code: "DBInstanceNotFound", Status: 404},
	kurabe.CodeInstanceExists:          {Code: "DBInstanceAlreadyExists", Status: 400},
	kurabe.CodeInvalidInstanceState:    {Code: "InvalidDBInstanceState", Status: 400},
	kurabe.CodeInsufficientCapacity:    {Code: "InsufficientDBInstanceCapacity", Status: 400},
	kurabe.CodeInstanceQuota:           {Code: "InstanceQuotaExceeded", Status: 400},
	kurabe.CodeStorageTypeNotSupported: {Code: "StorageTypeNotSupported", Status: 400},

	kurabe.CodeParameterGroupNotFound:  {Code: "DBParameterGroupNotFound", Status: 404},
	kurabe.CodeParameterGroupExists:    {Code: "DBParameterGroupAlreadyExists", Status: 400},
	kurabe.CodeParameterGroupQuota:     {Code: "DBParameterGroupQuotaExceeded", Status: 400},
	kurabe.CodeInvalidParameterGroup:   {Code: "InvalidDBParameterGroupState", Status: 400},
	kurabe.CodeOptionGroupNotFound:     {Code: "OptionGroupNotFoundFault", Status: 404},
	kurabe.CodeInvalidOptionGroupState: {Code: "InvalidOptionGroupStateFault", Status: 400},

	kurabe.CodeSubnetGroupNotFound:     {Code: "DBSubnetGroupNotFoundFault", Status: 404},
	kurabe.CodeSubnetGroupExists:       {Code: "DBSubnetGroupAlreadyExists", Status: 400},
	kurabe.CodeSubnetGroupQuota:        {Code: "DBSubnetGroupQuotaExceeded", Status: 400},
	kurabe.CodeInvalidSubnetGroupState: {Code: "InvalidDBSubnetGroupStateFault", Status: 400},
	kurabe.CodeInvalidSubnet:           {Code: "InvalidSubnet", Status: 400},
	kurabe.CodeSubnetGroupAZCoverage:   {Code: "DBSubnetGroupDoesNotCoverEnoughAZs", Status: 400},
	kurabe.CodeInvalidVPCNetworkState:  {Code: "InvalidVPCNetworkStateFault", Status: 400},
	kurabe.CodeSecurityGroupNotFound:   {Code: "DBSecurityGroupNotFound", Status: 404},

	kurabe.CodeCertificateNotFound:   {Code: "CertificateNotFound", Status: 404},
	kurabe.CodeLogFileNotFound:       {Code: "DBLogFileNotFoundFault", Status: 404},
	kurabe.CodeSnapshotNotFound:      {Code: "DBSnapshotNotFound", Status: 404},
	kurabe.CodeSnapshotExists:        {Code: "DBSnapshotAlreadyExists", Status: 400},
	kurabe.CodeSnapshotQuota:         {Code: "SnapshotQuotaExceeded", Status: 400},
	kurabe.CodeInvalidSnapshotState:  {Code: "InvalidDBSnapshotState", Status: 400},
	kurabe.CodeBackupNotFound:        {Code: "DBInstanceAutomatedBackupNotFound", Status: 404},
	kurabe.CodeInvalidBackupState:    {Code: "InvalidDBInstanceAutomatedBackupState", Status: 400},
	kurabe.CodePointInTimeNotEnabled: {Code: "PointInTimeRestoreNotEnabled", Status: 400},

	kurabe.CodeClusterNotFound:         {Code: "DBClusterNotFoundFault", Status: 404},
	kurabe.CodeClusterExists:           {Code: "DBClusterAlreadyExistsFault", Status: 400},
	kurabe.CodeInvalidClusterState:     {Code: "InvalidDBClusterStateFault", Status: 400},
	kurabe.CodeClusterQuota:            {Code: "DBClusterQuotaExceededFault", Status: 403},
	kurabe.CodeClusterGroupNotFound:    {Code: "DBClusterParameterGroupNotFound", Status: 404},
	kurabe.CodeClusterSnapshotNotFound: {Code: "DBClusterSnapshotNotFoundFault", Status: 404},
	kurabe.CodeClusterSnapshotExists:   {Code: "DBClusterSnapshotAlreadyExistsFault", Status: 400},
	kurabe.CodeInvalidClusterSnapshot:  {Code: "InvalidDBClusterSnapshotStateFault", Status: 400},
	kurabe.CodeClusterBackupNotFound:   {Code: "DBClusterAutomatedBackupNotFoundFault", Status: 404},
	kurabe.CodeInvalidClusterBackup:    {Code: "InvalidDBClusterAutomatedBackupStateFault", Status: 400},

	kurabe.CodeResourceNotFound: {Code: "ResourceNotFoundFault", Status: 404},
	kurabe.CodeSecretSealed:     {Code: "KMSKeyNotAccessibleFault", Status: 400},

	kurabe.CodeSubscriptionNotFound: {Code: "SubscriptionNotFound", Status: 404},
	kurabe.CodeSubscriptionExists:   {Code: "SubscriptionAlreadyExist", Status: 400},
	kurabe.CodeSubscriptionQuota:    {Code: "EventSubscriptionQuotaExceeded", Status: 400},
	kurabe.CodeCategoryNotFound:     {Code: "SubscriptionCategoryNotFound", Status: 404},
	kurabe.CodeSourceNotFound:       {Code: "SourceNotFound", Status: 404},
	kurabe.CodeInvalidTopic:         {Code: "SNSInvalidTopic", Status: 400},
	kurabe.CodeTopicNotFound:        {Code: "SNSTopicArnNotFound", Status: 404},

	kurabe.CodeGlobalClusterNotFound: {Code: "GlobalClusterNotFoundFault", Status: 404},
	kurabe.CodeProxyNotFound:         {Code: "DBProxyNotFoundFault", Status: 404},
	kurabe.CodeProxyExists:           {Code: "DBProxyAlreadyExistsFault", Status: 400},
	kurabe.CodeInvalidProxyState:     {Code: "InvalidDBProxyStateFault", Status: 400},
	kurabe.CodeProxyQuota:            {Code: "DBProxyQuotaExceededFault", Status: 400},
	kurabe.CodeProxyTargetGroup:      {Code: "DBProxyTargetGroupNotFoundFault", Status: 404},
	kurabe.CodeProxyTargetNotFound:   {Code: "DBProxyTargetNotFoundFault", Status: 404},
	kurabe.CodeProxyTargetExists:     {Code: "DBProxyTargetAlreadyRegisteredFault", Status: 400},
	kurabe.CodeProxyEndpointNotFound: {Code: "DBProxyEndpointNotFoundFault", Status: 404},
	kurabe.CodeProxyEndpointExists:   {Code: "DBProxyEndpointAlreadyExistsFault", Status: 400},
	kurabe.CodeInvalidProxyEndpoint:  {Code: "InvalidDBProxyEndpointStateFault", Status: 400},
	kurabe.CodeProxyEndpointQuota:    {Code: "DBProxyEndpointQuotaExceededFault", Status: 400},
	kurabe.CodeReservedNotFound:      {Code: "ReservedDBInstanceNotFound", Status: 404},
	kurabe.CodeOfferingNotFound:      {Code: "ReservedDBInstancesOfferingNotFound", Status: 404},
	kurabe.CodeBlueGreenNotFound:     {Code: "BlueGreenDeploymentNotFoundFault", Status: 404},
}
