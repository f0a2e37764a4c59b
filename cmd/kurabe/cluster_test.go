package main

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"
)

func TestServersOfACluster(t *testing.T) {
	if writer, readers := serversOf(types.DBCluster{}); writer != "-" || readers != "-" {
		t.Error(writer, readers)
	}
	member := func(name string, writes bool) types.DBClusterMember {
		return types.DBClusterMember{DBInstanceIdentifier: aws.String(name), IsClusterWriter: aws.Bool(writes)}
	}
	d := types.DBCluster{DBClusterMembers: []types.DBClusterMember{member("a", false), member("b", true), member("c", false)}}
	if writer, readers := serversOf(d); writer != "b" || readers != "a,c" {
		t.Error(writer, readers)
	}
}
