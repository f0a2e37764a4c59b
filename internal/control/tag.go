package control

import (
	"context"
	"slices"

	"kurabe"
	"kurabe/internal/control/parameter"
	"kurabe/internal/store"
)

// absent are the kinds of resource that RDS has and this service does not, with
// the code that says that one was not found.
var absent = map[string]kurabe.Code{
	"secgrp": kurabe.CodeSecurityGroupNotFound, "ri": kurabe.CodeResourceNotFound,
	"target-group": kurabe.CodeProxyTargetGroup, "cluster-auto-backup": kurabe.CodeResourceNotFound,
	"cluster-endpoint": kurabe.CodeResourceNotFound, "deployment": kurabe.CodeResourceNotFound,
	"auto-backup": kurabe.CodeResourceNotFound, "cev": kurabe.CodeResourceNotFound, "snapshot-tenant-database": kurabe.CodeResourceNotFound,
}

// Tags returns a resource's tags in the order in which they were given.
func (c *Control) Tags(arn string) ([]kurabe.Tag, error) {
	kind, name, err := c.ParseARN(arn)
	if err != nil {
		return nil, err
	}
	if c.Clusters().names(kind) && !c.Cluster {
		tags, err := c.Clusters().Tags(arn)
		return tags, AsCluster(err)
	}
	switch kind {
	case c.Words().DB:
		i, err := c.Instance(name) // a server of a cluster shows those of the cluster
		if err != nil {
			return nil, err
		}
		return i.Spec.Tags, nil
	case c.Words().Snapshot:
		s, err := c.findSnapshot(name)
		if err != nil {
			return nil, err
		}
		return s.Spec.Tags, nil
	case c.Words().Group:
		g, err := c.ParameterGroup(name)
		return g.Tags, err
	case "subgrp":
		g, err := c.SubnetGroup(name)
		return g.Tags, err
	case "es":
		s, err := c.taggedSubscription(name, arn)
		return s.Tags, err
	case "db-proxy", "db-proxy-endpoint":
		if tags, ok := c.ProxyTags(name); ok {
			return tags, nil
		}
		return nil, kurabe.Errorf(kurabe.CodeProxyNotFound, "%s not found.", arn)
	case "og":
		_, err := c.OptionGroup(name)
		return nil, err
	}
	return nil, notFound(kind, arn)
}

// names says whether resources of a kind are those of these use cases.
func (c *Control) names(kind string) bool {
	w := c.Words()
	return kind == w.DB || kind == w.Snapshot || kind == w.Group
}

// taggedSubscription returns an event subscription. That none is there has another code in the
// actions on tags than in its own.
func (c *Control) taggedSubscription(name, arn string) (kurabe.EventSubscription, error) {
	s, err := c.EventSubscription(name)
	if err != nil {
		return s, kurabe.Errorf(kurabe.CodeResourceNotFound, "%s not found.", arn)
	}
	return s, nil
}

func notFound(kind, arn string) error {
	code, known := absent[kind]
	if !known {
		return kurabe.Errorf(kurabe.CodeInvalidParameterValue, "Invalid resource name: %s", arn)
	}
	return kurabe.Errorf(code, "%s not found.", arn)
}

// AddTags sets tags on a resource: known keys get the new value in their place,
// new ones follow in the order given.
func (c *Control) AddTags(ctx context.Context, arn string, tags []kurabe.Tag) error {
	if err := kurabe.CheckTags(tags); err != nil {
		return err
	}
	for _, t := range tags {
		if err := checkOwnTags(t.Key); err != nil {
			return err
		}
	}
	return c.editTags(ctx, arn, func(have []kurabe.Tag) []kurabe.Tag { return kurabe.WithTags(have, tags) })
}

// RemoveTags takes tags off a resource; a key that it does not have is no error.
// Marks of our own commands go like others: a tool that declares the tags of a resource
// could not come to rest otherwise.
func (c *Control) RemoveTags(ctx context.Context, arn string, keys []string) error {
	return c.editTags(ctx, arn, func(have []kurabe.Tag) []kurabe.Tag {
		return slices.DeleteFunc(slices.Clone(have), func(t kurabe.Tag) bool { return slices.Contains(keys, t.Key) })
	})
}

// editTags runs an edit on the tags of whatever an ARN names.
func (c *Control) editTags(ctx context.Context, arn string, edit func([]kurabe.Tag) []kurabe.Tag) error {
	kind, name, err := c.ParseARN(arn)
	if err != nil {
		return err
	}
	if c.Clusters().names(kind) && !c.Cluster {
		return AsCluster(c.Clusters().editTags(ctx, arn, edit))
	}
	checked := func(have []kurabe.Tag) ([]kurabe.Tag, error) {
		tags := edit(have)
		return tags, kurabe.CheckTags(tags)
	}
	switch kind {
	case c.Words().DB:
		return c.editInstanceTags(ctx, name, checked)
	case c.Words().Snapshot:
		_, err := c.editSnapshot(ctx, name, func(s *kurabe.SnapshotSpec) error {
			var err error
			s.Tags, err = checked(s.Tags)
			return err
		})
		return err
	case c.Words().Group:
		return c.Update(ctx, func() (*store.Change, error) {
			g, err := c.OwnRecord(name, parameter.ErrDefault)
			if err != nil {
				return nil, err
			}
			if g.Value.Tags, err = checked(g.Value.Tags); err != nil {
				return nil, err
			}
			// Revision numbers the values, which stay.
			return store.NewChange().PutParameterGroup(g.Value, g.ModRevision), nil
		})
	case "subgrp":
		return c.Update(ctx, func() (*store.Change, error) {
			g, err := c.OwnSubnetGroup(name, "tagged")
			if err != nil {
				return nil, err
			}
			if g.Value.Tags, err = checked(g.Value.Tags); err != nil {
				return nil, err
			}
			return store.NewChange().PutSubnetGroup(g.Value, g.ModRevision), nil
		})
	case "es":
		if _, err := c.taggedSubscription(name, arn); err != nil {
			return err
		}
		return c.EditSubscriptionTags(ctx, name, checked)
	case "db-proxy", "db-proxy-endpoint":
		return c.EditProxyTags(ctx, name, checked)
	case "og":
		return c.ChangeOptionGroup(name)
	}
	return notFound(kind, arn)
}

func (c *Control) editInstanceTags(ctx context.Context, name string, edit func([]kurabe.Tag) ([]kurabe.Tag, error)) error {
	_, err := c.change(ctx, name, func(i Instance, s *kurabe.InstanceSpec, _ *store.Change) error {
		tags, err := edit(s.Tags)
		if err != nil {
			return err
		}
		s.Tags = tags
		if i.Status.SpecRevision >= s.Revision {
			s.Action = "" // tags change nothing of the database: no status leads through them
		}
		return nil
	})
	return err
}
