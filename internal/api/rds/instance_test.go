package rds

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
)

// DBInstanceIdentifier is one more value of the filter db-instance-id, and what
// matches nothing of a given name is not found.
func TestDescribeInstancesByRealClient(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	arn := w.c.ARN("db", "orders")
	for _, c := range []struct {
		name, identifier string
		filters          []types.Filter
		found            int
		code             string
	}{
		{name: "all", found: 1},
		{name: "identifier", identifier: "ORDERS", found: 1},
		{name: "arn", identifier: arn, found: 1},
		{name: "filter", filters: filter("db-instance-id", "other", "Orders"), found: 1},
		{name: "filter by arn", filters: filter("db-instance-id", arn), found: 1},
		{name: "filter that matches none", filters: filter("db-instance-id", "other")},
		{name: "absent, but the filter matches", identifier: "other", filters: filter("db-instance-id", "orders"), found: 1},
		{name: "absent", identifier: "other", code: "DBInstanceNotFound"},
		{name: "another filter does not match", identifier: "orders", filters: filter("engine", "mariadb"), code: "DBInstanceNotFound"},
		{name: "no name", identifier: "under_score", code: "InvalidParameterValue"},
		{name: "no values", filters: filter("engine", []string{}...), code: "InvalidParameterCombination"},
		{name: "unknown filter", filters: filter("colour", "red"), code: "InvalidParameterValue"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := &rds.DescribeDBInstancesInput{Filters: c.filters}
			if c.identifier != "" {
				in.DBInstanceIdentifier = &c.identifier
			}
			out, err := w.client.DescribeDBInstances(ctx, in)
			if c.code != "" {
				wantCode(t, err, c.code, "")
			} else if err != nil || len(out.DBInstances) != c.found {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
}

// Protection is named before the missing choice of a last snapshot: tools look for
// its words.
func TestDeleteInstanceByRealClient(t *testing.T) {
	w, ctx, id := newTestWorld(t), t.Context(), aws.String("orders")
	protect := func(on bool) {
		t.Helper()
		must(w.client.ModifyDBInstance(ctx, &rds.ModifyDBInstanceInput{DBInstanceIdentifier: id, DeletionProtection: &on}))(t)
	}
	protect(true)
	_, err := w.client.DeleteDBInstance(ctx, &rds.DeleteDBInstanceInput{DBInstanceIdentifier: id})
	wantCode(t, err, "InvalidParameterCombination", "please disable deletion protection")
	protect(false)
	_, err = w.client.DeleteDBInstance(ctx, &rds.DeleteDBInstanceInput{DBInstanceIdentifier: id})
	wantCode(t, err, "InvalidParameterCombination", "FinalDBSnapshotIdentifier is required")
	must(w.client.DeleteDBInstance(ctx, &rds.DeleteDBInstanceInput{DBInstanceIdentifier: id, SkipFinalSnapshot: aws.Bool(true)}))(t)
	_, err = w.client.DeleteDBInstance(ctx, &rds.DeleteDBInstanceInput{DBInstanceIdentifier: id})
	wantCode(t, err, "InvalidDBInstanceState", "is already being deleted")
}
