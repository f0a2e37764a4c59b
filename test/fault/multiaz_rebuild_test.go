//go:build fault

package fault

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// TestKillAtEveryStepOfARebuild kills the service before and after the steps by which a
// standby that can catch up no more is thrown away and made anew, while a client writes.
func TestKillAtEveryStepOfARebuild(t *testing.T) {
	t.Parallel()
	b := newPairBed(t, "rebuild", "postgres")
	b.everyStep(t, []pairOperation{{"the standby is made anew", becomeWhole, outrun, (*harness.Service).NotWhole, false}})
	// What was made anew has everything that its writer had.
	becomeWhole(t, b)
	if err := harness.KillServers(b.writer); err != nil {
		t.Fatal(err)
	}
	b.WaitLike(t, "has failed over", func(d types.DBInstance) string {
		if !b.writer.Follows() {
			return b.writer.ID + " does not follow"
		}
		return b.s.NotWhole(d)
	})
	b.check(t)
	b.pulse.Stop()
	b.pulse.Verify(t)
	b.Delete(t)
	noOrphans(t, b.s)
}

// outrun has the standby hang, and takes its slot from the writer as soon as nobody uses
// that. It returns when the loss of the standby is known, or the service has died.
func outrun(t *testing.T, b *pairBed) error {
	if err := b.standby.Freeze(); err != nil {
		return err
	}
	slot := fmt.Sprintf("kurabe_member_%d", b.standby.Number())
	b.waitFor(t, "the slot is dropped", func() string {
		if err := b.writer.Do(t.Context(), "SELECT pg_drop_replication_slot('"+slot+"')"); err != nil {
			return err.Error()
		}
		return ""
	})
	b.waitFor(t, "the loss is known", func() string {
		out, err := b.s.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(b.Name)})
		switch {
		case !b.s.Running():
			return ""
		case err != nil:
			return err.Error()
		}
		return aws.ToString(out.DBInstances[0].SecondaryAvailabilityZone)
	})
	return nil
}
