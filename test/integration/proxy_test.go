//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
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
var proxyEngines = []string{"postgres", "mariadb"}

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

// log is what the proxy has written.
func (p *proxy) log(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.folder, "run", "proxy.log"))
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// TestProxy: a proxy that a user asked for serves clients, over kills of the service, of the
// server and of its own process; follows another secret without a restart; and leaves nothing.
func TestProxy(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	for _, engine := range proxyEngines {
		t.Run(engine, func(t *testing.T) {
			s.NeedEngine(t, engine, s.Engines(t))
			i := s.MustCreate(t, harness.Request("behind-"+engine, engine))
			p := createProxy(t, i)
			p.answers(t)
			p.outlivesKills(t, i)
			p.followsItsSecret(t, i)
			p.delete(t)
			i.Delete(t)
		})
	}
}

func (p *proxy) answers(t *testing.T) {
	t.Helper()
	if got := p.query(t, "SELECT 6*7"); got != "42" {
		t.Fatalf("through the proxy: %q", got)
	}
}

// outlivesKills kills service, server and proxy in turn. Only the death of the proxy itself
// ends an idle client.
func (p *proxy) outlivesKills(t *testing.T, i *harness.Instance) {
	t.Helper()
	idle, err := harness.Open(t.Context(), p.login)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	pid := p.status(t).PID
	p.service.Kill(t)
	if _, err := idle.Rows(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("while the service is dead: %v", err)
	}
	p.service.Start(t)
	p.waitHealth(t, "AVAILABLE")
	if now := p.status(t).PID; now != pid {
		t.Errorf("the next service has started another process: %d after %d", now, pid)
	}
	server := i.Server(t)
	must(t, syscall.Kill(server, syscall.SIGKILL))
	harness.WaitEnded(t, time.Minute, "the server", server)
	// A statement that is on its way when the connection breaks has an error; the client stays.
	if _, err := idle.Rows(t.Context(), "SELECT 1"); err != nil {
		t.Logf("the first statement after the server's death: %v", err)
		if _, err := idle.Rows(t.Context(), "SELECT 1"); err != nil {
			t.Errorf("an idle client when the server was killed: %v", err)
		}
	}
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	harness.Wait(t, time.Minute, "another process", func() string {
		now, err := process.NewClient(p.folder).Status(t.Context(), 0)
		if err != nil || now.PID == pid {
			return fmt.Sprint(now.PID, err)
		}
		return ""
	})
	p.answers(t)
}

// followsItsSecret changes the password in the database and in the secret.
func (p *proxy) followsItsSecret(t *testing.T, i *harness.Instance) {
	t.Helper()
	pid, next := p.status(t).PID, "Another-Passw0rd-4711"
	i.Modify(t, func(in *rds.ModifyDBInstanceInput) {
		in.MasterUserPassword, in.ApplyImmediately = &next, aws.Bool(true)
	})
	if _, err := secretsOf(p.service).PutSecretValue(t.Context(), &secretsmanager.PutSecretValueInput{SecretId: &p.name, SecretString: secretText(t, i.User, next)}); err != nil {
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
}

// delete deletes the proxy, and waits until nothing of it is left.
func (p *proxy) delete(t *testing.T) {
	t.Helper()
	pid := p.status(t).PID
	if _, err := p.service.DeleteDBProxy(t.Context(), &rds.DeleteDBProxyInput{DBProxyName: &p.name}); err != nil {
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
}

// TestProxyOverFailover: an idle client of a proxy stays when the primary of a Multi-AZ instance
// is killed or hands over by order, and what it says next waits for the new one.
func TestProxyOverFailover(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	for _, engine := range proxyEngines {
		t.Run(engine, func(t *testing.T) {
			s.NeedEngine(t, engine, s.Engines(t))
			i := s.MustCreate(t, harness.MultiAZRequest("pair-"+engine, engine))
			i.WaitWhole(t)
			p := createProxy(t, i)
			idle, err := harness.Open(t.Context(), p.login)
			if err != nil {
				t.Fatal(err)
			}
			defer idle.Close()
			must(t, i.Open(t).Exec(t.Context(), "CREATE TABLE proxied (n int)"))
			epoch := p.status(t).Route.Epoch
			for n := range 3 {
				failover(t, i, n%2 == 0)
				if err := idle.Exec(t.Context(), fmt.Sprintf("INSERT INTO proxied VALUES (%d)", n)); err != nil {
					t.Fatalf("after failover %d: %v\n%s", n, err, p.log(t))
				}
				i.WaitWhole(t)
			}
			if got := p.query(t, "SELECT count(*) FROM proxied"); got != "3" {
				t.Errorf("%s rows of 3", got)
			}
			if now := p.status(t).Route.Epoch; now <= epoch {
				t.Errorf("the epoch of the route is %d after %d", now, epoch)
			}
			p.delete(t)
			i.Delete(t)
		})
	}
}
