package rds

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/control/parameter"
)

// clusterParameterGroupRows are the actions on DB cluster parameter groups. They have the
// families and the parameters of the engines, and RDS's errors of DB parameter groups.
func (s *Service) clusterParameterGroupRows() []row {
	return []row{
		api.Write("CreateDBClusterParameterGroup", s.createDBClusterParameterGroup),
		api.Write("CopyDBClusterParameterGroup", s.copyDBClusterParameterGroup),
		api.Read("DescribeDBClusterParameterGroups", s.describeDBClusterParameterGroups),
		api.Write("ModifyDBClusterParameterGroup", s.modifyDBClusterParameterGroup),
		api.Write("ResetDBClusterParameterGroup", s.resetDBClusterParameterGroup),
		api.Write("DeleteDBClusterParameterGroup", s.deleteDBClusterParameterGroup),
		api.Read("DescribeDBClusterParameters", s.describeDBClusterParameters),
		api.Read("DescribeEngineDefaultClusterParameters", s.describeEngineDefaultClusterParameters),
	}
}

func (s *Service) clusterParameterGroup(g kurabe.ParameterGroup) types.DBClusterParameterGroup {
	return types.DBClusterParameterGroup{
		DBClusterParameterGroupName: aws.String(g.Name), DBParameterGroupFamily: aws.String(g.Family),
		Description: aws.String(g.Description), DBClusterParameterGroupArn: aws.String(s.c.ARN("cluster-pg", g.Name)),
	}
}

func (s *Service) createDBClusterParameterGroup(ctx context.Context, in *rds.CreateDBClusterParameterGroupInput) (*rds.CreateDBClusterParameterGroupOutput, error) {
	g, err := s.clusters().CreateParameterGroup(ctx, kurabe.ParameterGroup{
		Name: str(in.DBClusterParameterGroupName), Family: str(in.DBParameterGroupFamily), Description: str(in.Description), Tags: tagsOf(in.Tags),
	})
	if err != nil {
		return nil, err
	}
	out := s.clusterParameterGroup(g)
	return &rds.CreateDBClusterParameterGroupOutput{DBClusterParameterGroup: &out}, nil
}

func (s *Service) copyDBClusterParameterGroup(ctx context.Context, in *rds.CopyDBClusterParameterGroupInput) (*rds.CopyDBClusterParameterGroupOutput, error) {
	g, err := s.clusters().CopyParameterGroup(ctx, str(in.SourceDBClusterParameterGroupIdentifier), kurabe.ParameterGroup{
		Name: str(in.TargetDBClusterParameterGroupIdentifier), Description: str(in.TargetDBClusterParameterGroupDescription), Tags: tagsOf(in.Tags),
	})
	if err != nil {
		return nil, err
	}
	out := s.clusterParameterGroup(g)
	return &rds.CopyDBClusterParameterGroupOutput{DBClusterParameterGroup: &out}, nil
}

func (s *Service) describeDBClusterParameterGroups(_ context.Context, in *rds.DescribeDBClusterParameterGroupsInput) (*rds.DescribeDBClusterParameterGroupsOutput, error) {
	if _, err := filterValues(in.Filters); err != nil {
		return nil, err
	}
	list, err := oneOrAll(in.DBClusterParameterGroupName, s.clusters().ParameterGroup, s.clusters().ParameterGroups)
	if err != nil {
		return nil, err
	}
	list, marker, err := page(list, func(g kurabe.ParameterGroup) string { return g.Name }, in.Marker, in.MaxRecords)
	if err != nil {
		return nil, err
	}
	return &rds.DescribeDBClusterParameterGroupsOutput{DBClusterParameterGroups: mapped(list, s.clusterParameterGroup), Marker: marker}, nil
}

func (s *Service) modifyDBClusterParameterGroup(ctx context.Context, in *rds.ModifyDBClusterParameterGroupInput) (*rds.ModifyDBClusterParameterGroupOutput, error) {
	name, err := s.clusters().ModifyParameterGroup(ctx, str(in.DBClusterParameterGroupName), mapped(in.Parameters, parameterChange))
	if err != nil {
		return nil, err
	}
	return &rds.ModifyDBClusterParameterGroupOutput{DBClusterParameterGroupName: aws.String(name)}, nil
}

func (s *Service) resetDBClusterParameterGroup(ctx context.Context, in *rds.ResetDBClusterParameterGroupInput) (*rds.ResetDBClusterParameterGroupOutput, error) {
	if err := checkReset(in.ResetAllParameters, in.Parameters); err != nil {
		return nil, err
	}
	name, err := s.clusters().ResetParameterGroup(ctx, str(in.DBClusterParameterGroupName), mapped(in.Parameters, parameterChange))
	if err != nil {
		return nil, err
	}
	return &rds.ResetDBClusterParameterGroupOutput{DBClusterParameterGroupName: aws.String(name)}, nil
}

func (s *Service) deleteDBClusterParameterGroup(ctx context.Context, in *rds.DeleteDBClusterParameterGroupInput) (*rds.DeleteDBClusterParameterGroupOutput, error) {
	return &rds.DeleteDBClusterParameterGroupOutput{}, s.clusters().DeleteParameterGroup(ctx, str(in.DBClusterParameterGroupName))
}

// clusterParameter says of a parameter what RDS says of those of clusters besides.
func clusterParameter(p parameter.Parameter) types.Parameter {
	out := shapeParameter(p)
	out.SupportedEngineModes = []string{engineMode}
	return out
}

func (s *Service) describeDBClusterParameters(_ context.Context, in *rds.DescribeDBClusterParametersInput) (*rds.DescribeDBClusterParametersOutput, error) {
	list, err := s.clusters().Parameters(str(in.DBClusterParameterGroupName), str(in.Source))
	if err != nil {
		return nil, err
	}
	if list, err = nameFilter(list, in.Filters); err != nil {
		return nil, err
	}
	list, marker, err := page(list, parameterName, in.Marker, in.MaxRecords)
	if err != nil {
		return nil, err
	}
	return &rds.DescribeDBClusterParametersOutput{Parameters: mapped(list, clusterParameter), Marker: marker}, nil
}

func (s *Service) describeEngineDefaultClusterParameters(_ context.Context, in *rds.DescribeEngineDefaultClusterParametersInput) (*rds.DescribeEngineDefaultClusterParametersOutput, error) {
	list, err := s.clusters().FamilyParameters(str(in.DBParameterGroupFamily))
	if err != nil {
		return nil, err
	}
	if list, err = nameFilter(list, in.Filters); err != nil {
		return nil, err
	}
	list, marker, err := page(list, parameterName, in.Marker, in.MaxRecords)
	if err != nil {
		return nil, err
	}
	return &rds.DescribeEngineDefaultClusterParametersOutput{EngineDefaults: &types.EngineDefaults{
		DBParameterGroupFamily: in.DBParameterGroupFamily, Parameters: mapped(list, clusterParameter), Marker: marker,
	}}, nil
}
