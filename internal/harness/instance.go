package harness

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
)

// Instance is one DB instance, as a client knows it.
type Instance struct {
	Service                          *Service
	Name, ID, Engine, User, Password string
	Database                         string
}

// Engines are those that the service offers.
func (s *Service) Engines(t testing.TB) []string {
	t.Helper()
	out, err := s.DescribeDBEngineVersions(t.Context(), &rds.DescribeDBEngineVersionsInput{})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, v := range out.DBEngineVersions {
		if name := aws.ToString(v.Engine); !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// EachEngine runs a test for each engine; one that the service does not offer is
// skipped, visibly.
func (s *Service) EachEngine(t *testing.T, test func(t *testing.T, engine string)) {
	t.Helper()
	offered := s.Engines(t)
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			s.NeedEngine(t, engine, offered)
			test(t, engine)
		})
	}
}

// NeedEngine skips a test whose engine is not among the offered.
func (s *Service) NeedEngine(t testing.TB, engine string, offered []string) {
	t.Helper()
	if !slices.Contains(offered, engine) {
		t.Skipf("the service offers no %s here (DescribeDBEngineVersions lists %v)", engine, offered)
	}
}

// Class is a small class whose limits can be enforced here: without root none can.
func Class(size string) string {
	if Root() {
		return "db.t3." + size
	}
	return "db.local." + size
}

// Password is the master password of every instance; no output may hold it.
const Password = "Seeded-Passw0rd-4711"

// Request is an ordinary create.
func Request(name, engine string) *rds.CreateDBInstanceInput {
	return &rds.CreateDBInstanceInput{
		DBInstanceIdentifier: aws.String(name), Engine: aws.String(engine), DBInstanceClass: aws.String(Class("micro")),
		MasterUsername: aws.String("master"), MasterUserPassword: aws.String(Password), DBName: aws.String("shop"),
		AllocatedStorage: aws.Int32(20),
		// A test that is not about backups does not wait for one.
		BackupRetentionPeriod: aws.Int32(0),
	}
}

// Create asks for an instance and does not wait.
func (s *Service) Create(t testing.TB, in *rds.CreateDBInstanceInput) *Instance {
	t.Helper()
	out, err := s.CreateDBInstance(t.Context(), in)
	if err != nil {
		t.Fatalf("create %s: %v", aws.ToString(in.DBInstanceIdentifier), err)
	}
	return &Instance{
		Service: s, Name: aws.ToString(in.DBInstanceIdentifier), ID: aws.ToString(out.DBInstance.DbiResourceId), Engine: aws.ToString(in.Engine),
		User: aws.ToString(in.MasterUsername), Password: aws.ToString(in.MasterUserPassword), Database: aws.ToString(in.DBName),
	}
}

// availableTime is what a creation or restart may take in a test.
const availableTime = 60 * time.Second

// MustCreate creates an instance and waits until it is available. It goes with
// the test.
func (s *Service) MustCreate(t testing.TB, in *rds.CreateDBInstanceInput) *Instance {
	t.Helper()
	i := s.Create(t, in)
	i.WaitStatus(t, "available")
	return i
}

// Describe returns what the API says of it.
func (i *Instance) Describe(t testing.TB) types.DBInstance {
	t.Helper()
	d, err := i.describe(t)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (i *Instance) describe(t testing.TB) (types.DBInstance, error) {
	out, err := i.Service.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{DBInstanceIdentifier: aws.String(i.Name)})
	if err != nil {
		return types.DBInstance{}, err
	}
	if len(out.DBInstances) != 1 {
		return types.DBInstance{}, fmt.Errorf("%d instances named %s", len(out.DBInstances), i.Name)
	}
	return out.DBInstances[0], nil
}

// WaitStatus waits until the API says so.
func (i *Instance) WaitStatus(t testing.TB, status string) time.Duration {
	t.Helper()
	began := time.Now()
	return Wait(t, availableTime, i.Name+" is "+status, func() string {
		d, err := i.describe(t)
		if err != nil {
			return err.Error()
		}
		have := aws.ToString(d.DBInstanceStatus)
		switch {
		case have == status:
			return ""
		case time.Since(began) < availableTime/2:
			return "it is " + have
		}
		return "it is " + have + "\n" + i.Service.About(i.ID)
	})
}

// WaitGone waits until the API knows no such instance any more.
func (i *Instance) WaitGone(t testing.TB) {
	t.Helper()
	Wait(t, availableTime, i.Name+" is gone", func() string {
		d, err := i.describe(t)
		if err != nil && strings.Contains(err.Error(), "DBInstanceNotFound") {
			return ""
		}
		return fmt.Sprint("it is ", aws.ToString(d.DBInstanceStatus), " ", err)
	})
}

// Delete asks for the end of the instance and waits for it.
func (i *Instance) Delete(t testing.TB) {
	t.Helper()
	i.AskDelete(t)
	i.WaitGone(t)
}

// AskDelete asks for the end of the instance.
func (i *Instance) AskDelete(t testing.TB) {
	t.Helper()
	_, err := i.Service.DeleteDBInstance(t.Context(), &rds.DeleteDBInstanceInput{DBInstanceIdentifier: aws.String(i.Name), SkipFinalSnapshot: aws.Bool(true)})
	if err != nil {
		t.Fatalf("delete %s: %v", i.Name, err)
	}
}

// Modify asks for a change, at once unless the change says otherwise.
func (i *Instance) Modify(t testing.TB, change func(*rds.ModifyDBInstanceInput)) {
	t.Helper()
	in := &rds.ModifyDBInstanceInput{DBInstanceIdentifier: aws.String(i.Name), ApplyImmediately: aws.Bool(true)}
	change(in)
	if _, err := i.Service.ModifyDBInstance(t.Context(), in); err != nil {
		t.Fatalf("modify %s: %v", i.Name, err)
	}
}

// Events are the messages about the instance, oldest first.
func (i *Instance) Events(t testing.TB) []string {
	t.Helper()
	out, err := i.Service.DescribeEvents(t.Context(), &rds.DescribeEventsInput{
		SourceType: types.SourceTypeDbInstance, SourceIdentifier: aws.String(i.Name), Duration: aws.Int32(60),
	})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range out.Events {
		list = append(list, aws.ToString(e.Message))
	}
	return list
}

// WaitEvent waits for an event whose message holds the words.
func (i *Instance) WaitEvent(t testing.TB, words string) string {
	t.Helper()
	found := ""
	Wait(t, availableTime, "an event about "+words, func() string {
		for _, m := range i.Events(t) {
			if strings.Contains(m, words) {
				found = m
				return ""
			}
		}
		return "so far: " + strings.Join(i.Events(t), "\n")
	})
	return found
}

// Home is its folder.
func (i *Instance) Home() string { return filepath.Join(i.Service.Data, "instances", i.ID) }

// Server is the pid of its server, which must be the only one.
func (i *Instance) Server(t testing.TB) int {
	t.Helper()
	pid := 0
	Wait(t, availableTime, i.Name+" has one server", func() string {
		servers := i.Service.Servers(i.ID)
		if len(servers) != 1 {
			return fmt.Sprint(servers)
		}
		pid = servers[0]
		return ""
	})
	return pid
}
