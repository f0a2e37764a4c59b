package control

import (
	"math"
	"slices"
	"strings"

	"kurabe"
)

// Tagged is a resource with its tags.
type Tagged struct {
	ARN, Kind string
	Tags      []kurabe.Tag
}

// Tagged lists all resources that have tags, those of clusters included, by ARN.
func (c *Control) Tagged() []Tagged {
	var list []Tagged
	add := func(kind, name string, tags []kurabe.Tag) {
		if len(tags) > 0 {
			list = append(list, Tagged{c.ARN(kind, name), kind, tags})
		}
	}
	for _, of := range []*Control{c, c.Clusters()} {
		w := of.Words()
		instances, _ := of.Instances(InstanceFilter{}, "", math.MaxInt)
		for _, i := range instances {
			add(w.DB, i.Name, i.Spec.Tags)
		}
		snapshots, _ := of.Snapshots(SnapshotFilter{}, "", math.MaxInt)
		for _, s := range snapshots {
			add(w.Snapshot, s.Spec.Name, s.Spec.Tags)
		}
		for _, g := range of.ParameterGroups() {
			add(w.Group, g.Name, g.Tags)
		}
	}
	for _, s := range c.View.EventSubscriptions() {
		add("es", s.Value.Name, s.Value.Tags)
	}
	for _, p := range c.View.Proxies() {
		add("db-proxy", string(p.ID), p.Spec.Tags)
		for _, e := range p.Spec.Endpoints {
			add("db-proxy-endpoint", string(e.ID), e.Tags)
		}
	}
	for _, g := range c.SubnetGroups() {
		add("subgrp", g.Name, g.Tags)
	}
	slices.SortFunc(list, func(a, b Tagged) int { return strings.Compare(a.ARN, b.ARN) })
	return list
}
