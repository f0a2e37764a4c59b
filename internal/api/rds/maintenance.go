package rds

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/api"
	"kurabe/internal/control"
)

// maintenanceRows are the actions on what waits for a maintenance window.
func (s *Service) maintenanceRows() []row {
	return []row{
		api.Read("DescribePendingMaintenanceActions", s.describePendingMaintenanceActions),
		api.Write("ApplyPendingMaintenanceAction", s.applyPendingMaintenanceAction),
	}
}

// maintenance translates one action. There is no ForcedApplyDate: the window is
// when it is applied, opted in or not.
func maintenance(m control.Maintenance) types.ResourcePendingMaintenanceActions {
	action := types.PendingMaintenanceAction{Action: aws.String(m.Action), Description: aws.String(m.Description), OptInStatus: aws.String(m.OptIn)}
	if !m.At.IsZero() {
		action.CurrentApplyDate = aws.Time(m.At)
		if m.OptIn != control.OptInImmediate {
			action.AutoAppliedAfterDate = aws.Time(m.At)
		}
	}
	return types.ResourcePendingMaintenanceActions{
		ResourceIdentifier: aws.String(m.ARN), PendingMaintenanceActionDetails: []types.PendingMaintenanceAction{action},
	}
}

func (s *Service) describePendingMaintenanceActions(_ context.Context, in *rds.DescribePendingMaintenanceActionsInput) (*rds.DescribePendingMaintenanceActionsOutput, error) {
	values, err := filterValues(in.Filters, "db-cluster-id", "db-instance-id")
	if err != nil {
		return nil, err
	}
	list, err := s.c.PendingMaintenance(str(in.ResourceIdentifier), values["db-instance-id"], values["db-cluster-id"])
	if err != nil {
		return nil, err
	}
	list, marker, err := page(list, control.Maintenance.After, in.Marker, in.MaxRecords)
	if err != nil {
		return nil, err
	}
	return &rds.DescribePendingMaintenanceActionsOutput{PendingMaintenanceActions: mapped(list, maintenance), Marker: marker}, nil
}

func (s *Service) applyPendingMaintenanceAction(ctx context.Context, in *rds.ApplyPendingMaintenanceActionInput) (*rds.ApplyPendingMaintenanceActionOutput, error) {
	m, err := s.c.ApplyMaintenance(ctx, str(in.ResourceIdentifier), str(in.ApplyAction), str(in.OptInType))
	if err != nil {
		return nil, err
	}
	out := maintenance(m)
	return &rds.ApplyPendingMaintenanceActionOutput{ResourcePendingMaintenanceActions: &out}, nil
}
