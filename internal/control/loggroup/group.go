package loggroup

import (
	"context"
	"slices"
	"strings"
	"time"

	"kurabe"
	"kurabe/internal/control/scope"
	"kurabe/internal/store"
)

// groupsMax bounds the records, which every View holds in memory.
const groupsMax = 10_000

// Groups are the log groups of a scope.
type Groups struct{ scope.Scope }

// ARN is that of a group, without the end :* of some answers.
func (g Groups) ARN(name string) string { return g.arnPrefix() + name }

func (g Groups) arnPrefix() string {
	return "arn:aws:logs:" + g.Region + ":" + g.Account + ":log-group:"
}

// Name is that of a group that is named by itself or by its ARN, with :* behind it or not.
func (g Groups) Name(identifier string) (string, error) {
	name := identifier
	if strings.HasPrefix(identifier, "arn:") {
		rest, ours := strings.CutPrefix(identifier, g.arnPrefix())
		if name = strings.TrimSuffix(rest, ":*"); !ours {
			return "", kurabe.Errorf(kurabe.CodeInvalidParameterValue, "%.600s is no ARN of a log group of this account and region", identifier)
		}
	}
	return name, kurabe.CheckLogGroupName(name)
}

// Find returns a group by its name or ARN.
func (g Groups) Find(identifier string) (kurabe.LogGroup, error) {
	r, err := g.record(identifier)
	return r.Value, err
}

func (g Groups) record(identifier string) (store.Record[kurabe.LogGroup], error) {
	name, err := g.Name(identifier)
	if err != nil {
		return store.Record[kurabe.LogGroup]{}, err
	}
	r, ok := g.View.LogGroup(name)
	if !ok || r.Value.Gone {
		return r, kurabe.Errorf(kurabe.CodeResourceNotFound, "The specified log group does not exist.")
	}
	return r, nil
}

// List returns the groups by name.
func (g Groups) List() (list []kurabe.LogGroup) {
	for _, r := range g.View.LogGroups() {
		if !r.Value.Gone {
			list = append(list, r.Value)
		}
	}
	slices.SortFunc(list, func(a, b kurabe.LogGroup) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Create makes a group. One that is there is CodeInstanceExists.
func (g Groups) Create(ctx context.Context, name string, tags []kurabe.Tag, protected bool) error {
	if err := kurabe.CheckLogGroupName(name); err != nil {
		return err
	}
	if err := kurabe.CheckTags(tags); err != nil {
		return err
	}
	return g.Scope.Create(ctx, func() (*store.Change, error) {
		r, known := g.View.LogGroup(name)
		if known && !r.Value.Gone {
			return nil, kurabe.Errorf(kurabe.CodeInstanceExists, "The specified log group already exists")
		}
		if len(g.View.LogGroups()) >= groupsMax {
			return nil, kurabe.Errorf(kurabe.CodeInstanceQuota, "Resource limit exceeded: there are %d log groups", groupsMax)
		}
		made := kurabe.LogGroup{Name: name, CreatedAt: g.Now().UTC(), Tags: tags, Protected: protected, DeletedAt: r.Value.DeletedAt, Away: r.Value.Away}
		return store.NewChange().PutLogGroup(made, r.ModRevision), nil
	})
}

// Adopt makes the group of events that a host has, as those of a database's log, when it has no
// record. Enhanced Monitoring is kept for as long as on RDS.
func (g Groups) Adopt(ctx context.Context, name string) error {
	if r, known := g.View.LogGroup(name); known && !r.Value.Gone {
		return nil
	}
	err := g.Create(ctx, name, nil, false)
	if err == nil && name == kurabe.OSMetricsGroup {
		return g.SetRetention(ctx, name, kurabe.OSMetricsDays)
	}
	if kurabe.CodeOf(err) == kurabe.CodeInstanceExists {
		return nil
	}
	return err
}

// Delete removes a group. The hosts are to remove its streams that are not younger than at, and
// are then Told; a host that is away learns it later.
func (g Groups) Delete(ctx context.Context, identifier string, hosts []kurabe.HostID) (name string, at time.Time, err error) {
	at = g.Now().UTC()
	return name, at, g.Update(ctx, func() (*store.Change, error) {
		r, err := g.record(identifier)
		if err != nil {
			return nil, err
		}
		if r.Value.Protected {
			return nil, kurabe.Errorf(kurabe.CodeInvalidInstanceState, "The log group %s has deletion protection; PutLogGroupDeletionProtection takes it away", r.Value.Name)
		}
		name = r.Value.Name
		gone := kurabe.LogGroup{Name: name, DeletedAt: at, Away: hosts, Gone: true}
		return store.NewChange().PutLogGroup(gone, r.ModRevision), nil
	})
}

// Told takes down that hosts have removed the streams of a group that was deleted at a time.
func (g Groups) Told(ctx context.Context, name string, at time.Time, hosts []kurabe.HostID) error {
	return g.Update(ctx, func() (*store.Change, error) {
		r, known := g.View.LogGroup(name)
		if !known || !r.Value.DeletedAt.Equal(at) {
			return nil, nil
		}
		next := r.Value
		next.Away = slices.DeleteFunc(slices.Clone(next.Away), func(h kurabe.HostID) bool { return slices.Contains(hosts, h) })
		if len(next.Away) == 0 && next.Gone {
			return store.NewChange().DeleteLogGroup(name, r.ModRevision), nil
		}
		if len(next.Away) == 0 {
			next.DeletedAt = time.Time{}
		}
		return store.NewChange().PutLogGroup(next, r.ModRevision), nil
	})
}

// SetRetention has events be removed after a number of days, 0 for never.
func (g Groups) SetRetention(ctx context.Context, identifier string, days int) error {
	return g.modify(ctx, identifier, func(group *kurabe.LogGroup) error {
		group.RetentionDays = days
		return nil
	})
}

// SetProtected has a group be protected from deletion, or not.
func (g Groups) SetProtected(ctx context.Context, identifier string, protected bool) error {
	return g.modify(ctx, identifier, func(group *kurabe.LogGroup) error {
		group.Protected = protected
		return nil
	})
}

// AddTags sets tags: known keys get the new value.
func (g Groups) AddTags(ctx context.Context, identifier string, tags []kurabe.Tag) error {
	return g.modify(ctx, identifier, func(group *kurabe.LogGroup) error {
		group.Tags = kurabe.WithTags(group.Tags, tags)
		return kurabe.CheckTags(group.Tags)
	})
}

// RemoveTags removes tags.
func (g Groups) RemoveTags(ctx context.Context, identifier string, keys []string) error {
	return g.modify(ctx, identifier, func(group *kurabe.LogGroup) error {
		group.Tags = slices.DeleteFunc(slices.Clone(group.Tags), func(t kurabe.Tag) bool { return slices.Contains(keys, t.Key) })
		return nil
	})
}

func (g Groups) modify(ctx context.Context, identifier string, edit func(*kurabe.LogGroup) error) error {
	return g.Update(ctx, func() (*store.Change, error) {
		r, err := g.record(identifier)
		if err != nil {
			return nil, err
		}
		next := r.Value
		if err := edit(&next); err != nil {
			return nil, err
		}
		return store.NewChange().PutLogGroup(next, r.ModRevision), nil
	})
}
