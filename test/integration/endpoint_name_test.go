//go:build integration

package integration

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// Endpoints have names: clients are told them, the service answers for them, certificates
// have them, and the database shows them to drivers. A command of exec finds them without
// any change to the machine; addresses stay valid.
func TestEndpointNames(t *testing.T) {
	s := harness.Start(t, harness.Options{Args: []string{"--endpoint-suffix", "db.test", "--dns-listen", "127.0.0.1:0"}})
	found := regexp.MustCompile(`answered for" at=(\S+)`).FindStringSubmatch(s.Log.String())
	if found == nil {
		t.Fatal("the log does not say where names are answered for")
	}
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, found[1])
	}}
	_, err := s.CreateDBCluster(t.Context(), &rds.CreateDBClusterInput{
		DBClusterIdentifier: aws.String("ring"), Engine: aws.String("postgres"), DBClusterInstanceClass: aws.String(harness.Class("micro")),
		MasterUsername: aws.String("master"), MasterUserPassword: aws.String(harness.Password), DatabaseName: aws.String("shop"), AllocatedStorage: aws.Int32(20),
	})
	must(t, err)
	c := (&clusterBed{s: s}).whole(t)
	for what, name := range map[string]string{"endpoint": aws.ToString(c.Endpoint), "reader endpoint": aws.ToString(c.ReaderEndpoint)} {
		if !regexp.MustCompile(`^ring\.cluster-(ro-)?[0-9a-z]{12}\.us-east-1\.rds\.db\.test$`).MatchString(name) {
			t.Errorf("the %s of the cluster is %q", what, name)
		}
	}
	out, err := s.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{})
	must(t, err)
	names := []string{aws.ToString(c.Endpoint), aws.ToString(c.ReaderEndpoint)}
	for _, i := range out.DBInstances {
		names = append(names, aws.ToString(i.Endpoint.Address))
	}
	for _, name := range names {
		addresses, err := resolver.LookupHost(t.Context(), name)
		if err != nil || len(addresses) != 1 {
			t.Fatalf("%s leads to %v (%v)", name, addresses, err)
		}
		for _, host := range []string{name, addresses[0]} {
			if got, err := psqlNamed(t, s, host, "SELECT 'it ' || 'answers'"); err != nil || got != "it answers" {
				t.Errorf("psql at %s: %q, %v", host, got, err)
			}
		}
	}
	if _, err := resolver.LookupHost(t.Context(), "wiki."+strings.SplitN(names[2], ".", 2)[1]); err == nil {
		t.Error("a name of nothing leads somewhere")
	}
	topology(t, s, names)
}

// topology asks what AWS's driver wrappers ask, of the writer and of a reader.
func topology(t *testing.T, s *harness.Service, names []string) {
	t.Helper()
	if got, err := psqlNamed(t, s, names[0], "CREATE EXTENSION rds_tools"); err != nil {
		t.Fatalf("%s (%v)", got, err)
	}
	const ask = "SELECT string_agg(endpoint || CASE WHEN id = rds_tools.multi_az_db_cluster_source_dbi_resource_id() THEN ' writes' ELSE '' END, ',' ORDER BY endpoint) FROM rds_tools.show_topology('a driver') WHERE port = 5432"
	want := fmt.Sprintf("%s writes,%s,%s", names[2], names[3], names[4])
	for _, host := range []string{names[0], names[1]} {
		harness.Wait(t, time.Minute, "the topology at "+host, func() string {
			if got, err := psqlNamed(t, s, host, ask); err != nil || got != want {
				return fmt.Sprintf("%q (%v), want %q", got, err, want)
			}
			return ""
		})
	}
	const own = "SELECT SUBSTRING(endpoint FROM 0 FOR POSITION('.' IN endpoint)) FROM rds_tools.show_topology() WHERE id OPERATOR(pg_catalog.=) rds_tools.dbi_resource_id()"
	for n := range 3 {
		if got, err := psqlNamed(t, s, names[2+n], own); err != nil || got != fmt.Sprintf("ring-instance-%d", n+1) {
			t.Errorf("server %d calls itself %q (%v)", n+1, got, err)
		}
	}
}

// psqlNamed runs a statement through kurabe exec, so that the host may be a name.
func psqlNamed(t *testing.T, s *harness.Service, host, sql string) (string, error) {
	t.Helper()
	conn := fmt.Sprintf("host=%s port=5432 user=master dbname=shop sslmode=verify-full sslrootcert=%s", host, filepath.Join(s.Data, "ca.pem"))
	c := exec.CommandContext(t.Context(), harness.Binary(t), "exec", "--data", s.Data, "--endpoint", s.URL(), "--", "psql", "-XAtqc", sql, conn)
	c.Env = append(clientCommand(s, "").Env, "PGPASSWORD="+harness.Password)
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
