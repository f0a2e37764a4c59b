package kurabe

import (
	"errors"
	"fmt"
)

// Code classifies an error that a user may see. The list is closed: Codes holds
// every one of them, and the API maps each to a wire code and an HTTP status.
type Code string

// The codes, by the noun they speak of.
const (
	CodeInternal                Code = "internal"
	CodeInvalidParameterValue   Code = "invalid-parameter-value"
	CodeInvalidParameterCombo   Code = "invalid-parameter-combination"
	CodeUnsupported             Code = "unsupported"
	CodeThrottled               Code = "throttled"
	CodeUnavailable             Code = "unavailable"
	CodeInstanceNotFound        Code = "instance-not-found"
	CodeInstanceExists          Code = "instance-exists"
	CodeInvalidInstanceState    Code = "invalid-instance-state"
	CodeInsufficientCapacity    Code = "insufficient-capacity"
	CodeInstanceQuota           Code = "instance-quota"
	CodeStorageTypeNotSupported Code = "storage-type-not-supported"
	CodeParameterGroupNotFound  Code = "parameter-group-not-found"
	CodeParameterGroupExists    Code = "parameter-group-exists"
	CodeParameterGroupQuota     Code = "parameter-group-quota"
	CodeInvalidParameterGroup   Code = "invalid-parameter-group-state"
	CodeSubnetGroupNotFound     Code = "subnet-group-not-found"
	CodeSubnetGroupExists       Code = "subnet-group-exists"
	CodeSubnetGroupQuota        Code = "subnet-group-quota"
	CodeInvalidSubnetGroupState Code = "invalid-subnet-group-state"
	CodeInvalidSubnet           Code = "invalid-subnet"
	CodeSubnetGroupAZCoverage   Code = "subnet-group-az-coverage"
	CodeOptionGroupNotFound     Code = "option-group-not-found"
	CodeInvalidOptionGroupState Code = "invalid-option-group-state"
	CodeSecurityGroupNotFound   Code = "security-group-not-found"
	CodeCertificateNotFound     Code = "certificate-not-found"
	CodeLogFileNotFound         Code = "log-file-not-found"
	CodeSnapshotNotFound        Code = "snapshot-not-found"
	CodeSnapshotExists          Code = "snapshot-exists"
	CodeSnapshotQuota           Code = "snapshot-quota"
	CodeInvalidSnapshotState    Code = "invalid-snapshot-state"
	CodeBackupNotFound          Code = "automated-backup-not-found"
	CodeInvalidBackupState      Code = "invalid-automated-backup-state"
	CodePointInTimeNotEnabled   Code = "point-in-time-not-enabled"
	CodeClusterNotFound         Code = "cluster-not-found"
	CodeClusterExists           Code = "cluster-exists"
	CodeInvalidClusterState     Code = "invalid-cluster-state"
	CodeClusterQuota            Code = "cluster-quota"
	CodeClusterGroupNotFound    Code = "cluster-parameter-group-not-found"
	CodeClusterSnapshotNotFound Code = "cluster-snapshot-not-found"
	CodeClusterSnapshotExists   Code = "cluster-snapshot-exists"
	CodeInvalidClusterSnapshot  Code = "invalid-cluster-snapshot-state"
	CodeClusterBackupNotFound   Code = "cluster-automated-backup-not-found"
	CodeInvalidClusterBackup    Code = "invalid-cluster-automated-backup-state"
	CodeResourceNotFound        Code = "resource-not-found"
	CodeSecretSealed            Code = "secret-sealed" // and cannot be opened
	CodeInvalidVPCNetworkState  Code = "invalid-vpc-network-state"
	CodeSubscriptionNotFound    Code = "subscription-not-found"
	CodeSubscriptionExists      Code = "subscription-exists"
	CodeSubscriptionQuota       Code = "subscription-quota"
	CodeCategoryNotFound        Code = "event-category-not-found"
	CodeSourceNotFound          Code = "event-source-not-found"
	CodeInvalidTopic            Code = "invalid-topic"
	CodeTopicNotFound           Code = "topic-not-found"
	CodeGlobalClusterNotFound   Code = "global-cluster-not-found"
	CodeProxyNotFound           Code = "proxy-not-found"
	CodeProxyExists             Code = "proxy-exists"
	CodeInvalidProxyState       Code = "invalid-proxy-state"
	CodeProxyQuota              Code = "proxy-quota"
	CodeProxyTargetGroup        Code = "proxy-target-group-not-found"
	CodeProxyTargetNotFound     Code = "proxy-target-not-found"
	CodeProxyTargetExists       Code = "proxy-target-already-registered"
	CodeProxyEndpointNotFound   Code = "proxy-endpoint-not-found"
	CodeProxyEndpointExists     Code = "proxy-endpoint-exists"
	CodeInvalidProxyEndpoint    Code = "invalid-proxy-endpoint-state"
	CodeProxyEndpointQuota      Code = "proxy-endpoint-quota"
	CodeReservedNotFound        Code = "reserved-instance-not-found"
	CodeOfferingNotFound        Code = "reserved-instances-offering-not-found"
	CodeBlueGreenNotFound       Code = "blue-green-deployment-not-found"
)

// Codes lists every Code, so that tests can walk them.
var Codes = []Code{
	CodeInternal, CodeInvalidParameterValue, CodeInvalidParameterCombo,
	CodeUnsupported, CodeThrottled, CodeUnavailable,
	CodeInstanceNotFound, CodeInstanceExists, CodeInvalidInstanceState, CodeInsufficientCapacity,
	CodeInstanceQuota, CodeStorageTypeNotSupported,
	CodeParameterGroupNotFound, CodeParameterGroupExists, CodeParameterGroupQuota, CodeInvalidParameterGroup,
	CodeSubnetGroupNotFound, CodeSubnetGroupExists, CodeSubnetGroupQuota,
	CodeInvalidSubnetGroupState, CodeInvalidSubnet, CodeSubnetGroupAZCoverage,
	CodeOptionGroupNotFound, CodeInvalidOptionGroupState,
	CodeSecurityGroupNotFound, CodeCertificateNotFound, CodeLogFileNotFound, CodeSnapshotNotFound,
	CodeSnapshotExists, CodeSnapshotQuota, CodeInvalidSnapshotState,
	CodeBackupNotFound, CodeInvalidBackupState, CodePointInTimeNotEnabled,
	CodeClusterNotFound, CodeClusterExists, CodeInvalidClusterState, CodeClusterQuota, CodeClusterGroupNotFound,
	CodeClusterSnapshotNotFound, CodeClusterSnapshotExists, CodeInvalidClusterSnapshot,
	CodeClusterBackupNotFound, CodeInvalidClusterBackup, CodeResourceNotFound, CodeSecretSealed, CodeInvalidVPCNetworkState,
	CodeSubscriptionNotFound, CodeSubscriptionExists, CodeSubscriptionQuota, CodeCategoryNotFound, CodeSourceNotFound, CodeInvalidTopic, CodeTopicNotFound,
	CodeGlobalClusterNotFound, CodeProxyNotFound, CodeProxyExists, CodeInvalidProxyState, CodeProxyQuota,
	CodeProxyTargetGroup, CodeProxyTargetNotFound, CodeProxyTargetExists,
	CodeProxyEndpointNotFound, CodeProxyEndpointExists, CodeInvalidProxyEndpoint, CodeProxyEndpointQuota,
	CodeReservedNotFound, CodeOfferingNotFound, CodeBlueGreenNotFound,
}

// Error is an error that a user may see. Message is safe for users; Err is the
// cause, for the log only. An error without a Code is an internal failure: the
// user gets a request id and the log gets the chain.
type Error struct {
	Code    Code
	Message string
	Err     error
}

// Error implements error. The cause is part of the text because logs print it;
// only Message is ever sent to a client.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an Error whose message is for users.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// CodeOf returns the code of the first Error in err's chain, CodeInternal when
// there is none, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
