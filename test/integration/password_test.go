//go:build integration

package integration

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// bySQL is what a user makes of the master user: a right fewer, and another password.
type bySQL struct {
	revoke, password string
	right            string // "1" while the right is there, else "0"
}

const passwordBySQL = "Set-by-SQL-4711"

var usersSQL = map[string]bySQL{
	"postgres": {
		"ALTER ROLE CURRENT_USER NOCREATEDB", "ALTER ROLE CURRENT_USER PASSWORD '" + passwordBySQL + "'",
		"SELECT CASE WHEN rolcreatedb THEN 1 ELSE 0 END FROM pg_roles WHERE rolname = CURRENT_USER",
	},
	"mariadb": {
		"REVOKE EVENT ON *.* FROM CURRENT_USER()", "SET PASSWORD = PASSWORD('" + passwordBySQL + "')",
		"SELECT COUNT(*) FROM information_schema.user_privileges WHERE grantee LIKE '''master''@%' AND privilege_type = 'EVENT'",
	},
}

// kept demands that an instance has the master user as SQL has made it.
func (u bySQL) kept(t *testing.T, what string, i *harness.Instance) {
	t.Helper()
	i.Password = passwordBySQL
	if right := i.Query(t, u.right); right != "0" {
		t.Errorf("%s: the right that was taken away is back (%s)", what, right)
	}
	u.refused(t, what, i, harness.Password)
}

func (u bySQL) refused(t *testing.T, what string, i *harness.Instance, password string) {
	t.Helper()
	login := i.Login(t)
	login.Password = password
	if session, err := harness.Open(t.Context(), login); err == nil {
		session.Close()
		t.Errorf("%s: a password that was replaced opens it", what)
	}
}

// TestPasswordBySQL: what SQL has made of the master user goes where the data goes. Only a
// password that the API is asked for after that replaces it, and brings the rights back.
func TestPasswordBySQL(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		u := usersSQL[engine]
		in := harness.MultiAZRequest("users-"+engine, engine)
		in.BackupRetentionPeriod = aws.Int32(1)
		i := s.MustCreate(t, in)
		i.WaitWhole(t)
		replica := i.MustReplicate(t, i.Name+"-replica")
		i.Query(t, u.revoke)
		i.Query(t, u.password)
		changed := time.Now()
		u.kept(t, "changed", i)

		from, _ := i.Zones(t)
		if err := i.AskFailover(t); err != nil {
			t.Fatal(err)
		}
		i.WaitLike(t, "has another writer", func(d types.DBInstance) string {
			if aws.ToString(d.AvailabilityZone) == from {
				return "it is in " + from
			}
			return s.NotWhole(d)
		})
		u.kept(t, "failed over", i)

		replica.WaitReplicating(t)
		replica.Promote(t, 0)
		replica.WaitLike(t, "is an instance of its own", func(d types.DBInstance) string {
			if d.ReadReplicaSourceDBInstanceIdentifier != nil || aws.ToString(d.DBInstanceStatus) != "available" {
				return "it is " + aws.ToString(d.DBInstanceStatus)
			}
			return ""
		})
		u.kept(t, "promoted", replica)

		snapshot := "users-" + engine
		if _, err := s.CreateDBSnapshot(t.Context(), &rds.CreateDBSnapshotInput{DBInstanceIdentifier: aws.String(i.Name), DBSnapshotIdentifier: aws.String(snapshot)}); err != nil {
			t.Fatal(err)
		}
		waitSnapshot(t, s, snapshot, "available")
		back := restored(t, s, snapshot, i)
		back.WaitStatus(t, "available")
		u.kept(t, "restored", back)
		u.kept(t, "restored to a moment", restoredAfter(t, i, changed))

		for _, one := range []*harness.Instance{i, replica, back} {
			u.replaced(t, one)
		}
	})
}

// replaced demands that a new password comes before what SQL has made.
func (u bySQL) replaced(t *testing.T, i *harness.Instance) {
	t.Helper()
	i.Modify(t, func(m *rds.ModifyDBInstanceInput) { m.MasterUserPassword = aws.String(harness.Password) })
	i.Password = harness.Password
	harness.Wait(t, time.Minute, "the new password opens "+i.Name, func() string {
		session, err := harness.Open(t.Context(), i.Login(t))
		if err != nil {
			return err.Error()
		}
		session.Close()
		return ""
	})
	if right := i.Query(t, u.right); right != "1" {
		t.Errorf("a new master password of %s has not brought the rights back", i.Name)
	}
	u.refused(t, i.Name, i, passwordBySQL)
}

// restoredAfter restores an instance to a moment that is later than another one.
func restoredAfter(t *testing.T, of *harness.Instance, changed time.Time) *harness.Instance {
	t.Helper()
	harness.Wait(t, 2*time.Minute, "a moment after the change can be restored", func() string {
		if latest := of.Describe(t).LatestRestorableTime; latest == nil || !latest.After(changed.Add(time.Second)) {
			return "not yet"
		}
		return ""
	})
	i := *of
	i.Name = of.Name + "-moment"
	out, err := of.Service.RestoreDBInstanceToPointInTime(t.Context(), &rds.RestoreDBInstanceToPointInTimeInput{
		SourceDBInstanceIdentifier: aws.String(of.Name), TargetDBInstanceIdentifier: aws.String(i.Name), UseLatestRestorableTime: aws.Bool(true),
		MultiAZ: aws.Bool(false), BackupRetentionPeriod: aws.Int32(0),
	})
	if err != nil {
		t.Fatal(err)
	}
	i.ID = aws.ToString(out.DBInstance.DbiResourceId)
	i.WaitStatus(t, "available")
	return &i
}
