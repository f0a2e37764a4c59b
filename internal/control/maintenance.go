package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/store"
)

// The actions that a pending modification is shown as. What waits for an
// instance's window is applied as a whole, so it is one action: RDS's db-upgrade
// when the engine version is part of it, ca-certificate-rotation when it is the
// certificate alone, and RDS's general word for everything else.
const (
	ActionUpgrade     = "db-upgrade"
	ActionCertificate = "ca-certificate-rotation"
	ActionUpdate      = "system-update"
)

// The ways to opt in.
const (
	OptInImmediate = "immediate"
	OptInNext      = "next-maintenance"
	OptInUndo      = "undo-opt-in"
)

// Maintenance is what waits for an instance's maintenance window.
type Maintenance struct {
	Instance    string
	ARN         string
	Action      string
	Description string
	OptIn       string
	At          time.Time // when it is applied

	key string // the name, unique among instances and clusters
}

// PendingMaintenance lists what waits, that of instances by their names and then that of
// clusters. arn, names of instances and those of clusters narrow the list unless empty;
// names may be ARNs.
func (c *Control) PendingMaintenance(arn string, names, clusters []string) ([]Maintenance, error) {
	if arn != "" {
		if _, err := c.maintained(arn); err != nil {
			return nil, err
		}
	}
	var list []Maintenance
	for _, stored := range c.View.Instances() {
		of, only, others := c.of(stored.Spec.Cluster), names, clusters
		if stored.Spec.Cluster {
			only, others = clusters, names
		}
		if others != nil || only != nil && !of.named(stored.Name(), only) {
			continue
		}
		m, ok := of.maintenance(c.read(stored))
		if ok && (arn == "" || strings.EqualFold(arn, m.ARN)) {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b Maintenance) int { return strings.Compare(a.key, b.key) })
	return list, nil
}

// After is the text that a list goes on after.
func (m Maintenance) After() string { return m.key }

// maintained finds the instance that an ARN names; anything else is no resource
// that maintenance knows.
func (c *Control) maintained(arn string) (Instance, error) {
	kind, name, err := c.ParseARN(arn)
	if err != nil {
		return Instance{}, err
	}
	of := c.of(kind == c.Clusters().Words().DB)
	i, err := of.find(name)
	if kind != of.Words().DB || err != nil {
		return Instance{}, kurabe.Errorf(kurabe.CodeResourceNotFound, "%s not found.", arn)
	}
	return of.read(i), nil
}

// maintenance describes what waits for an instance's window, if anything does.
func (c *Control) maintenance(i Instance) (Maintenance, bool) {
	s := i.Spec
	if s.Deleting != nil || (s.Next == nil && s.NextName == "") || i.Status.AppliedNext >= s.NextSeq {
		return Maintenance{}, false
	}
	next := s.Now
	if s.Next != nil {
		next = *s.Next
	}
	action, changes := describeNext(s.Now, next)
	if s.NextName != "" && s.NextName != s.Name {
		action = ActionUpdate
		if s.Now.EngineVersion != next.EngineVersion {
			action = ActionUpgrade
		}
		changes = append(changes, fmt.Sprintf("name %s to %s", s.Name, s.NextName))
	}
	m := Maintenance{
		Instance: i.Name, ARN: c.ARN(c.Words().DB, i.Name), Action: action, OptIn: OptInNext, key: c.Key(i.Name),
		Description: "Modifications that wait for the maintenance window: " + strings.Join(changes, ", "),
	}
	if w, err := kurabe.ParseMaintenanceWindow(s.MaintenanceWindow); err == nil {
		opened, open, coming := w.Next(c.Now())
		m.At = coming
		if open {
			m.At = opened
		}
	}
	return m, true
}

// describeNext names the action and lists the differences for people.
func describeNext(now, next kurabe.InstanceSettings) (string, []string) {
	var changes []string
	add := func(what string, from, to any) {
		if from != to {
			changes = append(changes, fmt.Sprintf("%s %v to %v", what, from, to))
		}
	}
	add("certificate authority", now.CACertificate, next.CACertificate)
	onlyCertificate := len(changes) > 0
	add("engine version", now.EngineVersion, next.EngineVersion)
	add("class", now.Class, next.Class)
	add("Multi-AZ", now.MultiAZ, next.MultiAZ)
	add("storage in GiB", now.StorageGiB, next.StorageGiB)
	add("storage type", now.StorageType, next.StorageType)
	add("IOPS", now.IOPS, next.IOPS)
	add("throughput in MiB/s", now.ThroughputMiB, next.ThroughputMiB)
	add("port", now.Port, next.Port)
	switch {
	case now.EngineVersion != next.EngineVersion:
		return ActionUpgrade, changes
	case onlyCertificate && len(changes) == 1:
		return ActionCertificate, changes
	}
	return ActionUpdate, changes
}

// ApplyMaintenance opts in to a pending action. At once, it leaves nothing
// pending. For the next window it changes nothing, for that is when the action
// is applied anyway, and taking that back changes nothing either.
func (c *Control) ApplyMaintenance(ctx context.Context, arn, action, optIn string) (Maintenance, error) {
	if !slices.Contains([]string{OptInImmediate, OptInNext, OptInUndo}, optIn) {
		return Maintenance{}, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid opt in type: %s; valid are immediate, next-maintenance and undo-opt-in", optIn)
	}
	i, err := c.maintained(arn)
	if err != nil {
		return Maintenance{}, err
	}
	if i.Spec.Deleting != nil {
		return Maintenance{}, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "Instance %s is already being deleted.", i.Name)
	}
	of := c.of(i.Spec.Cluster)
	m, ok := of.maintenance(i)
	if !ok || m.Action != action {
		return Maintenance{}, noSuchAction(arn, action)
	}
	if optIn != OptInImmediate {
		return m, nil
	}
	after, err := of.change(ctx, i.Name, func(i Instance, s *kurabe.InstanceSpec, change *store.Change) error {
		now, ok := of.maintenance(i)
		if !ok || now.Action != action {
			return noSuchAction(arn, action)
		}
		if !slices.Contains(modifiable, i.State) {
			return kurabe.Errorf(kurabe.CodeInvalidInstanceState, kurabe.WordsNotAvailable+" %s is %s.", i.Name, i.State)
		}
		before := *s
		settle(s, i.names, change)
		s.Action = modifyAction(before, *s)
		return nil
	})
	m.OptIn, m.At, m.Instance, m.ARN = OptInImmediate, c.Now().UTC(), after.Name, c.ARN(of.Words().DB, after.Name)
	if of.Cluster {
		err = AsCluster(err)
	}
	return m, err
}

func noSuchAction(arn, action string) error {
	return kurabe.Errorf(kurabe.CodeResourceNotFound, "%s has no pending maintenance action %s", arn, action)
}
