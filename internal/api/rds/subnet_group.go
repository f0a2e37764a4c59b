package rds

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/control"
	"kurabe/internal/control/securitygroup"
)

// subnetGroupRows are the actions on DB subnet groups.
func (s *Service) subnetGroupRows() []row {
	return []row{
		api.Write("CreateDBSubnetGroup", s.createDBSubnetGroup),
		api.Read("DescribeDBSubnetGroups", s.describeDBSubnetGroups),
		api.Write("ModifyDBSubnetGroup", s.modifyDBSubnetGroup),
		api.Write("DeleteDBSubnetGroup", s.deleteDBSubnetGroup),
	}
}

// subnetGroup translates a group; instances show theirs too.
func (s *Service) subnetGroup(g kurabe.SubnetGroup) *types.DBSubnetGroup {
	return &types.DBSubnetGroup{
		DBSubnetGroupName: aws.String(g.Name), DBSubnetGroupDescription: aws.String(g.Description),
		DBSubnetGroupArn: aws.String(s.c.ARN("subgrp", g.Name)), VpcId: aws.String(s.c.NetworkID()),
		SubnetGroupStatus: aws.String("Complete"), SupportedNetworkTypes: []string{"IPV4"},
		Subnets: mapped(g.Subnets, func(n kurabe.Subnet) types.Subnet {
			return types.Subnet{
				SubnetIdentifier: aws.String(n.ID), SubnetStatus: aws.String("Active"),
				SubnetAvailabilityZone: &types.AvailabilityZone{Name: aws.String(n.Zone)}, SubnetOutpost: &types.Outpost{},
			}
		}),
	}
}

// securityGroups are those of an instance or a cluster.
func (s *Service) securityGroups(i control.Instance) []types.VpcSecurityGroupMembership {
	of := s.c.Memberships(i.Spec.SecurityGroups, i.Status.SecurityGroups, !i.Status.AvailableAt.IsZero())
	return mapped(of, func(m securitygroup.Membership) types.VpcSecurityGroupMembership {
		return types.VpcSecurityGroupMembership{VpcSecurityGroupId: aws.String(m.ID), Status: aws.String(m.Status)}
	})
}

func (s *Service) createDBSubnetGroup(ctx context.Context, in *rds.CreateDBSubnetGroupInput) (*rds.CreateDBSubnetGroupOutput, error) {
	g, err := s.c.CreateSubnetGroup(ctx, str(in.DBSubnetGroupName), str(in.DBSubnetGroupDescription), in.SubnetIds, tagsOf(in.Tags))
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBSubnetGroupOutput{DBSubnetGroup: s.subnetGroup(g)}, nil
}

func (s *Service) describeDBSubnetGroups(_ context.Context, in *rds.DescribeDBSubnetGroupsInput) (*rds.DescribeDBSubnetGroupsOutput, error) {
	if _, err := filterValues(in.Filters); err != nil {
		return nil, err
	}
	list, err := oneOrAll(in.DBSubnetGroupName, s.c.SubnetGroup, s.c.SubnetGroups)
	if err != nil {
		return nil, err
	}
	list, marker, err := page(list, func(g kurabe.SubnetGroup) string { return g.Name }, in.Marker, in.MaxRecords)
	if err != nil {
		return nil, err
	}
	groups := mapped(list, func(g kurabe.SubnetGroup) types.DBSubnetGroup { return *s.subnetGroup(g) })
	return &rds.DescribeDBSubnetGroupsOutput{DBSubnetGroups: groups, Marker: marker}, nil
}

func (s *Service) modifyDBSubnetGroup(ctx context.Context, in *rds.ModifyDBSubnetGroupInput) (*rds.ModifyDBSubnetGroupOutput, error) {
	g, err := s.c.ModifySubnetGroup(ctx, str(in.DBSubnetGroupName), in.DBSubnetGroupDescription, in.SubnetIds)
	if err != nil {
		return nil, err
	}
	return &rds.ModifyDBSubnetGroupOutput{DBSubnetGroup: s.subnetGroup(g)}, nil
}

func (s *Service) deleteDBSubnetGroup(ctx context.Context, in *rds.DeleteDBSubnetGroupInput) (*rds.DeleteDBSubnetGroupOutput, error) {
	return &rds.DeleteDBSubnetGroupOutput{}, s.c.DeleteSubnetGroup(ctx, str(in.DBSubnetGroupName))
}
