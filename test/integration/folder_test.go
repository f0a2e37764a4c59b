//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"

	"kurabe/internal/harness"
)

// longName is as long as a name may be; two of them are more than any address
// of a socket holds.
var longName = strings.Repeat("a-long-name-", 20)

func TestDataFolders(t *testing.T) {
	cases := []struct {
		name   string
		closed bool // the parent lets nobody in but its owner, as a home does
		long   bool
	}{
		{"below a closed parent", true, false},
		{"long path", false, true},
		{"long path below a closed parent", true, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			parent := filepath.Join(harness.Folder(t, false), "parent")
			data := filepath.Join(parent, "data")
			if c.long {
				data = filepath.Join(parent, longName, longName)
			}
			if err := os.MkdirAll(filepath.Dir(data), 0o755); err != nil {
				t.Fatal(err)
			}
			if c.closed {
				if err := os.Chmod(parent, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			liveIn(t, harness.Start(t, harness.Options{Data: data}))
		})
	}
}

// liveIn takes an instance of each engine through what touches paths.
func liveIn(t *testing.T, s *harness.Service) {
	instances := one(t, s)
	for _, i := range instances {
		c := connected(t, i)
		s.Terminate(t)
		c.untouched(t, "after SIGTERM")
		s.Start(t)
		i.WaitStatus(t, "available")
		c.untouched(t, "after a restart")
		if err := syscall.Kill(c.server, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		harness.Wait(t, endLimit, "it is back", func() string {
			session, err := harness.Open(t.Context(), i.Login(t))
			if err != nil {
				return err.Error()
			}
			session.Close()
			return ""
		})
		files, err := s.DescribeDBLogFiles(t.Context(), &rds.DescribeDBLogFilesInput{DBInstanceIdentifier: aws.String(i.Name)})
		if err != nil || len(files.DescribeDBLogFiles) == 0 {
			t.Errorf("log files: %v, %v", files, err)
		}
		i.WaitStatus(t, "available")
		i.Delete(t)
		nothingLeft(t, i)
	}
}

func TestTwoServicesBesideEachOther(t *testing.T) {
	a, b := harness.Start(t, harness.Options{}), harness.Start(t, harness.Options{})
	for _, engine := range a.Engines(t) {
		x, y := a.Create(t, harness.Request("same", engine)), b.Create(t, harness.Request("same", engine))
		x.WaitStatus(t, "available")
		y.WaitStatus(t, "available")
		lx, ly := x.Login(t), y.Login(t)
		if lx.Port != ly.Port || lx.Address == ly.Address {
			t.Errorf("endpoints %s:%d and %s:%d", lx.Address, lx.Port, ly.Address, ly.Port)
		}
		x.Query(t, "CREATE TABLE mine (n bigint)")
		y.Query(t, "CREATE TABLE mine (n bigint)")
		x.Delete(t)
		nothingLeft(t, x)
		if got := y.Query(t, "SELECT count(*) FROM mine"); got != "0" {
			t.Errorf("count %s", got)
		}
		y.Delete(t)
	}
}
