package rds

import (
	"slices"

	"kurabe/internal/api"
	"kurabe/internal/aws/shape"
	"kurabe/internal/control"
)

// row is one action: api.Write("CreateDBInstance", s.createDBInstance).
type row = api.Operation

// Service answers the actions of RDS.
type Service struct {
	c *control.Control
}

// New returns a Service over the use cases.
func New(c *control.Control) *Service { return &Service{c: c} }

// ops is the table: one method per resource, each in the resource's file.
func (s *Service) ops() []row {
	return slices.Concat(
		s.instanceRows(), s.parameterGroupRows(), s.subnetGroupRows(), s.optionGroupRows(), s.tagRows(),
		s.engineVersionRows(), s.orderableRows(), s.accountRows(), s.certificateRows(),
		s.nothingRows(), s.eventRows(), s.eventSubscriptionRows(), s.maintenanceRows(), s.logRows(), s.replicaRows(), s.snapshotRows(), s.backupRows(),
		s.clusterRows(), s.clusterSnapshotRows(), s.clusterBackupRows(), s.clusterParameterGroupRows(), s.proxyRows(), s.proxyTargetRows(),
	)
}

// API returns the service as the dispatcher wants it.
func (s *Service) API() api.Service {
	return api.Service{
		Name: shape.RDS.Service, Protocols: []api.Protocol{api.Query{Model: shape.RDS}}, Ops: api.Table(s.ops()...), Errors: errorCodes, NotOffered: whyNot,
	}
}
