package failover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/rds"
	"github.com/aws/aws-sdk-go-v2/service/rds/types"

	"kurabe/internal/harness"
	"kurabe/test/bench/bed"
)

// Clusters is the name of the part.
const Clusters = "clusters"

// What happens to a cluster, in a random order in each round, with its three servers on one
// host. No bar was set for any of it.
var clusterLosses = []*loss{
	{name: "cluster: writer killed", measure: longestPause, strike: side.kill},
	{name: "cluster: failover in order", measure: longestPause, strike: side.inOrder},
	{name: "cluster: reader killed", measure: longestUnread, strike: side.killStandby},
	{name: "cluster: reader frozen", measure: longestUnread, strike: side.loseStandby},
}

const longestUnread = "longest time without an answer at the reader endpoint, of the slowest of 4 clients"

// clustersPart loses servers of a DB cluster of each engine, one cluster after the other:
// three servers of one take the memory of three instances.
func clustersPart(ctx context.Context, r *comparison) (failure error) {
	if r.Only == "" {
		r.Out.Row(bed.Row{Bench: Clusters, What: "losses of a DB cluster", Value: bed.NotMeasured, Note: "only with --only " + Clusters})
		return nil
	}
	l, err := r.site(ctx)
	if err != nil {
		return err
	}
	if r.began.IsZero() {
		r.began = time.Now()
	}
	for _, c := range r.clusterContenders(l) {
		failure = errors.Join(failure, r.inTurn(ctx, []*contender{c}), c.end(ctx), c.wrong())
	}
	r.clusterFigures()
	return failure
}

// clusterContenders are a cluster of each engine that there is.
func (r *comparison) clusterContenders(l *site) (list []*contender) {
	const where = "all three servers on this machine"
	for _, c := range []struct{ engine, role string }{{bed.Postgres, roleCluster}, {bed.MariaDB, roleClusterOther}} {
		if _, had := l.Engines[c.engine]; had || r.List {
			list = append(list, r.contender(about{Name: bed.EngineTitle[c.engine] + " cluster", Role: c.role, Where: where}, clusterLosses, l.clusterSide(c.engine)))
		}
	}
	return list
}

// clusterFigures makes their rows from what the file has.
func (r *comparison) clusterFigures() {
	if own := r.book.only(roleCluster); own != nil {
		r.lossRows(clusterLosses, own, r.book.only(roleClusterOther), nil)
	} else if other := r.book.only(roleClusterOther); other != nil {
		r.lossRows(clusterLosses, other, nil, nil)
	}
}

// clusterSide makes clusters of an engine.
func (l *site) clusterSide(engine string) maker {
	remove := func(ctx context.Context, s side) error { return l.removeCluster(ctx, s.(*clusterLab).name) }
	return maker{
		make: func(ctx context.Context, n int) (side, error) {
			name := fmt.Sprintf("cluster-%s-%d", engine, n)
			c, err := l.clusterLab(ctx, engine, name)
			if err == nil {
				return c, nil
			}
			if ctx.Err() == nil {
				err = errors.Join(err, l.removeCluster(ctx, name))
			}
			return nil, err
		},
		drop: func(ctx context.Context, s side) error {
			c := s.(*clusterLab)
			for _, m := range c.view.Members(c.id) {
				_ = m.Thaw() // a loss that failed may have left it frozen, and a frozen server does not end
			}
			return remove(ctx, s)
		},
		leave: remove,
	}
}

// clusterLab is a DB cluster, and its client that writes. Of what happens to pairs it has a part.
type clusterLab struct {
	side
	*site
	name, id string
	login    harness.Login // by the cluster's endpoint
	readers  harness.Login // by that of the readers
	view     *harness.Service
	pulse    *harness.Pulse
	pairs    int // that were asked for
}

func (c *clusterLab) client() writer { return c.pulse }

func (l *site) clusterLab(ctx context.Context, engine, name string) (*clusterLab, error) {
	c := &clusterLab{site: l, name: name, view: &harness.Service{Data: l.Data}}
	_, err := l.Api.CreateDBCluster(ctx, &rds.CreateDBClusterInput{
		DBClusterIdentifier: aws.String(name), Engine: aws.String(engine), DBClusterInstanceClass: aws.String(pairClass(l)),
		MasterUsername: aws.String(bed.MasterUser), MasterUserPassword: aws.String(bed.MasterPassword), DatabaseName: aws.String(bed.Database),
		AllocatedStorage: aws.Int32(20), StorageType: aws.String("local"),
	})
	if err != nil {
		return nil, err
	}
	d, err := c.whole(ctx)
	if err != nil {
		return nil, err
	}
	c.id = recordID(d)
	c.login = harness.Login{Engine: engine, Address: aws.ToString(d.Endpoint), Port: int(aws.ToInt32(d.Port)), User: bed.MasterUser, Password: bed.MasterPassword,
		Database: bed.Database, CAFile: filepath.Join(l.Data, "ca.pem")}
	c.readers = c.login
	c.readers.Address = aws.ToString(d.ReaderEndpoint)
	c.pulse, err = harness.NewPulse(ctx, c.login)
	return c, err
}

func (c *clusterLab) describe(ctx context.Context) (d types.DBCluster, err error) {
	out, err := c.Api.DescribeDBClusters(ctx, &rds.DescribeDBClustersInput{DBClusterIdentifier: aws.String(c.name)})
	if err != nil {
		return d, err
	}
	return out.DBClusters[0], nil
}

// whole waits until all three servers are there, and commits wait for either of two.
func (c *clusterLab) whole(ctx context.Context) (d types.DBCluster, err error) {
	for deadline := time.Now().Add(wholeTimeOf(c.id)); ; _ = bed.Wait(ctx, bed.PollPause) {
		if d, err = c.describe(ctx); err != nil {
			return d, err
		}
		lacks, err := c.lacks(ctx, d)
		if err != nil || lacks == "" {
			return d, err
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return d, errors.Join(ctx.Err(), fmt.Errorf("%s is not whole: %s", c.name, lacks))
		}
	}
}

// recordID is the id that folders and records have, of which users see control.ClusterResourceID.
func recordID(d types.DBCluster) string {
	return "db-" + strings.TrimPrefix(aws.ToString(d.DbClusterResourceId), "cluster-")
}

// wholeTimeOf bounds the wait for a cluster, which is made at first.
func wholeTimeOf(id string) time.Duration {
	if id == "" {
		return bed.AvailableTime + wholeWait
	}
	return wholeWait
}

func (c *clusterLab) lacks(ctx context.Context, d types.DBCluster) (string, error) {
	if status := aws.ToString(d.Status); status != "available" || len(d.DBClusterMembers) != 3 {
		return fmt.Sprintf("it is %s with %d servers", status, len(d.DBClusterMembers)), nil
	}
	var followers []string
	members := c.view.Members(recordID(d))
	for _, m := range members {
		if _, err := m.Server(); err != nil {
			return err.Error(), nil
		}
		if m.Follows() {
			followers = append(followers, m.ID)
		}
	}
	if len(members) != 3 || len(followers) != 2 {
		return fmt.Sprintf("%d of %d servers follow", len(followers), len(members)), nil
	}
	for _, m := range d.DBClusterMembers {
		out, err := c.Api.DescribeDBInstances(ctx, &rds.DescribeDBInstancesInput{DBInstanceIdentifier: m.DBInstanceIdentifier})
		if err != nil {
			return err.Error(), nil // one may just have been replaced
		}
		if status := aws.ToString(out.DBInstances[0].DBInstanceStatus); status != "available" {
			return fmt.Sprintf("%s is %s", aws.ToString(m.DBInstanceIdentifier), status), nil
		}
	}
	slices.Sort(followers)
	said, err := c.explain(ctx)
	if !strings.Contains(said, "commits wait for "+strings.Join(followers, ", ")+"\n") {
		return "not both readers have every commit: " + said, err
	}
	return "", err
}

// explain is what the service says of its own record, which no call of RDS tells.
func (c *clusterLab) explain(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, c.Bin, "explain", c.name, "--data", c.Data, "--region", bed.Region, "--endpoint", aws.ToString(c.Api.Options().BaseEndpoint))
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "AWS_") }), "AWS_ACCESS_KEY_ID="+bed.AccessKey, "AWS_SECRET_ACCESS_KEY="+c.Secret)
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("kurabe explain %s: %w: %s", c.name, err, out)
	}
	return string(out), err
}

// removeCluster returns when a cluster is gone, or there was none.
func (l *site) removeCluster(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, bed.GoneTime)
	defer cancel()
	_, err := l.Api.DeleteDBCluster(ctx, &rds.DeleteDBClusterInput{DBClusterIdentifier: aws.String(name), SkipFinalSnapshot: aws.Bool(true)})
	for err == nil {
		_ = bed.Wait(ctx, bed.PollPause)
		_, err = l.Api.DescribeDBClusters(ctx, &rds.DescribeDBClustersInput{DBClusterIdentifier: aws.String(name)})
	}
	if bed.ErrorCode(err) == "DBClusterNotFoundFault" {
		return nil
	}
	return fmt.Errorf("delete %s: %w", name, err)
}
