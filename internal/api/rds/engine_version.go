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

// engineVersionRows are the actions on engine versions.
func (s *Service) engineVersionRows() []row {
	return []row{
		api.Read("DescribeDBEngineVersions", s.describeDBEngineVersions),
		api.Read("DescribeDBMajorEngineVersions", s.describeDBMajorEngineVersions),
	}
}

// engineMode is the one mode there is.
const engineMode = "provisioned"

func (s *Service) describeDBEngineVersions(_ context.Context, in *rds.DescribeDBEngineVersionsInput) (*rds.DescribeDBEngineVersionsOutput, error) {
	filter, none, err := versionFilter(in)
	if err != nil {
		return nil, err
	}
	list := s.c.EngineVersions(filter)
	if none {
		list = nil
	}
	list, marker, err := pageAt(list, in.Marker, in.MaxRecords)
	if err != nil {
		return nil, err
	}
	versions := mapped(list, func(v installed.Version) types.DBEngineVersion {
		out := s.engineVersion(v)
		if isTrue(in.ListSupportedCharacterSets) {
			out.SupportedCharacterSets = mapped(v.Locales, characterSet)
		}
		if isTrue(in.ListSupportedTimezones) {
			out.SupportedTimezones = []types.Timezone{} // of SQL Server instances only
		}
		return out
	})
	return &rds.DescribeDBEngineVersionsOutput{DBEngineVersions: versions, Marker: marker}, nil
}

// versionFilter joins the fields and the filters of a request, which narrow the
// list together. none says that they leave nothing.
func versionFilter(in *rds.DescribeDBEngineVersionsInput) (f installed.Filter, none bool, err error) {
	if err := installed.CheckEngine(str(in.Engine)); err != nil {
		return f, false, err
	}
	values, err := filterValues(in.Filters, "db-parameter-group-family", "engine", "engine-mode", "engine-version", "status")
	if err != nil {
		return f, false, err
	}
	join := func(filter string, field *string) []string {
		list, given := values[filter]
		switch {
		case str(field) == "":
			none = none || given && len(list) == 0
			return list
		case given && !slices.Contains(list, *field):
			none = true
		}
		return []string{*field}
	}
	f.Engines, f.Families = join("engine", in.Engine), join("db-parameter-group-family", in.DBParameterGroupFamily)
	f.Versions, f.DefaultOnly = join("engine-version", in.EngineVersion), isTrue(in.DefaultOnly)
	for filter, value := range map[string]string{"engine-mode": engineMode, "status": "available"} {
		if list, given := values[filter]; given && !slices.Contains(list, value) {
			none = true
		}
	}
	return f, none, nil
}

func characterSet(name string) types.CharacterSet {
	return types.CharacterSet{CharacterSetName: aws.String(name), CharacterSetDescription: aws.String(name)}
}

func (s *Service) engineVersion(v installed.Version) types.DBEngineVersion {
	out := types.DBEngineVersion{
		Engine: aws.String(string(v.Engine)), EngineVersion: aws.String(v.Version), MajorEngineVersion: aws.String(v.Major()),
		DBParameterGroupFamily: aws.String(v.Family), DBEngineDescription: aws.String(installed.EngineTitle(v.Engine)),
		DBEngineVersionDescription: aws.String(installed.Description(v.EngineVersion)), Status: aws.String("available"),
		ValidUpgradeTarget: mapped(v.Upgrades, upgradeTarget), SupportedEngineModes: []string{engineMode},
		SupportedFeatureNames: []string{}, ExportableLogTypes: v.Engine.LogTypes(), TagList: []types.Tag{},
		SupportedCACertificateIdentifiers: []string{s.c.Authority.Identifier},
		// There is one authority, so there is none to rotate to.
		SupportsCertificateRotationWithoutRestart: aws.Bool(false),
		SupportsBabelfish:                         aws.Bool(false), SupportsGlobalDatabases: aws.Bool(false), SupportsIntegrations: aws.Bool(false),
		SupportsLimitlessDatabase: aws.Bool(false), SupportsLocalWriteForwarding: aws.Bool(false),
		SupportsLogExportsToCloudwatchLogs: aws.Bool(true), SupportsParallelQuery: aws.Bool(false), SupportsReadReplica: aws.Bool(true),
	}
	if len(v.Locales) > 0 {
		set := characterSet(v.Locales[0])
		out.DefaultCharacterSet = &set
	}
	return out
}

func upgradeTarget(v kurabe.EngineVersion) types.UpgradeTarget {
	return types.UpgradeTarget{
		Engine: aws.String(string(v.Engine)), EngineVersion: aws.String(v.Version), Description: aws.String(installed.Description(v)),
		AutoUpgrade: aws.Bool(false), IsMajorVersionUpgrade: aws.Bool(false), SupportedEngineModes: []string{engineMode},
		SupportsBabelfish: aws.Bool(false), SupportsGlobalDatabases: aws.Bool(false), SupportsIntegrations: aws.Bool(false),
		SupportsLimitlessDatabase: aws.Bool(false), SupportsLocalWriteForwarding: aws.Bool(false), SupportsParallelQuery: aws.Bool(false),
	}
}

// describeDBMajorEngineVersions names no dates of support: they are the engine's
// makers' to set and the host's administrator's to keep.
func (s *Service) describeDBMajorEngineVersions(_ context.Context, in *rds.DescribeDBMajorEngineVersionsInput) (*rds.DescribeDBMajorEngineVersionsOutput, error) {
	if err := installed.CheckEngine(str(in.Engine)); err != nil {
		return nil, err
	}
	filter := installed.Filter{}
	if engine := str(in.Engine); engine != "" {
		filter.Engines = []string{engine}
	}
	var majors []types.DBMajorEngineVersion
	for _, v := range s.c.EngineVersions(filter) {
		last := len(v.Upgrades) == 0 // one line for each major
		if last && (str(in.MajorEngineVersion) == "" || *in.MajorEngineVersion == v.Major()) {
			majors = append(majors, types.DBMajorEngineVersion{
				Engine: aws.String(string(v.Engine)), MajorEngineVersion: aws.String(v.Major()),
				SupportedEngineLifecycles: []types.SupportedEngineLifecycle{},
			})
		}
	}
	majors, marker, err := pageAt(majors, in.Marker, in.MaxRecords)
	if err != nil {
		return nil, err
	}
	return &rds.DescribeDBMajorEngineVersionsOutput{DBMajorEngineVersions: majors, Marker: marker}, nil
}
