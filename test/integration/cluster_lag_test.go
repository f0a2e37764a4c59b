//go:build integration

package integration

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// whichServer asks a server for something that no other one of its cluster answers.
var whichServer = map[string]string{"postgres": "SELECT inet_server_addr()", "mariadb": "SELECT @@GLOBAL.server_id"}

// TestClusterReaderBehind has one reader of a DB cluster stop to apply, as it waits for a lock
// that a transaction of a client holds there: as soon as what it shows is older than the bound
// the reader endpoint leads to the other one alone, and to both once it has caught up.
func TestClusterReaderBehind(t *testing.T) {
	onceIsEnough(t)
	eachEngineBeside(t, func(t *testing.T, engine string) {
		s := harness.Start(t, harness.Options{})
		b := newClusterBed(t, s, engine, waitsForReaders(t, s, engine))
		must(t, b.open(t, b.login).Exec(t.Context(), "CREATE TABLE held (n int)"))
		b.pulse.Stop() // else each row of it would be one more that the reader lacks
		behind := b.open(t, b.aReader(t))
		harness.Wait(t, gapBound, "the reader has the table", func() string { return b.hold(t, behind) })
		held := answer(t, behind, whichServer[engine])
		b.ledTo(t, held, true)
		must(t, b.open(t, b.login).Exec(t.Context(), "DROP TABLE held"))
		b.ledTo(t, held, false)
		must(t, behind.Exec(t.Context(), "ROLLBACK"))
		b.ledTo(t, held, true)
	})
}

// waitsForReaders has a reader of PostgreSQL wait for its clients for ever; MariaDB's does.
func waitsForReaders(t *testing.T, s *harness.Service, engine string) func(*rds.CreateDBClusterInput) {
	if engine != "postgres" {
		return func(*rds.CreateDBClusterInput) {}
	}
	group := aws.String("patient")
	versions, err := s.DescribeDBEngineVersions(t.Context(), &rds.DescribeDBEngineVersionsInput{Engine: aws.String(engine), DefaultOnly: aws.Bool(true)})
	must(t, err)
	_, err = s.CreateDBClusterParameterGroup(t.Context(), &rds.CreateDBClusterParameterGroupInput{
		DBClusterParameterGroupName: group, DBParameterGroupFamily: versions.DBEngineVersions[0].DBParameterGroupFamily, Description: aws.String("for a test"),
	})
	must(t, err)
	_, err = s.ModifyDBClusterParameterGroup(t.Context(), &rds.ModifyDBClusterParameterGroupInput{DBClusterParameterGroupName: group, Parameters: []types.Parameter{
		{ParameterName: aws.String("max_standby_streaming_delay"), ParameterValue: aws.String("-1"), ApplyMethod: types.ApplyMethodImmediate},
	}})
	must(t, err)
	return func(in *rds.CreateDBClusterInput) { in.DBClusterParameterGroupName = group }
}

// aReader is the own endpoint of a server that does not write.
func (b *clusterBed) aReader(t *testing.T) harness.Login {
	t.Helper()
	writer := b.named(t)
	out, err := b.s.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{})
	must(t, err)
	for _, i := range out.DBInstances {
		if aws.ToString(i.DBInstanceIdentifier) != writer {
			l := b.login
			l.Address = aws.ToString(i.Endpoint.Address)
			return l
		}
	}
	t.Fatal("there is no reader")
	return b.login
}

func (b *clusterBed) open(t *testing.T, l harness.Login) harness.Session {
	t.Helper()
	s, err := harness.Open(t.Context(), l)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

// hold has a session keep a lock on the table, and says why it does not.
func (b *clusterBed) hold(t *testing.T, s harness.Session) string {
	must(t, s.Exec(t.Context(), "BEGIN"))
	if _, err := s.Rows(t.Context(), "SELECT n FROM held"); err != nil {
		must(t, s.Exec(t.Context(), "ROLLBACK"))
		return err.Error()
	}
	return ""
}

func answer(t *testing.T, s harness.Session, statement string) string {
	t.Helper()
	rows, err := s.Rows(t.Context(), statement)
	must(t, err)
	return rows[0]
}

// ledTo waits until the reader endpoint leads to a server, or to another one as often in a row
// as no chance does.
func (b *clusterBed) ledTo(t *testing.T, server string, wanted bool) {
	t.Helper()
	const often = 40
	harness.Wait(t, gapBound, fmt.Sprintf("the reader endpoint leads to %s: %v", server, wanted), func() string {
		for n := range often {
			s, err := harness.Open(t.Context(), b.read)
			if err != nil {
				return err.Error()
			}
			rows, err := s.Rows(t.Context(), whichServer[b.login.Engine])
			s.Close()
			switch met := err == nil && rows[0] == server; {
			case err != nil:
				return err.Error()
			case met && wanted:
				return ""
			case met:
				return fmt.Sprintf("session %d came there", n+1)
			}
		}
		if wanted {
			return fmt.Sprintf("none of %d sessions came there", often)
		}
		return ""
	})
}
