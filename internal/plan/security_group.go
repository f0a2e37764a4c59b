package plan

import (
	"slices"

	"kurabe"
)

// filterFor is what the kernel of a host is to let through to a server with a port, nil for
// everything. Other servers of the instance, its replicas and what it follows are let in by the
// addresses of their hosts.
func (d *draft) filterFor(host kurabe.HostID, port int) *kurabe.PacketFilter {
	if len(d.w.SecurityGroups) == 0 {
		return nil
	}
	f := kurabe.FilterOf(d.w.SecurityGroups, port)
	if f == nil {
		return nil
	}
	others := slices.Clone(d.w.RelatedHosts)
	if d.group != nil {
		for _, m := range d.group.Members {
			others = append(others, m.Host)
		}
	}
	for _, id := range others {
		if address := d.hostReport(id).Address; id != host && address != "" {
			f.Hosts = append(f.Hosts, address)
		}
	}
	slices.Sort(f.Hosts)
	f.Hosts = slices.Compact(f.Hosts)
	return f
}

// noteSecurityGroups notes which groups every server enforces: those that the newest assignments
// are of, once each host has said that it filters as its assignment says.
func (d *draft) noteSecurityGroups() {
	if !d.had || d.w.Assignment == nil || d.next.Instance != d.w.Assignment.Instance || !sameContent(d.next, *d.w.Assignment) || len(d.result.Members) > 0 {
		return
	}
	for id, a := range d.w.Members {
		if r := d.reported(id); a.Filter != nil && a.Goal != kurabe.GoalAbsent && (r == nil || r.Generation != a.Generation || !r.Filtered) {
			return
		}
	}
	d.status.SecurityGroups = d.w.Spec.SecurityGroups
}
