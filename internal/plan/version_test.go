package plan_test

import (
	"testing"
	"time"

	"kurabe"
)

func TestMinorVersions(t *testing.T) {
	engines := func(versions ...string) []kurabe.EngineVersion {
		var list []kurabe.EngineVersion
		for _, v := range versions {
			list = append(list, kurabe.EngineVersion{Engine: kurabe.Postgres, Version: v, Family: "postgres15", Ready: true})
		}
		return list
	}
	available := func(t *testing.T, upgrade bool) *sim {
		s := newSim(t)
		s.w.Hosts[0].Engines = engines("15.18")
		s.w.Spec.AutoMinorUpgrade = upgrade
		s.settle()
		return s
	}
	inWindow := time.Date(2026, 3, 8, 5, 10, 0, 0, time.UTC)
	t.Run("upgraded in the window when the user allows it", func(t *testing.T) {
		s := available(t, true)
		s.w.Hosts[0].Engines = engines("15.18", "15.20")
		s.settle()
		if s.w.Assignment.Version != "15.18" {
			t.Fatal("upgraded outside the window")
		}
		s.w.Now = inWindow
		s.step()
		s.want(kurabe.StateUpgrading)
		s.w.Now = inWindow.Add(time.Hour)
		s.settle()
		if s.w.Assignment.Version != "15.20" || s.w.Status.Applied.EngineVersion != "15.20" {
			t.Fatalf("%+v", s.w.Assignment)
		}
	})
	t.Run("kept when the user does not", func(t *testing.T) {
		s := available(t, false)
		s.w.Hosts[0].Engines = engines("15.18", "15.20")
		s.w.Now = inWindow
		s.settle()
		if s.w.Assignment.Version != "15.18" {
			t.Fatal("upgraded against the user's wish")
		}
	})
	t.Run("a version that the packages replaced is followed at the next start", func(t *testing.T) {
		s := available(t, false)
		s.w.Hosts[0].Engines = engines("15.20")
		s.settle()
		if s.w.Assignment.Version != "15.18" {
			t.Fatal("a running server was restarted for it")
		}
		r := *s.w.Report
		r.EngineVersion = "15.20" // it was started again
		s.w.Report = &r
		s.step()
		s.want(kurabe.StateAvailable)
		if s.w.Assignment.Version != "15.20" || s.w.Assignment.Boot != r.Boot || s.w.Status.EngineVersion != "15.20" {
			t.Fatalf("%+v %+v", s.w.Assignment, s.w.Status)
		}
		s.wantEvent("RDS-EVENT-0047")
	})
}
