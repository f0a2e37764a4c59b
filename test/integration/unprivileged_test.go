//go:build integration

package integration

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"kurabe/internal/harness"
)

func TestWithoutRoot(t *testing.T) {
	if harness.Root() {
		t.Skip("runs in the suite without root")
	}
	s := shared(t)
	s.EachEngine(t, func(t *testing.T, engine string) {
		class := harness.Request("refused-"+engine, engine)
		class.DBInstanceClass = aws.String("db.t3.micro")
		if _, err := s.CreateDBInstance(t.Context(), class); err == nil || !strings.Contains(err.Error(), "cannot be enforced") || !strings.Contains(err.Error(), "db.local.micro") {
			t.Errorf("a class of AWS: %v", err)
		}
		throttled := harness.Request("refused-"+engine, engine)
		throttled.StorageType, throttled.Iops, throttled.AllocatedStorage = aws.String("io1"), aws.Int32(1000), aws.Int32(100)
		if _, err := s.CreateDBInstance(t.Context(), throttled); err == nil || !strings.Contains(err.Error(), "root") {
			t.Errorf("io1: %v", err)
		}
		i := s.MustCreate(t, harness.Request("unprivileged-"+engine, engine))
		i.Query(t, "SELECT 1")
		i.Delete(t)
		nothingLeft(t, i)
	})
}
