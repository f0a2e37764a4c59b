package network

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/control/scope"
	"kurabe/internal/store"
)

// MaxSubnetGroups is twice RDS's default quota.
const MaxSubnetGroups = 100

const defaultSubnetGroup = "default"

// subnetGroupName is RDS's rule, which allows more than that of the other groups.
var subnetGroupName = regexp.MustCompile(`^[a-z0-9._ -]{1,255}$`)

// SubnetGroup returns a group by its name or ARN; "default" always exists.
func (c Network) SubnetGroup(name string) (kurabe.SubnetGroup, error) {
	folded := strings.ToLower(strings.TrimPrefix(name, c.ARN("subgrp", "")))
	if folded == defaultSubnetGroup {
		return kurabe.SubnetGroup{Name: defaultSubnetGroup, Description: "default", Subnets: c.DefaultSubnets()}, nil
	}
	if g, ok := c.View.SubnetGroup(folded); ok {
		return g.Value, nil
	}
	return kurabe.SubnetGroup{}, kurabe.Errorf(kurabe.CodeSubnetGroupNotFound, kurabe.WordsSubnetGroupNotFound, name)
}

// SubnetGroups lists every group by name, the default one included.
func (c Network) SubnetGroups() []kurabe.SubnetGroup {
	own, _ := c.SubnetGroup(defaultSubnetGroup) // it always exists
	list := []kurabe.SubnetGroup{own}
	for _, g := range c.View.SubnetGroups() {
		list = append(list, g.Value)
	}
	slices.SortFunc(list, func(a, b kurabe.SubnetGroup) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// CreateSubnetGroup stores a new group over subnets, whose zones follow
// PlaceSubnets.
func (c Network) CreateSubnetGroup(ctx context.Context, name, description string, subnets []string, tags []kurabe.Tag) (kurabe.SubnetGroup, error) {
	g := kurabe.SubnetGroup{Name: strings.ToLower(name), Description: description, Tags: tags, Revision: 1, CreatedAt: c.Now().UTC()}
	if !subnetGroupName.MatchString(g.Name) || g.Name == defaultSubnetGroup || strings.TrimSpace(g.Name) != g.Name {
		return g, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "The parameter DBSubnetGroupName must have 1 to 255 letters, numbers, periods, underscores, spaces or hyphens, and must not be \"default\"")
	}
	if err := scope.CheckDescription(description); err != nil {
		return g, err
	}
	if err := kurabe.CheckTags(tags); err != nil {
		return g, err
	}
	var err error
	if g.Subnets, err = c.PlaceSubnets(subnets); err != nil {
		return g, err
	}
	return g, c.Create(ctx, func() (*store.Change, error) {
		revision := c.View.Revision()
		if _, taken := c.View.SubnetGroup(g.Name); taken {
			return nil, kurabe.Errorf(kurabe.CodeSubnetGroupExists, "The DB subnet group '%s' already exists.", g.Name)
		}
		if len(c.View.SubnetGroups()) >= MaxSubnetGroups {
			return nil, kurabe.Errorf(kurabe.CodeSubnetGroupQuota, "Cannot create more than %d DB subnet groups", MaxSubnetGroups)
		}
		return store.NewChange().CreateSubnetGroup(g).RequireSubnetGroupsUnwritten(revision), nil
	})
}

// ModifySubnetGroup replaces a group's subnets and, unless nil, its description.
// A zone that an instance of the group lives in cannot be taken away.
func (c Network) ModifySubnetGroup(ctx context.Context, name string, description *string, subnets []string) (kurabe.SubnetGroup, error) {
	placed, err := c.PlaceSubnets(subnets)
	if err != nil {
		return kurabe.SubnetGroup{}, err
	}
	if description != nil {
		if err := scope.CheckDescription(*description); err != nil {
			return kurabe.SubnetGroup{}, err
		}
	}
	var g kurabe.SubnetGroup
	err = c.Update(ctx, func() (*store.Change, error) {
		revision := c.View.Revision()
		record, err := c.OwnSubnetGroup(name, "modified")
		if err != nil {
			return nil, err
		}
		if err := c.zonesStay(record.Value.Name, placed); err != nil {
			return nil, err
		}
		g = record.Value
		g.Subnets = placed
		if description != nil {
			g.Description = *description
		}
		g.Revision++
		return store.NewChange().PutSubnetGroup(g, record.ModRevision).RequireInstancesUnwritten(revision), nil
	})
	return g, err
}

// zonesStay checks that the zones of a group's instances are among the subnets.
func (c Network) zonesStay(group string, subnets []kurabe.Subnet) error {
	for _, i := range c.View.Instances() {
		zone := i.Spec.Zone
		if i.Status != nil && i.Status.Zone != "" {
			zone = i.Status.Zone
		}
		covered := slices.ContainsFunc(subnets, func(s kurabe.Subnet) bool { return s.Zone == zone })
		if i.Spec.SubnetGroup == group && zone != "" && !covered {
			return kurabe.Errorf(kurabe.CodeInvalidSubnetGroupState, "Some of the subnets to be deleted are currently in use: database instance %s is in %s", i.Name(), zone)
		}
	}
	return nil
}

// DeleteSubnetGroup removes a group that no instance has.
func (c Network) DeleteSubnetGroup(ctx context.Context, name string) error {
	return c.Update(ctx, func() (*store.Change, error) {
		revision := c.View.Revision()
		g, err := c.OwnSubnetGroup(name, "deleted")
		if err != nil {
			return nil, err
		}
		for _, i := range c.View.Instances() {
			if i.Spec.SubnetGroup == g.Value.Name {
				return nil, kurabe.Errorf(kurabe.CodeInvalidSubnetGroupState, kurabe.WordsSubnetGroupInUse, g.Value.Name, i.Name())
			}
		}
		// An instance that takes the group up meanwhile makes this conflict.
		return store.NewChange().DeleteSubnetGroup(g.Value.Name, g.ModRevision).RequireInstancesUnwritten(revision), nil
	})
}

// OwnSubnetGroup returns a group that may be changed.
func (c Network) OwnSubnetGroup(name, what string) (store.Record[kurabe.SubnetGroup], error) {
	g, err := c.SubnetGroup(name)
	if err != nil {
		return store.Record[kurabe.SubnetGroup]{}, err
	}
	record, ok := c.View.SubnetGroup(g.Name)
	if !ok {
		return record, kurabe.Errorf(kurabe.CodeInvalidSubnetGroupState, "The default DB subnet group cannot be %s", what)
	}
	return record, nil
}
