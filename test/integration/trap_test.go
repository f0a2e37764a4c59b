//go:build integration

package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/engine/enginetest"
	"kurabe/internal/harness"
)

// trapBed is an instance whose databases are full of code that waits for a superuser.
type trapBed struct {
	*harness.Instance
	trap enginetest.Trap
}

const trapGroup = "trapped"

// TestTrapsAllOperations lets the service do all that it does, over a tenant's traps: none of
// them is sprung, and each operation comes to its end.
func TestTrapsAllOperations(t *testing.T) {
	onceIsEnough(t)
	s := harness.Start(t, harness.Options{Args: []string{"--copy-rate", "0"}})
	s.NeedEngine(t, "postgres", s.Engines(t))
	in := harness.Request("trapped", "postgres")
	in.BackupRetentionPeriod = aws.Int32(1)
	makeParameterGroup(t, s, trapGroup, "postgres")
	in.DBParameterGroupName = aws.String(trapGroup)
	b := &trapBed{s.MustCreate(t, in), enginetest.NewTrap(t)}
	b.plant(t)
	for _, part := range []struct {
		name string
		do   func(*testing.T)
	}{
		{"restart", b.restart}, {"password", b.password}, {"parameter", b.parameter},
		{"snapshot", b.snapshot}, {"verification", b.verification}, {"restore", b.restore}, {"point in time", b.moment},
		{"clone", b.clone}, {"read replica", b.replica}, {"Multi-AZ", b.pair}, {"deletion", func(t *testing.T) { b.Delete(t); b.WaitGone(t) }},
	} {
		if !t.Run(part.name, part.do) {
			t.FailNow()
		}
		b.trap.MustRest(t, part.name)
	}
}

// plant fills the databases, and has those that no test enters rule their sessions.
func (b *trapBed) plant(t *testing.T) {
	b.Query(t, "CREATE DATABASE other")
	for _, name := range []string{"shop", "postgres", "other"} {
		login := b.Login(t)
		login.Database = name
		session, err := harness.Open(t.Context(), login)
		must(t, err)
		for _, sql := range b.trap.PostgresSQL() {
			if err := session.Exec(t.Context(), sql); err != nil {
				t.Fatalf("%s in %s: %v", sql, name, err)
			}
		}
		session.Close()
	}
	session := b.Open(t)
	for _, name := range []string{"postgres", "other"} {
		for _, sql := range enginetest.PostgresSettings(name) {
			must(t, session.Exec(t.Context(), sql))
		}
	}
	must(t, session.Exec(t.Context(), "ALTER DATABASE other ALLOW_CONNECTIONS false"))
	b.trap.MustRest(t, "planting it")
}

func (b *trapBed) restart(t *testing.T) {
	before := b.Server(t)
	_, err := b.Service.RebootDBInstance(t.Context(), &rds.RebootDBInstanceInput{DBInstanceIdentifier: aws.String(b.Name)})
	must(t, err)
	harness.Wait(t, cloneTime, "the server is another one", func() string {
		d := b.Describe(t)
		if aws.ToString(d.DBInstanceStatus) != "available" || b.Server(t) == before {
			return "it is " + aws.ToString(d.DBInstanceStatus)
		}
		return ""
	})
}

func (b *trapBed) password(t *testing.T) {
	const next = "Another-password-2"
	b.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.MasterUserPassword = aws.String(next) })
	b.Password = next
	harness.Wait(t, cloneTime, "the password holds", func() string {
		session, err := harness.Open(t.Context(), b.Login(t))
		if err != nil {
			return err.Error()
		}
		session.Close()
		return ""
	})
	b.WaitStatus(t, "available")
}

func (b *trapBed) parameter(t *testing.T) {
	_, err := b.Service.ModifyDBParameterGroup(t.Context(), &rds.ModifyDBParameterGroupInput{DBParameterGroupName: aws.String(trapGroup), Parameters: []types.Parameter{
		{ParameterName: aws.String("work_mem"), ParameterValue: aws.String("12345"), ApplyMethod: types.ApplyMethodImmediate},
	}})
	must(t, err)
	harness.Wait(t, cloneTime, "the parameter holds", func() string {
		if have := b.Query(t, "SHOW work_mem"); have != "12345kB" {
			return have
		}
		return ""
	})
	b.WaitStatus(t, "available")
}

func (b *trapBed) snapshot(t *testing.T) {
	_, err := b.Service.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(b.Name), DBSnapshotIdentifier: aws.String("taken")})
	must(t, err)
	waitSnapshot(t, b.Service, "taken", "available")
}

// verification is of a snapshot, and of the automated one with the log after it.
func (b *trapBed) verification(t *testing.T) {
	for _, name := range []string{"taken", b.Name} {
		out, err := kurabeCommand(b.Service, harness.Binary(t), "verify", name)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if !strings.Contains(out, "shop.evil.by_value") {
			t.Errorf("%s was verified without the traps: %s", name, out)
		}
	}
}

func (b *trapBed) restore(t *testing.T) {
	i := restored(t, b.Service, "taken", b.Instance)
	i.WaitStatus(t, "available")
	i.Delete(t)
}

func (b *trapBed) moment(t *testing.T) {
	b.Query(t, "CREATE TABLE late (n integer)")
	at := time.Now()
	i := *b.Instance
	i.Name = "moment"
	harness.Wait(t, cloneTime, "it can be restored to a moment", func() string {
		out, err := b.Service.RestoreDBInstanceToPointInTime(t.Context(), &rds.RestoreDBInstanceToPointInTimeInput{
			SourceDBInstanceIdentifier: aws.String(b.Name), TargetDBInstanceIdentifier: aws.String(i.Name), RestoreTime: aws.Time(at),
		})
		if err != nil {
			return err.Error()
		}
		i.ID = aws.ToString(out.DBInstance.DbiResourceId)
		return ""
	})
	i.WaitStatus(t, "available")
	i.Delete(t)
}

func (b *trapBed) clone(t *testing.T) {
	if out, err := kurabeCommand(b.Service, harness.Binary(t), "clone", b.Name, "cloned"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	i, _ := cloneOf(t, b.Instance, "cloned")
	i.WaitStatus(t, "available")
	i.Delete(t)
}

// replica has one, promotes it, and makes it go.
func (b *trapBed) replica(t *testing.T) {
	r := b.MustReplicate(t, "trapped-replica")
	r.WaitReplicating(t)
	b.trap.MustRest(t, "a read replica")
	r.Promote(t, 0)
	r.WaitLike(t, "is an instance of its own", func(d types.DBInstance) string {
		if source := aws.ToString(d.ReadReplicaSourceDBInstanceIdentifier); source != "" || aws.ToString(d.DBInstanceStatus) != "available" {
			return "its source is " + source + ", it is " + aws.ToString(d.DBInstanceStatus)
		}
		return ""
	})
	b.trap.MustRest(t, "its promotion")
	r.Delete(t)
}

// pair goes through two zones and back: a failover in order, a lost writer that is rewound,
// and a snapshot of the standby.
func (b *trapBed) pair(t *testing.T) {
	b.SetMultiAZ(t, true)
	b.WaitWhole(t)
	b.trap.MustRest(t, "the conversion")
	must(t, b.AskFailover(t))
	b.WaitWhole(t)
	b.trap.MustRest(t, "a planned failover")
	writer, _ := b.Pair(t)
	must(t, harness.KillServers(writer))
	harness.Wait(t, cloneTime, "another one writes", func() string {
		if now, _ := b.Pair(t); now == writer {
			return "it is the same"
		}
		return ""
	})
	b.WaitWhole(t)
	b.trap.MustRest(t, "a failover of a dead writer")
	_, err := b.Service.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(b.Name), DBSnapshotIdentifier: aws.String("trapped-pair")})
	must(t, err)
	waitSnapshot(t, b.Service, "trapped-pair", "available")
	out, err := kurabeCommand(b.Service, harness.Binary(t), "verify", "trapped-pair")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.trap.MustRest(t, "a snapshot of the standby and its verification")
	b.SetMultiAZ(t, false)
	b.WaitSingle(t)
}
