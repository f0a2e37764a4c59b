//go:build fault

package fault

import (
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

var tagSerial atomic.Int64

// tags is a large write to the state store.
func tags(i *harness.Instance, value string) *rds.AddTagsToResourceInput {
	in := &rds.AddTagsToResourceInput{ResourceName: aws.String("arn:aws:rds:us-east-1:000000000000:db:" + i.Name)}
	serial := strconv.FormatInt(tagSerial.Add(1), 10)
	for n := range 45 {
		in.Tags = append(in.Tags, types.Tag{Key: aws.String("tag-" + strconv.Itoa(n)), Value: aws.String(serial + value)})
	}
	return in
}

// TestFullDiskOfTheAgent: an order that cannot be saved is not obeyed, and is as
// soon as it can be.
func TestFullDiskOfTheAgent(t *testing.T) {
	needRoot(t)
	s := harness.New(t, harness.Options{})
	dir := filepath.Join(s.Data, "assignments")
	mount(t, dir, "1m", 0)
	s.Start(t)
	v := survive(t, s)
	free := fill(t, dir)
	server := v.i.Server(t)
	v.i.Modify(t, func(in *rds.ModifyDBInstanceInput) { in.DBInstanceClass = aws.String(harness.Class("small")) })
	harness.Wait(t, settleTime, "the log tells of the full disk", func() string {
		if d := v.i.Describe(t); aws.ToString(d.DBInstanceStatus) == "available" {
			return "available"
		}
		return ""
	})
	v.check(t)
	if now := v.i.Server(t); now != server {
		t.Errorf("the server was replaced by an order that is not saved")
	}
	free()
	harness.Wait(t, settleTime, "the new class", func() string {
		d := v.i.Describe(t)
		if class := aws.ToString(d.DBInstanceClass); class != harness.Class("small") || aws.ToString(d.DBInstanceStatus) != "available" {
			return class + " " + aws.ToString(d.DBInstanceStatus)
		}
		if v.i.Server(t) == server {
			return "the old server"
		}
		return ""
	})
	v.ledger.Stop()
	v.ledger.Verify(t)
}
