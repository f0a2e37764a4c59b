package plan

import (
	"fmt"
	"slices"

	"kurabe"
	"kurabe/internal/event"
)

// version is the engine version that the instance is to run. It is the one that
// the user asked for, or a later minor one of the same major that took its place:
// because its servers run that already, in the maintenance window, when the user
// allows automatic minor upgrades, or when the packages of a host have replaced the
// one in force. A version never goes back, because data that a later one has written
// may not suit an earlier, and none is ordered that a server's host does not have.
func (d *draft) version(asked string) string {
	have := d.status.Applied.EngineVersion
	switch lacks := d.hostsLack(asked); {
	case have == "":
		return asked
	case kurabe.CompareVersions(asked, have) <= 0:
	case lacks != "":
		d.because("engine version " + asked + " waits: " + lacks)
	default:
		have = asked
	}
	if runs := d.allRun(); runs != "" && kurabe.CompareVersions(runs, have) > 0 {
		d.because("its servers were started with " + runs + ", which has taken the place of " + have)
		have = runs
	}
	newest, lacks := d.newestOfAll(have), d.hostsLack(have)
	if newest == have || d.status.AvailableAt.IsZero() {
		return have
	}
	switch {
	case d.w.Spec.AutoMinorUpgrade && d.windowOpen():
		d.because("automatic minor upgrade in the maintenance window")
	case lacks != "" && d.windowOpen():
		d.because(lacks + " any more: the successor takes its place")
	case lacks != "":
		d.because(lacks + " any more: its successor takes its place at the next start")
		return have
	default:
		return have
	}
	return newest
}

// hostsOfServers are the hosts of the servers that are to stay.
func (d *draft) hostsOfServers() []kurabe.HostID {
	if d.group == nil {
		return []kurabe.HostID{d.next.Host}
	}
	var hosts []kurabe.HostID
	for _, m := range d.group.Members {
		if !m.Leaving && !slices.Contains(hosts, m.Host) {
			hosts = append(hosts, m.Host)
		}
	}
	return hosts
}

// hostsLack says which host of a server does not have a version, "" when all have it. What a host
// that has not reported has is not known.
func (d *draft) hostsLack(version string) string {
	for _, id := range d.hostsOfServers() {
		if h := d.hostReport(id); len(h.Engines) > 0 && !h.Offers(d.w.Spec.Engine, version) {
			return fmt.Sprintf("host %s does not have %s %s", id, d.w.Spec.Engine, version)
		}
	}
	return ""
}

// newestOfAll is the newest version of the major that the host of every server can run, have
// when there is none later.
func (d *draft) newestOfAll(have string) string {
	hosts, newest := d.hostsOfServers(), have
	if len(hosts) == 0 {
		return have
	}
	for _, v := range d.hostReport(hosts[0]).Engines {
		later := v.Engine == d.w.Spec.Engine && v.Family == d.w.Catalog.Family && v.Ready && kurabe.CompareVersions(v.Version, newest) > 0
		everywhere := !slices.ContainsFunc(hosts, func(id kurabe.HostID) bool { return !d.hostReport(id).Ready(d.w.Spec.Engine, v.Version) })
		if later && everywhere {
			newest = v.Version
		}
	}
	return newest
}

// allRun is the oldest version that a server of the instance runs, "" while one does not run
// or is not known to.
func (d *draft) allRun() (oldest string) {
	reports := []*kurabe.InstanceReport{d.w.Report}
	if d.group != nil {
		reports = nil
		for _, m := range d.group.Members {
			if !m.Leaving {
				reports = append(reports, d.heardReport(m.ID))
			}
		}
	}
	for _, r := range reports {
		if r == nil || !r.Running || r.EngineVersion == "" {
			return ""
		}
		if oldest == "" || kurabe.CompareVersions(r.EngineVersion, oldest) < 0 {
			oldest = r.EngineVersion
		}
	}
	return oldest
}

// changeVersion restarts the servers for another version, unless they run it.
func (d *draft) changeVersion(from, to string, restart func(kurabe.State, string)) {
	if runs := d.allRun(); runs != "" && kurabe.CompareVersions(runs, to) >= 0 {
		d.tellPatched(to)
		return
	}
	restart(kurabe.StateUpgrading, "engine version "+from+" to "+to)
}

func (d *draft) tellPatched(to string) { d.tell(event.Patched.And(": engine version " + to)) }

// tellVersion notes which version clients speak with, which is not that in force while
// servers are restarted one by one, or when one was started after the packages of its host had
// replaced what it ran.
func (d *draft) tellVersion() {
	r := d.w.Report
	if d.group != nil {
		r = d.heardReport(d.group.Primary)
	}
	if r != nil && r.Running && r.EngineVersion != "" {
		d.status.EngineVersion = r.EngineVersion
	}
}

// windowOpen says whether the maintenance window is open.
func (d *draft) windowOpen() bool {
	w, err := kurabe.ParseMaintenanceWindow(d.w.Spec.MaintenanceWindow)
	if err != nil {
		return false
	}
	_, open, next := w.Next(d.w.Now)
	if !open {
		d.lookAgain(next)
	}
	return open
}
