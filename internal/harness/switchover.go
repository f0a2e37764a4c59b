package harness

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/pulse"
)

// Switchover asks that a read replica and its source change roles.
func (i *Instance) Switchover(t testing.TB) error {
	_, err := i.Service.SwitchoverReadReplica(t.Context(), &rds.SwitchoverReadReplicaInput{DBInstanceIdentifier: aws.String(i.Name)})
	return err
}

// WaitRoles waits until the API says that an instance is the source of these, which all are
// available and follow it.
func (i *Instance) WaitRoles(t testing.TB, replicas ...*Instance) {
	t.Helper()
	var names []string
	for _, r := range replicas {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	i.WaitLike(t, "is the source of "+strings.Join(names, " "), func(d types.DBInstance) string {
		status := aws.ToString(d.DBInstanceStatus)
		if status != "available" && status != "backing-up" || aws.ToString(d.ReadReplicaSourceDBInstanceIdentifier) != "" || !slices.Equal(d.ReadReplicaDBInstanceIdentifiers, names) {
			return status + " " + aws.ToString(d.ReadReplicaSourceDBInstanceIdentifier) + " " + strings.Join(d.ReadReplicaDBInstanceIdentifiers, " ")
		}
		return ""
	})
	for _, r := range replicas {
		r.WaitLike(t, "follows "+i.Name, func(d types.DBInstance) string {
			if aws.ToString(d.DBInstanceStatus) != "available" || aws.ToString(d.ReadReplicaSourceDBInstanceIdentifier) != i.Name {
				return aws.ToString(d.DBInstanceStatus) + " " + aws.ToString(d.ReadReplicaSourceDBInstanceIdentifier)
			}
			return ""
		})
		r.WaitReplicating(t)
	}
}

// PulseOn is a pulse on a table that is there already, as one that comes to a read replica
// from its source: until that is a source itself every row fails.
func (i *Instance) PulseOn(t testing.TB, table string) *Pulse {
	t.Helper()
	p := &Pulse{pulse.New(i.Login(t), table)}
	p.Start()
	t.Cleanup(p.Stop)
	return p
}

// GapTo is how long it took from the last row of a pulse to the first one of another; 0 as
// long as that has none.
func (p *Pulse) GapTo(next *Pulse) time.Duration {
	before, after := p.Beats(), next.Beats()
	if len(before) == 0 || len(after) == 0 {
		return 0
	}
	return after[0].Acked.Sub(before[len(before)-1].Acked)
}
