//go:build integration

package integration

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// mariaTraps is a MariaDB in which users have left code that tells with whose rights it runs,
// in a table whose file can be read of any server and copy.
type mariaTraps struct{ *harness.Instance }

// trapTime bounds each operation on a busy machine.
const trapTime = 5 * time.Minute

const mariaTrapGroup = "maria-traps"

// TestMariaDBTrapsAllOperations lets the service do all that it does over users' code: none of
// it runs with rights that its user has not, and each operation comes to its end.
func TestMariaDBTrapsAllOperations(t *testing.T) {
	onceIsEnough(t)
	s := harness.Start(t, harness.Options{Args: []string{"--copy-rate", "0"}})
	s.NeedEngine(t, "mariadb", s.Engines(t))
	_, err := s.CreateDBParameterGroup(t.Context(), &rds.CreateDBParameterGroupInput{
		DBParameterGroupName: aws.String(mariaTrapGroup), DBParameterGroupFamily: aws.String("mariadb10.11"), Description: aws.String("traps"),
	})
	must(t, err)
	mariaTrapParameter(t, s, "event_scheduler", "ON")
	in := harness.Request("maria-trapped", "mariadb")
	in.BackupRetentionPeriod, in.DBParameterGroupName = aws.Int32(1), aws.String(mariaTrapGroup)
	b := &mariaTraps{s.MustCreate(t, in)}
	b.plant(t)
	for _, part := range []struct {
		name string
		do   func(*testing.T)
	}{
		{"restart", b.restart}, {"password", b.password}, {"parameter", b.parameter}, {"snapshot", b.snapshot}, {"verification", b.verification},
		{"restore", b.restore}, {"point in time", b.moment}, {"read replica", b.replica}, {"Multi-AZ", b.pair},
	} {
		if !t.Run(part.name, part.do) {
			t.FailNow()
		}
		b.unsprung(t, part.name)
	}
	b.Delete(t)
	b.WaitGone(t)
}

func mariaTrapParameter(t *testing.T, s *harness.Service, name, value string) {
	t.Helper()
	_, err := s.ModifyDBParameterGroup(t.Context(), &rds.ModifyDBParameterGroupInput{DBParameterGroupName: aws.String(mariaTrapGroup), Parameters: []types.Parameter{
		{ParameterName: aws.String(name), ParameterValue: aws.String(value), ApplyMethod: types.ApplyMethodImmediate},
	}})
	must(t, err)
}

func (b *mariaTraps) plant(t *testing.T) {
	const note = "INSERT INTO trap.proof VALUES ('%s', CURRENT_USER())"
	statements := []string{"CREATE DATABASE trap", "CREATE TABLE trap.proof (what VARCHAR(60) NOT NULL, rights VARCHAR(200) NOT NULL) ENGINE=CSV"}
	for _, schema := range []string{"trap", "shop", "sys"} {
		for _, name := range []string{"CONCAT_WS", "JSON_VALUE", "BINLOG_GTID_POS", "SLEEP", "LOWER"} {
			statements = append(statements, fmt.Sprintf("CREATE OR REPLACE FUNCTION %s.`%s` (a TEXT) RETURNS INT SQL SECURITY INVOKER BEGIN "+note+"; RETURN 1; END", schema, name, "function"))
		}
		for _, name := range []string{"global_priv", "proc", "TABLES", "PROCESSLIST", "rds_probe"} {
			statements = append(statements, fmt.Sprintf("CREATE OR REPLACE SQL SECURITY INVOKER VIEW %[1]s.`%[2]s` AS SELECT %[1]s.JSON_VALUE('x') AS User", schema, name))
		}
		statements = append(statements,
			fmt.Sprintf("CREATE TABLE %s.bait (id INT PRIMARY KEY, twice INT AS (id * 2) VIRTUAL, word VARCHAR(100) DEFAULT (CURRENT_USER()), KEY (twice), CHECK (id > 0))", schema),
			fmt.Sprintf("CREATE TRIGGER %[1]s.fired BEFORE INSERT ON %[1]s.bait FOR EACH ROW INSERT INTO trap.proof VALUES ('trigger', CURRENT_USER())", schema),
			fmt.Sprintf("CREATE EVENT %s.soon ON SCHEDULE EVERY 1 SECOND DO "+note, schema, "event"),
			fmt.Sprintf("INSERT INTO %s.bait (id) VALUES (1)", schema),
		)
	}
	for _, s := range append(statements,
		"CREATE TABLE shop.gone (a INT PRIMARY KEY)", "ALTER TABLE shop.gone DISCARD TABLESPACE",
		"CREATE TABLE shop.one (a INT PRIMARY KEY) ENGINE=MyISAM", "CREATE TABLE shop.both (a INT PRIMARY KEY) ENGINE=MERGE UNION=(shop.one)", "ALTER TABLE shop.one ENGINE=InnoDB",
	) {
		b.Query(t, s)
	}
	if n := b.Query(t, "SELECT COUNT(*) FROM trap.proof WHERE what = 'trigger'"); n != "3" {
		t.Fatalf("%s triggers have left a proof", n)
	}
}

// unsprung looks at the proof in all servers and copies there are.
func (b *mariaTraps) unsprung(t *testing.T, after string) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(b.Service.Data, func(path string, _ fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || !strings.HasSuffix(path, "trap/proof.CSV") {
			return nil // it has just gone
		}
		text, readErr := os.ReadFile(path)
		if err := errors.Join(err, readErr); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		seen++
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); strings.Contains(line, `","`) && !strings.HasSuffix(line, `,"`+b.User+`@%"`) && strings.HasSuffix(line, `"`) {
				t.Errorf("after %s: %s", after, line)
			}
		}
		return nil
	})
	if err != nil || seen == 0 {
		t.Errorf("after %s: %d proofs, %v", after, seen, err)
	}
}

func (b *mariaTraps) restart(t *testing.T) {
	before := b.Server(t)
	_, err := b.Service.RebootDBInstance(t.Context(), &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(b.Name)})
	must(t, err)
	harness.Wait(t, trapTime, "the server is another one", func() string {
		if d := b.Describe(t); aws.ToString(d.DBInstanceStatus) != "available" || b.Server(t) == before {
			return "it is " + aws.ToString(d.DBInstanceStatus)
		}
		return ""
	})
}

func (b *mariaTraps) password(t *testing.T) {
	const next = "Another-password-2"
	b.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.MasterUserPassword = aws.String(next) })
	b.Password = next
	harness.Wait(t, trapTime, "the password holds", func() string {
		session, err := harness.Open(t.Context(), b.Login(t))
		if err != nil {
			return err.Error()
		}
		session.Close()
		return ""
	})
	b.WaitStatus(t, "available")
}

func (b *mariaTraps) parameter(t *testing.T) {
	mariaTrapParameter(t, b.Service, "long_query_time", "7")
	harness.Wait(t, trapTime, "the parameter holds", func() string {
		if have := b.Query(t, "SELECT @@GLOBAL.long_query_time = 7"); have != "1" {
			return have
		}
		return ""
	})
	b.WaitStatus(t, "available")
}

func (b *mariaTraps) snapshot(t *testing.T) { b.take(t, "maria-trapped") }

func (b *mariaTraps) take(t *testing.T, name string) {
	t.Helper()
	_, err := b.Service.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(b.Name), DBSnapshotIdentifier: aws.String(name)})
	must(t, err)
	waitSnapshot(t, b.Service, name, "available")
}

func (b *mariaTraps) verification(t *testing.T) { b.verify(t, "maria-trapped") }

// verify demands that what there was nothing to check in is told, and is no damage.
func (b *mariaTraps) verify(t *testing.T, name string) {
	t.Helper()
	out, err := kurabeCommand(b.Service, harness.Binary(t), "verify", name)
	if err != nil || !strings.Contains(out, "shop.gone was not checked: ") || !strings.Contains(out, "shop.both was not checked: ") {
		t.Fatalf("%v: %s", err, out)
	}
}

func (b *mariaTraps) restore(t *testing.T) {
	out, err := b.Service.RestoreDBInstanceFromDBSnapshot(t.Context(), &rds.RestoreDBInstanceFromDBSnapshotInput{
		DBInstanceIdentifier: aws.String("maria-restored"), DBSnapshotIdentifier: aws.String("maria-trapped"),
	})
	must(t, err)
	b.another(t, out.DBInstance, "a restore")
}

// another waits for what came of the instance, and makes it go.
func (b *mariaTraps) another(t *testing.T, d *types.DBInstance, what string) {
	t.Helper()
	i := *b.Instance
	i.Name, i.ID = aws.ToString(d.DBInstanceIdentifier), aws.ToString(d.DbiResourceId)
	i.WaitStatus(t, "available")
	b.unsprung(t, what)
	i.Delete(t)
}

func (b *mariaTraps) moment(t *testing.T) {
	b.Query(t, "INSERT INTO shop.bait (id) VALUES (2)")
	at := time.Now()
	var made *types.DBInstance
	harness.Wait(t, trapTime, "it can be restored to a moment", func() string {
		out, err := b.Service.RestoreDBInstanceToPointInTime(t.Context(), &rds.RestoreDBInstanceToPointInTimeInput{
			SourceDBInstanceIdentifier: aws.String(b.Name), TargetDBInstanceIdentifier: aws.String("maria-moment"), RestoreTime: aws.Time(at),
		})
		if err != nil {
			return err.Error()
		}
		made = out.DBInstance
		return ""
	})
	b.another(t, made, "a restore to a moment")
}

// replica has one, promotes it, and makes it go.
func (b *mariaTraps) replica(t *testing.T) {
	r := b.MustReplicate(t, "maria-trapped-replica")
	r.WaitReplicating(t)
	b.unsprung(t, "a read replica")
	r.Promote(t, 0)
	r.WaitLike(t, "is an instance of its own", func(d types.DBInstance) string {
		if source := aws.ToString(d.ReadReplicaSourceDBInstanceIdentifier); source != "" || aws.ToString(d.DBInstanceStatus) != "available" {
			return "its source is " + source + ", it is " + aws.ToString(d.DBInstanceStatus)
		}
		return ""
	})
	b.unsprung(t, "its promotion")
	r.Delete(t)
}

// pair goes through two zones and back: a failover in order, a lost writer, and a snapshot of
// the standby.
func (b *mariaTraps) pair(t *testing.T) {
	b.SetMultiAZ(t, true)
	b.WaitWhole(t)
	b.unsprung(t, "the conversion")
	must(t, b.AskFailover(t))
	b.WaitWhole(t)
	b.unsprung(t, "a planned failover")
	writer, _ := b.Pair(t)
	must(t, harness.KillServers(writer))
	harness.Wait(t, trapTime, "another one writes", func() string {
		if now, _ := b.Pair(t); now == writer {
			return "it is the same"
		}
		return ""
	})
	b.WaitWhole(t)
	b.unsprung(t, "a failover of a dead writer")
	b.take(t, "maria-trapped-pair")
	b.verify(t, "maria-trapped-pair")
	b.SetMultiAZ(t, false)
	b.WaitSingle(t)
}
