package rds

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe"
	"kurabe/internal/store"
)

func proxyInput(w testWorld, name string) *rds.CreateDBProxyInput {
	subnets := w.c.Subnets()
	return &rds.CreateDBProxyInput{
		DBProxyName: aws.String(name), EngineFamily: types.EngineFamilyPostgresql, RoleArn: aws.String("arn:aws:iam::000000000000:role/proxy"),
		VpcSubnetIds: []string{subnets[0].ID, subnets[1].ID},
		Auth:         []types.UserAuthConfig{{SecretArn: aws.String("arn:aws:secretsmanager:us-east-1:000000000000:secret:app-AbCdEf"), IAMAuth: types.IAMAuthModeDisabled}},
	}
}

func TestProxyDefaults(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	made := must(w.client.CreateDBProxy(ctx, proxyInput(w, "Front")))(t).DBProxy
	if *made.DBProxyName != "front" || made.Status != types.DBProxyStatusCreating || *made.IdleClientTimeout != 1800 || *made.RequireTLS ||
		*made.DebugLogging || made.Auth[0].ClientPasswordAuthType != types.ClientPasswordAuthTypePostgresScramSha256 || made.Endpoint != nil {
		t.Errorf("%+v", made)
	}
	group := must(w.client.DescribeDBProxyTargetGroups(ctx, &rds.DescribeDBProxyTargetGroupsInput{DBProxyName: aws.String("front")}))(t).TargetGroups[0]
	pool := group.ConnectionPoolConfig
	if *pool.MaxConnectionsPercent != 100 || *pool.MaxIdleConnectionsPercent != 50 || *pool.ConnectionBorrowTimeout != 120 || pool.InitQuery != nil || !*group.IsDefault {
		t.Errorf("%+v", pool)
	}
	if list := must(w.client.DescribeDBProxyTargets(ctx, &rds.DescribeDBProxyTargetsInput{DBProxyName: aws.String("front")}))(t).Targets; len(list) != 0 {
		t.Errorf("%+v", list)
	}
	ends := must(w.client.DescribeDBProxyEndpoints(ctx, &rds.DescribeDBProxyEndpointsInput{DBProxyName: aws.String("front")}))(t).DBProxyEndpoints
	if len(ends) != 1 || *ends[0].DBProxyEndpointName != "default" || !*ends[0].IsDefault || ends[0].TargetRole != types.DBProxyEndpointTargetRoleReadWrite {
		t.Errorf("%+v", ends)
	}
	// RDS keeps the half of what is allowed, when only that is given.
	changed := must(w.client.ModifyDBProxyTargetGroup(ctx, &rds.ModifyDBProxyTargetGroupInput{
		DBProxyName: aws.String("front"), TargetGroupName: aws.String("default"), ConnectionPoolConfig: &types.ConnectionPoolConfiguration{MaxConnectionsPercent: aws.Int32(27)},
	}))(t).DBProxyTargetGroup
	if *changed.ConnectionPoolConfig.MaxIdleConnectionsPercent != 13 {
		t.Errorf("%+v", changed.ConnectionPoolConfig)
	}
}

// An address is shown once the proxy listens there; a change is in force when the status answers it.
func TestProxyStatus(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	must(w.client.CreateDBProxy(ctx, proxyInput(w, "front")))(t)
	p, _ := w.c.Proxy("front")
	commit(t, w.c, store.NewChange().PutProxyStatus(kurabe.ProxyStatus{
		ID: p.Spec.ID, SpecRevision: 1, State: kurabe.ProxyAvailable,
		Endpoints: []kurabe.ProxyEndpointStatus{{ID: p.Spec.Endpoints[0].ID, State: kurabe.ProxyAvailable, Address: "127.66.0.9", Port: 5432}},
	}, 0))
	shown := must(w.client.DescribeDBProxies(ctx, &rds.DescribeDBProxiesInput{DBProxyName: aws.String("FRONT")}))(t).DBProxies[0]
	if shown.Status != types.DBProxyStatusAvailable || *shown.Endpoint != "127.66.0.9" {
		t.Errorf("%+v", shown)
	}
	changed := must(w.client.ModifyDBProxy(ctx, &rds.ModifyDBProxyInput{DBProxyName: aws.String("front"), NewDBProxyName: aws.String("door"), RequireTLS: aws.Bool(true)}))(t).DBProxy
	if *changed.DBProxyName != "door" || changed.Status != types.DBProxyStatusModifying || !*changed.RequireTLS || *changed.DBProxyArn != *shown.DBProxyArn {
		t.Errorf("%+v", changed)
	}
	_, err := w.client.DescribeDBProxies(ctx, &rds.DescribeDBProxiesInput{DBProxyName: aws.String("front")})
	wantCode(t, err, "DBProxyNotFoundFault", "front")
	gone := must(w.client.DeleteDBProxy(ctx, &rds.DeleteDBProxyInput{DBProxyName: aws.String("door")}))(t).DBProxy
	if gone.Status != types.DBProxyStatusDeleting {
		t.Errorf("%+v", gone)
	}
	_, err = w.client.DeleteDBProxy(ctx, &rds.DeleteDBProxyInput{DBProxyName: aws.String("door")})
	wantCode(t, err, "InvalidDBProxyStateFault", "DELETING")
}

func TestProxyTargets(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	must(w.client.CreateDBProxy(ctx, proxyInput(w, "front")))(t)
	register := func(name string) (*rds.RegisterDBProxyTargetsOutput, error) {
		return w.client.RegisterDBProxyTargets(ctx, &rds.RegisterDBProxyTargetsInput{DBProxyName: aws.String("front"), DBInstanceIdentifiers: []string{name}})
	}
	_, err := register("nope")
	wantCode(t, err, "DBInstanceNotFound", "nope")
	target := must(register("orders"))(t).DBProxyTargets[0]
	if *target.RdsResourceId != "orders" || target.Type != types.TargetTypeRdsInstance || target.TargetHealth.State != types.TargetStateRegistering {
		t.Errorf("%+v", target)
	}
	_, err = register("orders")
	wantCode(t, err, "DBProxyTargetAlreadyRegisteredFault", "orders")
	_, err = w.client.DescribeDBProxyTargets(ctx, &rds.DescribeDBProxyTargetsInput{DBProxyName: aws.String("front"), TargetGroupName: aws.String("other")})
	wantCode(t, err, "DBProxyTargetGroupNotFoundFault", "other")

	p, _ := w.c.Proxy("front")
	commit(t, w.c, store.NewChange().PutProxyStatus(kurabe.ProxyStatus{
		ID: p.Spec.ID, SpecRevision: 2, State: kurabe.ProxyAvailable,
		Targets: []kurabe.ProxyTargetHealth{{Server: p.Spec.Target.Member(2), State: kurabe.TargetUnavailable, Reason: kurabe.TargetAuthFailure, Description: "no secret"}},
	}, 0))
	list := must(w.client.DescribeDBProxyTargets(ctx, &rds.DescribeDBProxyTargetsInput{DBProxyName: aws.String("front")}))(t).Targets
	if h := list[0].TargetHealth; len(list) != 1 || h.State != types.TargetStateUnavailable || h.Reason != types.TargetHealthReasonAuthFailure || *h.Description != "no secret" {
		t.Errorf("%+v", list)
	}
	// A proxy loses its target when that is deleted, and says so.
	must(w.client.DeleteDBInstance(ctx, &rds.DeleteDBInstanceInput{DBInstanceIdentifier: aws.String("orders"), SkipFinalSnapshot: aws.Bool(true)}))(t)
	if p, _ = w.c.Proxy("front"); p.Spec.Target != "" {
		t.Errorf("the target is %s", p.Spec.Target)
	}
	events := must(w.client.DescribeEvents(ctx, &rds.DescribeEventsInput{SourceType: types.SourceTypeDbProxy, SourceIdentifier: aws.String("front")}))(t).Events
	want := "RDS detected deletion of DB instance orders and automatically removed it from target group default of DB proxy front"
	if len(events) != 1 || *events[0].Message != want || *events[0].SourceArn != w.c.ARN("db-proxy", string(p.Spec.ID)) {
		t.Errorf("%+v", events)
	}
}

func TestProxyEndpoints(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	for _, name := range []string{"front", "other"} {
		must(w.client.CreateDBProxy(ctx, proxyInput(w, name)))(t)
	}
	create := func(proxy, name string) (*rds.CreateDBProxyEndpointOutput, error) {
		return w.client.CreateDBProxyEndpoint(ctx, &rds.CreateDBProxyEndpointInput{
			DBProxyName: aws.String(proxy), DBProxyEndpointName: aws.String(name), TargetRole: types.DBProxyEndpointTargetRoleReadOnly,
			VpcSubnetIds: proxyInput(w, "").VpcSubnetIds, Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}},
		})
	}
	made := must(create("front", "reads"))(t).DBProxyEndpoint
	if *made.IsDefault || made.TargetRole != types.DBProxyEndpointTargetRoleReadOnly || *made.DBProxyName != "front" {
		t.Errorf("%+v", made)
	}
	_, err := create("other", "reads")
	wantCode(t, err, "DBProxyEndpointAlreadyExistsFault", "reads")
	_, err = create("nope", "more")
	wantCode(t, err, "DBProxyNotFoundFault", "nope")
	tags := must(w.client.ListTagsForResource(ctx, &rds.ListTagsForResourceInput{ResourceName: made.DBProxyEndpointArn}))(t).TagList
	if len(tags) != 1 || *tags[0].Key != "a" {
		t.Errorf("%+v", tags)
	}
	must(w.client.ModifyDBProxyEndpoint(ctx, &rds.ModifyDBProxyEndpointInput{DBProxyEndpointName: aws.String("reads"), NewDBProxyEndpointName: aws.String("more")}))(t)
	must(create("other", "reads"))(t) // the name is free
	if gone := must(w.client.DeleteDBProxyEndpoint(ctx, &rds.DeleteDBProxyEndpointInput{DBProxyEndpointName: aws.String("more")}))(t); *gone.DBProxyEndpoint.DBProxyEndpointName != "more" {
		t.Errorf("%+v", gone)
	}
	_, err = w.client.DescribeDBProxyEndpoints(ctx, &rds.DescribeDBProxyEndpointsInput{DBProxyEndpointName: aws.String("more")})
	wantCode(t, err, "DBProxyEndpointNotFoundFault", "more")
	_, err = w.client.DeleteDBProxyEndpoint(ctx, &rds.DeleteDBProxyEndpointInput{DBProxyEndpointName: aws.String("default")})
	wantCode(t, err, "InvalidDBProxyEndpointStateFault", "default")
	if all := must(w.client.DescribeDBProxyEndpoints(ctx, &rds.DescribeDBProxyEndpointsInput{}))(t).DBProxyEndpoints; len(all) != 3 {
		t.Errorf("%d endpoints", len(all))
	}
}

func TestProxyRefusals(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	for name, c := range map[string]struct {
		change     func(*rds.CreateDBProxyInput)
		code, text string
	}{
		"IAM":            {func(in *rds.CreateDBProxyInput) { in.Auth[0].IAMAuth = types.IAMAuthModeRequired }, "InvalidParameterCombination", "no IAM"},
		"IAM by default": {func(in *rds.CreateDBProxyInput) { in.DefaultAuthScheme = types.DefaultAuthSchemeIamAuth }, "InvalidParameterCombination", "no IAM"},
		"a user's name":  {func(in *rds.CreateDBProxyInput) { in.Auth[0].UserName = aws.String("app") }, "InvalidParameterValue", "UserName must not be set"},
		"another password": {func(in *rds.CreateDBProxyInput) {
			in.Auth[0].ClientPasswordAuthType = types.ClientPasswordAuthTypePostgresMd5
		}, "InvalidParameterCombination", "POSTGRES_SCRAM_SHA_256"},
		"another service's secret": {func(in *rds.CreateDBProxyInput) {
			in.Auth[0].SecretArn = aws.String("arn:aws:secretsmanager:us-east-1:000000000001:secret:a")
		}, "InvalidParameterValue", "SecretArn"},
		"nobody":          {func(in *rds.CreateDBProxyInput) { in.Auth = nil }, "InvalidParameterCombination", "Auth"},
		"SQL Server":      {func(in *rds.CreateDBProxyInput) { in.EngineFamily = types.EngineFamilySqlserver }, "InvalidParameterValue", "EngineFamily"},
		"IPv6":            {func(in *rds.CreateDBProxyInput) { in.EndpointNetworkType = types.EndpointNetworkTypeDual }, "InvalidParameterCombination", "IPv4"},
		"a strange net":   {func(in *rds.CreateDBProxyInput) { in.VpcSubnetIds = []string{"subnet-1", "subnet-2"} }, "InvalidSubnet", "subnet-1"},
		"one zone":        {func(in *rds.CreateDBProxyInput) { in.VpcSubnetIds = in.VpcSubnetIds[:1] }, "InvalidSubnet", "coverage"},
		"a strange group": {func(in *rds.CreateDBProxyInput) { in.VpcSecurityGroupIds = []string{"sg-1"} }, "InvalidParameterValue", "sg-1"},
		"a long idleness": {func(in *rds.CreateDBProxyInput) { in.IdleClientTimeout = aws.Int32(28801) }, "InvalidParameterValue", "28800"},
		"no role":         {func(in *rds.CreateDBProxyInput) { in.RoleArn = aws.String("arn:aws:iam::000000000000:user/a") }, "InvalidParameterValue", "RoleArn"},
		"no name":         {func(in *rds.CreateDBProxyInput) { in.DBProxyName = aws.String("a--b") }, "InvalidParameterValue", "DBProxyName"},
	} {
		in := proxyInput(w, "front")
		c.change(in)
		_, err := w.client.CreateDBProxy(ctx, in)
		t.Run(name, func(t *testing.T) { wantCode(t, err, c.code, c.text) })
	}
	must(w.client.CreateDBProxy(ctx, proxyInput(w, "front")))(t)
	_, err := w.client.CreateDBProxy(ctx, proxyInput(w, "front"))
	wantCode(t, err, "DBProxyAlreadyExistsFault", "front")
	for name, c := range map[string]struct {
		pool       types.ConnectionPoolConfiguration
		code, text string
	}{
		"idle alone":  {types.ConnectionPoolConfiguration{MaxIdleConnectionsPercent: aws.Int32(5)}, "InvalidParameterCombination", "MaxConnectionsPercent"},
		"more idle":   {types.ConnectionPoolConfiguration{MaxConnectionsPercent: aws.Int32(5), MaxIdleConnectionsPercent: aws.Int32(6)}, "InvalidParameterValue", "between 0 and"},
		"none":        {types.ConnectionPoolConfiguration{MaxConnectionsPercent: aws.Int32(0)}, "InvalidParameterValue", "between 1 and 100"},
		"a long wait": {types.ConnectionPoolConfiguration{ConnectionBorrowTimeout: aws.Int32(301)}, "InvalidParameterValue", "300"},
		"a filter":    {types.ConnectionPoolConfiguration{SessionPinningFilters: []string{"EXCLUDE_VARIABLE_SETS"}}, "InvalidParameterCombination", "MYSQL"},
	} {
		_, err := w.client.ModifyDBProxyTargetGroup(ctx, &rds.ModifyDBProxyTargetGroupInput{DBProxyName: aws.String("front"), TargetGroupName: aws.String("default"), ConnectionPoolConfig: &c.pool})
		t.Run(name, func(t *testing.T) { wantCode(t, err, c.code, c.text) })
	}
}
