package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	secret "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"kurabe/lab/dial"
	"kurabe/lab/probe"
	"kurabe/lab/study"
)

// proxyTime bounds the start of a proxy, seconds, and its end.
const proxyTime = 5 * time.Minute

// anyRole has the form that the API asks for; a service of one's own assumes none.
const anyRole = "arn:aws:iam::000000000000:role/kurabe-lab"

// proxies are the service's own proxies, each before the instance of one trial, with the
// secret by which clients come in.
type proxies struct {
	client  *rds.Client
	secrets *secretsmanager.Client
}

// defaultPort is that of the endpoints of a proxy whose address names no other.
var defaultPort = map[string]int{study.Postgres: 5432, study.MariaDB: 3306, study.MySQL: 3306}

// putProxy makes a proxy of the service the way of a lease's clients.
func (t *rdsTarget) putProxy(ctx context.Context, l *Lease, instance string) (end func(context.Context) error, err error) {
	name := instance + "-proxy"
	end = func(ctx context.Context) error { return t.removeProxy(ctx, name) }
	if err := t.createProxy(ctx, name, instance, l.Direct); err != nil {
		closeCtx, cancel := closing(ctx)
		defer cancel()
		return nil, errors.Join(err, end(closeCtx))
	}
	p, err := t.proxyServes(ctx, name)
	if err == nil {
		l.Server, err = through(l.Direct, withPort(aws.ToString(p.Endpoint), defaultPort[t.options.Engine]))
	}
	if err != nil {
		closeCtx, cancel := closing(ctx)
		defer cancel()
		return nil, errors.Join(err, end(closeCtx))
	}
	l.PIDs, _ = probe.Listeners(l.Server) // of a service elsewhere there are none to be seen, as of its servers
	l.Settings["endpoint"] = "the service's proxy"
	return end, nil
}

func withPort(endpoint string, port int) string {
	if strings.Contains(endpoint, ":") {
		return endpoint
	}
	return fmt.Sprintf("%s:%d", endpoint, port)
}

func (t *rdsTarget) createProxy(ctx context.Context, name, instance string, direct dial.Server) error {
	value, err := json.Marshal(map[string]string{"username": direct.User, "password": string(direct.Password)})
	if err != nil {
		return err
	}
	var tags []secret.Tag
	for _, tag := range t.tags() {
		tags = append(tags, secret.Tag{Key: tag.Key, Value: tag.Value})
	}
	made, err := t.proxies.secrets.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: aws.String(name), SecretString: aws.String(string(value)), Tags: tags})
	if err != nil {
		return explain("create a secret for "+name, err)
	}
	groups, err := t.proxies.client.DescribeDBSubnetGroups(ctx, &rds.DescribeDBSubnetGroupsInput{DBSubnetGroupName: aws.String(defaultGroup)})
	if err != nil {
		return explain("ask for the subnets", err)
	}
	var subnets []string
	for _, g := range groups.DBSubnetGroups {
		for _, s := range g.Subnets {
			subnets = append(subnets, aws.ToString(s.SubnetIdentifier))
		}
	}
	family := types.EngineFamilyMysql
	if t.options.Engine == study.Postgres {
		family = types.EngineFamilyPostgresql
	}
	_, err = t.proxies.client.CreateDBProxy(ctx, &rds.CreateDBProxyInput{
		DBProxyName: aws.String(name), EngineFamily: family, RoleArn: aws.String(anyRole), VpcSubnetIds: subnets, Tags: t.tags(),
		Auth: []types.UserAuthConfig{{SecretArn: made.ARN}},
	})
	if err != nil {
		return explain("create proxy "+name, err)
	}
	_, err = t.proxies.client.RegisterDBProxyTargets(ctx, &rds.RegisterDBProxyTargetsInput{DBProxyName: aws.String(name), DBInstanceIdentifiers: []string{instance}})
	return explain("register "+instance+" with proxy "+name, err)
}

// defaultGroup is the subnet group that every service has.
const defaultGroup = "default"

// proxyServes waits until a proxy is available and its target is.
func (t *rdsTarget) proxyServes(ctx context.Context, name string) (p types.DBProxy, err error) {
	err = t.until(ctx, "proxy "+name+" serves", func() (bool, error) {
		out, err := t.proxies.client.DescribeDBProxies(ctx, &rds.DescribeDBProxiesInput{DBProxyName: aws.String(name)})
		if err != nil || len(out.DBProxies) != 1 {
			return false, explain("look at proxy "+name, err)
		}
		p = out.DBProxies[0]
		targets, err := t.proxies.client.DescribeDBProxyTargets(ctx, &rds.DescribeDBProxyTargetsInput{DBProxyName: aws.String(name)})
		if err != nil || len(targets.Targets) != 1 || targets.Targets[0].TargetHealth == nil {
			return false, explain("look at the target of "+name, err)
		}
		health := targets.Targets[0].TargetHealth
		if health.Reason == types.TargetHealthReasonAuthFailure {
			return false, fmt.Errorf("proxy %s cannot log in: %s", name, aws.ToString(health.Description))
		}
		return p.Status == types.DBProxyStatusAvailable && health.State == types.TargetStateAvailable, nil
	})
	return p, err
}

// until asks until it is so, at most for proxyTime.
func (t *rdsTarget) until(ctx context.Context, what string, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, proxyTime, fmt.Errorf("wait until %s: not after %s", what, proxyTime))
	defer cancel()
	tick := time.NewTicker(t.poll)
	defer tick.Stop()
	for {
		done, err := so()
		if done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// removeProxy ends a proxy and its secret, which may both be gone, and waits for the former.
func (t *rdsTarget) removeProxy(ctx context.Context, name string) error {
	_, err := t.proxies.client.DeleteDBProxy(ctx, &rds.DeleteDBProxyInput{DBProxyName: aws.String(name)})
	if hasCode(err, "DBProxyNotFound", "InvalidDBProxyState") { // it is gone, or going
		err = nil
	}
	err = explain("delete proxy "+name, err)
	if err == nil {
		err = t.until(ctx, "proxy "+name+" is gone", func() (bool, error) {
			_, err := t.proxies.client.DescribeDBProxies(ctx, &rds.DescribeDBProxiesInput{DBProxyName: aws.String(name)})
			if hasCode(err, "DBProxyNotFound") {
				return true, nil
			}
			return false, explain("look at proxy "+name, err)
		})
	}
	_, gone := t.proxies.secrets.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{SecretId: aws.String(name), ForceDeleteWithoutRecovery: aws.Bool(true)})
	if hasCode(gone, "ResourceNotFoundException") {
		gone = nil
	}
	return errors.Join(err, explain("delete secret "+name, gone))
}

// leftSecrets are the secrets of the lab: each is made before its proxy, which has its name.
func (t *rdsTarget) leftSecrets(ctx context.Context) ([]resource, error) {
	if t.proxies == nil {
		return nil, nil
	}
	var list []resource
	in := &secretsmanager.ListSecretsInput{Filters: []secret.Filter{{Key: secret.FilterNameStringTypeTagKey, Values: []string{tagLab}}}}
	for range pagesMax {
		out, err := t.proxies.secrets.ListSecrets(ctx, in)
		if hasCode(err, "UnknownOperationException", "AccessDeniedException") { // a service without them, or an account that may not see them
			return nil, nil
		}
		if err != nil {
			return nil, explain("list the secrets", err)
		}
		for _, s := range out.SecretList {
			var tags []types.Tag
			for _, tag := range s.Tags {
				tags = append(tags, types.Tag{Key: tag.Key, Value: tag.Value})
			}
			list = ofLab(list, "proxy", s.Name, tags)
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			break
		}
	}
	return list, nil
}

// hasProxies says why a service has no proxies, "" where it has them.
func (t *rdsTarget) hasProxies(ctx context.Context) (string, error) {
	_, err := t.proxies.client.DescribeDBProxyEndpoints(ctx, &rds.DescribeDBProxyEndpointsInput{})
	if hasCode(err, "UnsupportedOperation") {
		return "the service has no proxy of its own", nil
	}
	return "", explain("ask for the service's proxies", err)
}
