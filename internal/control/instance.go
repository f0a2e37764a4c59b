package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/store"
)

// Instance is the read model of one instance: what Describe shows.
type Instance struct {
	Spec   *kurabe.InstanceSpec
	Status kurabe.InstanceStatus // the zero value while the planner has not looked
	Name   string
	State  kurabe.State
	// Pending are the settings that wait for the window or are being applied;
	// nil when what is wanted is in force.
	Pending     *kurabe.InstanceSettings
	PendingName string
	SubnetGroup kurabe.SubnetGroup
	Group       *kurabe.Group // nil of an instance with one server
	// LatestRestorable is the last moment that can be restored, zero when none can.
	LatestRestorable time.Time

	// Source is the name of the instance that it is a read replica of, "" of none. Replicas
	// are the names of its read replicas, sorted.
	Source   string
	Replicas []string

	source kurabe.InstanceID
	names  map[string]int64 // the names it holds, with the revisions they were taken at
}

// Settings are those in force, or those asked for while nothing is in force yet.
func (i Instance) Settings() kurabe.InstanceSettings {
	if i.Status.Applied.Class == "" {
		return i.Spec.Now
	}
	return i.Status.Applied
}

// read makes the read model of a stored instance.
func (c *Control) read(i *store.Instance) Instance {
	r := Instance{Spec: i.Spec, Name: i.Name(), State: i.Spec.Action, Group: i.Group, names: i.Names}
	if i.Status != nil {
		r.Status = *i.Status
	}
	answered := i.Status != nil && i.Status.SpecRevision >= i.Spec.Revision
	if answered || r.State == "" {
		r.State = r.Status.State
	}
	if r.State == "" {
		r.State = kurabe.StateCreating
	}
	if i.Spec.Deleting != nil && !(answered && r.Status.State == kurabe.StateFailed) {
		r.State = kurabe.StateDeleting
	}
	c.readReplication(i, &r)
	wanted := i.Spec.Now
	if i.Spec.Next != nil {
		wanted = *i.Spec.Next
	}
	if applied := r.Status.Applied.EngineVersion; applied != "" && kurabe.CompareVersions(applied, wanted.EngineVersion) > 0 {
		wanted.EngineVersion = applied // a later minor version took its place
	}
	wanted = wanted.WithStorage(r.Status.Storage.ScaledGiB) // what autoscaling reached is no wish that waits
	if i.Status != nil && r.Status.Applied.Class != "" && r.Status.Applied != wanted {
		r.Pending = &wanted
	}
	if i.Spec.NextName != "" && i.Spec.NextName != r.Name {
		r.PendingName = i.Spec.NextName
	}
	if r.Settings().KeepsLog() {
		r.LatestRestorable = c.restorable(i.ID).Latest
	}
	if g, err := c.SubnetGroup(i.Spec.SubnetGroup); err == nil {
		r.SubnetGroup = g
	}
	return r
}

// Instance returns one instance by its name.
func (c *Control) Instance(name string) (Instance, error) {
	i, err := c.find(name)
	if err != nil {
		return Instance{}, err
	}
	return c.read(i), nil
}

// InstanceFilter narrows a list; empty fields match everything.
type InstanceFilter struct {
	IDs      []string // resource ids
	Names    []string // names or ARNs
	Engines  []string
	Clusters []string // no instance is in a cluster
	Domains  []string // no instance is in a domain
}

// Instances lists the instances that match, by name, one page at a time.
func (c *Control) Instances(f InstanceFilter, marker string, max int) ([]Instance, string) {
	if f.Clusters != nil || f.Domains != nil {
		return nil, ""
	}
	var matching []*store.Instance
	for _, i := range c.View.Instances() {
		if (f.IDs == nil || slices.Contains(f.IDs, string(i.ID))) &&
			(f.Engines == nil || slices.Contains(f.Engines, string(i.Spec.Engine))) &&
			(f.Names == nil || c.named(i, f.Names)) {
			matching = append(matching, i)
		}
	}
	page, next := MarkerPage(matching, (*store.Instance).Name, marker, max)
	list := make([]Instance, len(page))
	for n, i := range page {
		list[n] = c.read(i)
	}
	return list, next
}

// named says whether one of names, which may be ARNs, is the instance's.
func (c *Control) named(i *store.Instance, names []string) bool {
	return containsFold(names, i.Name()) || containsFold(names, c.ARN("db", i.Name()))
}

// find returns the stored instance of a name or ARN. What cannot be the name of
// an instance is told from the name of none, as on RDS.
func (c *Control) find(name string) (*store.Instance, error) {
	folded := strings.ToLower(name)
	if arn, ok := strings.CutPrefix(folded, c.ARN("db", "")); ok {
		folded = arn
	}
	if i, ok := c.View.InstanceByName(folded); ok && i.Spec != nil {
		return i, nil
	}
	if _, err := kurabe.FoldIdentifier("DBInstanceIdentifier", folded); err != nil {
		return nil, err
	}
	return nil, kurabe.Errorf(kurabe.CodeInstanceNotFound, "DBInstance %s not found.", folded)
}

// change runs a decision on one instance's spec: edit changes a copy and returns
// what else belongs into the transaction (nil for nothing). The copy is written
// with the next revision.
func (c *Control) change(ctx context.Context, name string, edit func(i Instance, s *kurabe.InstanceSpec, change *store.Change) error) (Instance, error) {
	var id kurabe.InstanceID
	err := c.update(ctx, func() (*store.Change, error) {
		i, err := c.find(name)
		if err != nil {
			return nil, err
		}
		id = i.ID
		spec := *i.Spec
		change := store.NewChange()
		if i.Status != nil && i.Status.AppliedNext >= spec.NextSeq && spec.NextSeq > 0 {
			fold(&spec, i.Names, change)
		}
		if err := edit(c.read(i), &spec, change); err != nil {
			return nil, err
		}
		spec.Revision++
		return change.PutInstance(spec, i.SpecMod), nil
	})
	if err != nil {
		return Instance{}, err
	}
	i, ok := c.View.Instance(id)
	if !ok {
		return Instance{}, kurabe.Errorf(kurabe.CodeInstanceNotFound, "DBInstance %s not found.", name)
	}
	return c.read(i), nil
}

// fold makes what waited for the window the present: it is in force.
func fold(s *kurabe.InstanceSpec, names map[string]int64, change *store.Change) {
	if s.Next != nil {
		s.Now, s.Next = *s.Next, nil
	}
	if s.NextName != "" && s.NextName != s.Name {
		change.ReleaseName(s.Name, names[s.Name])
		s.Name = s.NextName
	}
	s.NextName, s.NextSince = "", time.Time{}
}

// modifiable lists the states in which RDS accepts a modification.
var modifiable = []kurabe.State{
	kurabe.StateAvailable, kurabe.StateStopped, kurabe.StateStorageFull, kurabe.StateIncompatibleParameters,
	kurabe.StateIncompatibleNetwork, kurabe.StateInsufficientCapacity,
}
