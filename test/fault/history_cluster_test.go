//go:build fault

package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
)

// clusterHistoryTime is how long its history is; a part of what a pair's is unless all is asked for.
var clusterHistoryTime = map[bool]time.Duration{true: historyTime, false: 20 * time.Second}[harness.Whole()]

// TestHistoryCluster is TestHistory of DB clusters, whose commits wait for either of two servers.
func TestHistoryCluster(t *testing.T) {
	for _, engine := range []string{"postgres", "mariadb"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel() // each engine on a service of its own
			n := seed(t)
			s := harness.Start(t, harness.Options{Fault: true})
			s.NeedEngine(t, engine, s.Engines(t))
			newCluster(t, s, engine, rand.New(rand.NewPCG(n, 0))).underHistory(t, clusterHistoryTime)
			deleteCluster(t, s)
			noOrphans(t, s)
		})
	}
}

const clusterName = "ring"

// deleteCluster returns when nothing is shown of the cluster any more, and nothing of it is left.
func deleteCluster(t *testing.T, s *harness.Service) {
	t.Helper()
	_, err := s.DeleteDBCluster(t.Context(), &rds.DeleteDBClusterInput{DBClusterIdentifier: aws.String(clusterName), SkipFinalSnapshot: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	harness.Wait(t, pairSettleTime, "the cluster is gone", func() string {
		out, err := s.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{})
		if err != nil {
			return err.Error()
		}
		if left := s.Homes(); len(left) > 0 || len(out.DBInstances) > 0 {
			return fmt.Sprintf("%v, and %d servers are shown", left, len(out.DBInstances))
		}
		return ""
	})
}

func newCluster(t *testing.T, s *harness.Service, engine string, random *rand.Rand) *struck {
	t.Helper()
	group := aws.String("of-" + clusterName)
	_, err := s.CreateDBClusterParameterGroup(t.Context(), &rds.CreateDBClusterParameterGroupInput{
		DBClusterParameterGroupName: group, DBParameterGroupFamily: familyOf(t, s, engine), Description: aws.String("for a test"),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.CreateDBCluster(t.Context(), &rds.CreateDBClusterInput{
		DBClusterIdentifier: aws.String(clusterName), DBClusterParameterGroupName: group, Engine: aws.String(engine), DBClusterInstanceClass: aws.String(harness.Class("micro")),
		MasterUsername: aws.String("master"), MasterUserPassword: aws.String(harness.Password), DatabaseName: aws.String("shop"), AllocatedStorage: aws.Int32(20),
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &struck{s: s, random: random, wishes: &wishes{s: s, name: clusterName, cluster: true, random: random}}
	b.failOver = func(t *testing.T) error {
		_, err := s.FailoverDBCluster(t.Context(), &rds.FailoverDBClusterInput{DBClusterIdentifier: aws.String(clusterName)})
		return err
	}
	b.policy = func(value string) error {
		_, err := s.ModifyDBClusterParameterGroup(context.Background(), &rds.ModifyDBClusterParameterGroupInput{DBClusterParameterGroupName: group, Parameters: standbyLost(value)})
		return err
	}
	b.whole = func(t *testing.T) { wholeCluster(t, s) }
	c := wholeCluster(t, s)
	b.id = harness.Owners(s.Homes())[0]
	b.login = harness.Login{
		Engine: engine, Address: aws.ToString(c.Endpoint), Port: int(aws.ToInt32(c.Port)), User: "master", Password: harness.Password,
		Database: "shop", CAFile: filepath.Join(s.Data, "ca.pem"),
	}
	return b
}

// wholeCluster waits until the cluster and its three servers are available.
func wholeCluster(t *testing.T, s *harness.Service) (c types.DBCluster) {
	t.Helper()
	harness.Wait(t, pairSettleTime, "the cluster is whole", func() string {
		clusters, err := s.DescribeDBClusters(t.Context(), &rds.DescribeDBClustersInput{DBClusterIdentifier: aws.String(clusterName)})
		if err != nil {
			return err.Error()
		}
		servers, err := s.DescribeDBInstances(t.Context(), &rds.DescribeDBInstancesInput{})
		if err != nil {
			return err.Error()
		}
		c = clusters.DBClusters[0]
		status := []string{aws.ToString(c.Status)}
		for _, i := range servers.DBInstances {
			status = append(status, aws.ToString(i.DBInstanceStatus))
		}
		if said := fmt.Sprint(status); said != "[available available available available]" {
			return said
		}
		return ""
	})
	return c
}
