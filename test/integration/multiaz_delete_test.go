//go:build integration

package integration

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kurabe"
	"kurabe/internal/harness"
)

// noMemberLeft demands that a deleted instance left no process, folder, saved assignment,
// control group or mount point of any of its servers.
func noMemberLeft(t *testing.T, i *harness.Instance) {
	t.Helper()
	s := i.Service
	harness.Wait(t, endLimit, "nothing is left of "+i.Name, func() string {
		switch {
		case slices.Contains(harness.Owners(s.Homes()), i.ID):
			return "a folder"
		case slices.Contains(harness.Owners(s.Assignments()), i.ID):
			return "a saved assignment"
		case slices.Contains(harness.Owners(s.Groups()), i.ID):
			return "a control group"
		}
		return ""
	})
	running, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is well formed
	for _, link := range running {
		// Linux marks a folder that was removed, and names it all the same.
		if dir, err := os.Readlink(link); err == nil && strings.Contains(dir, i.ID) {
			t.Errorf("a process works in %s: %s", dir, link)
		}
	}
	entries, err := os.ReadDir("/run/kurabe")
	if err != nil {
		return // nothing was ever mounted here
	}
	for _, e := range entries {
		if string(kurabe.InstanceID(e.Name()).Owner()) == i.ID {
			t.Errorf("its mount point %s", e.Name())
		}
	}
}

// addresses are where an instance listens: its endpoint, and each of its servers.
func addresses(t *testing.T, i *harness.Instance) []netip.AddrPort {
	t.Helper()
	l := i.Login(t)
	endpoint, err := netip.ParseAddr(l.Address)
	must(t, err)
	list := []netip.AddrPort{netip.AddrPortFrom(endpoint, uint16(l.Port))}
	for _, m := range i.Service.Members(i.ID) {
		at, err := m.Listens()
		must(t, err)
		list = append(list, at)
	}
	return list
}

// pairDeaths are what an instance can be in the midst of when it is deleted.
var pairDeaths = []struct {
	name   string
	before func(t *testing.T, i *harness.Instance)
}{
	{"whole", func(t *testing.T, i *harness.Instance) { i.WaitWhole(t) }},
	{"after a failover", func(t *testing.T, i *harness.Instance) {
		i.WaitWhole(t)
		b := &pairBed{i, i.Pulse(t)}
		b.lose(t, func(t *testing.T, _ *pairBed, writer harness.Member) { must(t, harness.KillServers(writer)) })
		b.pulse.Stop()
	}},
	{"in the middle of a failover", func(t *testing.T, i *harness.Instance) {
		i.WaitWhole(t)
		writer, _ := i.Pair(t)
		must(t, harness.KillServers(writer))
	}},
	{"with a standby that hangs", func(t *testing.T, i *harness.Instance) {
		i.WaitWhole(t)
		_, standby := i.Pair(t)
		must(t, standby.Freeze())
	}},
}

// TestDeleteMultiAZ deletes an instance as it was made, one whose second server writes,
// and one that is still being made.
func TestDeleteMultiAZ(t *testing.T) {
	s := harness.Start(t, harness.Options{})
	s.EachEngine(t, func(t *testing.T, engine string) {
		for _, c := range pairDeaths {
			t.Run(c.name, func(t *testing.T) {
				i := s.MustCreate(t, harness.MultiAZRequest("short-lived", engine))
				at := addresses(t, i)
				c.before(t, i)
				i.Delete(t)
				noMemberLeft(t, i)
				for _, a := range at {
					l, err := net.Listen("tcp", a.String())
					if err != nil {
						t.Errorf("%s is still taken: %v", a, err)
						continue
					}
					l.Close()
				}
			})
		}
		t.Run("while it is made", func(t *testing.T) {
			i := s.Create(t, harness.MultiAZRequest("regretted", engine))
			harness.Wait(t, gapBound, "its second server has a folder", func() string {
				if n := len(s.Members(i.ID)); n != 2 {
					return "not yet"
				}
				return ""
			})
			i.Delete(t)
			noMemberLeft(t, i)
		})
	})
}
