//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// endLimit is what the service promises of SIGTERM.
const endLimit = 5 * time.Second

// client is a session that must live through everything.
type client struct {
	instance *harness.Instance
	session  harness.Session
	backend  string
	server   int
}

func connected(t *testing.T, i *harness.Instance) *client {
	t.Helper()
	c := &client{instance: i, session: i.Open(t), server: i.Server(t)}
	c.backend = c.ask(t)
	return c
}

func (c *client) ask(t *testing.T) string {
	t.Helper()
	rows, err := c.session.Rows(t.Context(), harness.BackendSQL(c.instance.Engine))
	if err != nil {
		t.Fatalf("the session to %s is gone: %v", c.instance.Name, err)
	}
	return rows[0]
}

// untouched demands that neither session nor server were replaced.
func (c *client) untouched(t *testing.T, when string) {
	t.Helper()
	if now := c.ask(t); now != c.backend {
		t.Errorf("%s: %s is served by backend %s, before by %s", when, c.instance.Name, now, c.backend)
	}
	if now := c.instance.Server(t); now != c.server {
		t.Errorf("%s: the server of %s is %d, before it was %d", when, c.instance.Name, now, c.server)
	}
}

// one creates an instance of each engine that is offered.
func one(t *testing.T, s *harness.Service) []*harness.Instance {
	t.Helper()
	var list []*harness.Instance
	for _, engine := range s.Engines(t) {
		list = append(list, s.Create(t, harness.Request("one-"+engine, engine)))
	}
	for _, i := range list {
		i.WaitStatus(t, "available")
	}
	return list
}

func TestDatabasesOutliveTheService(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	info, err := os.Stat(filepath.Join(s.Data, "credentials"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("credentials: %v, %v", info, err)
	}
	instances := one(t, s)
	var clients []*client
	for _, i := range instances {
		clients = append(clients, connected(t, i))
	}
	all := func(when string) {
		t.Helper()
		for _, c := range clients {
			c.untouched(t, when)
		}
	}
	if took := s.Terminate(t); took > endLimit {
		t.Errorf("SIGTERM took %v", took)
	}
	all("after SIGTERM")
	s.Start(t)
	for _, i := range instances {
		i.WaitStatus(t, "available")
	}
	all("after a restart")
	s.Kill(t)
	all("after kill -9")
	s.Start(t)
	for _, i := range instances {
		i.WaitStatus(t, "available")
	}
	all("after a start that follows kill -9")
	for _, i := range instances {
		for _, message := range i.Events(t) {
			if strings.Contains(message, "restart") || strings.Contains(message, "shutdown") {
				t.Errorf("%s has the event %q", i.Name, message)
			}
		}
	}
}

func TestStopDatabasesOnExit(t *testing.T) {
	s := harness.New(t, harness.Options{})
	s.Start(t, "--stop-databases-on-exit")
	instances := one(t, s)
	for _, i := range instances {
		i.Query(t, "CREATE TABLE kept (n bigint)")
		i.Query(t, "INSERT INTO kept VALUES (7)")
	}
	s.Terminate(t)
	for _, i := range instances {
		if pids := s.Processes(i.ID); len(pids) > 0 {
			t.Errorf("processes %v of %s still run", pids, i.Name)
		}
	}
	s.Start(t)
	for _, i := range instances {
		i.WaitStatus(t, "available")
		if got := i.Query(t, "SELECT n FROM kept"); got != "7" {
			t.Errorf("%s holds %q", i.Name, got)
		}
		for _, message := range i.Events(t) {
			if strings.Contains(message, "unexpectedly") {
				t.Errorf("a clean stop counts as a crash: %s", message)
			}
		}
	}
}

func TestCredentialsOfTheEnvironment(t *testing.T) {
	s := harness.Start(t, harness.Options{Env: []string{"KURABE_ROOT_ACCESS_KEY=AKIAFROMENVIRONMENT", "KURABE_ROOT_SECRET_KEY=a-secret-from-the-environment"}})
	if _, err := s.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(s.Data, "credentials")); err == nil {
		t.Error("credentials were written although the environment gives them")
	}
	half := harness.New(t, harness.Options{Env: []string{"KURABE_ROOT_ACCESS_KEY=AKIAALONE"}})
	half.Launch(t)
	if err := half.WaitEnd(t, endLimit); err == nil || !strings.Contains(half.Log.String(), "set both KURABE_ROOT_ACCESS_KEY and KURABE_ROOT_SECRET_KEY") {
		t.Errorf("half a pair of credentials: %v, %s", err, half.Log)
	}
}
