package harness

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
)

// Replicate asks for a read replica of the instance and does not wait.
func (i *Instance) Replicate(t testing.TB, name string) *Instance {
	t.Helper()
	out, err := i.Service.CreateDBInstanceReadReplica(t.Context(), &rds.CreateDBInstanceReadReplicaInput{
		DBInstanceIdentifier: aws.String(name), SourceDBInstanceIdentifier: aws.String(i.Name),
	})
	if err != nil {
		t.Fatalf("create %s, a read replica of %s: %v", name, i.Name, err)
	}
	r := *i
	r.Name, r.ID = name, aws.ToString(out.DBInstance.DbiResourceId)
	return &r
}

// MustReplicate makes a read replica and waits until it follows.
func (i *Instance) MustReplicate(t testing.TB, name string) *Instance {
	t.Helper()
	i.WaitStatus(t, "available")
	r := i.Replicate(t, name)
	r.WaitStatus(t, "available")
	r.WaitReplicating(t)
	return r
}

// WaitReplicating waits until the API says that a read replica follows its source.
func (i *Instance) WaitReplicating(t testing.TB) {
	t.Helper()
	i.WaitLike(t, "follows its source", func(d types.DBInstance) string {
		n := slices.IndexFunc(d.StatusInfos, func(s types.DBInstanceStatusInfo) bool { return aws.ToString(s.StatusType) == "read replication" })
		if n < 0 {
			return "it is " + aws.ToString(d.DBInstanceStatus) + ", and says nothing of how it follows"
		}
		if s := d.StatusInfos[n]; !aws.ToBool(s.Normal) || aws.ToString(s.Status) != "replicating" {
			return fmt.Sprint(aws.ToString(s.Status), ": ", aws.ToString(s.Message))
		}
		return ""
	})
}

// Promote asks for the promotion of a read replica, with automated backups of so many days.
func (i *Instance) Promote(t testing.TB, days int32) {
	t.Helper()
	_, err := i.Service.PromoteReadReplica(t.Context(), &rds.PromoteReadReplicaInput{
		DBInstanceIdentifier: aws.String(i.Name), BackupRetentionPeriod: aws.Int32(days),
	})
	if err != nil {
		t.Fatalf("promote %s: %v", i.Name, err)
	}
}

// VerifyAt waits until every row that was acknowledged is there at another login, as at a
// read replica. The pulse must have been stopped.
func (p *Pulse) VerifyAt(t testing.TB, l Login) {
	t.Helper()
	Wait(t, availableTime, "the rows of the pulse are at "+l.Host(), func() string {
		v, err := p.JudgeAt(t.Context(), l)
		if err != nil {
			return err.Error()
		}
		return v.Wrong()
	})
}

// FollowerNames are what a server has for those that may follow it: slots of PostgreSQL,
// accounts of MariaDB.
func (m Member) FollowerNames(ctx context.Context) ([]string, error) {
	question := "SELECT coalesce(string_agg(slot_name, ' '), '') FROM pg_replication_slots WHERE slot_name LIKE 'kurabe\\_member%' OR slot_name LIKE 'kurabe\\_replica%'"
	if m.IsMariaDB() {
		question = "SELECT COALESCE(GROUP_CONCAT(User SEPARATOR ' '), '') FROM mysql.global_priv WHERE User LIKE 'rdsmember%'"
	}
	text, err := m.Ask(ctx, question)
	return strings.Fields(text), err
}
