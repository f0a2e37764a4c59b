package rds

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
)

// What tools ask for when they take stock is empty, and by its name not found.
func TestNothing(t *testing.T) {
	w, ctx := newTestWorld(t), t.Context()
	if out := must(w.client.DescribeDBProxies(ctx, &rds.DescribeDBProxiesInput{}))(t); len(out.DBProxies) != 0 {
		t.Error(out.DBProxies)
	}
	_, err := w.client.DescribeDBProxies(ctx, &rds.DescribeDBProxiesInput{DBProxyName: aws.String("front")})
	wantCode(t, err, "DBProxyNotFoundFault", "front")
	_, err = w.client.DescribeTenantDatabases(ctx, &rds.DescribeTenantDatabasesInput{DBInstanceIdentifier: aws.String("nope")})
	wantCode(t, err, "DBInstanceNotFound", "nope")
	_, err = w.client.DescribeDBProxies(ctx, &rds.DescribeDBProxiesInput{Marker: aws.String("x")})
	wantCode(t, err, "InvalidParameterValue", "Marker")
}
