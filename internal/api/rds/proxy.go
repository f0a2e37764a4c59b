package rds

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/control/proxy"
)

// proxyRows are the actions on DB proxies and their endpoints.
func (s *Service) proxyRows() []row {
	return []row{
		api.Write("CreateDBProxy", s.createDBProxy),
		api.Read("DescribeDBProxies", s.describeDBProxies),
		api.Write("ModifyDBProxy", s.modifyDBProxy),
		api.Write("DeleteDBProxy", s.deleteDBProxy),
		api.Write("CreateDBProxyEndpoint", s.createDBProxyEndpoint),
		api.Read("DescribeDBProxyEndpoints", s.describeDBProxyEndpoints),
		api.Write("ModifyDBProxyEndpoint", s.modifyDBProxyEndpoint),
		api.Write("DeleteDBProxyEndpoint", s.deleteDBProxyEndpoint),
	}
}

// proxyFamily is an engine family of RDS, with the engine that it is here and the way in which
// clients are asked for their password.
type proxyFamily struct {
	name     types.EngineFamily
	engine   kurabe.EngineName
	password types.ClientPasswordAuthType
}

var proxyFamilies = []proxyFamily{
	{types.EngineFamilyPostgresql, kurabe.Postgres, types.ClientPasswordAuthTypePostgresScramSha256},
	{types.EngineFamilyMysql, kurabe.MariaDB, types.ClientPasswordAuthTypeMysqlNativePassword},
}

func familyOf(engine kurabe.EngineName) proxyFamily {
	if proxyFamilies[1].engine == engine {
		return proxyFamilies[1]
	}
	return proxyFamilies[0]
}

// proxy translates a read model into AWS's shape.
func (s *Service) proxy(p proxy.Proxy) *types.DBProxy {
	spec, family := p.Spec, familyOf(p.Spec.Engine)
	first := p.Endpoints()[0]
	return &types.DBProxy{
		DBProxyName: aws.String(spec.Name), DBProxyArn: aws.String(s.c.ARN("db-proxy", string(spec.ID))),
		Status: types.DBProxyStatus(p.State), EngineFamily: aws.String(string(family.name)), Endpoint: optional(s.c.ProxyEndpointName(first)),
		VpcId: aws.String(s.c.NetworkID()), VpcSecurityGroupIds: first.Spec.SecurityGroups, VpcSubnetIds: subnetIDs(first.Spec.Subnets),
		DefaultAuthScheme: aws.String(string(types.DefaultAuthSchemeNone)), RoleArn: aws.String(spec.RoleARN),
		Auth: mapped(spec.Auth, func(a kurabe.ProxyAuth) types.UserAuthConfigInfo {
			return types.UserAuthConfigInfo{
				AuthScheme: types.AuthSchemeSecrets, SecretArn: aws.String(a.SecretARN), IAMAuth: types.IAMAuthModeDisabled,
				ClientPasswordAuthType: family.password, Description: optional(a.Description),
			}
		}),
		RequireTLS: aws.Bool(spec.RequireTLS), IdleClientTimeout: aws.Int32(int32(spec.IdleClientTimeoutS)), DebugLogging: aws.Bool(spec.DebugLogging),
		CreatedDate: aws.Time(spec.CreatedAt), UpdatedDate: aws.Time(spec.UpdatedAt),
		EndpointNetworkType: types.EndpointNetworkTypeIpv4, TargetConnectionNetworkType: types.TargetConnectionNetworkTypeIpv4,
	}
}

func subnetIDs(list []kurabe.Subnet) []string {
	return mapped(list, func(n kurabe.Subnet) string { return n.ID })
}

func (s *Service) createDBProxy(ctx context.Context, in *rds.CreateDBProxyInput) (*rds.CreateDBProxyOutput, error) {
	honoured := names("DBProxyName", "EngineFamily", "Auth", "RoleArn", "VpcSubnetIds", "VpcSecurityGroupIds", "RequireTLS", "IdleClientTimeout", "DebugLogging", "Tags")
	if err := s.refuse(in, honoured); err != nil {
		return nil, err
	}
	engine := kurabe.EngineName("")
	for _, f := range proxyFamilies {
		if in.EngineFamily == f.name {
			engine = f.engine
		}
	}
	if engine == "" {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "EngineFamily is MYSQL or POSTGRESQL, the families of the engines that run here, not %.80q", in.EngineFamily)
	}
	auth, err := s.proxyAuth(engine, in.Auth)
	if err != nil {
		return nil, err
	}
	p, err := s.c.CreateProxy(ctx, proxy.Ask{
		Name: str(in.DBProxyName), Engine: engine, Auth: auth, RoleARN: str(in.RoleArn), Subnets: in.VpcSubnetIds, SecurityGroups: in.VpcSecurityGroupIds,
		RequireTLS: aws.ToBool(in.RequireTLS), Debug: aws.ToBool(in.DebugLogging), IdleClientTimeoutS: whole(in.IdleClientTimeout), Tags: tagsOf(in.Tags),
	})
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBProxyOutput{DBProxy: s.proxy(p)}, nil
}

// proxyAuth reads the users of a proxy.
func (s *Service) proxyAuth(engine kurabe.EngineName, list []types.UserAuthConfig) ([]kurabe.ProxyAuth, error) {
	if len(list) == 0 {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "Auth must name a secret, because DefaultAuthScheme is NONE")
	}
	out := make([]kurabe.ProxyAuth, len(list))
	for n := range list {
		a := &list[n]
		if a.UserName != nil {
			return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "UserName must not be set in UserAuthConfig when SECRETS AuthScheme is used.")
		}
		if err := s.refuse(a, names("SecretArn", "Description", "ClientPasswordAuthType")); err != nil {
			return nil, err
		}
		if t := a.ClientPasswordAuthType; t != "" && t != familyOf(engine).password {
			return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "ClientPasswordAuthType cannot be honoured: clients of this engine family log in by %s", familyOf(engine).password)
		}
		out[n] = kurabe.ProxyAuth{SecretARN: str(a.SecretArn), Description: str(a.Description)}
	}
	return out, nil
}

// whole is a number that may be absent.
func whole(n *int32) *int {
	if n == nil {
		return nil
	}
	v := int(*n)
	return &v
}

func (s *Service) describeDBProxies(_ context.Context, in *rds.DescribeDBProxiesInput) (*rds.DescribeDBProxiesOutput, error) {
	if _, err := filterValues(in.Filters); err != nil {
		return nil, err
	}
	list, err := oneOrAll(in.DBProxyName, s.c.Proxy, s.c.ListProxies)
	if err != nil {
		return nil, err
	}
	list, marker, err := page(list, func(p proxy.Proxy) string { return p.Spec.Name }, in.Marker, in.MaxRecords)
	if err != nil {
		return nil, err
	}
	return &rds.DescribeDBProxiesOutput{DBProxies: mapped(list, func(p proxy.Proxy) types.DBProxy { return *s.proxy(p) }), Marker: marker}, nil
}

func (s *Service) modifyDBProxy(ctx context.Context, in *rds.ModifyDBProxyInput) (*rds.ModifyDBProxyOutput, error) {
	honoured := names("DBProxyName", "NewDBProxyName", "Auth", "RoleArn", "SecurityGroups", "RequireTLS", "IdleClientTimeout", "DebugLogging")
	if err := s.refuse(in, honoured); err != nil {
		return nil, err
	}
	edit := proxy.Edit{
		Name: in.NewDBProxyName, RoleARN: in.RoleArn, RequireTLS: in.RequireTLS, Debug: in.DebugLogging,
		IdleClientTimeoutS: whole(in.IdleClientTimeout), SecurityGroups: in.SecurityGroups,
	}
	if len(in.Auth) > 0 {
		have, err := s.c.Proxy(str(in.DBProxyName))
		if err != nil {
			return nil, err
		}
		if edit.Auth, err = s.proxyAuth(have.Spec.Engine, in.Auth); err != nil {
			return nil, err
		}
	}
	p, err := s.c.ModifyProxy(ctx, str(in.DBProxyName), edit)
	if err != nil {
		return nil, err
	}
	return &rds.ModifyDBProxyOutput{DBProxy: s.proxy(p)}, nil
}

func (s *Service) deleteDBProxy(ctx context.Context, in *rds.DeleteDBProxyInput) (*rds.DeleteDBProxyOutput, error) {
	p, err := s.c.DeleteProxy(ctx, str(in.DBProxyName))
	if err != nil {
		return nil, err
	}
	return &rds.DeleteDBProxyOutput{DBProxy: s.proxy(p)}, nil
}

func (s *Service) proxyEndpoint(e proxy.Endpoint) *types.DBProxyEndpoint {
	role := types.DBProxyEndpointTargetRoleReadWrite
	if e.Spec.Reads {
		role = types.DBProxyEndpointTargetRoleReadOnly
	}
	return &types.DBProxyEndpoint{
		DBProxyEndpointName: aws.String(e.Spec.Name), DBProxyEndpointArn: aws.String(s.c.ARN("db-proxy-endpoint", string(e.Spec.ID))),
		DBProxyName: aws.String(e.Proxy.Spec.Name), Status: types.DBProxyEndpointStatus(e.State), Endpoint: optional(s.c.ProxyEndpointName(e)),
		TargetRole: role, IsDefault: aws.Bool(e.Default()), CreatedDate: aws.Time(e.Spec.CreatedAt), EndpointNetworkType: types.EndpointNetworkTypeIpv4,
		VpcId: aws.String(s.c.NetworkID()), VpcSecurityGroupIds: e.Spec.SecurityGroups, VpcSubnetIds: subnetIDs(e.Spec.Subnets),
	}
}

func (s *Service) createDBProxyEndpoint(ctx context.Context, in *rds.CreateDBProxyEndpointInput) (*rds.CreateDBProxyEndpointOutput, error) {
	if err := s.refuse(in, names("DBProxyName", "DBProxyEndpointName", "VpcSubnetIds", "VpcSecurityGroupIds", "TargetRole", "Tags")); err != nil {
		return nil, err
	}
	switch in.TargetRole {
	case "", types.DBProxyEndpointTargetRoleReadWrite, types.DBProxyEndpointTargetRoleReadOnly:
	default:
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "TargetRole is READ_WRITE or READ_ONLY, not %.80q", in.TargetRole)
	}
	e, err := s.c.CreateProxyEndpoint(ctx, str(in.DBProxyName), proxy.EndpointAsk{
		Name: str(in.DBProxyEndpointName), Reads: in.TargetRole == types.DBProxyEndpointTargetRoleReadOnly,
		Subnets: in.VpcSubnetIds, SecurityGroups: in.VpcSecurityGroupIds, Tags: tagsOf(in.Tags),
	})
	if err != nil {
		return nil, err
	}
	return &rds.CreateDBProxyEndpointOutput{DBProxyEndpoint: s.proxyEndpoint(e)}, nil
}

func (s *Service) describeDBProxyEndpoints(_ context.Context, in *rds.DescribeDBProxyEndpointsInput) (*rds.DescribeDBProxyEndpointsOutput, error) {
	if _, err := filterValues(in.Filters); err != nil {
		return nil, err
	}
	list, err := s.c.ListProxyEndpoints(str(in.DBProxyName), str(in.DBProxyEndpointName))
	if err != nil {
		return nil, err
	}
	list, marker, err := pageAt(list, in.Marker, in.MaxRecords)
	if err != nil {
		return nil, err
	}
	shapes := mapped(list, func(e proxy.Endpoint) types.DBProxyEndpoint { return *s.proxyEndpoint(e) })
	return &rds.DescribeDBProxyEndpointsOutput{DBProxyEndpoints: shapes, Marker: marker}, nil
}

func (s *Service) modifyDBProxyEndpoint(ctx context.Context, in *rds.ModifyDBProxyEndpointInput) (*rds.ModifyDBProxyEndpointOutput, error) {
	e, err := s.c.ModifyProxyEndpoint(ctx, str(in.DBProxyEndpointName), proxy.EndpointEdit{Name: in.NewDBProxyEndpointName, SecurityGroups: in.VpcSecurityGroupIds})
	if err != nil {
		return nil, err
	}
	return &rds.ModifyDBProxyEndpointOutput{DBProxyEndpoint: s.proxyEndpoint(e)}, nil
}

func (s *Service) deleteDBProxyEndpoint(ctx context.Context, in *rds.DeleteDBProxyEndpointInput) (*rds.DeleteDBProxyEndpointOutput, error) {
	e, err := s.c.DeleteProxyEndpoint(ctx, str(in.DBProxyEndpointName))
	if err != nil {
		return nil, err
	}
	return &rds.DeleteDBProxyEndpointOutput{DBProxyEndpoint: s.proxyEndpoint(e)}, nil
}
