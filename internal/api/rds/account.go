package rds

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/api"
	"kurabe/internal/control"
)

// accountRows are the actions on the account as a whole.
func (s *Service) accountRows() []row {
	return []row{
		api.Read("DescribeAccountAttributes", s.describeAccountAttributes),
		api.Read("DescribeSourceRegions", s.describeSourceRegions),
	}
}

func (s *Service) describeAccountAttributes(context.Context, *rds.DescribeAccountAttributesInput) (*rds.DescribeAccountAttributesOutput, error) {
	return &rds.DescribeAccountAttributesOutput{AccountQuotas: mapped(s.c.Quotas(), func(q control.Quota) types.AccountQuota {
		return types.AccountQuota{AccountQuotaName: aws.String(q.Name), Used: aws.Int64(q.Used), Max: aws.Int64(q.Max)}
	})}, nil
}

// describeSourceRegions lists nothing: one service is one region, and no other
// can be copied from.
func (s *Service) describeSourceRegions(_ context.Context, in *rds.DescribeSourceRegionsInput) (*rds.DescribeSourceRegionsOutput, error) {
	if _, err := filterValues(in.Filters); err != nil {
		return nil, err
	}
	if _, err := pageSize(in.MaxRecords); err != nil {
		return nil, err
	}
	return &rds.DescribeSourceRegionsOutput{}, nil
}
