package rds

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/control/parameter"
)

// parameterGroupRows are the actions on DB parameter groups.
func (s *Service) parameterGroupRows() []row {
	return []row{
		api.Write("CreateDBParameterGroup", s.createDBParameterGroup),
		api.Write("CopyDBParameterGroup", s.copyDBParameterGroup),
		api.Read("DescribeDBParameterGroups", s.describeDBParameterGroups),
		api.Write("ModifyDBParameterGroup", s.modifyDBParameterGroup),
		api.Write("ResetDBParameterGroup", s.resetDBParameterGroup),
		api.Write("DeleteDBParameterGroup", s.deleteDBParameterGroup),
		api.Read("DescribeDBParameters", s.describeDBParameters),
		api.Read("DescribeEngineDefaultParameters", s.describeEngineDefaultParameters),
	}
}

func (s *Service) parameterGroup(g kurabe.ParameterGroup) types.DBParameterGroup {
	return types.DBParameterGroup{
		DBParameterGroupName: aws.String(g.Name), DBParameterGroupFamily: aws.String(g.Family),
		Description: aws.String(g.Description), DBParameterGroupArn: aws.String(s.c.ARN("pg", g.Name)),
	}
}

func (s *Service) createDBParameterGroup(ctx context.Context, in *rds.CreateDBParameterGroupInput) (*rds.CreateDBParameterGroupOutput, error) {
	g, err := s.c.CreateParameterGroup(ctx, kurabe.ParameterGroup{
		Name: str(in.DBParameterGroupName), Family: str(in.DBParameterGroupFamily), Description: str(in.Description), Tags: tagsOf(in.Tags),
	})
	if err != nil {
		return nil, err
	}
	out := s.parameterGroup(g)
	return &rds.CreateDBParameterGroupOutput{DBParameterGroup: &out}, nil
}

func (s *Service) copyDBParameterGroup(ctx context.Context, in *rds.CopyDBParameterGroupInput) (*rds.CopyDBParameterGroupOutput, error) {
	g, err := s.c.CopyParameterGroup(ctx, str(in.SourceDBParameterGroupIdentifier), kurabe.ParameterGroup{
		Name: str(in.TargetDBParameterGroupIdentifier), Description: str(in.TargetDBParameterGroupDescription), Tags: tagsOf(in.Tags),
	})
	if err != nil {
		return nil, err
	}
	out := s.parameterGroup(g)
	return &rds.CopyDBParameterGroupOutput{DBParameterGroup: &out}, nil
}

func (s *Service) describeDBParameterGroups(_ context.Context, in *rds.DescribeDBParameterGroupsInput) (*rds.DescribeDBParameterGroupsOutput, error) {
	if _, err := filterValues(in.Filters); err != nil {
		return nil, err
	}
	list, err := oneOrAll(in.DBParameterGroupName, s.c.ParameterGroup, s.c.ParameterGroups)
	if err != nil {
		return nil, err
	}
	list, marker, err := page(list, func(g kurabe.ParameterGroup) string { return g.Name }, in.Marker, in.MaxRecords)
	if err != nil {
		return nil, err
	}
	return &rds.DescribeDBParameterGroupsOutput{DBParameterGroups: mapped(list, s.parameterGroup), Marker: marker}, nil
}

func parameterChange(p types.Parameter) parameter.Change {
	return parameter.Change{Name: str(p.ParameterName), Value: p.ParameterValue, Method: kurabe.ApplyMethod(p.ApplyMethod)}
}

func (s *Service) modifyDBParameterGroup(ctx context.Context, in *rds.ModifyDBParameterGroupInput) (*rds.ModifyDBParameterGroupOutput, error) {
	name, err := s.c.ModifyParameterGroup(ctx, str(in.DBParameterGroupName), mapped(in.Parameters, parameterChange))
	if err != nil {
		return nil, err
	}
	return &rds.ModifyDBParameterGroupOutput{DBParameterGroupName: aws.String(name)}, nil
}

// checkReset says whether it is clear what is reset. ResetAllParameters is true unless said
// otherwise; a list of parameters says otherwise, for nobody who names some means all.
func checkReset(whole *bool, parameters []types.Parameter) error {
	all := isTrue(whole) || whole == nil && len(parameters) == 0
	switch {
	case all && len(parameters) > 0:
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "Parameters cannot be given together with ResetAllParameters")
	case !all && len(parameters) == 0:
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "Parameters must be given unless ResetAllParameters is true")
	}
	return nil
}

func (s *Service) resetDBParameterGroup(ctx context.Context, in *rds.ResetDBParameterGroupInput) (*rds.ResetDBParameterGroupOutput, error) {
	if err := checkReset(in.ResetAllParameters, in.Parameters); err != nil {
		return nil, err
	}
	name, err := s.c.ResetParameterGroup(ctx, str(in.DBParameterGroupName), mapped(in.Parameters, parameterChange))
	if err != nil {
		return nil, err
	}
	return &rds.ResetDBParameterGroupOutput{DBParameterGroupName: aws.String(name)}, nil
}

func (s *Service) deleteDBParameterGroup(ctx context.Context, in *rds.DeleteDBParameterGroupInput) (*rds.DeleteDBParameterGroupOutput, error) {
	return &rds.DeleteDBParameterGroupOutput{}, s.c.DeleteParameterGroup(ctx, str(in.DBParameterGroupName))
}

// nameFilter keeps the parameters that the filter parameter-name names.
func nameFilter(list []parameter.Parameter, filters []types.Filter) ([]parameter.Parameter, error) {
	values, err := filterValues(filters, "parameter-name")
	if wanted, ok := values["parameter-name"]; ok {
		list = slices.DeleteFunc(list, func(p parameter.Parameter) bool { return !slices.Contains(wanted, p.Name) })
	}
	return list, err
}

func parameterName(p parameter.Parameter) string { return p.Name }

func shapeParameter(p parameter.Parameter) types.Parameter {
	out := types.Parameter{
		ParameterName: aws.String(p.Name), Description: optional(p.Description), Source: aws.String(p.Source),
		ApplyType: aws.String(string(p.Apply)), DataType: aws.String(p.Type), AllowedValues: optional(p.Allowed),
		IsModifiable: aws.Bool(p.Modifiable), ApplyMethod: types.ApplyMethod(p.Method),
	}
	if p.HasValue {
		out.ParameterValue = aws.String(p.Value)
	}
	return out
}

func (s *Service) describeDBParameters(_ context.Context, in *rds.DescribeDBParametersInput) (*rds.DescribeDBParametersOutput, error) {
	list, err := s.c.Parameters(str(in.DBParameterGroupName), str(in.Source))
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
	return &rds.DescribeDBParametersOutput{Parameters: mapped(list, shapeParameter), Marker: marker}, nil
}

func (s *Service) describeEngineDefaultParameters(_ context.Context, in *rds.DescribeEngineDefaultParametersInput) (*rds.DescribeEngineDefaultParametersOutput, error) {
	list, err := s.c.FamilyParameters(str(in.DBParameterGroupFamily))
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
	return &rds.DescribeEngineDefaultParametersOutput{EngineDefaults: &types.EngineDefaults{
		DBParameterGroupFamily: in.DBParameterGroupFamily, Parameters: mapped(list, shapeParameter), Marker: marker,
	}}, nil
}
