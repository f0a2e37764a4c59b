//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	smithyendpoints "github.com/aws/smithy-go/endpoints"

	"kurabe/internal/harness"
	"kurabe/internal/proxy/process"
)

// proxyEngines are those that proxies are for.
var proxyEngines = []string{"postgres"}

// proxy is a proxy of a service.
type proxy struct {
	service *harness.Service
	name    string
	folder  string
	login   harness.Login
}

type secretsAt struct{ s *harness.Service }

// ResolveEndpoint implements secretsmanager.EndpointResolverV2.
func (e secretsAt) ResolveEndpoint(context.Context, secretsmanager.EndpointParameters) (smithyendpoints.Endpoint, error) {
	u, err := url.Parse(e.s.URL())
	if err != nil {
		return smithyendpoints.Endpoint{}, err
	}
	return smithyendpoints.Endpoint{URI: *u}, nil
}

func secretsOf(s *harness.Service) *secretsmanager.Client {
	return secretsmanager.New(secretsmanager.Options{
		Region: "us-east-1", EndpointResolverV2: secretsAt{s},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return s.Credentials() }),
	})
}

// secretText is the value of a secret of a database user.
func secretText(t *testing.T, user, password string) *string {
	t.Helper()
	raw, err := json.Marshal(map[string]string{"username": user, "password": password})
	if err != nil {
		t.Fatal(err)
	}
	return aws.String(string(raw))
}

// createProxy makes a proxy of an instance, for its master user, and waits until a client can
// come in and the target is available.
func createProxy(t *testing.T, i *harness.Instance) *proxy {
	t.Helper()
	s, name := i.Service, "of-"+i.Name
	secret, err := secretsOf(s).CreateSecret(t.Context(), &secretsmanager.CreateSecretInput{Name: &name, SecretString: secretText(t, i.User, i.Password)})
	if err != nil {
		t.Fatal(err)
	}
	family := types.EngineFamilyPostgresql
	if i.Engine == "mariadb" {
		family = types.EngineFamilyMysql
	}
	subnets, err := s.DescribeDBSubnetGroups(t.Context(), &rds.DescribeDBSubnetGroupsInput{DBSubnetGroupName: aws.String("default")})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, n := range subnets.DBSubnetGroups[0].Subnets {
		ids = append(ids, aws.ToString(n.SubnetIdentifier))
	}
	if _, err := s.CreateDBProxy(t.Context(), &rds.CreateDBProxyInput{
		DBProxyName: &name, EngineFamily: family, RoleArn: aws.String("arn:aws:iam::000000000000:role/proxy"), VpcSubnetIds: ids,
		Auth: []types.UserAuthConfig{{SecretArn: secret.ARN, IAMAuth: types.IAMAuthModeDisabled}},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RegisterDBProxyTargets(t.Context(), &rds.RegisterDBProxyTargetsInput{DBProxyName: &name, DBInstanceIdentifiers: []string{i.Name}}); err != nil {
		t.Fatal(err)
	}
	p := &proxy{service: s, name: name}
	d := p.waitStatus(t, "available")
	arn := aws.ToString(d.DBProxyArn)
	p.folder = filepath.Join(s.Data, "proxies", arn[strings.LastIndex(arn, ":")+1:])
	p.login = i.Login(t)
	p.login.Address, p.login.Port = aws.ToString(d.Endpoint), 5432
	if i.Engine == "mariadb" {
		p.login.Port = 3306
	}
	p.waitHealth(t, "AVAILABLE")
	return p
}

func (p *proxy) waitStatus(t *testing.T, want string) (d types.DBProxy) {
	t.Helper()
	harness.Wait(t, time.Minute, p.name+" is "+want, func() string {
		out, err := p.service.DescribeDBProxies(t.Context(), &rds.DescribeDBProxiesInput{DBProxyName: &p.name})
		if err != nil {
			return err.Error()
		}
		if d = out.DBProxies[0]; string(d.Status) != want {
			return string(d.Status)
		}
		return ""
	})
	return d
}

func (p *proxy) waitHealth(t *testing.T, want string) {
	t.Helper()
	harness.Wait(t, time.Minute, "the target of "+p.name+" is "+want, func() string {
		out, err := p.service.DescribeDBProxyTargets(t.Context(), &rds.DescribeDBProxyTargetsInput{DBProxyName: &p.name})
		if err != nil {
			return err.Error()
		}
		if len(out.Targets) == 0 {
			return "there is none"
		}
		h := out.Targets[0].TargetHealth
		if got := strings.TrimSpace(string(h.State) + " " + string(h.Reason)); got != want {
			return got + ": " + aws.ToString(h.Description)
		}
		return ""
	})
}

// query runs a statement in a session through the proxy.
func (p *proxy) query(t *testing.T, statement string) string {
	t.Helper()
	s, err := harness.Open(t.Context(), p.login)
	if err != nil {
		t.Fatalf("log in at %s: %v", p.name, err)
	}
	defer s.Close()
	rows, err := s.Rows(t.Context(), statement)
	if err != nil || len(rows) == 0 {
		t.Fatalf("%s: %v, %v", statement, rows, err)
	}
	return rows[0]
}

func (p *proxy) status(t *testing.T) process.Status {
	t.Helper()
	s, err := process.NewClient(p.folder).Status(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestProxy: a proxy that a user asked for serves clients, over kills of the service, of its
// process and of the server; follows another secret without a restart; and leaves nothing.
func TestProxy(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	for _, engine := range proxyEngines {
		t.Run(engine, func(t *testing.T) {
			s.NeedEngine(t, engine, s.Engines(t))
			i := s.MustCreate(t, harness.Request("behind-"+engine, engine))
			p := createProxy(t, i)
			if got := p.query(t, "SELECT 6*7"); got != "42" {
				t.Fatalf("through the proxy: %q", got)
			}
			idle, err := harness.Open(t.Context(), p.login)
			if err != nil {
				t.Fatal(err)
			}
			defer idle.Close()
			pid := p.status(t).PID

			s.Kill(t)
			if _, err := idle.Rows(t.Context(), "SELECT 1"); err != nil {
				t.Errorf("while the service is dead: %v", err)
			}
			s.Start(t)
			p.waitHealth(t, "AVAILABLE")
			if now := p.status(t).PID; now != pid {
				t.Errorf("the next service has started another process: %d after %d", now, pid)
			}

			must(t, syscall.Kill(i.Server(t), syscall.SIGKILL))
			if _, err := idle.Rows(t.Context(), "SELECT 1"); err != nil { // waits for the server
				t.Errorf("an idle client when the server was killed: %v", err)
			}

			must(t, syscall.Kill(pid, syscall.SIGKILL))
			harness.Wait(t, time.Minute, "another process", func() string {
				now, err := process.NewClient(p.folder).Status(t.Context(), 0)
				if err != nil || now.PID == pid {
					return fmt.Sprint(now.PID, err)
				}
				return ""
			})
			if got := p.query(t, "SELECT 6*7"); got != "42" {
				t.Fatalf("after a kill of the proxy: %q", got)
			}

			pid = p.status(t).PID
			next := "Another-Passw0rd-4711"
			i.Modify(t, func(in *rds.ModifyDBInstanceInput) {
				in.MasterUserPassword, in.ApplyImmediately = &next, aws.Bool(true)
			})
			if _, err := secretsOf(s).PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{SecretId: &p.name, SecretString: secretText(t, i.User, next)}); err != nil {
				t.Fatal(err)
			}
			p.login.Password = next
			harness.Wait(t, time.Minute, "the new password is in force", func() string {
				session, err := harness.Open(t.Context(), p.login)
				if err != nil {
					return err.Error()
				}
				session.Close()
				return ""
			})
			if now := p.status(t).PID; now != pid {
				t.Errorf("another process for another secret: %d after %d", now, pid)
			}

			if _, err := s.DeleteDBProxy(t.Context(), &rds.DeleteDBProxyInput{DBProxyName: &p.name}); err != nil {
				t.Fatal(err)
			}
			harness.Wait(t, time.Minute, "nothing of the proxy is left", func() string {
				if harness.Alive(pid) {
					return "its process lives"
				}
				left, err := filepath.Glob(p.folder)
				if err != nil || len(left) > 0 {
					return fmt.Sprint(left, err)
				}
				return ""
			})
			i.Delete(t)
		})
	}
}
