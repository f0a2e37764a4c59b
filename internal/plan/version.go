package plan

import (
	"slices"

	"kurabe"
)

// version is the engine version that the instance is to run. It is the one that
// the user asked for, or a later minor one of the same major that took its place:
// in the maintenance window, when the user allows automatic minor upgrades, or
// when the packages of the host have replaced the one in force. A version never
// goes back, because data that a later one has written may not suit an earlier.
func (d *draft) version(asked string) string {
	have := asked
	if applied := d.status.Applied.EngineVersion; applied != "" && kurabe.CompareVersions(applied, asked) > 0 {
		have = applied
	}
	host := slices.IndexFunc(d.w.Hosts, func(h kurabe.HostReport) bool { return h.Host == d.next.Host })
	if host < 0 {
		return have
	}
	newest, installed := have, false
	for _, v := range d.w.Hosts[host].Engines {
		if v.Engine != d.w.Spec.Engine || v.Family != d.w.Catalog.Family || !v.Ready {
			continue
		}
		installed = installed || v.Version == have
		if kurabe.CompareVersions(v.Version, newest) > 0 {
			newest = v.Version
		}
	}
	if newest == have || d.status.AvailableAt.IsZero() {
		return have
	}
	running := d.w.Report != nil && d.w.Report.Running
	switch {
	case d.w.Spec.AutoMinorUpgrade && d.windowOpen():
		d.because("automatic minor upgrade in the maintenance window")
	case !installed && (!running || d.windowOpen()):
		d.because(have + " is no longer installed on the host: its successor takes its place")
	case !installed:
		d.because(have + " is no longer installed on the host: its successor takes its place at the next start")
		return have
	default:
		return have
	}
	return newest
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
