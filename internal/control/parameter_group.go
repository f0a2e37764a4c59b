package control

import (
	"context"
	"slices"
	"strings"

	"kurabe"
	"kurabe/internal/store"
)

// Bounds of parameter groups.
const (
	maxParameterGroups  = 100 // twice RDS's default quota
	maxGroupDescription = 255 // RDS's
	defaultGroupPrefix  = "default."
)

// ParameterGroup returns a group by its name or ARN, a default one included.
func (c *Control) ParameterGroup(name string) (kurabe.ParameterGroup, error) {
	g, err := c.parameterGroup(name)
	return g.Value, err
}

// parameterGroup is ParameterGroup with the revision, 0 for a default group.
func (c *Control) parameterGroup(name string) (store.Record[kurabe.ParameterGroup], error) {
	folded := strings.ToLower(strings.TrimPrefix(name, c.ARN(c.words().group, "")))
	if g, ok := c.View.ParameterGroup(c.key(folded)); ok && g.Value.Cluster == c.cluster {
		return g, nil
	}
	if family, ok := strings.CutPrefix(folded, defaultGroupPrefix); ok {
		if _, ok := c.catalog(family); ok {
			return store.Record[kurabe.ParameterGroup]{Value: c.defaultParameterGroup(family)}, nil
		}
	}
	text := kurabe.WordsGroupNotFound
	if c.cluster {
		text = kurabe.WordsClusterGroupNotFound
	}
	return store.Record[kurabe.ParameterGroup]{}, kurabe.Errorf(kurabe.CodeParameterGroupNotFound, text, name)
}

func (c *Control) defaultParameterGroup(family string) kurabe.ParameterGroup {
	text := "Default parameter group for " + family
	if c.cluster {
		text = "Default cluster parameter group for " + family
	}
	return kurabe.ParameterGroup{Name: kurabe.DefaultGroup(family), Family: family, Description: text, Cluster: c.cluster}
}

// ParameterGroups lists every group by name, the default ones included.
func (c *Control) ParameterGroups() []kurabe.ParameterGroup {
	var list []kurabe.ParameterGroup
	for _, family := range c.families() {
		list = append(list, c.defaultParameterGroup(family))
	}
	list = append(list, c.ownGroups()...)
	slices.SortFunc(list, func(a, b kurabe.ParameterGroup) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// ownGroups are the groups that users have made.
func (c *Control) ownGroups() []kurabe.ParameterGroup {
	var list []kurabe.ParameterGroup
	for _, g := range c.View.ParameterGroups() {
		if g.Value.Cluster == c.cluster {
			list = append(list, g.Value)
		}
	}
	return list
}

// groupParameterName is RDS's name of the parameter that names a group.
func (c *Control) groupParameterName(role, ending string) string {
	return role + strings.TrimSuffix(c.words().is, "Instance") + "ParameterGroup" + ending
}

// CreateParameterGroup stores a new group. Only Name, Family, Description,
// Values and Tags of g are read.
func (c *Control) CreateParameterGroup(ctx context.Context, g kurabe.ParameterGroup) (kurabe.ParameterGroup, error) {
	cat, err := c.requireFamily(g.Family)
	if err != nil {
		return g, err
	}
	return c.storeParameterGroup(ctx, c.groupParameterName("", "Name"), kurabe.ParameterGroup{
		Name: g.Name, Family: cat.Family, Description: g.Description, Tags: g.Tags,
	})
}

// CopyParameterGroup stores a new group with another one's values. Tags are not
// copied: they are those of target.
func (c *Control) CopyParameterGroup(ctx context.Context, source string, target kurabe.ParameterGroup) (kurabe.ParameterGroup, error) {
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

func (c *Control) storeParameterGroup(ctx context.Context, field string, g kurabe.ParameterGroup) (kurabe.ParameterGroup, error) {
	name, err := kurabe.FoldGroupName(field, g.Name)
	if err != nil {
		return g, err
	}
	if err := checkGroupDescription(g.Description); err != nil {
		return g, err
	}
	if err := kurabe.CheckTags(g.Tags); err != nil {
		return g, err
	}
	g.Name, g.Revision, g.CreatedAt, g.Cluster = name, 1, c.Now().UTC(), c.cluster
	c.creating.Lock()
	defer c.creating.Unlock()
	return g, c.update(ctx, func() (*store.Change, error) {
		revision := c.View.Revision()
		if _, taken := c.View.ParameterGroup(c.key(name)); taken {
			return nil, kurabe.Errorf(kurabe.CodeParameterGroupExists, "Parameter group %s already exists", name)
		}
		if len(c.ownGroups()) >= maxParameterGroups {
			return nil, kurabe.Errorf(kurabe.CodeParameterGroupQuota, "Cannot create more than %d DB parameter groups", maxParameterGroups)
		}
		return store.NewChange().CreateParameterGroup(g).RequireParameterGroupsUnwritten(revision), nil
	})
}

func checkGroupDescription(text string) error {
	if text == "" || len([]rune(text)) > maxGroupDescription {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "The description of a group has 1 to %d characters", maxGroupDescription)
	}
	return nil
}

// DeleteParameterGroup removes a group that no instance has.
func (c *Control) DeleteParameterGroup(ctx context.Context, name string) error {
	return c.update(ctx, func() (*store.Change, error) {
		revision := c.View.Revision()
		g, err := c.ownParameterGroup(name, kurabe.Errorf(kurabe.CodeInvalidParameterGroup, kurabe.WordsDefaultGroupDeleted, name))
		if err != nil {
			return nil, err
		}
		for _, i := range c.View.Instances() {
			if i.Spec.Cluster == c.cluster && i.Spec.ParameterGroup == g.Value.Name {
				return nil, kurabe.Errorf(kurabe.CodeInvalidParameterGroup, kurabe.WordsGroupInUse, strings.ToLower(c.words().title), g.Value.Name)
			}
		}
		// An instance that takes the group up meanwhile makes this conflict.
		return store.NewChange().DeleteParameterGroup(g.Value.Key(), g.ModRevision).RequireInstancesUnwritten(revision), nil
	})
}

// ownParameterGroup returns a group that may be changed.
func (c *Control) ownParameterGroup(name string, refusal error) (store.Record[kurabe.ParameterGroup], error) {
	g, err := c.parameterGroup(name)
	if err == nil && strings.HasPrefix(g.Value.Name, defaultGroupPrefix) {
		return g, refusal
	}
	return g, err
}

// errDefaultGroup is RDS's refusal to change a default group.
var errDefaultGroup = kurabe.Errorf(kurabe.CodeInvalidParameterValue, kurabe.WordsDefaultGroupModified)

// DefaultGroupOf is the default parameter group of the version that an instance runs.
func (c *Control) DefaultGroupOf(i Instance) string {
	v, err := c.engineVersion(string(i.Spec.Engine), i.EngineVersion())
	if err != nil {
		return i.Spec.ParameterGroup // a version that is on no host any more
	}
	return kurabe.DefaultGroup(v.Family)
}
