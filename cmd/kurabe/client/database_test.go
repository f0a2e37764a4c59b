package client

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
)

// A cluster is reached at its writer's endpoint, and its login is not that of an instance of
// the same name.
func TestAClusterIsReachedAtItsEndpoint(t *testing.T) {
	d := types.DBCluster{DBClusterIdentifier: aws.String("shop"), Status: aws.String("creating"), Port: aws.Int32(6000)}
	if i := AsInstance(d); i.Endpoint != nil {
		t.Error("an endpoint before there is one", *i.Endpoint.Address)
	}
	d.Endpoint, d.ReaderEndpoint = aws.String("127.66.0.1"), aws.String("127.66.0.2")
	i := AsInstance(d)
	if *i.Endpoint.Address != "127.66.0.1" || *i.Endpoint.Port != 6000 || *i.DBInstanceIdentifier == "shop" {
		t.Errorf("%+v", i)
	}
}
