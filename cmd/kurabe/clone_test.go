package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
	"github.com/google/go-cmp/cmp"

	"kurabe"
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

func TestPrintSnapshots(t *testing.T) {
	var out bytes.Buffer
	printSnapshots(&out, nil)
	if out.Len() > 0 {
		t.Errorf("of none: %q", out.String())
	}
	taken := time.Date(2026, 7, 1, 5, 0, 0, 0, time.Local)
	printSnapshots(&out, []explainedSnapshot{
		{Name: "cloned", Kind: "manual", State: "available", Facts: kurabe.SnapshotFacts{Method: kurabe.SnapshotCloned, SizeBytes: 3 << 30, OccupiedBytes: 1 << 20, Percent: 100, TakenAt: taken}},
		{Name: "under-way", Kind: "manual", State: "creating", Facts: kurabe.SnapshotFacts{SizeBytes: 2 << 30, Percent: 40}},
		{Name: "lost", Kind: "manual", State: "failed", Reason: "the disk is full", Failure: &kurabe.Failure{Step: "take-snapshot", Attempts: 5, Message: "no space left on device"}},
	})
	for _, want := range []string{
		"snapshots   cloned ", "2026-07-01 05:00:00", "clone of 3 GiB, occupies 1 MiB\n", "40 % of 2 GiB\n", "lost: the disk is full\n",
		"step take-snapshot failed 5 times: no space left on device\n", "together they occupy 1 MiB\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
}
