package target

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/lab/owner"
	"kurabe/lab/study"
)

// Close implements Target. It looks for what has our tags instead of remembering it, so
// that an instance whose creation was cut off between request and answer goes too.
func (t *rdsTarget) Close(ctx context.Context) error {
	if !t.made {
		return nil
	}
	ctx, cancel := closing(ctx)
	defer cancel()
	_, err := t.sweep(ctx, func(id, _ string) string {
		if id != t.id {
			return "another study's"
		}
		return ""
	})
	return err
}

// CleanRDS removes what studies left on a service that died before they could, and says
// what it removed, and what it kept and why. Whether a study still runs it knows of this
// machine only: what belongs to a lab on another one goes with Options.Others.
func CleanRDS(ctx context.Context, o Options) ([]string, error) {
	o.Engine = study.Postgres // any: nothing is created
	t, err := newRDS(ctx, o)
	if err != nil {
		return nil, err
	}
	return t.sweep(ctx, func(_, whose string) string { return keep(whose, t.owner, o.Others) })
}

// keep says why something must stay, "" when it may go.
func keep(whose string, me owner.Owner, others bool) string {
	o, err := owner.Parse(whose)
	switch {
	case err != nil && others:
		return ""
	case err != nil:
		return "nothing says which lab it belongs to"
	}
	switch o.Life(me) {
	case owner.Alive:
		return fmt.Sprintf("its lab runs as process %d", o.PID)
	case owner.Unknown:
		if !others {
			return "its lab is or was on another machine or in a container, where we cannot see it"
		}
	}
	return ""
}

// resource is something with the lab's tags.
type resource struct{ kind, name, id, owner string }

func (r resource) String() string { return r.kind + " " + r.name }

// sweep deletes what has the lab's tags but where stays gives a reason, in the order that
// the service allows: an instance holds its group, and is a snapshot's source.
func (t *rdsTarget) sweep(ctx context.Context, stays func(id, owner string) string) (said []string, failure error) {
	fail := func(err error) { failure = errors.Join(failure, err) }
	for _, step := range []struct {
		list   func(context.Context) ([]resource, error)
		remove func(context.Context, string) error
		wait   func(context.Context, string) error
	}{
		{t.leftSecrets, t.removeProxy, nil},
		{t.instances, t.destroy, t.gone},
		{t.snapshots, t.deleteSnapshot, t.snapshotGone},
		{t.parameterGroups, t.deleteGroup, nil},
	} {
		all, err := step.list(ctx)
		if err != nil {
			fail(err)
			continue
		}
		var going []resource
		for _, r := range all {
			if why := stays(r.id, r.owner); why != "" {
				said = append(said, fmt.Sprintf("kept %s: %s", r, why))
			} else if err := step.remove(ctx, r.name); err != nil {
				fail(err)
			} else {
				going = append(going, r)
			}
		}
		for _, r := range going {
			if step.wait != nil {
				if err := step.wait(ctx, r.name); err != nil {
					fail(err)
					continue
				}
			}
			said = append(said, "removed "+r.String())
		}
	}
	return said, failure
}

func (t *rdsTarget) instances(ctx context.Context) ([]resource, error) {
	var list []resource
	in := &rds.DescribeDBInstancesInput{}
	for range pagesMax {
		out, err := t.client.DescribeDBInstances(ctx, in)
		if err != nil {
			return nil, explain("list the instances", err)
		}
		for _, i := range out.DBInstances {
			list = ofLab(list, "instance", i.DBInstanceIdentifier, i.TagList)
		}
		if in.Marker = out.Marker; aws.ToString(in.Marker) == "" {
			break
		}
	}
	return list, nil
}

func (t *rdsTarget) snapshots(ctx context.Context) ([]resource, error) {
	var list []resource
	in := &rds.DescribeDBSnapshotsInput{SnapshotType: aws.String("manual")}
	for range pagesMax {
		out, err := t.client.DescribeDBSnapshots(ctx, in)
		if err != nil {
			return nil, explain("list the snapshots", err)
		}
		for _, s := range out.DBSnapshots {
			list = ofLab(list, "snapshot", s.DBSnapshotIdentifier, s.TagList)
		}
		if in.Marker = out.Marker; aws.ToString(in.Marker) == "" {
			break
		}
	}
	return list, nil
}

// parameterGroups asks for tags one by one, as the list has none.
func (t *rdsTarget) parameterGroups(ctx context.Context) ([]resource, error) {
	var list []resource
	in := &rds.DescribeDBParameterGroupsInput{}
	for range pagesMax {
		out, err := t.client.DescribeDBParameterGroups(ctx, in)
		if err != nil {
			return nil, explain("list the parameter groups", err)
		}
		for _, g := range out.DBParameterGroups {
			if !strings.HasPrefix(aws.ToString(g.DBParameterGroupName), namePrefix) {
				continue
			}
			tags, err := t.client.ListTagsForResource(ctx, &rds.ListTagsForResourceInput{ResourceName: g.DBParameterGroupArn})
			if hasCode(err, "DBParameterGroupNotFound") {
				continue
			}
			if err != nil {
				return nil, explain("look at parameter group "+aws.ToString(g.DBParameterGroupName), err)
			}
			list = ofLab(list, "parameter group", g.DBParameterGroupName, tags.TagList)
		}
		if in.Marker = out.Marker; aws.ToString(in.Marker) == "" {
			break
		}
	}
	return list, nil
}

// ofLab adds a resource when both its name and its tags are the lab's. A copy of a
// snapshot that somebody keeps under a name of his own may have its tags.
func ofLab(list []resource, kind string, name *string, tags []types.Tag) []resource {
	id, owner := labTags(tags)
	if id == "" || !strings.HasPrefix(aws.ToString(name), namePrefix) {
		return list
	}
	return append(list, resource{kind: kind, name: aws.ToString(name), id: id, owner: owner})
}

func (t *rdsTarget) deleteSnapshot(ctx context.Context, name string) error {
	in := &rds.DeleteDBSnapshotInput{DBSnapshotIdentifier: aws.String(name)}
	_, err := t.client.DeleteDBSnapshot(ctx, in)
	if hasCode(err, "InvalidDBSnapshotState") && t.snapshotAvailable(ctx, name) == nil {
		_, err = t.client.DeleteDBSnapshot(ctx, in)
	}
	if hasCode(err, "DBSnapshotNotFound") {
		return nil
	}
	return explain("delete snapshot "+name, err)
}
