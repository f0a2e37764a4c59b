package parameter

import (
	"context"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/control/scope"
	"kurabe/internal/store"
)

const defaultGroupPrefix = "default."

// MaxGroups is twice RDS's default quota.
const MaxGroups = 100

// ParameterGroup returns a group by its name or ARN, a default one included.
func (c Groups) ParameterGroup(name string) (kurabe.ParameterGroup, error) {
	g, err := c.Record(name)
	return g.Value, err
}

// Record is ParameterGroup with the revision, 0 for a default group.
func (c Groups) Record(name string) (store.Record[kurabe.ParameterGroup], error) {
	folded := strings.ToLower(strings.TrimPrefix(name, c.ARN(c.Words().Group, "")))
	if g, ok := c.View.ParameterGroup(c.Key(folded)); ok && g.Value.Cluster == c.Cluster {
		return g, nil
	}
	if family, ok := strings.CutPrefix(folded, defaultGroupPrefix); ok {
		if _, ok := c.Catalog(family); ok {
			return store.Record[kurabe.ParameterGroup]{Value: c.defaultParameterGroup(family)}, nil
		}
	}
	text := kurabe.WordsGroupNotFound
	if c.Cluster {
		text = kurabe.WordsClusterGroupNotFound
	}
	return store.Record[kurabe.ParameterGroup]{}, kurabe.Errorf(kurabe.CodeParameterGroupNotFound, text, name)
}

func (c Groups) defaultParameterGroup(family string) kurabe.ParameterGroup {
	text := "Default parameter group for " + family
	if c.Cluster {
		text = "Default cluster parameter group for " + family
	}
	return kurabe.ParameterGroup{Name: kurabe.DefaultGroup(family), Family: family, Description: text, Cluster: c.Cluster}
}

// ParameterGroups lists every group by name, the default ones included.
func (c Groups) ParameterGroups() []kurabe.ParameterGroup {
	var list []kurabe.ParameterGroup
	for _, family := range c.Families() {
		list = append(list, c.defaultParameterGroup(family))
	}
	list = append(list, c.OwnGroups()...)
	slices.SortFunc(list, func(a, b kurabe.ParameterGroup) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// OwnGroups are the groups that users have made.
func (c Groups) OwnGroups() []kurabe.ParameterGroup {
	var list []kurabe.ParameterGroup
	for _, g := range c.View.ParameterGroups() {
		if g.Value.Cluster == c.Cluster {
			list = append(list, g.Value)
		}
	}
	return list
}

// groupParameterName is RDS's name of the parameter that names a group.
func (c Groups) groupParameterName(role, ending string) string {
	return role + strings.TrimSuffix(c.Words().Is, "Instance") + "ParameterGroup" + ending
}

// CreateParameterGroup stores a new group. Only Name, Family, Description,
// Values and Tags of g are read.
func (c Groups) CreateParameterGroup(ctx context.Context, g kurabe.ParameterGroup) (kurabe.ParameterGroup, error) {
	cat, err := c.RequireFamily(g.Family)
	if err != nil {
		return g, err
	}
	return c.storeParameterGroup(ctx, c.groupParameterName("", "Name"), kurabe.ParameterGroup{
		Name: g.Name, Family: cat.Family, Description: g.Description, Tags: g.Tags,
	})
}

// CopyParameterGroup stores a new group with another one's values. Tags are not
// copied: they are those of target.
func (c Groups) CopyParameterGroup(ctx context.Context, source string, target kurabe.ParameterGroup) (kurabe.ParameterGroup, error) {
	from, err := c.ParameterGroup(source)
	if err != nil {
		return target, err
	}
	if strings.HasPrefix(from.Name, defaultGroupPrefix) {
		return target, kurabe.Errorf(kurabe.CodeInvalidParameterValue, "The default DB parameter group %s cannot be copied; create a new one of family %s", from.Name, from.Family)
	}
	target.Family, target.Values = from.Family, from.Values
	return c.storeParameterGroup(ctx, c.groupParameterName("Target", "Identifier"), target)
}

func (c Groups) storeParameterGroup(ctx context.Context, field string, g kurabe.ParameterGroup) (kurabe.ParameterGroup, error) {
	name, err := kurabe.FoldGroupName(field, g.Name)
	if err != nil {
		return g, err
	}
	if err := scope.CheckDescription(g.Description); err != nil {
		return g, err
	}
	if err := kurabe.CheckTags(g.Tags); err != nil {
		return g, err
	}
	g.Name, g.Revision, g.CreatedAt, g.Cluster = name, 1, c.Now().UTC(), c.Cluster
	return g, c.Create(ctx, func() (*store.Change, error) {
		revision := c.View.Revision()
		if _, taken := c.View.ParameterGroup(c.Key(name)); taken {
			return nil, kurabe.Errorf(kurabe.CodeParameterGroupExists, "Parameter group %s already exists", name)
		}
		if len(c.OwnGroups()) >= MaxGroups {
			return nil, kurabe.Errorf(kurabe.CodeParameterGroupQuota, "Cannot create more than %d DB parameter groups", MaxGroups)
		}
		return store.NewChange().CreateParameterGroup(g).RequireParameterGroupsUnwritten(revision), nil
	})
}

// DeleteParameterGroup removes a group that no instance has.
func (c Groups) DeleteParameterGroup(ctx context.Context, name string) error {
	return c.Update(ctx, func() (*store.Change, error) {
		revision := c.View.Revision()
		g, err := c.OwnRecord(name, kurabe.Errorf(kurabe.CodeInvalidParameterGroup, kurabe.WordsDefaultGroupDeleted, name))
		if err != nil {
			return nil, err
		}
		for _, i := range c.View.Instances() {
			if i.Spec.Cluster == c.Cluster && i.Spec.ParameterGroup == g.Value.Name {
				return nil, kurabe.Errorf(kurabe.CodeInvalidParameterGroup, kurabe.WordsGroupInUse, strings.ToLower(c.Words().Title), g.Value.Name)
			}
		}
		// An instance that takes the group up meanwhile makes this conflict.
		return store.NewChange().DeleteParameterGroup(g.Value.Key(), g.ModRevision).RequireInstancesUnwritten(revision), nil
	})
}

// OwnRecord returns a group that may be changed.
func (c Groups) OwnRecord(name string, refusal error) (store.Record[kurabe.ParameterGroup], error) {
	g, err := c.Record(name)
	if err == nil && strings.HasPrefix(g.Value.Name, defaultGroupPrefix) {
		return g, refusal
	}
	return g, err
}

// ErrDefault is RDS's refusal to change a default group.
var ErrDefault = kurabe.Errorf(kurabe.CodeInvalidParameterValue, kurabe.WordsDefaultGroupModified)
