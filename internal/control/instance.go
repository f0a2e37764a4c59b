package control

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/control/scope"
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
	// EarliestRestorable and LatestRestorable are the first and the last moment that can be
	// restored, zero when none can.
	EarliestRestorable, LatestRestorable time.Time

	// Source is the name of the instance that it is a read replica of, "" of none. Replicas
	// are the names of its read replicas, sorted.
	Source   string
	Replicas []string

	// MasterSecret has the password of the master user, nil where the user keeps it.
	MasterSecret *kurabe.Secret

	// Server is the server that this is of a cluster, which users see as an instance; nil of
	// everything else. Cluster is the name of the cluster then.
	Server  *kurabe.ServerStatus
	Cluster string

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

// EngineVersion is what the server runs that clients speak with, or what it is to run while
// nothing is known of that.
func (i Instance) EngineVersion() string {
	runs := i.Status.EngineVersion
	if i.Server != nil {
		runs = i.Server.EngineVersion
	}
	return cmp.Or(runs, i.Settings().EngineVersion)
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
	if i.Spec.Cluster && r.State == kurabe.StateRebooting && r.Status.FailingOver {
		r.State = kurabe.StateFailingOver
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
		window := c.restorable(i.ID)
		r.EarliestRestorable, r.LatestRestorable = window.Earliest, window.Latest
	}
	if s, ok := c.View.MasterSecret(i.ID); ok {
		r.MasterSecret = &s.Value
	}
	if g, err := c.SubnetGroup(i.Spec.SubnetGroup); err == nil {
		r.SubnetGroup = g
	}
	return r
}

// Instance returns one instance, or a server of a cluster, by its name.
func (c *Control) Instance(name string) (Instance, error) {
	i, err := c.find(name)
	if err == nil {
		return c.read(i), nil
	}
	if server, ok := c.server(c.fold(name)); ok {
		return c.readShown(server), nil
	}
	return Instance{}, err
}

// InstanceFilter narrows a list; empty fields match everything.
type InstanceFilter struct {
	IDs      []string // resource ids
	Names    []string // names or ARNs
	Engines  []string
	Clusters []string // names or ARNs of the clusters whose servers they are
	Domains  []string // no instance is in a domain
}

// Instances lists the instances that match, by name, one page at a time.
func (c *Control) Instances(f InstanceFilter, marker string, max int) ([]Instance, string) {
	var matching []shown
	for _, i := range c.View.Instances() {
		for _, s := range c.shown(i) {
			if c.matches(f, s) {
				matching = append(matching, s)
			}
		}
	}
	slices.SortFunc(matching, func(a, b shown) int { return strings.Compare(a.name, b.name) })
	page, next := MarkerPage(matching, func(s shown) string { return s.name }, marker, max)
	list := make([]Instance, len(page))
	for n, s := range page {
		list[n] = c.readShown(s)
	}
	return list, next
}

// shown is something that users see in the list: an instance, a cluster, or, where instances
// are asked for, a server of a cluster.
type shown struct {
	name   string
	of     *store.Instance
	server *kurabe.ServerStatus
}

// shown is what is to be seen of a stored instance.
func (c *Control) shown(i *store.Instance) []shown {
	switch {
	case i.Spec.Cluster == c.Cluster:
		return []shown{{name: i.Name(), of: i}}
	case c.Cluster || i.Status == nil:
		return nil
	}
	var list []shown
	for _, s := range i.Status.Servers {
		list = append(list, shown{kurabe.ServerName(i.Name(), s.ID), i, &s})
	}
	return list
}

func (c *Control) readShown(s shown) Instance {
	i := c.read(s.of)
	if s.server == nil {
		return i
	}
	i.Server, i.Cluster, i.Name = s.server, i.Name, s.name
	if i.State != kurabe.StateDeleting {
		i.State = s.server.State
	}
	return i
}

func (c *Control) matches(f InstanceFilter, s shown) bool {
	cluster := s.of.Name()
	return f.Domains == nil && (f.IDs == nil || slices.Contains(f.IDs, resourceID(s.of.Spec, s.server))) &&
		(f.Engines == nil || slices.Contains(f.Engines, string(s.of.Spec.Engine))) &&
		(f.Names == nil || c.named(s.name, f.Names)) &&
		(f.Clusters == nil || s.server != nil && c.Clusters().named(cluster, f.Clusters))
}

// named says whether one of names, which may be ARNs, is this name.
func (c *Control) named(name string, names []string) bool {
	return scope.HasFold(names, name) || scope.HasFold(names, c.ARN(c.Words().DB, name))
}

// find returns the stored instance of a name or ARN. What cannot be the name of
// an instance is told from the name of none, as on RDS.
func (c *Control) find(name string) (*store.Instance, error) {
	folded, w := c.fold(name), c.Words()
	if i, ok := c.View.InstanceByName(c.Key(folded)); ok && i.Spec != nil && i.Spec.Cluster == c.Cluster {
		return i, nil
	}
	if _, err := kurabe.FoldIdentifier(w.Is+"Identifier", folded); err != nil {
		return nil, err
	}
	if server, ok := c.server(folded); ok {
		return nil, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "DB instance %s belongs to DB cluster %s, of which it is a server: what is asked for is done with the cluster.", folded, server.of.Name())
	}
	return nil, kurabe.Errorf(kurabe.CodeInstanceNotFound, "%s %s not found.", w.Is, folded)
}

// fold is the name that a name or an ARN means.
func (c *Control) fold(name string) string {
	folded := strings.ToLower(name)
	return strings.TrimPrefix(folded, c.ARN(c.Words().DB, ""))
}

// change runs a decision on one instance's spec: edit changes a copy and returns
// what else belongs into the transaction (nil for nothing). The copy is written
// with the next revision.
func (c *Control) change(ctx context.Context, name string, edit func(i Instance, s *kurabe.InstanceSpec, change *store.Change) error) (Instance, error) {
	var id kurabe.InstanceID
	err := c.Update(ctx, func() (*store.Change, error) {
		i, err := c.find(name)
		if err != nil {
			return nil, err
		}
		id = i.ID
		spec := *i.Spec
		change := store.NewChange()
		if i.Status != nil && i.Status.AppliedNext >= spec.NextSeq && spec.NextSeq > 0 {
			settle(&spec, i.Names, change)
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
		return Instance{}, kurabe.Errorf(kurabe.CodeInstanceNotFound, "%s %s not found.", c.Words().Is, name)
	}
	return c.read(i), nil
}

// settle makes what waited for the window the present: it is in force.
func settle(s *kurabe.InstanceSpec, names map[string]int64, change *store.Change) {
	if s.Next != nil {
		s.Now, s.Next = *s.Next, nil
	}
	if s.NextName != "" && s.NextName != s.Name {
		was := kurabe.NameKey(s.Name, s.Cluster)
		change.ReleaseName(was, names[was])
		s.Name = s.NextName
	}
	s.NextName, s.NextSince = "", time.Time{}
}

// modifiable lists the states in which RDS accepts a modification.
var modifiable = []kurabe.State{
	kurabe.StateAvailable, kurabe.StateStopped, kurabe.StateStorageFull, kurabe.StateIncompatibleParameters,
	kurabe.StateIncompatibleNetwork, kurabe.StateInsufficientCapacity,
}

// DefaultGroupOf is the default parameter group of the version that an instance runs.
func (c *Control) DefaultGroupOf(i Instance) string {
	v, err := c.EngineVersion(string(i.Spec.Engine), i.EngineVersion())
	if err != nil {
		return i.Spec.ParameterGroup // a version that is on no host any more
	}
	return kurabe.DefaultGroup(v.Family)
}
