package api

import (
	"errors"
	"net/http"

	"kurabe"
	"kurabe/internal/aws/fault"
)

// wire is how AWS says a code.
type wire struct {
	code   string
	status int
}

// wires maps every code of kurabe to AWS's, with the Fault suffix exactly where
// RDS's model has it: the SDKs choose the error's type by this text.
var wires = map[kurabe.Code]wire{
	kurabe.CodeInternal:              {"InternalFailure", 500},
	kurabe.CodeInvalidParameterValue: {"InvalidParameterValue", 400},
	kurabe.CodeInvalidParameterCombo: {"InvalidParameterCombination", 400},
	kurabe.CodeUnsupported:           {"UnsupportedOperation", 400},
	kurabe.CodeThrottled:             {"Throttling", 400},
	kurabe.CodeUnavailable:           {"ServiceUnavailable", 503},

	kurabe.CodeInstanceNotFound:        {"DBInstanceNotFound", 404},
	kurabe.CodeInstanceExists:          {"DBInstanceAlreadyExists", 400},
	kurabe.CodeInvalidInstanceState:    {"InvalidDBInstanceState", 400},
	kurabe.CodeInsufficientCapacity:    {"InsufficientDBInstanceCapacity", 400},
	kurabe.CodeInstanceQuota:           {"InstanceQuotaExceeded", 400},
	kurabe.CodeStorageTypeNotSupported: {"StorageTypeNotSupported", 400},

	kurabe.CodeParameterGroupNotFound:  {"DBParameterGroupNotFound", 404},
	kurabe.CodeParameterGroupExists:    {"DBParameterGroupAlreadyExists", 400},
	kurabe.CodeParameterGroupQuota:     {"DBParameterGroupQuotaExceeded", 400},
	kurabe.CodeInvalidParameterGroup:   {"InvalidDBParameterGroupState", 400},
	kurabe.CodeOptionGroupNotFound:     {"OptionGroupNotFoundFault", 404},
	kurabe.CodeInvalidOptionGroupState: {"InvalidOptionGroupStateFault", 400},

	kurabe.CodeSubnetGroupNotFound:     {"DBSubnetGroupNotFoundFault", 404},
	kurabe.CodeSubnetGroupExists:       {"DBSubnetGroupAlreadyExists", 400},
	kurabe.CodeSubnetGroupQuota:        {"DBSubnetGroupQuotaExceeded", 400},
	kurabe.CodeInvalidSubnetGroupState: {"InvalidDBSubnetGroupStateFault", 400},
	kurabe.CodeInvalidSubnet:           {"InvalidSubnet", 400},
	kurabe.CodeSubnetGroupAZCoverage:   {"DBSubnetGroupDoesNotCoverEnoughAZs", 400},
	kurabe.CodeInvalidVPCNetworkState:  {"InvalidVPCNetworkStateFault", 400},
	kurabe.CodeSecurityGroupNotFound:   {"DBSecurityGroupNotFound", 404},

	kurabe.CodeCertificateNotFound:   {"CertificateNotFound", 404},
	kurabe.CodeLogFileNotFound:       {"DBLogFileNotFoundFault", 404},
	kurabe.CodeSnapshotNotFound:      {"DBSnapshotNotFound", 404},
	kurabe.CodeSnapshotExists:        {"DBSnapshotAlreadyExists", 400},
	kurabe.CodeSnapshotQuota:         {"SnapshotQuotaExceeded", 400},
	kurabe.CodeInvalidSnapshotState:  {"InvalidDBSnapshotState", 400},
	kurabe.CodeBackupNotFound:        {"DBInstanceAutomatedBackupNotFound", 404},
	kurabe.CodeInvalidBackupState:    {"InvalidDBInstanceAutomatedBackupState", 400},
	kurabe.CodePointInTimeNotEnabled: {"PointInTimeRestoreNotEnabled", 400},

	kurabe.CodeClusterNotFound:         {"DBClusterNotFoundFault", 404},
	kurabe.CodeClusterExists:           {"DBClusterAlreadyExistsFault", 400},
	kurabe.CodeInvalidClusterState:     {"InvalidDBClusterStateFault", 400},
	kurabe.CodeClusterQuota:            {"DBClusterQuotaExceededFault", 403},
	kurabe.CodeClusterGroupNotFound:    {"DBClusterParameterGroupNotFound", 404},
	kurabe.CodeClusterSnapshotNotFound: {"DBClusterSnapshotNotFoundFault", 404},
	kurabe.CodeClusterSnapshotExists:   {"DBClusterSnapshotAlreadyExistsFault", 400},
	kurabe.CodeInvalidClusterSnapshot:  {"InvalidDBClusterSnapshotStateFault", 400},
	kurabe.CodeClusterBackupNotFound:   {"DBClusterAutomatedBackupNotFoundFault", 404},
	kurabe.CodeInvalidClusterBackup:    {"InvalidDBClusterAutomatedBackupStateFault", 400},

	kurabe.CodeResourceNotFound: {"ResourceNotFoundFault", 404},

	kurabe.CodeSubscriptionNotFound:  {"SubscriptionNotFound", 404},
	kurabe.CodeGlobalClusterNotFound: {"GlobalClusterNotFoundFault", 404},
	kurabe.CodeProxyNotFound:         {"DBProxyNotFoundFault", 404},
	kurabe.CodeReservedNotFound:      {"ReservedDBInstanceNotFound", 404},
	kurabe.CodeOfferingNotFound:      {"ReservedDBInstancesOfferingNotFound", 404},
	kurabe.CodeBlueGreenNotFound:     {"BlueGreenDeploymentNotFoundFault", 404},
}

// internalMessage is AWS's text for InternalFailure. The cause is in our log, under the request id.
const internalMessage = "The request processing has failed because of an unknown error, exception or failure."

// faultOf says what a client is told about err.
func faultOf(err error) *fault.Fault {
	var f *fault.Fault
	if errors.As(err, &f) {
		return f
	}
	var e *kurabe.Error
	if errors.As(err, &e) && e.Code != kurabe.CodeInternal {
		if w, ok := wires[e.Code]; ok {
			return fault.New(w.status, w.code, "%s", e.Message)
		}
	}
	return fault.New(http.StatusInternalServerError, wires[kurabe.CodeInternal].code, internalMessage)
}
