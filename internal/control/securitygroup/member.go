package securitygroup

import (
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/store"
)

// Resolve is what the spec of a member says of the groups that a request names: their ids in
// records, nil for the default one alone. It refuses groups that are not there, and those that
// the hosts cannot enforce.
func (c Set) Resolve(ids []string) ([]string, error) {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) > kurabe.MaxSecurityGroups {
		return nil, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "You have specified %d VPC security groups; the maximum is %d.", len(ids), kurabe.MaxSecurityGroups)
	}
	var spec, unknown []string
	var groups []kurabe.SecurityGroup
	for _, id := range ids {
		g, err := c.find(id)
		if err != nil {
			unknown = append(unknown, id)
			continue
		}
		spec, groups = append(spec, g.Value.ID), append(groups, g.Value)
	}
	if len(unknown) > 0 {
		return nil, noGroup(strings.Join(unknown, ", "))
	}
	if len(spec) == 1 && spec[0] == kurabe.DefaultSecurityGroup || len(spec) == 0 {
		def, _ := c.record(kurabe.DefaultSecurityGroup)
		spec, groups = nil, []kurabe.SecurityGroup{def.Value}
	}
	slices.Sort(spec)
	return spec, c.enforceable(groups)
}

func noGroup(ids string) error {
	return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid security group , groupId= %.200s, groupName=.", ids)
}

// RequireMembership checks that the groups of a spec are there, and makes the change conflict
// where one changes meanwhile.
func (c Set) RequireMembership(change *store.Change, spec []string) error {
	for _, id := range kurabe.GroupsOf(spec) {
		g, ok := c.record(id)
		if !ok {
			return noGroup(c.shownID(id))
		}
		change.RequireSecurityGroup(id, g.ModRevision)
	}
	return nil
}

// enforceable refuses groups that do not permit everything while a host cannot filter packets:
// a server of a member may come to be on any of them.
func (c Set) enforceable(groups []kurabe.SecurityGroup) error {
	if kurabe.FilterOf(groups, 0) == nil {
		return nil
	}
	for _, h := range c.View.Hosts() {
		if !h.Has(kurabe.LeverFilter) && !c.View.Gone(h.Host) {
			return kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "security groups that do not permit everything cannot be honoured: host %s cannot filter packets (%s)", h.Host, h.Detail(kurabe.LeverFilter))
		}
	}
	return nil
}

// CheckProxies refuses proxies while the default group does not permit everything: hosts do not
// filter the endpoints of proxies.
func (c Set) CheckProxies() error {
	if def, _ := c.record(kurabe.DefaultSecurityGroup); kurabe.FilterOf([]kurabe.SecurityGroup{def.Value}, 0) != nil {
		return errProxies
	}
	return nil
}

var errProxies = kurabe.Errorf(kurabe.CodeInvalidParameterCombo, "the endpoints of DB proxies are not filtered, and they have the default security group: it must permit everything while there are proxies; give databases a group of their own")

// Membership is a group of a member, and whether it is in force.
type Membership struct{ ID, Status string }

// Memberships are what a member has by its spec and what is in force there, which is nothing
// before it was available once.
func (c Set) Memberships(spec, inForce []string, wasAvailable bool) []Membership {
	want := kurabe.GroupsOf(spec)
	have := inForce
	if wasAvailable {
		have = kurabe.GroupsOf(inForce)
	}
	var list []Membership
	for _, id := range want {
		status := "adding"
		if slices.Contains(have, id) {
			status = "active"
		}
		list = append(list, Membership{c.shownID(id), status})
	}
	for _, id := range have {
		if !slices.Contains(want, id) {
			list = append(list, Membership{c.shownID(id), "removing"})
		}
	}
	return list
}
