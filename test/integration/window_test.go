//go:build integration

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// windowFrom is a maintenance window of an hour that opens at a time.
func windowFrom(at time.Time) string {
	day := func(t time.Time) string { return strings.ToLower(t.Weekday().String()[:3]) }
	end := at.Add(time.Hour)
	return fmt.Sprintf("%s:%s-%s:%s", day(at), at.Format("15:04"), day(end), end.Format("15:04"))
}

func TestMaintenanceWindow(t *testing.T) {
	s := shared(t)
	now := time.Now().UTC()
	in := harness.Request("windowed", "postgres")
	in.PreferredMaintenanceWindow = aws.String(windowFrom(now.Add(72 * time.Hour)))
	backup := now.Add(12 * time.Hour) // away from both maintenance windows
	in.PreferredBackupWindow = aws.String(backup.Format("15:04") + "-" + backup.Add(30*time.Minute).Format("15:04"))
	i := s.MustCreate(t, in)
	server := i.Server(t)
	i.Modify(t, func(in *rds.ModifyDBInstanceInput) {
		in.ApplyImmediately, in.DBInstanceClass = aws.Bool(false), aws.String(harness.Class("small"))
	})
	d := i.Describe(t)
	if d.PendingModifiedValues == nil || aws.ToString(d.PendingModifiedValues.DBInstanceClass) != harness.Class("small") || aws.ToString(d.DBInstanceClass) != harness.Class("micro") {
		t.Errorf("class %s, pending %+v", aws.ToString(d.DBInstanceClass), d.PendingModifiedValues)
	}
	if i.Server(t) != server {
		t.Error("the server was restarted before the window")
	}
	// The window moves to the present: what waits is applied.
	i.Modify(t, func(in *rds.ModifyDBInstanceInput) {
		in.ApplyImmediately, in.PreferredMaintenanceWindow = aws.Bool(false), aws.String(windowFrom(now.Add(-10*time.Minute)))
	})
	harness.Wait(t, 30*time.Second, "the change is applied", func() string {
		d := i.Describe(t)
		if state := aws.ToString(d.DBInstanceStatus); state != "available" || aws.ToString(d.DBInstanceClass) != harness.Class("small") {
			return state + " " + aws.ToString(d.DBInstanceClass)
		}
		return ""
	})
	if i.Server(t) == server {
		t.Error("the class changed and the server was not restarted")
	}
	i.Delete(t)
}
