package rds

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/api"
	"kurabe/internal/control"
	"kurabe/internal/control/proxy"
)

// proxyTargetRows are the actions on the target groups of DB proxies and their targets.
func (s *Service) proxyTargetRows() []row {
	return []row{
		api.Read("DescribeDBProxyTargetGroups", s.describeDBProxyTargetGroups),
		api.Write("ModifyDBProxyTargetGroup", s.modifyDBProxyTargetGroup),
		api.Write("RegisterDBProxyTargets", s.registerDBProxyTargets),
		api.Write("DeregisterDBProxyTargets", s.deregisterDBProxyTargets),
		api.Read("DescribeDBProxyTargets", s.describeDBProxyTargets),
	}
}

func (s *Service) targetGroup(p proxy.Proxy) *types.DBProxyTargetGroup {
	pool, filters := p.Spec.Pool, p.Spec.Pool.PinningFilters
	if filters == nil {
		filters = []string{}
	}
	return &types.DBProxyTargetGroup{
		DBProxyName: aws.String(p.Spec.Name), TargetGroupName: aws.String(kurabe.ProxyTargetGroup),
		TargetGroupArn: aws.String(s.c.ARN("target-group", p.Spec.ID.TargetGroupID())), IsDefault: aws.Bool(true), Status: aws.String(string(p.State)),
		ConnectionPoolConfig: &types.ConnectionPoolConfigurationInfo{
			MaxConnectionsPercent: aws.Int32(int32(pool.MaxConnectionsPercent)), MaxIdleConnectionsPercent: aws.Int32(int32(pool.MaxIdleConnectionsPercent)),
			ConnectionBorrowTimeout: aws.Int32(int32(pool.BorrowTimeoutS)), SessionPinningFilters: filters, InitQuery: optional(pool.InitQuery),
		},
		CreatedDate: aws.Time(p.Spec.CreatedAt), UpdatedDate: aws.Time(p.Spec.PoolUpdatedAt),
	}
}

func (s *Service) describeDBProxyTargetGroups(_ context.Context, in *rds.DescribeDBProxyTargetGroupsInput) (*rds.DescribeDBProxyTargetGroupsOutput, error) {
	p, err := s.proxyOfGroup(in.DBProxyName, in.TargetGroupName, in.Filters)
	if err != nil {
		return nil, err
	}
	list, marker, err := pageAt([]types.DBProxyTargetGroup{*s.targetGroup(p)}, in.Marker, in.MaxRecords)
	return &rds.DescribeDBProxyTargetGroupsOutput{TargetGroups: list, Marker: marker}, err
}

// proxyOfGroup finds the proxy of a request about its target group.
func (s *Service) proxyOfGroup(name, group *string, filters []types.Filter) (proxy.Proxy, error) {
	if _, err := filterValues(filters); err != nil {
		return proxy.Proxy{}, err
	}
	if err := s.c.CheckTargetGroup(str(name), str(group)); err != nil {
		return proxy.Proxy{}, err
	}
	return s.c.Proxy(str(name))
}

func (s *Service) modifyDBProxyTargetGroup(ctx context.Context, in *rds.ModifyDBProxyTargetGroupInput) (*rds.ModifyDBProxyTargetGroupOutput, error) {
	if err := s.c.CheckTargetGroup(str(in.DBProxyName), str(in.TargetGroupName)); err != nil {
		return nil, err
	}
	if err := s.refuse(in, names("DBProxyName", "TargetGroupName", "ConnectionPoolConfig")); err != nil {
		return nil, err
	}
	c := in.ConnectionPoolConfig
	if c == nil {
		c = &types.ConnectionPoolConfiguration{}
	}
	if c.MaxIdleConnectionsPercent != nil && c.MaxConnectionsPercent == nil {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "MaxIdleConnectionsPercent needs MaxConnectionsPercent beside it")
	}
	p, err := s.c.ModifyProxyPool(ctx, str(in.DBProxyName), func(pool *kurabe.ProxyPool) {
		if c.MaxConnectionsPercent != nil {
			pool.MaxConnectionsPercent = int(*c.MaxConnectionsPercent)
			pool.MaxIdleConnectionsPercent = pool.MaxConnectionsPercent / 2
		}
		if c.MaxIdleConnectionsPercent != nil {
			pool.MaxIdleConnectionsPercent = int(*c.MaxIdleConnectionsPercent)
		}
		if c.ConnectionBorrowTimeout != nil {
			pool.BorrowTimeoutS = int(*c.ConnectionBorrowTimeout)
		}
		if c.InitQuery != nil {
			pool.InitQuery = *c.InitQuery
		}
		if c.SessionPinningFilters != nil {
			pool.PinningFilters = c.SessionPinningFilters
		}
	})
	if err != nil {
		return nil, err
	}
	return &rds.ModifyDBProxyTargetGroupOutput{DBProxyTargetGroup: s.targetGroup(p)}, nil
}

func (s *Service) registerDBProxyTargets(ctx context.Context, in *rds.RegisterDBProxyTargetsInput) (*rds.RegisterDBProxyTargetsOutput, error) {
	if err := s.c.CheckTargetGroup(str(in.DBProxyName), str(in.TargetGroupName)); err != nil {
		return nil, err
	}
	p, err := s.c.RegisterTarget(ctx, str(in.DBProxyName), in.DBInstanceIdentifiers, in.DBClusterIdentifiers)
	if err != nil {
		return nil, err
	}
	return &rds.RegisterDBProxyTargetsOutput{DBProxyTargets: s.proxyTargets(p)}, nil
}

func (s *Service) deregisterDBProxyTargets(ctx context.Context, in *rds.DeregisterDBProxyTargetsInput) (*rds.DeregisterDBProxyTargetsOutput, error) {
	if err := s.c.CheckTargetGroup(str(in.DBProxyName), str(in.TargetGroupName)); err != nil {
		return nil, err
	}
	return &rds.DeregisterDBProxyTargetsOutput{}, s.c.DeregisterTargets(ctx, str(in.DBProxyName), in.DBInstanceIdentifiers, in.DBClusterIdentifiers)
}

func (s *Service) describeDBProxyTargets(_ context.Context, in *rds.DescribeDBProxyTargetsInput) (*rds.DescribeDBProxyTargetsOutput, error) {
	p, err := s.proxyOfGroup(in.DBProxyName, in.TargetGroupName, in.Filters)
	if err != nil {
		return nil, err
	}
	list, marker, err := pageAt(s.proxyTargets(p), in.Marker, in.MaxRecords)
	if list == nil {
		list = []types.DBProxyTarget{}
	}
	return &rds.DescribeDBProxyTargetsOutput{Targets: list, Marker: marker}, err
}

// proxyTargets are the target of a proxy and, of a cluster, the servers that it tracks.
func (s *Service) proxyTargets(p proxy.Proxy) []types.DBProxyTarget {
	of, servers, ok := s.c.ProxyTarget(p.Spec)
	if !ok {
		return nil
	}
	if !of.Spec.Cluster {
		return []types.DBProxyTarget{s.proxyTarget(of, p.Health(of.Spec.ID, true), false)}
	}
	cluster := types.DBProxyTarget{
		TargetArn: aws.String(s.c.ARN("cluster", of.Name)), RdsResourceId: aws.String(of.Name), Endpoint: optional(s.c.Endpoint(of)),
		Port: aws.Int32(int32(of.Settings().Port)), Type: types.TargetTypeTrackedCluster,
	}
	if len(servers) == 0 {
		cluster.TargetHealth = health(kurabe.ProxyTargetHealth{State: kurabe.TargetRegistering})
	}
	list := []types.DBProxyTarget{cluster}
	for _, i := range servers {
		list = append(list, s.proxyTarget(i, p.Health(i.Server.ID, false), !i.Server.Writer))
	}
	return list
}

// proxyTarget is a server to which a proxy leads, as the DB instance that it is to users.
func (s *Service) proxyTarget(i control.Instance, h kurabe.ProxyTargetHealth, reads bool) types.DBProxyTarget {
	role := types.TargetRoleReadWrite
	if reads {
		role = types.TargetRoleReadOnly
	}
	return types.DBProxyTarget{
		TargetArn: aws.String(s.c.ARN("db", i.Name)), RdsResourceId: aws.String(i.Name), Endpoint: optional(s.c.Endpoint(i)), Role: role,
		Port: aws.Int32(int32(i.Settings().Port)), Type: types.TargetTypeRdsInstance, TrackedClusterId: optional(i.Cluster), TargetHealth: health(h),
	}
}

func health(h kurabe.ProxyTargetHealth) *types.TargetHealth {
	return &types.TargetHealth{State: types.TargetState(h.State), Reason: types.TargetHealthReason(h.Reason), Description: optional(h.Description)}
}
