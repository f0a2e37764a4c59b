//go:build integration

package integration

import (
	"net"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"kurabe/internal/harness"
)

// nothingLeft demands that a deleted instance left no process, folder, saved
// assignment or control group.
func nothingLeft(t *testing.T, i *harness.Instance) {
	t.Helper()
	s := i.Service
	harness.Wait(t, endLimit, "nothing is left of "+i.Name, func() string {
		switch {
		case len(s.Processes(i.ID)) > 0:
			return "processes"
		case slices.Contains(s.Homes(), i.ID):
			return "its folder"
		case slices.Contains(s.Assignments(), i.ID):
			return "its saved assignment"
		case slices.Contains(s.Groups(), i.ID):
			return "its control group"
		}
		return ""
	})
	if entries, err := os.ReadDir("/run/kurabe"); err == nil {
		for _, e := range entries {
			if e.Name() == i.ID {
				t.Errorf("its mount point %s", e.Name())
			}
		}
	}
}

func TestDeleteLeavesNothing(t *testing.T) {
	s := shared(t)
	s.EachEngine(t, func(t *testing.T, engine string) {
		i := s.MustCreate(t, harness.Request("short-lived-"+engine, engine))
		address := i.Login(t)
		i.Delete(t)
		nothingLeft(t, i)
		l, err := net.Listen("tcp", net.JoinHostPort(address.Address, strconv.Itoa(address.Port)))
		if err != nil {
			t.Fatalf("the endpoint is still taken: %v", err)
		}
		l.Close()
		// The name and the address are free again.
		again := s.MustCreate(t, harness.Request("short-lived-"+engine, engine))
		if again.ID == i.ID {
			t.Error("the new instance has the id of the old one")
		}
		again.Delete(t)
		nothingLeft(t, again)
	})
}

func TestDeleteWhileCreating(t *testing.T) {
	s := shared(t)
	s.EachEngine(t, func(t *testing.T, engine string) {
		i := s.Create(t, harness.Request("regretted-"+engine, engine))
		d := i.Describe(t)
		if state := aws.ToString(d.DBInstanceStatus); state != "creating" && state != "available" {
			t.Errorf("it is %s", state)
		}
		i.Delete(t)
		nothingLeft(t, i)
	})
}
