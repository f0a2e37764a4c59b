package plan_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"kurabe"
)

// minors are the versions that packages bring one after the other.
var minors = []string{"15.18", "15.20", "15.22"}

func familyOf(engine kurabe.EngineName) string { return string(engine) + "15" }

// offer has a host offer these versions of each engine, and no other.
func (f *groupFleet) offer(host int, versions ...string) {
	f.w.Hosts = slices.Clone(f.w.Hosts)
	f.w.Hosts[host].Engines = nil
	for _, engine := range []kurabe.EngineName{kurabe.Postgres, kurabe.MariaDB} {
		for _, v := range versions {
			f.w.Hosts[host].Engines = append(f.w.Hosts[host].Engines, kurabe.EngineVersion{Engine: engine, Version: v, Family: familyOf(engine), Ready: true})
		}
	}
}

// installed is what a server starts with: what it was told, or the newest later one.
func (f *groupFleet) installed(a kurabe.Assignment) (best string) {
	for _, h := range f.w.Hosts {
		if h.Host != a.Host {
			continue
		}
		if h.Offers(a.Engine, a.Version) {
			return a.Version
		}
		for _, v := range h.Engines {
			if v.Engine == a.Engine && kurabe.CompareVersions(v.Version, a.Version) > 0 && kurabe.CompareVersions(v.Version, best) > 0 {
				best = v.Version
			}
		}
	}
	return best
}

// begin starts a server.
func (f *groupFleet) begin(s *server, a kurabe.Assignment, seq int64) {
	s.running, s.hung, s.boot, s.yielded, s.started, s.waits, s.version = true, false, a.Boot, false, seq, nil, f.installed(a)
	s.failed.tries = 0
}

// runs is the version that a server reports.
func (s *server) runs() string {
	if !s.running {
		return ""
	}
	return s.version
}

// window opens the maintenance window, or closes it.
func (f *groupFleet) window(open bool) {
	f.ask(func(s *kurabe.InstanceSpec) {
		s.MaintenanceWindow = map[bool]string{true: "mon:11:00-tue:11:00", false: "sun:05:00-sun:05:30"}[open]
	})
}

// packages has a host's packages replaced by later ones, or put beside them.
func (f *groupFleet) packages(t *rapid.T) {
	n := rapid.IntRange(0, len(f.w.Hosts)-1).Draw(t, "host")
	have := f.w.Hosts[n].Engines
	newest := slices.Index(minors, have[len(have)-1].Version)
	next := minors[min(newest+1, len(minors)-1)]
	versions := []string{minors[newest], next}
	if rapid.Bool().Draw(t, "replaced") {
		versions = versions[1:]
	}
	f.offer(n, slices.Compact(versions)...)
}

// upToDate has every host's packages replaced by the newest that one of them has.
func (f *groupFleet) upToDate() {
	newest := ""
	for _, h := range f.w.Hosts {
		for _, v := range h.Engines {
			if kurabe.CompareVersions(v.Version, newest) > 0 {
				newest = v.Version
			}
		}
	}
	for n := range f.w.Hosts {
		f.offer(n, newest)
	}
}

// checkVersion: what was in force never goes back.
func (f *groupFleet) checkVersion(t tester, before, after *kurabe.InstanceStatus) {
	if before != nil && kurabe.CompareVersions(after.Applied.EngineVersion, before.Applied.EngineVersion) < 0 {
		t.Fatalf("version %s after %s", after.Applied.EngineVersion, before.Applied.EngineVersion)
	}
	if before != nil && before.Applied.EngineVersion != after.Applied.EngineVersion {
		f.seen["upgrades"]++
	}
}

// checkVersions: when all is well what is shown is what the primary runs, no server runs less
// than what is in force, and in the window that is the newest that all hosts have, if one of
// them has it no more.
func (f *groupFleet) checkVersions(t tester) {
	s, w := f.w.Status, f.servers[f.primary()]
	if s.EngineVersion != w.version {
		t.Fatalf("%s is shown, and the writer runs %s", s.EngineVersion, w.version)
	}
	gone := false
	for _, o := range f.servers {
		if kurabe.CompareVersions(o.version, s.Applied.EngineVersion) < 0 {
			t.Fatalf("%s runs %s, and %s is in force", o.id, o.version, s.Applied.EngineVersion)
		}
		gone = gone || f.installed(f.wants(o, s.Applied.EngineVersion)) != s.Applied.EngineVersion
	}
	if f.w.Spec.MaintenanceWindow[:3] == "mon" && gone {
		for _, v := range minors {
			later := kurabe.CompareVersions(v, s.Applied.EngineVersion) > 0
			for _, o := range f.servers {
				later = later && f.installed(f.wants(o, v)) == v
			}
			if later {
				t.Fatalf("%s is in force in the window, no host lacks %s, and one has no %s", s.Applied.EngineVersion, v, s.Applied.EngineVersion)
			}
		}
	}
}

// wants is an order for a server to run a version.
func (f *groupFleet) wants(s *server, version string) kurabe.Assignment {
	a := *f.w.Members[s.id]
	a.Version = version
	return a
}

// A later minor version goes to the standby first, which takes over: one gap of a failover.
func TestMinorVersionOfAPair(t *testing.T) {
	for _, engine := range []kurabe.EngineName{kurabe.Postgres, kurabe.MariaDB} {
		f := newGroupFleet(engine, false)
		f.calm(t)
		before := f.primary()
		f.offer(0, "15.20")
		f.calm(t)
		if f.w.Status.Applied.EngineVersion != "15.18" || f.w.Status.EngineVersion != "15.18" || f.primary() != before {
			t.Fatalf("%s: outside the window: %+v", engine, f.w.Status)
		}
		f.window(true)
		for range 2 {
			f.calm(t)
		}
		if f.primary() == before || f.w.Status.Applied.EngineVersion != "15.20" {
			t.Errorf("%s: %s writes, %+v", engine, f.primary(), f.w.Status)
		}
		f.recovers(t)
		if f.times("RDS-EVENT-0047") != 1 || f.times("RDS-EVENT-0049") != 1 {
			t.Errorf("%s: %+v", engine, f.events)
		}
	}
}

// A standby that died is started with the successor; so is the primary, once it dies: what is
// shown is what runs, and nothing is restarted for a version that all run.
func TestMinorVersionByDeaths(t *testing.T) {
	f := newGroupFleet(kurabe.Postgres, false)
	f.calm(t)
	first := f.primary()
	f.offer(0, "15.20")
	f.servers[first].die()
	f.calm(t)
	f.calm(t)
	if s := f.w.Status; s.EngineVersion != "15.18" || s.Applied.EngineVersion != "15.18" || f.servers[first].version != "15.20" {
		t.Fatalf("whoever has taken over was never restarted: %+v", s)
	}
	boot := f.servers[first].boot
	f.servers[f.primary()].die()
	f.calm(t)
	f.calm(t)
	if s := f.w.Status; s.EngineVersion != "15.20" || s.Applied.EngineVersion != "15.20" || f.primary() != first || f.servers[first].boot != boot {
		t.Fatalf("%+v, %s writes, boot %d after %d", s, f.primary(), f.servers[first].boot, boot)
	}
	f.recovers(t)
	if f.times("RDS-EVENT-0047") != 1 {
		t.Errorf("%+v", f.events)
	}
}

// While one host has the later version alone nothing is ordered; a standby that is missing may
// be made there.
func TestMinorVersionOverHosts(t *testing.T) {
	f := newGroupFleet(kurabe.Postgres, false)
	f.spread(2)
	f.offer(1, "15.20")
	f.calm(t)
	f.window(true)
	for range 3 {
		f.calm(t)
	}
	if s := f.w.Status; len(f.w.Group.SyncSet) != 1 || s.Applied.EngineVersion != "15.18" || f.times("RDS-EVENT-0047") != 0 {
		t.Fatalf("%+v %+v", f.w.Group, s)
	}
	f.offer(0, "15.20")
	for range 3 {
		f.calm(t)
	}
	if s := f.w.Status; s.Applied.EngineVersion != "15.20" || s.EngineVersion != "15.20" {
		t.Fatalf("%+v", s)
	}
	f.recovers(t)
}
