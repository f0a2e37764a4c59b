package rds

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/control/installed"
)

// optionGroupRows are the actions on option groups. CreateOptionGroup has no row:
// its reason says all there is to say.
func (s *Service) optionGroupRows() []row {
	return []row{
		api.Read("DescribeOptionGroups", s.describeOptionGroups),
		api.Read("DescribeOptionGroupOptions", s.describeOptionGroupOptions),
		api.Write("CopyOptionGroup", s.copyOptionGroup),
		api.Write("ModifyOptionGroup", s.modifyOptionGroup),
		api.Write("DeleteOptionGroup", s.deleteOptionGroup),
	}
}

func (s *Service) optionGroup(g installed.OptionGroup) types.OptionGroup {
	return types.OptionGroup{
		OptionGroupName: aws.String(g.Name), EngineName: aws.String(string(g.Engine)), MajorEngineVersion: aws.String(g.Major),
		OptionGroupDescription: aws.String("Default option group for " + string(g.Engine) + " " + g.Major), Options: []types.Option{},
		OptionGroupArn: aws.String(s.c.ARN("og", g.Name)), AllowsVpcAndNonVpcInstanceMemberships: aws.Bool(true),
	}
}

// checkMajor checks the two fields by which option groups are narrowed.
func checkMajor(engine, major *string) error {
	if str(major) != "" && str(engine) == "" {
		return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "EngineName must be given when MajorEngineVersion is")
	}
	if installed.CheckEngine(str(engine)) != nil {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid DB engine: %s", str(engine))
	}
	return nil
}

func (s *Service) describeOptionGroups(_ context.Context, in *rds.DescribeOptionGroupsInput) (*rds.DescribeOptionGroupsOutput, error) {
	if _, err := filterValues(in.Filters); err != nil {
		return nil, err
	}
	if err := checkMajor(in.EngineName, in.MajorEngineVersion); err != nil {
		return nil, err
	}
	name, engine, major := str(in.OptionGroupName), str(in.EngineName), str(in.MajorEngineVersion)
	if name != "" && engine != "" {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "OptionGroupName cannot be given together with EngineName or MajorEngineVersion")
	}
	list, err := oneOrAll(in.OptionGroupName, s.c.OptionGroup, s.c.OptionGroups)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(g installed.OptionGroup) bool {
		return engine != "" && engine != string(g.Engine) || major != "" && major != g.Major
	})
	list, marker, err := page(list, func(g installed.OptionGroup) string { return g.Name }, in.Marker, in.MaxRecords)
	if err != nil {
		return nil, err
	}
	return &rds.DescribeOptionGroupsOutput{OptionGroupsList: mapped(list, s.optionGroup), Marker: marker}, nil
}

// describeOptionGroupOptions lists nothing: no engine has options here.
func (s *Service) describeOptionGroupOptions(_ context.Context, in *rds.DescribeOptionGroupOptionsInput) (*rds.DescribeOptionGroupOptionsOutput, error) {
	if _, err := filterValues(in.Filters); err != nil {
		return nil, err
	}
	if err := checkMajor(in.EngineName, in.MajorEngineVersion); err != nil {
		return nil, err
	}
	if _, err := pageSize(in.MaxRecords); err != nil {
		return nil, err
	}
	return &rds.DescribeOptionGroupOptionsOutput{}, nil
}

func (s *Service) copyOptionGroup(_ context.Context, in *rds.CopyOptionGroupInput) (*rds.CopyOptionGroupOutput, error) {
	return nil, s.c.CopyOptionGroup(str(in.SourceOptionGroupIdentifier))
}

func (s *Service) modifyOptionGroup(_ context.Context, in *rds.ModifyOptionGroupInput) (*rds.ModifyOptionGroupOutput, error) {
	return nil, s.c.ChangeOptionGroup(str(in.OptionGroupName))
}

func (s *Service) deleteOptionGroup(_ context.Context, in *rds.DeleteOptionGroupInput) (*rds.DeleteOptionGroupOutput, error) {
	return nil, s.c.ChangeOptionGroup(str(in.OptionGroupName))
}
