//go:build integration

package integration

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// backTime is how soon a killed engine serves again.
const backTime = 5 * time.Second

func TestKilledEngineComesBack(t *testing.T) {
	s := shared(t)
	s.EachEngine(t, func(t *testing.T, engine string) {
		i := s.MustCreate(t, harness.Request("killed-"+engine, engine))
		ledger := harness.NewLedger(t, i)
		ledger.Start(t)
		ledger.WaitMore(t, 20)
		server := i.Server(t)
		if err := syscall.Kill(server, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		harness.Wait(t, backTime, "another server", func() string {
			if now := s.Servers(i.ID); len(now) != 1 || now[0] == server {
				return fmt.Sprint("servers ", now)
			}
			return ""
		})
		ledger.WaitMore(t, 20)
		if took := time.Since(start); took > backTime {
			t.Errorf("it was back after %v", took)
		} else {
			t.Logf("it was back after %v", took.Round(time.Millisecond))
		}
		ledger.Stop()
		ledger.Verify(t)
		i.WaitEvent(t, "ended unexpectedly")
		i.WaitStatus(t, "available")
		i.WaitEvent(t, "restarted")
		i.Delete(t)
	})
}

// impossible is a value that the API takes and no server can start with, and one that it can.
// PostgreSQL wants room for two segments of its log, which is for nobody but the server to
// know; MariaDB knows the engines that it has when it starts.
var impossible = map[string]struct{ name, bad, good, words string }{
	"postgres": {"min_wal_size", "2", "80", "min_wal_size"},
	"mariadb":  {"default_storage_engine", "nosuch", "InnoDB", "nosuch"},
}

func TestIncompatibleParameters(t *testing.T) {
	s := shared(t)
	s.EachEngine(t, func(t *testing.T, engine string) {
		p := impossible[engine]
		group := "impossible-" + engine
		makeParameterGroup(t, s, group, engine)
		set := func(value string) { setStatic(t, s, group, p.name, value) }
		in := harness.Request(group, engine)
		in.DBParameterGroupName = aws.String(group)
		i := s.MustCreate(t, in)
		i.Query(t, "CREATE TABLE kept (n bigint)")
		set(p.bad)
		harness.Wait(t, backTime, "the parameter waits for a reboot", func() string {
			status := aws.ToString(i.Describe(t).DBParameterGroups[0].ParameterApplyStatus)
			if status == "pending-reboot" {
				return ""
			}
			return status
		})
		if _, err := s.RebootDBInstance(t.Context(), &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(i.Name)}); err != nil {
			t.Fatal(err)
		}
		i.WaitStatus(t, "incompatible-parameters")
		message := i.WaitEvent(t, "cannot start with its parameters")
		t.Log(message)
		if !strings.Contains(strings.ToLower(message), p.words) {
			t.Errorf("the event does not carry the engine's words: %s", message)
		}
		set(p.good)
		t.Logf("available %v after the group was mended", i.WaitStatus(t, "available"))
		if got := i.Query(t, "SELECT count(*) FROM kept"); got != "0" {
			t.Errorf("count %s", got)
		}
		i.Delete(t)
	})
}

// makeParameterGroup makes an empty one of the engine's default version.
func makeParameterGroup(t *testing.T, s *harness.Service, group, engine string) {
	t.Helper()
	versions, err := s.DescribeDBEngineVersions(t.Context(), &rds.DescribeDBEngineVersionsInput{Engine: aws.String(engine), DefaultOnly: aws.Bool(true)})
	if err != nil || len(versions.DBEngineVersions) != 1 {
		t.Fatal(versions, err)
	}
	_, err = s.CreateDBParameterGroup(t.Context(), &rds.CreateDBParameterGroupInput{
		DBParameterGroupName: aws.String(group), DBParameterGroupFamily: versions.DBEngineVersions[0].DBParameterGroupFamily, Description: aws.String("for a test"),
	})
	must(t, err)
}

// setStatic sets a parameter that waits for a reboot.
func setStatic(t *testing.T, s *harness.Service, group, name, value string) {
	t.Helper()
	_, err := s.ModifyDBParameterGroup(t.Context(), &rds.ModifyDBParameterGroupInput{
		DBParameterGroupName: aws.String(group), Parameters: []types.Parameter{{ParameterName: aws.String(name), ParameterValue: aws.String(value), ApplyMethod: types.ApplyMethodPendingReboot}},
	})
	must(t, err)
}
