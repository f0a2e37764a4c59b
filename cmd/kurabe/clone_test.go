package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/google/go-cmp/cmp"
)

// Only what a clone made, and what no clone is at work on, may be removed.
func TestAbandoned(t *testing.T) {
	tag := []types.Tag{{Key: aws.String("team"), Value: aws.String("blue")}, {Key: aws.String(cloneTag), Value: aws.String("temporary")}}
	for _, c := range []struct {
		name, status string
		tags         []types.Tag
		want         bool
	}{
		{"left behind", "available", tag, true},
		{"left behind and failed", "failed", tag, true},
		{"being taken, perhaps by another clone", "creating", tag, false},
		{"told to go already", "deleting", tag, false},
		{"a user's", "available", tag[:1], false},
		{"without tags", "available", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := abandoned(types.DBSnapshot{Status: aws.String(c.status), TagList: c.tags}); got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestRestoreOf(t *testing.T) {
	source := types.DBInstance{
		DBInstanceIdentifier: aws.String("shop"), DBInstanceClass: aws.String("db.m5.large"), DeletionProtection: aws.Bool(true),
		DBParameterGroups:      []types.DBParameterGroupStatus{{DBParameterGroupName: aws.String("tuned")}},
		OptionGroupMemberships: []types.OptionGroupMembership{{OptionGroupName: aws.String("default:postgres-15")}},
		DBSubnetGroup:          &types.DBSubnetGroup{DBSubnetGroupName: aws.String("inner")},
		BackupRetentionPeriod:  aws.Int32(0), AutoMinorVersionUpgrade: aws.Bool(false), CopyTagsToSnapshot: aws.Bool(true),
	}
	in := restoreOf(source, "s", "shop-test", "db.t3.micro")
	got := []any{*in.DBInstanceIdentifier, *in.DBSnapshotIdentifier, *in.DBInstanceClass, *in.DBParameterGroupName, *in.OptionGroupName, *in.DBSubnetGroupName,
		*in.BackupRetentionPeriod, *in.AutoMinorVersionUpgrade, *in.CopyTagsToSnapshot, in.DeletionProtection == nil}
	want := []any{"shop-test", "s", "db.t3.micro", "tuned", "default:postgres-15", "inner", int32(0), false, true, true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if in := restoreOf(source, "s", "shop-test", ""); in.DBInstanceClass != nil {
		t.Errorf("class %s, want that of the snapshot", *in.DBInstanceClass)
	}
}
